"""Help texts: whole sentences for every verb and option, and examples that run."""

from __future__ import annotations

import re
import shlex
import subprocess
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from graphtool.cli.app import app
from graphtool.importers import IMPORTERS
from graphtool.verbs import VERBS as ROWS
from tests.cli.conftest import SAMPLES, Cli


def commands() -> Iterator[tuple[str, Any]]:
    program: Any = get_command(app)
    for name, verb in program.commands.items():
        for sub, command in getattr(verb, "commands", {"": verb}).items():
            yield f"{name} {sub}".strip(), command


VERBS = dict(commands())


def test_every_verb_shows_examples() -> None:
    assert set(ROWS) == set(VERBS)
    for name, row in ROWS.items():
        assert all(line in VERBS[name].epilog for line in row.examples)
        assert len(row.examples) > 1 or not VERBS[name].params, "two, one without options"


@pytest.mark.parametrize("name", VERBS)
def test_texts_are_whole_sentences(name: str) -> None:
    verb = VERBS[name]
    for text in (verb.help, *(p.help for p in verb.params if p.name != "help")):
        assert re.fullmatch(r"\w.*[.]", text or "", re.S), text


def test_numbers_are_finite() -> None:
    """No float option of any verb takes NaN, which passes each bound, or an infinity."""
    found = [(verb, p) for verb in VERBS.values() for p in verb.params
             if "float" in p.type.name]
    assert len(found) > 10
    for verb, p in found:
        for text in ("nan", "inf"):
            with pytest.raises(Exception, match=f"{text} is not finite|not in the range"):
                verb.make_context("verb", [p.opts[-1], text])


def test_import_names_every_form() -> None:
    source = get_command(app).commands["import"].params[0]  # type: ignore[attr-defined]
    assert [r.written for r in IMPORTERS.values() if r.written not in source.help] == []


def test_examples_run(gt: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the order of the table: each finds the files of those before it."""
    (tmp_path / "samples").symlink_to(SAMPLES)
    monkeypatch.chdir(tmp_path)
    # these may answer no: differs, breaks a rule, no fault, no longer best
    negative = {"diff", "lint", "reduce", "tune", "git review"}
    for verb, row in ROWS.items():
        if verb == "view" and not (find_spec("fast_sugiyama") and find_spec("vl_convert")):
            continue  # an extra
        if verb.startswith("cache"):  # the tests before it share one cache
            monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
        if verb == "git install":
            for words in ("init -q", "add m.graph.json",
                          "-c user.name=n -c user.email=n@e.org commit -qm base"):
                subprocess.run(["git", *words.split()], check=True)
        for line in row.examples:
            result = gt(*shlex.split(line)[1:])
            assert result.code == 0 or (result.code == 1 and verb in negative), line + result.err
