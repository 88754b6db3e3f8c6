"""Makes the names of values what a file would have them be: all different."""

from __future__ import annotations

from dataclasses import replace

from graphtool.ir.graph import Graph, Group, Module, Node, Operand, Value, is_constant
from graphtool.ir.text import value_names


def uniquely_named(module: Module) -> Module:
    """The module with the hints that its values have after it was written and read, constants
    apart; itself if they have them already. What a kernel is called then does not depend on
    whether there was a file."""
    new: dict[Value, Value] = {}
    graph = _named(module.graph, new)
    if graph is module.graph:
        return module
    return replace(module, graph=graph,
                   choices={new.get(v, v): c for v, c in module.choices.items()})


def _named(graph: Graph, new: dict[Value, Value]) -> Graph:
    names = value_names(graph)
    fixed = {v for n in graph.nodes if is_constant(n) for v in n.outputs}
    for v, name in names.items():
        new[v] = v if v.hint == name or v in fixed else Value(v.type, name)
    nodes = {n: _node(n, new) for n in graph.nodes}
    if all(new[v] is v for v in names) and all(n is m for n, m in nodes.items()):
        return graph
    groups = tuple(Group(new[g.root], tuple(nodes[n] for n in g.members), g.kind)
                   for g in graph.groups)
    return Graph(tuple(new[v] for v in graph.inputs), tuple(nodes.values()),
                 tuple(new[v] for v in graph.outputs), groups)


def _node(node: Node, new: dict[Value, Value]) -> Node:
    def operand(x: Operand) -> Operand:
        return new[x] if isinstance(x, Value) else x
    inputs = tuple(map(operand, node.inputs))
    outputs = tuple(new[v] for v in node.outputs)
    attrs = {k: _named(a, new) if isinstance(a, Graph) else a for k, a in node.attrs.items()}
    same = inputs == node.inputs and outputs == node.outputs and all(
        attrs[k] is a for k, a in node.attrs.items())
    return node if same else replace(node, inputs=inputs, outputs=outputs, attrs=attrs)
