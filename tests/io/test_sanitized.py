"""What the program reader accepts is memory-safe: mutants that it accepts are compiled under ASan
and UBSan, and run on buffers of exactly the stated sizes, apart from each other."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from graphtool.loops.serial import loads
from tests.io.program_samples import all_samples, kernels, small
from tests.io.sanitized import explore, outcome, texts

pytestmark = pytest.mark.skipif(shutil.which("gcc") is None, reason="gcc is not installed")


def test_mutants_of_kernels() -> None:
    found = explore(kernels(), 60)
    assert found.faults == []
    assert found.counts["ran clean"] > 3


@pytest.mark.slow
def test_thousands_of_mutants() -> None:
    assert explore(all_samples(), 4000, 1_000_000).faults == []


def test_an_access_outside_of_a_buffer_is_seen(tmp_path: Path) -> None:
    program = loads(small()[0].text)
    short = [replace(b, size=b.size - 1) if b.space == "arena" else b for b in program.buffers]
    held = list(small()[0].store.values())
    wanted = [next(w for w in held if w.digest == d) for _, d in program.weights]
    files = next(iter(texts(replace(program, buffers=tuple(short)), wanted)))
    assert "use-after-poison" in outcome(files, "x86-64", tmp_path)
