"""Where two runs part: which values belong together, their errors, and what the page marks."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from graphtool import dtypes, passes
from graphtool import ops as o
from graphtool.analysis.made_up import random_inputs
from graphtool.importers import import_source
from graphtool.io.weights import weight
from graphtool.ir.graph import Graph, Module, TensorType, is_constant
from graphtool.ir.trace import trace
from graphtool.report.page.facts import marked, of_numbers
from graphtool.target import detect
from graphtool.verify.along import Apart, along, compiled
from tests.cli.conftest import DIGITS
from tests.report.graphs import module

T = TensorType(dtypes.float32, (4, 4))


def doubled(m: Module, at: int) -> Module:
    """The module with one of its constants twice as large."""
    nodes, n = list(m.graph.nodes), [i for i, x in enumerate(m.graph.nodes) if is_constant(x)][at]
    data = nodes[n].attrs["data"]
    nodes[n] = replace(nodes[n], attrs={**nodes[n].attrs, "data": weight(2 * data.source)})
    return replace(m, graph=Graph(m.graph.inputs, tuple(nodes), m.graph.outputs))


def test_a_graph_agrees_with_itself() -> None:
    m = module(trace(lambda x: o.exp(o.neg(x)), [T]))
    rows = along(m, m, random_inputs(m, 0, {}), None, 1e-4)
    assert [(r.name, r.other, r.error, r.ok) for r in rows] == [
        ("neg", "neg", 0.0, True), ("exp", "exp", 0.0, True)]


def test_values_in_another_layout_are_compared() -> None:
    """The passes put channels last and split a relu in two; the values are still the model's."""
    m = import_source(DIGITS)
    rows = {r.name: r for r in along(m, passes.run(m), random_inputs(m, 0, {}), None, 1e-4)}
    assert {"relu", "max_pool2d", "logits"} <= set(rows) and rows["relu"].other == "relu.select"
    assert all(r.ok and r.error < 1e-5 for r in rows.values())


def test_the_first_value_that_parts() -> None:
    a = import_source(DIGITS)
    wrong = [n.outputs[0].hint for n in a.graph.nodes if is_constant(n)].index("block3.conv.weight")
    rows = along(a, doubled(a, wrong), random_inputs(a, 0, {}), None, 1e-4)
    first = next(r for r in rows if not r.ok)
    assert first.name == "conv2d_2" and first.error == pytest.approx(1.0)
    assert all(r.ok for r in rows[:rows.index(first)])


@pytest.mark.compiled
def test_every_kernel_beside_the_evaluator() -> None:
    m = passes.run(import_source(DIGITS))
    rows = compiled(m, random_inputs(m, 0, {}), detect(), None, 1e-4)
    assert len(rows) > 4 and all(r.ok and r.error < 1e-4 for r in rows)
    assert rows[-1].name == "logits"


def test_what_is_not_a_number_parts() -> None:
    m = module(trace(lambda x: o.log(x), [T]))
    (same,) = along(m, m, {"x0": np.full((4, 4), -1.0, np.float32)}, None, 1e-4)
    assert same.ok and same.error == 0.0  # NaN on both sides


def row(name: str, error: float, ok: bool) -> Apart:
    return Apart(name, name, error, ok, error, 0 if ok else 3, 16)


def test_the_page_marks_the_first() -> None:
    pytest.importorskip("vl_convert")
    rows = [row("a", 0.0, True), row("b", 0.5, False), row("c", float("inf"), False)]
    made = of_numbers("x and y", rows)
    assert made["lines"] == ["The first value that parts is b, 0.5 of its size, at most 0.5, "
                             "3 of 16 elements out of tolerance."]
    assert "first to part" in made["charts"][0] and "Infinity" not in made["charts"][0]
    graph: dict[str, object] = {}
    marked(graph, rows, False)
    assert graph["parts"] == {"b": "first", "c": "later"}


def test_all_match_or_nothing_is_common() -> None:
    pytest.importorskip("vl_convert")
    assert of_numbers("x", [row("a", 0.0, True)])["lines"] == ["All 1 values match."]
    assert of_numbers("x", [])["charts"] == []
