"""Processes that work through spans: what they return, and what becomes of one that dies."""

from __future__ import annotations

import os
import time
from collections import Counter
from pathlib import Path

import pytest

from tests.lab.fuzz import processes
from tests.lab.fuzz.outcome import Finding, Outcome
from tests.lab.fuzz.processes import Lost, Span, Tell, crew
from tests.lab.fuzz.record import Record, read
from tests.lab.fuzz.report import report
from tests.lab.fuzz.seeds import merged, seeds, spans


def whole(span: Span, tell: Tell) -> list[int]:
    for seed in range(*span):
        tell(seed)
        if seed == 5:
            os.kill(os.getpid(), 9)
        if seed == 8:
            os._exit(3)
    return list(range(*span))


def test_a_death_costs_one_seed() -> None:
    found = list(crew([(0, 4), (4, 7), (7, 9), (9, 12)], whole, 2))
    lost = {x.seed: x.why for _, x in found if isinstance(x, Lost)}
    done = [s for _, x in found if isinstance(x, list) for s in x]
    assert lost == {5: "signal 9", 8: "exit 3"}
    assert sorted(done) == [s for s in range(12) if s not in lost]


def test_a_process_that_says_nothing_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "SECONDS", -1.0)
    monkeypatch.setattr(processes, "wait", lambda pipes, seconds: [])
    assert list(crew([(3, 4)], lambda span, tell: time.sleep(600), 1)) == [(
        (3, 4), Lost(3, "hung"))]


@pytest.mark.parametrize("done, want", [
    ([], [(3, 8), (8, 16), (16, 20)]), ([(0, 8)], [(8, 16), (16, 20)]),
    ([(5, 9), (9, 17)], [(3, 5), (17, 20)]), ([(0, 99)], [])])
def test_what_is_done_is_left_out(done: list[Span], want: list[Span]) -> None:
    assert list(spans(3, 20, 8, done)) == want


def test_ranges() -> None:
    assert merged([(5, 7), (1, 3), (3, 5), (9, 10)]) == [(1, 7), (9, 10)]
    assert seeds("7,30-39,8") == [(7, 9), (30, 40)]


def test_a_record_is_read_as_it_was_written(tmp_path: Path) -> None:
    record, path = Record(), tmp_path / "fuzz.json"
    out = Outcome(Counter(right=3, wrong=1), Counter({"refused: it": 1}), Counter(
        {"Add float32": 4}), Counter(native=4), {"evaluated": 2.0},
        [Finding(2, "Add: value", "so"), Finding(1, "Add: value")])
    record.add(record.part("onnx", 2), (0, 4), out)
    record.add(record.part("onnx", 2), (4, 8), Outcome(Counter(right=4)))
    record.write(path)
    again = read(path)
    assert again == record and len(again.parts) == 1 and again.done("onnx") == [(0, 8)]
    text = report(again, "a command")
    assert "| Add: value |" in text and "1,2" in text and "1 operators, 1 pairs" in text
    other = Record()
    other.add(other.part("torch", 2), (0, 1), Outcome(Counter(right=1), ops=Counter(tanh=1)))
    again.join(other)
    assert again.done("torch") == [(0, 1)] and again.ops["torch"] == {"tanh": 1}
    again.settle("onnx", (1, 3), [])
    assert again.open["onnx"] == []
