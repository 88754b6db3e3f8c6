"""Composites that the passes took apart, found again so that people can read them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from graphtool import ops as o
from graphtool.analysis.costs import regions
from graphtool.ir.graph import Graph, Node, Value
from graphtool.ir.text import name_text, value_names


def relus(nodes: Iterable[Node]) -> dict[Node, Node]:
    """The selection that computes a relu, (x ≤ 0 ? 0 : x), with its comparison."""
    found: dict[Node, Node] = {}
    comparisons: dict[Value, Node] = {}
    for node in nodes:
        match node.op, node.inputs:
            case o.le, (Value(), bound) if _zero(bound):
                comparisons[node.outputs[0]] = node
            case o.select, (Value() as mask, zero, Value() as x) if _zero(zero):
                made = comparisons.get(mask)
                if made is not None and made.inputs[0] is x:
                    found[node] = made
    return found


def _zero(x: object) -> bool:
    return isinstance(x, (int, float)) and not isinstance(x, bool) and x == 0


def notes(graph: Graph) -> dict[Value, str]:
    """For the listing: what the values were before the passes, as in `relu(x)`; in regions too."""
    return dict(_notes(graph))


def _notes(graph: Graph) -> Iterator[tuple[Value, str]]:
    names = value_names(graph)
    for node in relus(graph.nodes):
        x = node.inputs[2]
        assert isinstance(x, Value)
        yield node.outputs[0], f"relu({name_text(names[x])})"
    for node in graph.nodes:
        for inner in regions(node):
            yield from _notes(inner)
