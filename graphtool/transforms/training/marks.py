"""The forward nodes that the user wants to be computed again in the backward pass.

They are modules, by name, and regions that the model itself marks (torch.utils.checkpoint, as the
op `checkpoint`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from graphtool import ops as o
from graphtool.errors import InputError
from graphtool.ir.graph import Graph, Node, Operand, Value, is_constant, producers
from graphtool.ir.replay import ancestors, rebuild
from graphtool.ir.trace import Builder
from graphtool.passes.remat import needed


def segments(graph: Graph, names: Sequence[str]) -> frozenset[Node]:
    """For each module (`h.3`) its forward nodes that no forward node outside of it reads.

    Raises InputError GT0621 for a name that no node has.
    """
    forward = ancestors(graph, graph.outputs[:1])
    result: set[Node] = set()
    for name in names:
        mine = {n for n in forward if not is_constant(n) and any(
            v.hint == name or v.hint.startswith(f"{name}.") for v in n.outputs)}
        if not mine:
            raise InputError("GT0621", f"no part of the model is called {name!r}",
                             hint="give names of modules as `graphtool show` prints them: "
                                  "--checkpoint h.0,h.1")
        read = {x for n in forward if n not in mine for x in n.inputs}
        result |= {n for n in mine if read.isdisjoint(n.outputs)}
    return needed(graph, result)


def marked(graph: Graph) -> frozenset[Node]:
    """The nodes inside the regions of the forward pass, from the values that leave a region back to
    the values that enter it.

    The values that leave a region are kept, because they enter the next one.
    """
    made_by, result = producers(graph), set[Node]()
    forward = set(ancestors(graph, graph.outputs[:1]))
    left = [n.inputs[0] for n in graph.nodes if _is_mark(n, "out") and n in forward]
    pending = [x for v in left if isinstance(v, Value) and v in made_by and not _is_mark(made_by[v])
               for x in made_by[v].inputs]
    while pending:
        node = made_by.get(x) if isinstance(x := pending.pop(), Value) else None
        if node is None or node in result or _is_mark(node) or is_constant(node):
            continue
        result.add(node)
        pending += node.inputs
    return needed(graph, result)


def unmarked(graph: Graph) -> Graph:
    """The graph without marks; the same graph if it has none."""
    if not any(map(_is_mark, graph.nodes)):
        return graph

    def rewrite(node: Node, xs: tuple[Operand, ...], _: Builder) -> Sequence[Any] | None:
        return xs if _is_mark(node) else None
    return rebuild(graph, rewrite)


def _is_mark(node: Node, edge: str = "") -> bool:
    return node.op is o.checkpoint and edge in ("", node.attrs["edge"])
