"""The program reads the options of the verb that is used, and of no other."""

from __future__ import annotations

from typing import Any

import pytest
from typer.main import get_command

from graphtool.cli.app import VERBS, app


@pytest.fixture
def program() -> Any:
    return get_command(app)


@pytest.mark.parametrize(("args", "made"), [
    (["--help"], []), (["show", "--help"], ["show"]), (["cache", "dir", "--help"], ["cache"])])
def test_only_what_is_used(args: list[str], made: list[str], program: Any,
                           capsys: pytest.CaptureFixture[str]) -> None:
    program(args, prog_name="graphtool", standalone_mode=False)
    assert capsys.readouterr().out.startswith("Usage: graphtool")
    assert list(program.commands.made) == made


def test_the_list_is_that_of_the_verbs(program: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """A line each, as typer makes it of the whole command."""
    program(["--help"], prog_name="graphtool", standalone_mode=False)
    rows = [line.split() for line in capsys.readouterr().out.partition("Commands:")[2].splitlines()]
    names = [*dict(VERBS), "cache"]
    assert [row[0] for row in rows if row and row[0] in names] == names
    for row in rows:
        if row and row[0] in names:
            assert row[1:3] == program.commands[row[0]].get_short_help_str(60).split()[:2]
