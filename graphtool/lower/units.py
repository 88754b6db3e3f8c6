"""Units: what one kernel computes. A fusion group is a unit; so is every other node that works."""

from __future__ import annotations

import heapq
from collections.abc import Mapping
from dataclasses import dataclass

from graphtool.ir.graph import Graph, Node, Value
from graphtool.ir.sizes import needs as symbol_needs


@dataclass(frozen=True, eq=False)
class Unit:
    """Nodes in order, and those of their values that others read."""

    nodes: tuple[Node, ...]
    outputs: tuple[Value, ...]
    kind: str  # "nest" | "template"

    @property
    def label(self) -> str:
        return " ".join(dict.fromkeys(v.hint for n in self.nodes for v in n.outputs[:1]))

    @property
    def where(self) -> str:
        return next((n.where for n in reversed(self.nodes) if n.where), "")


def units(graph: Graph, free: frozenset[Node]) -> list[Unit]:
    """The units; nodes in `free` (constants, views, windows) cost no kernel and form none."""
    grouped = {node: group for group in graph.groups for node in group.members}
    read: dict[Value, set[Node | None]] = {}
    for node in graph.nodes:
        for x in node.inputs:
            if isinstance(x, Value):
                read.setdefault(x, set()).add(node)
    for v in graph.outputs:
        read.setdefault(v, set()).add(None)

    def unit(nodes: tuple[Node, ...], kind: str) -> Unit:
        own = set(nodes)
        outputs = tuple(v for n in nodes for v in n.outputs if read.get(v, set()) - own)
        return Unit(nodes, outputs, kind)

    position = {n: i for i, n in enumerate(graph.nodes)}
    out = [unit(tuple(sorted(g.members, key=position.__getitem__)), g.kind)
           for g in graph.groups]
    out += [unit((n,), "nest") for n in graph.nodes if n not in grouped and n not in free]
    return [u for u in out if u.outputs]


def schedule(graph: Graph, all_units: list[Unit],
             after: Mapping[Unit | Node, set[Unit | Node]]) -> list[Unit | Node]:
    """Units and the remaining nodes in an order in which everything is defined before its use.

    Groups are convex, so one exists; among what is ready the graph's own order decides. What
    overwrites a donated input waits for those in `after`, and then goes first: it frees memory.
    """
    position = {n: i for i, n in enumerate(graph.nodes)}
    point: dict[Node, Unit | Node] = {n: n for n in graph.nodes}
    for u in all_units:
        for n in u.nodes:
            point[n] = u
    made = {v: n for n in graph.nodes for v in n.outputs}
    needs: dict[Unit | Node, set[Unit | Node]] = {}
    rank: dict[Unit | Node, int] = {}
    sizes = symbol_needs(graph)
    for n in graph.nodes:
        p = point[n]
        rank[p] = max(rank.get(p, 0), position[n])
        deps = needs.setdefault(p, set())
        deps |= {point[made[x]] for x in n.inputs if isinstance(x, Value) and x in made} - {p}
        deps |= {point[m] for m in sizes.get(n, ())} - {p}
    for p, deps in after.items():
        needs[p] |= deps
        rank[p] = -1
    followers: dict[Unit | Node, list[Unit | Node]] = {}
    missing = {p: len(d) for p, d in needs.items()}
    for p, deps in needs.items():
        for d in deps:
            followers.setdefault(d, []).append(p)
    ready = [(rank[p], id(p), p) for p, n in missing.items() if n == 0]
    heapq.heapify(ready)
    out: list[Unit | Node] = []
    while ready:
        _, _, p = heapq.heappop(ready)
        out.append(p)
        for f in followers.get(p, ()):
            missing[f] -= 1
            if missing[f] == 0:
                heapq.heappush(ready, (rank[f], id(f), f))
    return out
