"""Passes on listings: each file has a command, and texts before and after it.

A file's first line is the command, which reads the text above `---` and must give the one below.
`===` parts cases. `unchanged` stands for the text above; of an error its message is expected.
Before and after are also evaluated on random inputs. In what is expected, comments say which rules
fired, and `…` stands for constants that were computed, whose last bits differ between machines.
"""

from __future__ import annotations

import io
import json
import re
import shlex
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from graphtool.cli.faults import run
from graphtool.ir import listing, serial
from graphtool.passes import PASSES
from graphtool.passes.freeze import RULES as FREEZE
from graphtool.passes.recognise import RULES as RECOGNISE
from graphtool.rewrite.rules import RULES as SIMPLIFY
from tests.passes.pass_samples import assert_same

HERE = Path(__file__).parent
FILES = sorted(HERE.glob("*/*.txt"))
NOT_PRINTED = ("version ", "weights ", "history ", "assumes ", "choice ")
ROUGH = {  # tolerances, else 2e-5
    "amp": 0.05, "integer": 0.1, "quantise": 0.03, "freeze": 1e-4, "layout": 1e-4}
OTHER_INPUTS = {  # passes after which other inputs are wanted
    "cache", "specialize", "distribute", "step"}


def opt(command: str, source: str, folder: Path) -> str:
    """What the command makes of the listing: the error, or the text with the rules that fired."""
    out = folder / "out.gt"
    said, errors = io.StringIO(), io.StringIO()
    stdin = io.TextIOWrapper(io.BytesIO(source.encode()))
    with redirect_stdout(said), redirect_stderr(errors), patch("sys.stdin", stdin):
        code = run([*shlex.split(command)[1:], "-o", str(out), "--json"])
    if code:
        return errors.getvalue()
    before, after = serial.loads(source), serial.load(out)
    names = {str(p["name"]).partition("{")[0] for p in json.loads(said.getvalue())["passes"]}
    if not names & OTHER_INPUTS:
        assert_same(before, after, max([2e-5, *(ROUGH.get(n, 0) for n in names)]))
    printed = [plain(listing.dumps(m), source) for m in (before, after)]
    if printed[0] == printed[1]:
        return "unchanged\n"
    return "".join(map(fired, json.loads(said.getvalue())["passes"])) + printed[1]


def fired(row: dict[str, Any]) -> str:
    """A comment: which rules fired in a pass, and how often."""
    found = [k + (f" × {n}" if n > 1 else "") for k, n in sorted(row["rules"].items())]
    return f"# {row['name'].partition('{')[0]}: {', '.join(found)}\n" if found else ""


def plain(text: str, source: str) -> str:
    """The lines of the graph itself; constants that are not in the source without their data."""
    lines = [re.sub(r"^( *(?:param|constant) .*?\]) = (.*?)(?=  at |$)",
                    lambda m: m[0] if _known(m[2], source) else f"{m[1]} = …", line)
             for line in text.splitlines() if not line.lstrip().startswith(NOT_PRINTED)]
    return "\n".join(lines) + "\n"


def _known(data: str, source: str) -> bool:
    """Whether the data are short, and integers or in the source."""
    whole = re.fullmatch(r"[][\d, -]*", data) is not None
    return len(data) < 60 and (whole or f"= {data}" in source)


@pytest.mark.parametrize("path", FILES, ids=lambda p: f"{p.parent.name}/{p.stem}")
def test_text_in_text_out(path: Path, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    head, _, body = path.read_text().partition("\n\n")
    sources = [part.partition("---\n")[0] for part in body.split("===\n")]
    found = "===\n".join(f"{source}---\n{opt(head, source, tmp_path)}" for source in sources)
    if request.config.getoption("--update-golden"):
        path.write_text(f"{head}\n\n{found}")
    else:
        assert found == body


@pytest.mark.parametrize(("name", "rules"), [
    ("simplify", SIMPLIFY), ("freeze", FREEZE), ("recognise", RECOGNISE)])
def test_every_rule_fires_and_declines(name: str, rules: Any) -> None:
    """The file of a rule has a graph where it fires, and then one where it does not."""
    for rule in rules:
        parts = (HERE / name / f"{rule.name}.txt").read_text().split("===\n")
        said = [re.search(rf"^# {name}.*\b{rule.name}\b", p, re.M) is not None for p in parts]
        assert said[0] and not said[1], rule.name


def test_every_pass_has_a_file() -> None:
    assert {p.name for p in PASSES} - {f.parent.name for f in FILES} == set()
