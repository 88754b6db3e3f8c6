"""Large values that products read rounded to bfloat16: what else reads them reads the rounded ones.

The value is then stored once, in half the bytes. This is done only in `fast`, which rounds the
operands of products in any case. The residual of a network is rounded once in each block. Extremes
of windows whose readers all round them take the rounded numbers: rounding keeps the order of
numbers, so that the result is the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from graphtool import dtypes
from graphtool import ops as o
from graphtool.ir.facets import Movement, Trait
from graphtool.ir.graph import Graph, Node, Operand, Value, producers
from graphtool.ir.replay import rebuild
from graphtool.ir.trace import Builder, Tracer
from graphtool.kernels.choice.operands import narrowed
from graphtool.passes.select.goal import Goal
from graphtool.symbolic import known, product, typical_size

PART = 4  # of the second-level cache: from this size on a value is worth it
Readers = Mapping[Operand, Sequence[Node]]
WIDE = 16  # channels: converting fewer costs more than the saved bytes


def shared_roundings(goal: Goal, graph: Graph) -> Graph:
    """The graph in which elementwise ops read large values as products do."""
    large = {n.inputs[0] for n in graph.nodes if rounds(n) and _bytes(n) > goal.target.l2 / PART}
    kept = large.difference(graph.outputs, graph.inputs)
    if not goal.rules.bf16 or not kept:
        return graph
    rounded: dict[Operand, Value] = {}

    def once(old: Operand, new: Operand, b: Builder) -> Tracer:
        assert isinstance(new, Value)
        if old not in rounded:
            rounded[old] = o.cast(Tracer(new, b), dtype=dtypes.bfloat16).value
        return Tracer(b.renamed.get(rounded[old], rounded[old]), b)

    def rewrite(node: Node, inputs: tuple[Operand, ...], b: Builder) -> Sequence[Any] | None:
        if not kept.intersection(v for v in node.inputs if isinstance(v, Value)):
            return None
        if rounds(node):
            return (once(node.inputs[0], inputs[0], b),)
        if Trait.ELEMENTWISE not in node.op.traits:
            return None
        read = [o.cast(once(old, new, b), dtype=dtypes.float32) if old in kept else
                Tracer(new, b) if isinstance(new, Value) else new
                for old, new in zip(node.inputs, inputs, strict=True)]
        return (node.op(*read, **node.attrs),)
    return rebuild(graph, rewrite)


def rounds(node: Node) -> bool:
    """Whether the node rounds float32 to bfloat16."""
    x = node.inputs[0] if node.inputs else None
    return (Trait.CONVERTS in node.op.traits and node.attrs["dtype"] is dtypes.bfloat16
            and isinstance(x, Value) and x.type.dtype is dtypes.float32)


def _bytes(node: Node) -> int:
    x = node.inputs[0]
    assert isinstance(x, Value)
    return x.type.dtype.bytes * typical_size(product(x.type.shape))


def rounded_windows(goal: Goal, graph: Graph) -> Graph:
    """The graph in which the extremes of windows are found in bfloat16, if everything else that
    reads the numbers rounds them too."""
    readers: dict[Operand, list[Node]] = {}
    for node in graph.nodes:
        for x in node.inputs:
            readers.setdefault(x, []).append(node)
    made_by = producers(graph)
    ours = {n for n in graph.nodes if _of_extremes(n) and _rounded(graph, readers, made_by, n)}
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


def _rounded(graph: Graph, readers: Readers, made_by: Mapping[Value, Node], node: Node) -> bool:
    """Whether all that read the result round it, and all others that read the operand, of a padded
    one what is inside."""
    y, x, reader = node.outputs[0], node.inputs[0], node
    assert isinstance(x, Value)
    if x in made_by and Movement.FILLS in made_by[x].op.movement and len(readers[x]) == 1:
        reader = made_by[x]
        x = reader.inputs[0]
    kept = {*graph.inputs, *graph.outputs}
    return kept.isdisjoint((x, y)) and y in readers and all(map(rounds, readers[y])) and all(
        r is reader or rounds(r) for r in readers[x])
