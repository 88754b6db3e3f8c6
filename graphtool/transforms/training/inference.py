"""Turns a model captured in training mode into its inference form: no dropout, running
statistics."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from graphtool import ops as o
from graphtool.ir.facets import Trait
from graphtool.ir.graph import Graph, Node, Operand, Value, producers
from graphtool.ir.replay import rebuild
from graphtool.ir.trace import Builder, Tracer


def inference(graph: Graph, donations: Sequence[tuple[int, int]], dropout: bool = False) -> Graph:
    """The graph without randomness; `donations` show which input belongs to which batch norm.

    Returns the same graph if there is nothing to change. With `dropout` that is kept.
    """
    norms = moving(graph, donations)
    if not any((n.op is o.dropout and not dropout) or n in norms for n in graph.nodes):
        return graph

    def rewrite(node: Node, xs: tuple[Operand, ...], b: Builder) -> Sequence[Any] | None:
        operands: list[Any] = [Tracer(x, b) if isinstance(x, Value) else x for x in xs]
        if node.op is o.dropout and not dropout:
            x, state = operands
            kept = b.constant(np.ones((1,) * x.ndim, bool))
            return x, o.broadcast(kept, shape=x.shape), state
        if node not in norms:
            return None
        mean, var = (Tracer(norms[node][i], b) for i in (1, 2))
        x, scale, bias = (*operands, None, None)[:3]
        return o.batch_norm(x, scale, bias, mean, var, **node.attrs), mean, var
    return rebuild(graph, rewrite)


def moving(graph: Graph, donations: Sequence[tuple[int, int]]) -> dict[Node, dict[int, Value]]:
    """For each batch norm with running statistics that move, the inputs whose new values are
    computed from its mean (1) and its variance (2)."""
    made = producers(graph)
    out: dict[Node, dict[int, Value]] = {}
    for new, old in donations:
        pending, seen = [graph.outputs[new]], set[Value]()
        while pending:
            v = pending.pop()
            node = made.get(v)
            if node is None or v in seen:
                continue
            seen.add(v)
            if node.op is o.batch_norm_training:
                out.setdefault(node, {})[node.outputs.index(v)] = graph.inputs[old]
            elif Trait.ELEMENTWISE in node.op.traits:
                pending += [x for x in node.inputs if isinstance(x, Value)]
    return {node: row for node, row in out.items() if len(row) == 2}
