"""The text of the node that makes each value, by the names that its author knows."""

from __future__ import annotations

from collections.abc import Iterator

from graphtool.ir.graph import Graph, Module, is_constant, names_of
from graphtool.ir.text import node_text, value_names


def node_texts(module: Module) -> dict[str, str]:
    """Name → the node's line in the listing, in the order of the nodes, with those of regions.

    Of several nodes that came from one, the first stands for its name."""
    out: dict[str, str] = {}
    for names, line in _lines(module, module.graph):
        for name in names:
            out.setdefault(name, line)
    return out


def _lines(module: Module, graph: Graph) -> Iterator[tuple[tuple[str, ...], str]]:
    names = value_names(graph)
    for node in graph.nodes:
        if is_constant(node):
            continue
        own = tuple(names[v] for v in node.outputs)
        yield (*names_of(node), *own), f"{node_text(node, names)}{_where(module, node.where)}"
        for region in node.attrs.values():
            if isinstance(region, Graph):
                yield from _lines(module, region)


def _where(module: Module, key: str) -> str:
    known = module.locations.get(key)
    return f"  at {known.at if known else key}" if key else ""
