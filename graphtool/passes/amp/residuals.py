"""Keeps in 16 bits the forward values that the backward pass reads. It is a part of `amp`, not a
pass.

A float32 value that the model rounds before its next product is rounded for the gradients as well.
Values that only the loss uses, and statistics of rows, keep all their digits.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from graphtool import dtypes
from graphtool import ops as o
from graphtool.dtypes import DType
from graphtool.ir.facets import Precision, Trait
from graphtool.ir.graph import Graph, Node, Value, is_constant
from graphtool.ir.replay import ancestors
from graphtool.ir.trace import Builder, Tracer


def kept_low(graph: Graph, gradients: Collection[Value], low: DType) -> Graph:
    """The graph whose gradients read residuals in `low`; its first output is the loss."""
    forward = set(ancestors(graph, graph.outputs[:1]))
    behind = set(ancestors(graph, gradients)) - forward
    rounded = _rounded(graph, forward)
    b = Builder()
    short: dict[Value, Value] = {}

    def cast(x: Value, to: DType) -> Value:
        made: Value = b.emit(o.cast, (Tracer(x, b),), {"dtype": to},
                             hint=f"{x.hint.lstrip('@')}.{to.short}").value
        return made
    sums = _cast(behind, low)
    wanted = {x for n in graph.nodes if n in behind for x in _residuals(n, rounded, sums)}
    for node in graph.nodes:
        ours = set(_residuals(node, rounded, sums)) if node in behind else set()
        b.add(node if not ours else replace(node, inputs=tuple(
            cast(short[x], dtypes.float32) if x in ours else x for x in node.inputs)))
        # cast it where it is made, so that the wide value need not be stored
        for v in node.outputs:
            if v in wanted:
                short[v] = cast(v, low)
    return Graph(graph.inputs, tuple(b.nodes), graph.outputs)


def _rounded(graph: Graph, forward: Collection[Node]) -> set[Value]:
    """Wide values of the forward pass that are rounded for a later product."""
    needed: set[Value] = set()
    out: set[Value] = set()
    for node in reversed(graph.nodes):
        if node not in forward:
            continue
        if node.op.precision is Precision.LOW or any(v in needed for v in node.outputs):
            needed.update(x for x in node.inputs if isinstance(x, Value))
            out.update(v for v in node.outputs if v in needed and (
                not is_constant(node) and Trait.CONVERTS not in node.op.traits)
                and v.type.dtype is dtypes.float32)
    return out


def _cast(behind: Collection[Node], low: DType) -> set[Value]:
    """Gradients that are rounded for a product."""
    return {x for n in behind if Trait.CONVERTS in n.op.traits and n.attrs["dtype"] is low
            for x in n.inputs if isinstance(x, Value)}


def _residuals(node: Node, rounded: set[Value], sums: set[Value]) -> list[Value]:
    """The operands of a gradient's node that it may read rounded: residuals that it does not
    broadcast, and the values that a bias's gradient sums."""
    if node.op is o.reduce_sum:
        return [x for x in node.inputs if isinstance(x, Value) and x in sums]
    if node.op.traits & (Trait.ELEMENTWISE | Trait.CONVERTS) != Trait.ELEMENTWISE:
        return []
    shape = node.outputs[0].type.shape
    return [x for x in node.inputs if isinstance(x, Value) and x in rounded
            and x.type.shape == shape]
