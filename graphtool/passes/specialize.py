"""Replaces symbolic sizes by numbers: in every type, attribute and region, and in the module's
table of symbols."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from graphtool.errors import UsageError
from graphtool.ir.graph import Graph, Module, Node, Operand, TensorType, Value
from graphtool.ir.trace import infer, replay
from graphtool.symbolic import Dim, Poly, check_bounds, check_required, substitute


def specialize(module: Module, **sizes: int) -> Module:
    """The module with numbers for the named symbols, which must be within their bounds."""
    for name, size in sizes.items():
        if name not in module.symbols:
            raise UsageError("GT0607", f"specialize: the module has no symbol {name!r}",
                             hint=f"it has {', '.join(module.symbols) or 'none'}")
        check_bounds(module.symbols[name], size)
    if not sizes:
        return module
    check_required(module.requires, sizes)
    symbols = {n: s for n, s in module.symbols.items() if n not in sizes}
    requires = [e.under(sizes) for e in module.requires]
    return dataclasses.replace(module, graph=bind(module.graph, sizes), symbols=symbols,
                               requires=tuple(e for e in requires if e.holds is not True))


def bind(graph: Graph, sizes: Mapping[str, Dim]) -> Graph:
    """The graph with numbers for symbols, by name; all of its values are new."""
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
