"""Removes the nodes that no output needs. Inputs stay, because they are the interface."""

from __future__ import annotations

from graphtool.ir.graph import Graph, Node, Value
from graphtool.ir.run_sizes import needs


def prune(graph: Graph) -> Graph:
    """The graph without the nodes that no output depends on; the same object if there are none.

    A node that checks a size stays, and so does a node that defines a size in use.
    """
    needed, sizes = set(graph.outputs), needs(graph)
    makers: set[Node] = set()  # of sizes that are mentioned
    kept: list[Node] = []
    for node in reversed(graph.nodes):
        if node in makers or node.attrs.get("checked") or not needed.isdisjoint(node.outputs):
            kept.append(node)
            needed.update(x for x in node.inputs if isinstance(x, Value))
            makers.update(sizes.get(node, ()))
    if len(kept) == len(graph.nodes):
        return graph
    return Graph(graph.inputs, tuple(reversed(kept)), graph.outputs)
