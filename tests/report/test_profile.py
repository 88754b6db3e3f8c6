"""A profile of a small build: its numbers fit together, and its trace is what Chrome reads."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graphtool.compile.as_is import build
from graphtool.native.runtime import load
from graphtool.passes import calls, run
from graphtool.passes.arguments import PassCall
from graphtool.report.machine import Bandwidth, Peaks
from graphtool.report.profile import Profile, micros, profile, profile_lines, profile_table, trace
from graphtool.transforms.training import Recipe, training
from graphtool.verify.sides import build_inputs, training_state
from tests.passes.pass_samples import SAMPLES

THREADS = 2


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(run(SAMPLES["convnet"]), tmp_path_factory.mktemp("made") / "b", name="net")


def profiled(folder: Path) -> tuple[Profile, Any]:
    x = np.random.default_rng(0).standard_normal((8, 4, 6, 6)).astype(np.float32)
    (name,) = (i["name"] for i in json.loads((folder / "build.json").read_text())["inputs"])
    return profile(folder, {name: x}, THREADS, runs=3)


@pytest.fixture(scope="module")
def found(folder: Path) -> tuple[Profile, Any]:
    return profiled(folder)


def test_steps_have_rates_under_a_roof(found: tuple[Profile, Any]) -> None:
    p, _ = found
    assert p.peaks.gflops > 0 and all(b.gbps > 0 for b in p.peaks.bandwidth)
    assert sorted(p.peaks.bandwidth, key=lambda b: -b.gbps) == p.peaks.bandwidth
    timed = [s for s in p.steps if s.us]
    assert timed and all(s.gbps > 0 and s.roof > 0 for s in timed)
    assert any(s.gflops > 0 for s in timed)
    assert "GB/s from memory" in profile_lines(p)[-1]


def test_a_loop_counts_all_its_iterations(tmp_path: Path) -> None:
    m = run(SAMPLES["convnet"], ["specialize{B=8}", *(
        PassCall("chunk", {"size": 2}) if c.name == "chunk" else c for c in calls())])
    p, marks = profiled(build(m, tmp_path / "b", name="net"))
    inside = [s for s in p.steps if s.iterations > 1]
    assert inside and {s.iterations for s in inside} == {4}
    assert sum(s.us for s in p.steps) <= 1.5 * p.total_us
    assert any(str(row[6]).endswith(" ×4") for row in profile_table(p, 99).rows)
    assert json.loads(trace(p, marks))["traceEvents"]


def test_short_times_keep_their_digits() -> None:
    assert [micros(us) for us in (0.0, 0.049, 3.83, 12.34)] == ["0.0", "0.05", "3.83", "12.3"]


def test_the_roof_is_the_nearer_of_the_two() -> None:
    peaks = Peaks(100.0, [Bandwidth(1000, 50.0), Bandwidth(10_000, 10.0)])
    assert peaks.least_us(1_000_000, 1000) == pytest.approx(10)  # flops: 1 MFLOP at 100 GFLOP/s
    assert peaks.least_us(0, 1000) == pytest.approx(0.02)
    assert peaks.least_us(0, 1_000_000) == pytest.approx(100)  # more than any cache holds


def test_the_trace_is_made_of_events_in_order(found: tuple[Profile, Any]) -> None:
    p, marks = found
    events = json.loads(trace(p, marks))["traceEvents"]
    assert all({"ph", "ts", "pid", "tid", "name"} <= e.keys() for e in events)
    named = {e["tid"]: e["args"]["name"] for e in events if e["name"] == "thread_name"}
    assert named == {t: f"thread {t}" for t in range(p.threads)}
    spans = [e for e in events if e["ph"] == "X"]
    assert len(events) == len(spans) + 1 + p.threads
    assert [e["ts"] for e in spans] == sorted(e["ts"] for e in spans)
    for t in range(p.threads):
        row = [e for e in spans if e["tid"] == t]
        assert len(row) == len(p.steps)
        assert all(e["ts"] >= 0 and e["dur"] >= 0 for e in row)
        assert all(a["ts"] + a["dur"] <= b["ts"] + 0.001
                   for a, b in pairwise(row))


def test_a_training_step_by_its_phases(tmp_path: Path) -> None:
    module = training(SAMPLES["convnet"], Recipe("mse", optimizer="adam", clip_norm=1.0))
    built = build(module, tmp_path / "b", name="net")
    given = build_inputs(load(built), 0, {}) | training_state(built)
    p, marks = profile(built, given, THREADS, runs=2)
    assert {s.phase for s in p.steps} >= {"forward", "backward", "optimizer"}
    assert all(s.source.startswith("net_step_kernels") for s in p.steps)
    assert any("optimizer" in line for line in profile_lines(p))
    found = profile_table(p, 5)
    assert found.head[0] == "phase" and all(len(r) == len(found.head) for r in found.rows)
    assert {e["cat"] for e in json.loads(trace(p, marks))["traceEvents"] if e["ph"] == "X"} == {
        s.phase for s in p.steps}


def test_a_build_that_does_not_know_its_bytes(folder: Path, found: tuple[Profile, Any]) -> None:
    del found  # the build is changed after all others have seen it
    path = folder / "build.json"
    old = json.loads(path.read_text())
    for step in old["steps"]:
        del step["bytes"]
    path.write_text(json.dumps(old))
    p, _ = profiled(folder)
    assert all(s.gbps == s.roof == 0 for s in p.steps)
    assert any(s.gflops > 0 for s in p.steps)
