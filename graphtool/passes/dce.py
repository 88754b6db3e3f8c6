"""Dead-code elimination: drops nodes that no output needs. Inputs stay; they are the interface."""

from __future__ import annotations

from graphtool.ir.graph import Graph, Node, Value


def dce(graph: Graph) -> Graph:
    """The graph without the nodes that no output depends on; itself where there are none."""
    needed = set(graph.outputs)
    kept: list[Node] = []
    for node in reversed(graph.nodes):
        if not needed.isdisjoint(node.outputs):
            kept.append(node)
            needed.update(x for x in node.inputs if isinstance(x, Value))
    if len(kept) == len(graph.nodes):
        return graph
    return Graph(graph.inputs, tuple(reversed(kept)), graph.outputs)
