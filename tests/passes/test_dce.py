"""Dead code goes; inputs and live code stay, as the same objects."""

from __future__ import annotations

from typing import Any

from graphtool import ops as o
from graphtool.passes.dce import dce
from tests.passes.pass_samples import module


def _dead(x: Any, y: Any) -> Any:
    o.exp(o.neg(y))
    return x + 1.0


def test_drops_what_nobody_reads() -> None:
    m = module(_dead, "f32[2]", "f32[2]")
    new = dce(m.graph)
    assert [n.op.name for n in new.nodes] == ["add"]
    assert new.inputs == m.graph.inputs
    assert new.nodes[0] is m.graph.nodes[-1]


def test_same_graph_where_all_is_needed() -> None:
    graph = module(lambda x: o.exp(x) + 1.0, "f32[2]").graph
    assert dce(graph) is graph
