"""The C of small graphs as it stands in files: what a person who reads it would see."""

from __future__ import annotations

import difflib
from pathlib import Path

import pytest

from graphtool.emit.c import emit
from graphtool.lower import lower
from graphtool.target import named
from tests.emit.samples import GOLDEN

FOLDER = Path(__file__).parent / "golden"


@pytest.mark.parametrize("name", GOLDEN)
def test_emitted_c(name: str, request: pytest.FixtureRequest) -> None:
    program = lower(GOLDEN[name](), named("x86-64-v3", threads=4))
    files = {f: t for f, t in emit(program).items() if f.startswith("model")}
    text = "\n".join(f"/* ==== {f} ==== */\n{t}" for f, t in files.items())
    path = FOLDER / f"{name}.c"
    if request.config.getoption("--update-golden"):
        path.write_text(text)
    old = path.read_text()
    diff = list(difflib.unified_diff(old.splitlines(), text.splitlines(), "golden", "now", n=1))
    assert not diff, "\n".join(diff[:40]) + "\n(--update-golden accepts it)"
