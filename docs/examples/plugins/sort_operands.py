"""A pass before cse: a + b and b + a become one node, because their operands stand in one order."""

from __future__ import annotations

from dataclasses import replace

from graphtool.extend import Graph, Node, Pass, Trait, Value, add_pass

__version__ = "1.0"


def sort_operands(graph: Graph) -> Graph:
    """Puts the operands of commutative ops into the order in which they are defined."""
    order: dict[Value, int] = {}
    for v in (*graph.inputs, *(v for n in graph.nodes for v in n.outputs)):
        order[v] = len(order)

    def sorted_node(node: Node) -> Node:
        values = [x for x in node.inputs if isinstance(x, Value)]
        by_place = tuple(sorted(values, key=order.__getitem__))
        if Trait.COMMUTATIVE not in node.op.traits or by_place in (tuple(values), node.inputs):
            return node
        return replace(node, inputs=by_place) if len(values) == len(node.inputs) else node

    nodes = tuple(sorted_node(n) for n in graph.nodes)
    return replace(graph, nodes=nodes) if nodes != graph.nodes else graph


add_pass(Pass("sort_operands", sort_operands, "Equal sums are then equal nodes, which cse joins."),
         before="cse", order=[("sort_operands", "cse", "cse compares operands in their order")])
