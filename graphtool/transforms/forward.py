"""Forward mode, as the vjp of the vjp.

A gradient is linear in its cotangents, so the vjp of the gradient with respect to them is the
directional derivative. Nodes that only the first backward pass needed are removed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from graphtool import ops as o
from graphtool.ir.graph import Graph, Node, Operand, Value
from graphtool.ir.replay import rebuild
from graphtool.ir.trace import Builder
from graphtool.transforms.regions import pruned
from graphtool.transforms.reverse import vjp


def jvp(graph: Graph, wrt: Sequence[Value], outputs: Sequence[int] | None = None) -> Graph:
    """The graph with one more input for each value of `wrt`, its tangent, and after its own
    outputs the tangents of `outputs` (the float ones). Raises the same errors as `vjp`."""
    first = vjp(graph, wrt, outputs)
    count, cotangents = len(graph.outputs), first.inputs[len(graph.inputs):]
    linear = Graph(first.inputs, first.nodes, (*first.outputs[count:], *first.outputs[:count]))
    second = vjp(linear, cotangents, range(len(wrt)))
    results = second.outputs[len(wrt):]
    tangents = second.inputs[len(linear.inputs):]
    whole = _without(Graph(second.inputs, pruned(second, results).nodes, results), cotangents)
    renamed = {old: Value(old.type, f"{v.hint.removeprefix('@')}.tangent")
               for old, v in zip(tangents, wrt, strict=True)}
    return _with_inputs(whole, (*graph.inputs, *tangents), renamed)


def _without(graph: Graph, zeros: Sequence[Value]) -> Graph:
    """The graph with 0 in place of these inputs; no result may depend on their values."""
    used = {x for n in graph.nodes for x in n.inputs if isinstance(x, Value)} | {*graph.outputs}
    if used.isdisjoint(zeros):
        return graph
    builder = Builder()
    zero_of = {v: o.broadcast(builder.constant(np.zeros((1,) * v.type.rank, v.type.dtype.numpy)),
                              shape=v.type.shape).value for v in zeros if v in used}
    inner = _with_inputs(graph, graph.inputs, zero_of)
    return Graph(inner.inputs, (*builder.nodes, *inner.nodes), inner.outputs)


def _with_inputs(graph: Graph, inputs: Sequence[Value], other: dict[Value, Value]) -> Graph:
    """The graph with these inputs, and other values in place of some."""
    def swap(node: Node, operands: tuple[Operand, ...], builder: Builder) -> Any:
        xs = tuple(other.get(x, x) if isinstance(x, Value) else x for x in operands)
        if all(a is b for a, b in zip(xs, operands, strict=True)):
            return None
        builder.add(replace(node, inputs=xs))
        return node.outputs
    swapped = rebuild(graph, swap)
    return Graph(tuple(other.get(v, v) for v in inputs), swapped.nodes,
                 tuple(other.get(v, v) for v in swapped.outputs))
