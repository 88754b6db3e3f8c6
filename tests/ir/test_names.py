"""Names of nodes that passes make: derived from the author's, and no longer from pass to pass."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from graphtool import dtypes
from graphtool import ops as o
from graphtool.ir.graph import Graph, Node, TensorType
from graphtool.ir.replay import rebuild
from graphtool.ir.trace import Builder, Tracer, trace


def doubled(node: Node, xs: tuple[Any, ...], b: Builder) -> Sequence[Any] | None:
    """Four nodes in place of each negation, three of them negations."""
    if node.op.name != "neg":
        return None
    x = Tracer(xs[0], b)
    return [o.neg(o.abs(o.neg(o.neg(x))))]


def names(graph: Graph) -> set[str]:
    return {v.hint for n in graph.nodes for v in n.outputs}


def test_names_do_not_grow_from_pass_to_pass() -> None:
    graph = trace(lambda x: o.neg(x), [TensorType(dtypes.float32, (3,))], ["x"])
    for _ in range(3):
        graph = rebuild(graph, doubled)
    assert len(graph.nodes) == 40 and names(graph) == {"neg", "neg.neg", "neg.abs"}


def test_what_is_no_op_stays_in_a_name() -> None:
    """A module of the author's that is called like an op is no op that a pass has put there."""
    builder = Builder()
    x = builder.input(TensorType(dtypes.float32, (3,)), "x")
    with builder.scope("block.conv.grad", of=("block.conv",)):
        y = builder.emit(o.neg, (x,), {})
    graph = rebuild(Graph((x.value,), tuple(builder.nodes), (y.value,)), doubled)
    assert names(graph) == {"block.conv.grad.neg", "block.conv.grad.abs"}
