"""The program reads the options of the verb that is used, and of no other."""

from __future__ import annotations

import inspect
import re
from typing import Any

import pytest
from typer.main import get_command

from graphtool.cli.app import app
from graphtool.verbs import FAMILIES, GROUPS, VERBS, families
from tests.cli.conftest import Cli


@pytest.fixture
def program() -> Any:
    return get_command(app)


@pytest.mark.parametrize(("args", "made"), [
    (["--help"], []), (["show", "--help"], ["show"]), (["cache", "dir", "--help"], ["cache"])])
def test_only_what_is_used(args: list[str], made: list[str], program: Any,
                           capsys: pytest.CaptureFixture[str]) -> None:
    program(args, prog_name="graphtool", standalone_mode=False)
    assert capsys.readouterr().out.startswith("Usage: graphtool")
    assert list(program.commands.loaded) == made


def test_the_list_has_every_verb_in_its_group(program: Any,
                                              capsys: pytest.CaptureFixture[str]) -> None:
    """A line each, with its whole first sentence, which is cut nowhere."""
    program(["--help"], prog_name="graphtool", standalone_mode=False)
    out = capsys.readouterr().out
    parts = re.split(r"^(\S.*):$", out, flags=re.M)
    sections = dict(zip(parts[1::2], parts[2::2], strict=True))
    assert list(sections)[1:] == [g[0].upper() + g[1:] for g in GROUPS]
    for name, verbs in families().items():
        first = next(iter(verbs.values()))
        text = " ".join(sections[first.group[0].upper() + first.group[1:]].split())
        help = FAMILIES.get(name) or " ".join((inspect.getdoc(first.run) or "").split())
        assert f"{name} {help.partition('. ')[0].rstrip('.')}." in text
    assert "..." not in "".join(sections.values())


@pytest.mark.parametrize("verb", ["", "build", "git", "git check"])
def test_help_is_a_verb(verb: str, gt: Cli) -> None:
    assert gt("help", *verb.split()).out.strip() == gt(*verb.split(), "--help").out.strip()


def test_help_and_version_in_words(gt: Cli) -> None:
    assert gt("version").out == gt("-V").out == gt("--version").out
    wrong = gt("help", "git", "chekc")
    assert wrong.code == 2 and "GT3001" in wrong.err and "check" in wrong.err


def test_every_group_has_verbs() -> None:
    assert {row.group for row in VERBS.values()} == set(GROUPS)
