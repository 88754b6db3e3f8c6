"""The C of small graphs as it stands in files: what a person who reads it would see.

Paragraphs that all of them share stand in `shared.c`, and with their first line in the others.
"""

from __future__ import annotations

import difflib
from functools import cache
from pathlib import Path

import pytest

from graphtool.emit.c import emit
from graphtool.lower import lower
from graphtool.target import named
from tests.emit.samples import GOLDEN

FOLDER = Path(__file__).parent / "golden"
SHARED = "shared"
MORE = "  /* … as in shared.c */"


@cache
def paragraphs(name: str) -> list[str]:
    program = lower(GOLDEN[name](), named("x86-64-v3", threads=4))
    files = {f: t for f, t in emit(program).items() if f.startswith("model")}
    return "\n".join(f"/* ==== {f} ==== */\n{t}" for f, t in files.items()).split("\n\n")


def texts() -> dict[str, str]:
    """What each file should hold."""
    of = {name: paragraphs(name) for name in GOLDEN}
    common = {p for p in set[str].intersection(*map(set, of.values())) if p.count("\n") > 1}
    out = {name: "\n\n".join(p.partition("\n")[0] + MORE if p in common else p for p in ps)
           for name, ps in of.items()}
    first = next(iter(of.values()))
    return out | {SHARED: "\n\n".join(p for p in first if p in common) + "\n"}


@pytest.mark.parametrize("name", [*GOLDEN, SHARED])
def test_emitted_c(name: str, request: pytest.FixtureRequest) -> None:
    text, path = texts()[name], FOLDER / f"{name}.c"
    if request.config.getoption("--update-golden"):
        path.write_text(text)
    old = path.read_text()
    diff = list(difflib.unified_diff(old.splitlines(), text.splitlines(), "golden", "now", n=1))
    assert not diff, "\n".join(diff[:40]) + "\n(--update-golden accepts it)"
