"""Extremes of windows whose readers all round them: they take the rounded numbers.

Rounding keeps the order of numbers, so that the result is the same. What the windows slide over is
then stored in half the bytes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from graphtool import dtypes
from graphtool import ops as o
from graphtool.ir.facets import Movement
from graphtool.ir.graph import Graph, Node, Operand, Value
from graphtool.ir.replay import rebuild
from graphtool.ir.trace import Builder, Tracer
from graphtool.kernels.choice.operands import narrowed
from graphtool.passes.select.goal import Goal
from graphtool.passes.select.shared_roundings import rounds
from graphtool.symbolic import known

Readers = Mapping[Operand, Sequence[Node]]
WIDE = 16  # channels, fewer of which cost more to convert than they save in bytes


def rounded_windows(goal: Goal, graph: Graph) -> Graph:
    """The graph in which the extremes of windows are found in bfloat16, if everything else that
    reads the numbers rounds them too."""
    readers: dict[Operand, list[Node]] = {}
    for node in graph.nodes:
        for x in node.inputs:
            readers.setdefault(x, []).append(node)
    made = {v: n for n in graph.nodes for v in n.outputs}
    ours = {n for n in graph.nodes if _of_extremes(n) and _rounded(graph, readers, made, n)}
    if not goal.rules.bf16 or not ours:
        return graph

    def rewrite(node: Node, inputs: tuple[Operand, ...], b: Builder) -> Sequence[Any] | None:
        if node not in ours:
            return None
        assert isinstance(inputs[0], Value)
        y = node.op(narrowed(Tracer(inputs[0], b)), **node.attrs)
        return (o.cast(y, dtype=dtypes.float32),)
    return rebuild(graph, rewrite)


def _of_extremes(node: Node) -> bool:
    return ("window" in node.attrs and node.attrs.get("kind") in ("max", "min")
            and node.outputs[0].type.dtype is dtypes.float32
            and known(WIDE, "<=", node.outputs[0].type.shape[-1]) is True)


def _rounded(graph: Graph, readers: Readers, made: Mapping[Value, Node], node: Node) -> bool:
    """Whether all that read the result round it, and all others that read the operand, of a padded
    one what is inside."""
    y, x, own = node.outputs[0], node.inputs[0], node
    assert isinstance(x, Value)
    if x in made and Movement.FILLS in made[x].op.movement and len(readers[x]) == 1:
        own = made[x]
        x = own.inputs[0]
    kept = {*graph.inputs, *graph.outputs}
    return kept.isdisjoint((x, y)) and y in readers and all(map(rounds, readers[y])) and all(
        r is own or rounds(r) for r in readers[x])
