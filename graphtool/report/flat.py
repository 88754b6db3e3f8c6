"""A graph as a flat list of items: inputs, nodes, those of regions in line, and its outputs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from graphtool.dtypes import DType
from graphtool.ir.graph import Graph, Node, Operand, TensorType, Value, is_constant
from graphtool.ir.text import attr_text, literal_text, shown_attrs, value_names

Port = tuple[int, int]  # (item, which of its results)
Arg = Port | str  # a literal stands as its text


@dataclass(eq=False)
class Item:
    """A node, a graph input, a region's input, or the graph's outputs, flattened."""

    op: str
    attrs: dict[str, str]
    args: tuple[Arg, ...]
    types: tuple[TensorType, ...]
    name: str
    where: str = ""
    content: str = ""  # a constant's digest, an input's position
    users: list[tuple[int, int]] = field(default_factory=list)  # (item, operand position)
    inner: bool = False  # in a region

    @property
    def label(self) -> tuple[str, tuple[tuple[str, str], ...]]:
        """The op and its attributes; of a constant the op alone."""
        return self.op, () if self.op == "constant" else tuple(self.attrs.items())


def flatten(graph: Graph) -> list[Item]:
    """The graph as items, regions in line; the last item reads the graph's outputs."""
    items: list[Item] = []
    env: dict[Value, Port] = {}
    names = value_names(graph)
    for i, v in enumerate(graph.inputs):
        env[v] = (len(items), 0)
        items.append(Item("input", {}, (), (v.type,), names[v], content=f"input {i}"))
    _flatten_nodes(graph, items, env, names, "")
    outputs = tuple(env[v] for v in graph.outputs)
    items.append(Item("return", {}, outputs, (), "return"))
    for at, item in enumerate(items):
        for position, arg in enumerate(item.args):
            if isinstance(arg, tuple):
                items[arg[0]].users.append((at, position))
    return items


def _flatten_nodes(graph: Graph, items: list[Item], env: dict[Value, Port],
                   names: dict[Value, str], prefix: str) -> None:
    for node in graph.nodes:
        kind = next((x.type.dtype for x in node.inputs if isinstance(x, Value)
                     and x.type.dtype.is_float), None)
        args = tuple(_arg(x, env, kind) for x in node.inputs)
        name = prefix + names[node.outputs[0]] if node.outputs else prefix + node.op.name
        for key, region in node.attrs.items():
            if isinstance(region, Graph):
                args += _flatten_region(key, region, args, items, f"{name}.{key}/")
        for i, v in enumerate(node.outputs):
            env[v] = (len(items), i)
        items.append(_item(node, args, name))


def _flatten_region(key: str, region: Graph, args: tuple[Arg, ...], items: list[Item],
                    prefix: str) -> tuple[Port, ...]:
    inner: dict[Value, Port] = {}
    names, first = value_names(region), len(items)
    for i, v in enumerate(region.inputs):
        inner[v] = (len(items), 0)
        items.append(Item("region", {"input": f"{key} {i}"}, args, (v.type,), prefix + names[v]))
    _flatten_nodes(region, items, inner, names, prefix)
    for item in items[first:]:
        item.inner = True
    return tuple(inner[v] for v in region.outputs)


def _arg(x: Operand, env: dict[Value, Port], kind: DType | None) -> Arg:
    """An operand; a literal beside floats of this type is the float of that type."""
    if isinstance(x, Value):
        return env[x]
    if kind is None or x is None or isinstance(x, bool):
        return literal_text(x)
    with np.errstate(over="ignore"):
        return literal_text(float(kind.numpy.type(x)))


def _attr(node: Node, key: str, value: Any) -> str:
    return attr_text(float(value) if node.op.schema[key].annotation is float else value)


def _item(node: Node, args: tuple[Arg, ...], name: str) -> Item:
    types = tuple(v.type for v in node.outputs)
    if is_constant(node):
        kind = {"param": "true"} if node.attrs["param"] else {}
        return Item("constant", kind, args, types, name, node.where, node.attrs["data"].digest)
    attrs = {k: _attr(node, k, v) for k, v in shown_attrs(node).items() if not isinstance(v, Graph)}
    return Item(node.op.name, attrs, args, types, name, node.where)
