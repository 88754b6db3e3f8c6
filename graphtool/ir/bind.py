"""The same graph with other sizes or other names: in every type, attribute and region."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

from graphtool.ir.graph import Graph, Group, Module, Node, Operand, TensorType, Value, is_constant
from graphtool.ir.replay import replay
from graphtool.ir.run_sizes import sizes_of
from graphtool.ir.text import value_names
from graphtool.ir.trace import infer
from graphtool.symbolic import Dim, Poly, dim_of, substitute


def bind(graph: Graph, sizes: Mapping[str, Dim]) -> Graph:
    """The graph with other sizes for symbols, by name; all of its values are new."""
    inputs = tuple(Value(_bound_type(v.type, sizes), v.hint) for v in graph.inputs)
    nodes: list[Node] = []

    def apply(node: Node, *operands: Operand) -> tuple[Value, ...]:
        attrs = {k: _bound(a, sizes) for k, a in node.attrs.items()}
        types = infer(node.op, operands, attrs, node.where)
        types = types if isinstance(types, tuple) else (types,)
        outputs = tuple(Value(t, v.hint) for t, v in zip(types, node.outputs, strict=True))
        nodes.append(replace(node, inputs=operands, attrs=attrs, outputs=outputs))
        return outputs

    outputs = replay(graph, inputs, apply)
    return Graph(inputs, tuple(nodes), tuple(outputs))


def with_own_sizes(graph: Graph, taken: Collection[str]) -> Graph:
    """The graph with new names for the sizes that it computes: a copy of a graph may stand beside
    it in a module, but each size has one definition. `taken` are names that others have."""
    defined_here = {s.name: s for n in graph.nodes for s in sizes_of(n)}
    if not defined_here:
        return graph
    used, names = {*taken, *defined_here}, dict[str, Dim]()
    for name, size in defined_here.items():
        n = 2
        while f"{name}_{n}" in used:
            n += 1
        used.add(f"{name}_{n}")
        names[name] = dim_of(replace(size, name=f"{name}_{n}"))
    return bind(graph, names)


def _bound_type(t: TensorType, sizes: Mapping[str, Dim]) -> TensorType:
    return TensorType(t.dtype, tuple(substitute(d, sizes) for d in t.shape))


def _bound(x: Any, sizes: Mapping[str, Dim]) -> Any:
    match x:
        case Poly():
            return substitute(x, sizes)
        case tuple():
            return tuple(_bound(i, sizes) for i in x)
        case Graph():
            return bind(x, sizes)
        case _:
            return x


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
