"""What results need: the nodes they are computed from, and the graph without all others."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from graphtool.ir.graph import Graph, Node, Value
from graphtool.ir.run_sizes import needs


def ancestors(graph: Graph, wanted: Iterable[Value], given: Collection[Value] = ()) -> list[Node]:
    """The nodes from which the values are computed, in order; `given` are known already.

    A node that mentions a size needs also the node that defines it.
    """
    needed, sizes = set(wanted).difference(given), needs(graph)
    makers: set[Node] = set()  # of sizes that are mentioned
    kept: list[Node] = []
    for node in reversed(graph.nodes):
        if node in makers or not needed.isdisjoint(node.outputs):
            kept.append(node)
            needed.update(x for x in node.inputs if isinstance(x, Value) and x not in given)
            makers.update(sizes.get(node, ()))
    return kept[::-1]


def prune(graph: Graph, wanted: Collection[Value] = ()) -> Graph:
    """The graph without the nodes that no output and nothing `wanted` depends on; the same object
    if there are none.

    Inputs stay, because they are the interface. A node that checks a size stays too.
    """
    checks = [v for node in graph.nodes if node.attrs.get("checked") for v in node.outputs]
    kept = ancestors(graph, (*graph.outputs, *checks, *wanted))
    if len(kept) == len(graph.nodes):
        return graph
    return Graph(graph.inputs, tuple(kept), graph.outputs)
