"""Replaces symbolic sizes in every type, attribute and region of a graph."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

from graphtool.ir.graph import Graph, Node, Operand, TensorType, Value
from graphtool.ir.replay import replay
from graphtool.ir.run_sizes import sizes_of
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
    made = {s.name: s for n in graph.nodes for s in sizes_of(n)}
    if not made:
        return graph
    used, names = {*taken, *made}, dict[str, Dim]()
    for name, size in made.items():
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
