"""Which plan of a node was chosen from which alternatives, kept from graph to graph."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from graphtool.io.manifest_rows import Choice
from graphtool.ir.graph import Graph, Node, Value
from graphtool.ir.run_sizes import all_nodes


def planned(graph: Graph) -> Iterator[Node]:
    """The nodes that have a plan, including those of regions."""
    return (n for n in all_nodes(graph) if n.attrs.get("plan") is not None)


def carried(graph: Graph, choices: Mapping[Value, Choice]) -> dict[Value, Choice]:
    """The choices for the nodes of the new graph.

    If a value is missing because a pass replaced it by one of another type, its choice goes to the
    value of the same name.
    """
    values = [n.outputs[0] for n in planned(graph)]
    there = set(values)
    gone: dict[str, list[Choice]] = {}
    for v, made in choices.items():
        if v not in there:
            gone.setdefault(v.hint, []).append(made)
    out = {}
    for v in values:
        if v in choices:
            out[v] = choices[v]
        elif gone.get(v.hint):
            out[v] = gone[v.hint].pop(0)
    return out
