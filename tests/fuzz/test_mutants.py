"""What the program reader accepts is memory-safe: mutants that it accepts are compiled under ASan
and UBSan, and run on buffers of exactly the stated sizes, apart from each other."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("onnx")

from benchmarks import work
from graphtool.loops import serial
from graphtool.loops.program import Program
from tests.fuzz.program_samples import all_samples, kernels, small
from tests.lab.fuzz import mutants
from tests.lab.fuzz.exact import outcome, texts
from tests.lab.fuzz.mutants import Sample, try_mutant
from tests.lab.fuzz.outcome import Outcome

pytestmark = pytest.mark.skipif(shutil.which("gcc") is None, reason="gcc is not installed")
SANITIZERS = "address,undefined"


def tried(samples: Sequence[Sample], count: int, seed: int = 0) -> Outcome:
    out = Outcome()
    for number in range(seed, seed + count):
        try_mutant(number, samples[number % len(samples)], SANITIZERS, out)
    return out


def test_mutants_of_kernels() -> None:
    out = tried(kernels(), 120)
    assert out.findings == []
    assert out.statuses["clean"] > 3 and out.statuses["refused"] > 20


@pytest.mark.slow
def test_thousands_of_mutants() -> None:
    assert tried(all_samples(), 4000, 1_000_000).findings == []


def test_a_span() -> None:
    out = mutants.work((0, 12), lambda seed: None, SANITIZERS)
    assert out.findings == [] and out.tried == 12


def test_both_kinds_of_programs_have_their_turn() -> None:
    assert {mutants.sample_of(s).name for s in range(1, 6, 2)} == {"graph"}
    assert len({mutants.sample_of(s).name for s in range(0, 40, 2)}) == len(mutants.golden()) > 5


def one_short(program: Program) -> Program:
    return replace(program, buffers=tuple(replace(b, size=b.size - 1) if b.space == "arena" else b
                                          for b in program.buffers))


def test_an_access_outside_of_a_buffer_is_seen(tmp_path: Path) -> None:
    program = serial.loads(small()[0].text)
    held = list(small()[0].store.values())
    wanted = [next(w for w in held if w.digest == d) for _, d in program.weights]
    files = next(iter(texts(one_short(program), wanted)))
    assert "use-after-poison" in outcome(files, "x86-64", SANITIZERS, tmp_path)


def test_a_fault_is_a_finding_and_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """A reader that lets everything through: the mutant's fault stands in the work folder."""
    sample = small()[0]
    monkeypatch.setattr(mutants, "mutant", lambda text, rng: text.replace(" ", "  ", 1))
    read = serial.loads
    monkeypatch.setattr(mutants.serial, "loads", lambda text: (
        read(text) if text == sample.text else one_short(read(text))))
    out = Outcome()
    try_mutant(7, sample, SANITIZERS, out)
    assert out.statuses == {"wrong": 1} and "use-after-poison" in out.findings[0].cause
    assert json.loads((work.root() / "fuzz/7.program.json").read_text())


def test_what_the_reader_takes_too_long_for_is_a_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    def slow(text: str) -> Program:
        raise TimeoutError("more than 20 s")
    monkeypatch.setattr(mutants.serial, "loads", slow)
    out = Outcome()
    try_mutant(1, small()[0], SANITIZERS, out)
    assert "TimeoutError" in out.findings[0].cause
