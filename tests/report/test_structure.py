"""Residual connections and fusible chains, as `show --stats` reports them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from graphtool import dtypes
from graphtool import ops as o
from graphtool.ir.graph import TensorType
from graphtool.ir.trace import trace
from graphtool.report.stats import stats, stats_lines
from graphtool.report.table import human
from tests.report.graphs import layers, module

T = TensorType(dtypes.float32, (4, 4))
CASES = [
    ("around a product", lambda x: o.add(o.exp(o.matmul(o.neg(x), x)), x), 1),
    ("projected", lambda x: o.add(o.exp(o.matmul(x, x)), o.transpose(x, perm=(1, 0))), 1),
    ("an activation", lambda x: o.add(x, o.mul(o.exp(x), 2.0)), 0),
    ("two branches of two inputs", lambda x: o.add(o.exp(x), 1.0), 0),
]


@pytest.mark.parametrize(("name", "body", "count"), CASES, ids=[c[0] for c in CASES])
def test_residuals(name: str, body: Any, count: int) -> None:
    assert len(stats(module(trace(body, [T]))).residuals) == count


def test_every_layer_is_a_residual() -> None:
    rows = stats(layers(5)).residuals
    assert [r.skip for r in rows] == ["x0", "add#2", "add#4", "add#6", "add#8"]
    assert {r.length for r in rows} == {3}


def test_chains_behind_contractions() -> None:
    (row,) = stats(layers(5)).fusions
    assert (row.pattern, row.count) == ("matmul → add → relu → add", 5)


def test_chains_behind_composites() -> None:
    def body(x: Any) -> Any:
        return o.softmax(o.gelu(o.linear(x, x)), axis=1)
    report = stats(module(trace(body, [T])))
    assert [f.pattern for f in report.fusions] == ["linear → gelu"]
    assert "could be fused: 1 group" in stats_lines(report)


def test_stats_count_parameters_and_categories() -> None:
    def body(x: Any) -> Any:
        w = x.builder.constant(np.ones((4, 4), np.float32), "w", param=True)
        return o.reshape(o.matmul(x, w), shape=(16,))
    s = stats(module(trace(body, [T])))
    assert (s.params, s.param_bytes, s.constants, s.nodes) == (16, 64, 0, 2)
    assert s.categories == {"compute": 1, "data": 0, "shape": 1, "control": 0, "memory": 0}
    assert stats_lines(s)[0] == "nodes        2 (1 compute, 1 shape)"


@pytest.mark.parametrize(("value", "unit", "shown"), [
    (0, "", "0"), (999, "", "999"), (1234567, "", "1.23 M"), (2048, "B", "2.00 KiB"),
    ("4*B", "B", "4*B B"), (5, "B", "5 B")])
def test_human_numbers(value: int | str, unit: str, shown: str) -> None:
    assert human(value, unit) == shown


def test_alike_residuals_are_one_line() -> None:
    lines = stats_lines(stats(layers(5)))
    at = lines.index("residuals    5")
    assert lines[at + 1].startswith("  5 over ") and ", the first: " in lines[at + 1]
    assert not lines[at + 2].startswith("  5")
    one = stats_lines(stats(layers(1)))
    assert " joins " in one[one.index("residuals    1") + 1] and "first" not in " ".join(one)
