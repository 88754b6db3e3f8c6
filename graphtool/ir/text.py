"""Names for values, and the one-line-a-node listing that `show` prints. No files, no parsing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from graphtool.dtypes import DType
from graphtool.io.weights import Weight
from graphtool.ir.graph import Graph, Node, Operand, Value
from graphtool.symbolic import Poly, text


def value_names(graph: Graph) -> dict[Value, str]:
    """A unique name for each value: its hint, `#2` and so on behind it where that is taken."""
    names: dict[Value, str] = {}
    taken: set[str] = set()
    counters: dict[str, int] = {}
    constants = [n for n in graph.nodes if n.op.name == "constant"]
    others = [n for n in graph.nodes if n.op.name != "constant"]

    def give(v: Value, hint: str) -> None:
        name = hint or "value"
        while name in taken:
            counters[hint] = counters.get(hint, 1) + 1
            name = f"{hint}#{counters[hint]}"
        taken.add(name)
        names[v] = name

    for v in graph.inputs:
        give(v, v.hint)
    for node in constants:
        hint = node.outputs[0].hint
        give(node.outputs[0], hint if hint.startswith("@") else f"@{hint}")
    for node in others:
        for v in node.outputs:
            give(v, v.hint)
    return names


def literal_text(x: Operand) -> str:
    return "none" if x is None else str(x).lower() if isinstance(x, bool) else repr(x)


def attr_text(x: Any) -> str:
    """An attribute's value as the listing shows it."""
    match x:
        case bool():
            return str(x).lower()
        case None:
            return "none"
        case Poly():
            return text(x)
        case DType():
            return x.short
        case tuple():
            return f"({', '.join(map(attr_text, x))}{',' if len(x) == 1 else ''})"
        case Weight():
            return x.digest[:15]
        case Graph():
            return f"<graph of {len(x.nodes)}>"
        case str():
            return x
        case _:
            return repr(x)


def shown_attrs(node: Node) -> dict[str, Any]:
    """The attributes that differ from their defaults."""
    schema = node.op.schema
    return {k: v for k, v in node.attrs.items()
            if schema[k].required or not _same(v, schema[k].default)}


def _same(a: Any, b: Any) -> bool:
    return type(a) is type(b) and (a == b or (a != a and b != b))


def node_text(node: Node, names: Mapping[Value, str]) -> str:
    """`fc1.matmul: f32[B,128] = matmul(x, @fc1.weight, transpose_b=true)`"""
    outputs = ", ".join(f"{names[v]}: {v.type}" for v in node.outputs)
    args = [names[x] if isinstance(x, Value) else literal_text(x) for x in node.inputs]
    args += [f"{k}={attr_text(v)}" for k, v in shown_attrs(node).items()]
    return f"{outputs} = {node.op.name}({', '.join(args)})"


def graph_lines(graph: Graph, indent: str = "") -> Iterable[str]:
    """The listing: inputs, constants, nodes (regions indented below theirs), outputs, groups."""
    names = value_names(graph)
    for v in graph.inputs:
        yield f"{indent}input {names[v]}: {v.type}"
    for node in graph.nodes:
        if node.op.name == "constant":
            kind = "param" if node.attrs["param"] else "constant"
            yield f"{indent}{kind} {names[node.outputs[0]]}: {node.outputs[0].type}"
    for node in graph.nodes:
        if node.op.name == "constant":
            continue
        at = f"  # {node.where}" if node.where else ""
        yield f"{indent}{node_text(node, names)}{at}"
        for key, value in node.attrs.items():
            if isinstance(value, Graph):
                yield f"{indent}  {key}:"
                yield from graph_lines(value, indent + "    ")
    for group in graph.groups:
        members = " ".join(names[n.outputs[0]] for n in group.members)
        yield f"{indent}group {names[group.root]} ({group.kind}): {members}"
    yield f"{indent}return {', '.join(names[v] for v in graph.outputs)}"
