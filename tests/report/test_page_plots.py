"""The page's plots: a run over time, the curves of a training run, times of modules."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest

from graphtool.errors import InputError
from graphtool.report.page import charts, learning, timeline

pytest.importorskip("vl_convert")


def event(tid: int, ts: float, dur: float, kernel: str, cat: str = "", roof: float = 0.5
          ) -> dict[str, Any]:
    return {"ph": "X", "pid": 1, "tid": tid, "cat": cat or kernel, "name": f"of {kernel}",
            "ts": ts, "dur": dur, "args": {"kernel": kernel, "of roof": roof}}


def traced(*events: dict[str, Any]) -> timeline.Trace:
    return msgspec.convert({"traceEvents": [*events, {"ph": "M", "pid": 1, "tid": 0, "ts": 0,
                                                      "name": "process_name"}]}, timeline.Trace)


def texts(svg: str) -> list[str]:
    return re.findall(r"<text[^>]*>([^<]*)</text>", svg)


def test_a_lane_for_each_thread() -> None:
    trace = traced(event(0, 0.0, 30.0, "k0"), event(1, 1.0, 9.0, "k0"), event(0, 30, 70, "k1"))
    found = texts(timeline.timeline(trace, "a trace"))
    assert {"thread 0", "thread 1", "time, µs", "share of the roof", "100", "k0", "k1"} <= {
        *found}
    assert "a trace: one run of 100 µs on 2 threads" in found
    assert timeline.busy(trace).rows == [("thread 0", "100.0", "0.0", "100 %", "2"),
                                         ("thread 1", "9.0", "91.0", "9 %", "1")]


def test_a_training_step_has_its_phases() -> None:
    found = texts(timeline.timeline(traced(
        event(0, 0, 3, "k0", "forward"), event(0, 3, 4, "k1", "backward"), event(0, 7, 1, "k2")),
        "step"))
    assert {"phase", "forward", "backward", "other"} <= {*found}
    assert "share of the roof" not in found


def test_the_longest_spans_are_drawn() -> None:
    many = [event(0, i, 0.5, "k0") for i in range(timeline.MOST + 1)]
    svg = timeline.timeline(traced(*many, event(0, timeline.MOST + 1, 1000, "k9")), "x")
    assert svg.count('role="graphics-symbol"') <= timeline.MOST + 8 and "k9" in texts(svg)
    assert any("longest of" in t for t in texts(svg))


def test_a_trace_without_spans() -> None:
    assert timeline.timeline(traced(), "empty") == "" and timeline.busy(traced()).rows == []


LOG = [*({"step": i, "epoch": i // 50, "loss": 2.51 * 0.97 ** i, "lr": 1e-3, "grad_norm": 3.0 / (
    i + 1) ** 2} for i in range(100)),
    {"epoch": 0, "steps": 50, "train_loss": 1.2, "val_loss": 1.4, "val_accuracy": 0.4},
    {"epoch": 1, "steps": 100, "train_loss": 0.3, "val_loss": 0.5, "val_accuracy": 0.8}]


def test_curves_have_round_ticks_and_names() -> None:
    loss, rate, norm, accuracy = learning.curves(LOG)
    assert {"Loss", "step", "loss", "training", "validation", "0", "20", "100", "0.5", "2.5"} <= {
        *texts(loss)}
    assert "learning rate" in texts(rate)
    assert {"norm of the gradients", "0.1", "1"} <= {*texts(norm)}  # over 100 times: logarithmic
    assert "accuracy of validation" in texts(accuracy)
    assert learning.log_lines(LOG)[-1] == "best         0.5 after epoch 2"


def test_numbers_that_are_not_finite_are_left_out(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    log.write_text("".join(json.dumps(r) + "\n" for r in (
        {"step": 0, "loss": "nan"}, {"step": 1, "loss": "inf"}, {"step": 2, "loss": 1.5})))
    (loss,) = learning.curves(learning.read_log(log))
    assert "NaN" not in loss and "Infinity" not in loss


def test_long_lines_are_thinned() -> None:
    (svg,) = learning.curves([{"step": i, "loss": i % 7} for i in range(20_000)])
    assert len(svg) < 40_000


@pytest.mark.parametrize("line", ["{", "[]", '{"step": 1}', '{"step": 0, "loss": []}', "\xff",
                                  '{"a": 1}', "[" * 10_000])
def test_a_log_must_be_one(tmp_path: Path, line: str) -> None:
    (tmp_path / "log.jsonl").write_bytes(b'{"step": 0, "loss": 1}\n' + line.encode("latin-1"))
    with pytest.raises(InputError, match="not the log of a training run") as error:
        learning.read_log(tmp_path / "log.jsonl")
    assert error.value.code == "GT3147" and error.value.where.endswith("log.jsonl:2")


def test_the_time_of_each_module() -> None:
    steps = [{"label": f"layer{i}.{j}.conv + layer{i}.{j}.bn", "us": 1.0}
             for i in range(4) for j in range(10)]
    found = texts(charts.layers({"steps": [*steps, {"label": "head", "us": 3.0}]}))
    assert {"layer0", "layer3", "outside of modules", "time, µs"} <= {*found}  # 41 would be many
    assert charts.layers({"steps": [{"label": "head", "us": 3.0}]}) == ""
