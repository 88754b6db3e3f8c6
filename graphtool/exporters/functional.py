"""A graph as a function of let-bindings, in the manner of Relay: each value is bound once, regions
are functions, and the last line of a function is its result. For reading; it is not read back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from graphtool.ir.graph import Graph, Module, Node, Value, is_constant
from graphtool.ir.listing import ListingStyle, data_text, required
from graphtool.ir.text import attr_text, literal_text, name_text, shown_attrs, value_names

INDENT = "  "


def functional(module: Module) -> Iterator[str]:
    """The lines of the module as one function. Large constants show the start of their digest."""
    yield from (f"# require {rule}" for rule in required(module))
    yield from _function(module.graph, "fn ", "", "")


def _function(graph: Graph, head: str, indent: str, tail: str) -> Iterator[str]:
    """`fn (x: f32[3]) -> f32[3] { … }`; `head` stands before its parameters, `tail` after it."""
    names = {v: name_text(n) for v, n in value_names(graph).items()}
    given = ", ".join(f"{names[v]}: {v.type}" for v in graph.inputs)
    yield f"{indent}{head}({given}) -> {_tuple([str(v.type) for v in graph.outputs])} {{"
    for node in graph.nodes:
        yield from _binding(node, names, indent + INDENT)
    yield f"{indent}{INDENT}{_tuple([names[v] for v in graph.outputs])}"
    yield f"{indent}}}{tail}"


def _binding(node: Node, names: Mapping[Value, str], indent: str) -> Iterator[str]:
    """`let y: f32[3] = exp(x);`, with the functions of its regions below it."""
    bound = _tuple([f"{names[v]}: {v.type}" for v in node.outputs])
    if is_constant(node):
        yield f"{indent}let {bound} = {data_text(node.attrs['data'], ListingStyle())};"
        return
    args = [names[x] if isinstance(x, Value) else literal_text(x) for x in node.inputs]
    args += [f"{k}={attr_text(v)}" for k, v in shown_attrs(node).items()
             if not isinstance(v, Graph)]
    regions = [(k, v) for k, v in node.attrs.items() if isinstance(v, Graph)]
    start = f"{indent}let {bound} = {node.op.name}({', '.join(args)}"
    if not regions:
        yield f"{start});"
        return
    yield f"{start},"
    for i, (key, region) in enumerate(regions):
        last = i == len(regions) - 1
        yield from _function(region, f"{key} = fn ", indent + INDENT, ");" if last else ",")


def _tuple(items: Sequence[str]) -> str:
    return items[0] if len(items) == 1 else f"({', '.join(items)})"
