"""Mutated artifacts as a mode of fuzz."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.lab.fuzz import artifacts
from tests.lab.fuzz.artifact_kinds import KINDS
from tests.lab.fuzz.outcome import Outcome


def run(kind: str) -> Outcome:
    return artifacts.work((240, 260), lambda seed: None, (kind,))


def test_files_are_read_or_refused() -> None:
    out = run("graph")
    assert out.findings == [] and out.statuses["refused"] + out.statuses["accepted"] == 20


def test_each_kind_has_its_turn() -> None:
    assert len(KINDS) > 5 and artifacts.samples("tuning")[1]


def test_a_traceback_is_a_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(path: Path) -> None:
        raise ValueError(f"cannot read {path}")
    there = artifacts.samples("graph")[1]
    monkeypatch.setattr(artifacts, "samples", lambda kind: (broken, there))
    out = run("graph")
    assert {f.seed for f in out.findings} == set(range(240, 260))
    assert {f.cause for f in out.findings} == {
        f.cause for f in out.findings if f.cause.startswith("graph: ValueError test_artifacts.py:")}
