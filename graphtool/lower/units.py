"""Units: the nodes that one kernel computes, and each of their values as a pull.

A fusion group is a unit, and so is every other node that needs a kernel.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from graphtool.dtypes import float32, int32, int64
from graphtool.errors import InternalError
from graphtool.ir.graph import Graph, Node, Operand, Value, first_computed, kernel_label, producers
from graphtool.ir.run_sizes import needs as symbol_needs
from graphtool.loops.pull import Names, Pull, View, const, pull_of
from graphtool.lower.views import Assignment, Storage


@dataclass(frozen=True, eq=False)
class Unit:
    """Nodes in order, and those of their values that other units or the outputs read."""

    nodes: tuple[Node, ...]
    outputs: tuple[Value, ...]
    kind: str  # "nest" | "template"
    label: str  # the author's names of the values that the kernel computes

    @property
    def where(self) -> str:
        """The source location of the first node of the kernel, or of the next node that has one;
        empty if none has."""
        first = first_computed(self.nodes)
        return next((n.where for n in (first, *self.nodes) if n.where), "")


Point = Unit | Node  # an entry of the order: a unit, or a node outside of all units


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

    label = kernel_label(graph)

    def unit(nodes: tuple[Node, ...], kind: str) -> Unit:
        inside = set(nodes)
        outputs = tuple(v for n in nodes for v in n.outputs if read.get(v, set()) - inside)
        return Unit(nodes, outputs, kind, label(nodes))

    position = {n: i for i, n in enumerate(graph.nodes)}
    out = [unit(tuple(sorted(g.members, key=position.__getitem__)), g.kind)
           for g in graph.groups]
    out += [unit((n,), "nest") for n in graph.nodes if n not in grouped and n not in free]
    return [u for u in out if u.outputs]


def schedule(graph: Graph, all_units: list[Unit],
             after: Mapping[Point, set[Point]]) -> list[Point]:
    """Units and the remaining nodes in an order in which everything is defined before its use.

    Groups are convex, so such an order exists; among the units that are ready, the order of the
    graph decides. A unit that overwrites a donated input waits for those in `after` and then runs
    first, because it frees memory.
    """
    rank, needs = _ranked(graph, all_units)
    for p, before in after.items():
        needs[p] |= before
        rank[p] -= len(graph.nodes)
    followers: dict[Point, list[Point]] = {}
    missing = {p: len(d) for p, d in needs.items()}
    for p, before in needs.items():
        for d in before:
            followers.setdefault(d, []).append(p)
    of_rank = {r: p for p, r in rank.items()}  # no two ranks are equal
    ready = [rank[p] for p, n in missing.items() if n == 0]
    heapq.heapify(ready)
    out: list[Point] = []
    while ready:
        out.append(of_rank[heapq.heappop(ready)])
        for f in followers.get(out[-1], ()):
            missing[f] -= 1
            if missing[f] == 0:
                heapq.heappush(ready, rank[f])
    return out


def _ranked(graph: Graph, all_units: list[Unit]) -> tuple[
        dict[Point, int], dict[Point, set[Point]]]:
    """The last position of each unit and remaining node in the graph's order, and what it depends
    on."""
    point: dict[Node, Point] = {n: n for n in graph.nodes}
    point |= {n: u for u in all_units for n in u.nodes}
    made_by = producers(graph)
    sizes = symbol_needs(graph)
    rank: dict[Point, int] = {}
    needs: dict[Point, set[Point]] = {}
    for i, n in enumerate(graph.nodes):
        p = point[n]
        rank[p] = i
        before = needs.setdefault(p, set())
        before |= {point[made_by[x]] for x in n.inputs
                   if isinstance(x, Value) and x in made_by} - {p}
        before |= {point[m] for m in sizes.get(n, ())} - {p}
    return rank, needs


WRITTEN = (float32, int32, int64)  # of these dtypes a number is written in C as it is


def pulls(nodes: tuple[Node, ...], known: Mapping[Value, Pull], names: Names) -> dict[Value, Pull]:
    """The pull of every value of the nodes, given the pulls of their inputs from outside."""
    env = dict(known)

    def operand(x: Operand) -> Any:
        return env[x] if isinstance(x, Value) else x
    for node in nodes:
        if node.outputs[0] in env:
            continue
        if node.op.lower is None:
            raise InternalError("GT7202", f"{node.op.name} has no lowering")
        expressions = node.op.lower(names, *map(operand, node.inputs), **node.attrs)
        expressions = expressions if isinstance(expressions, tuple) else (expressions,)
        env.update(zip(node.outputs, expressions, strict=True))
    return env


def operand_pull(unit: Unit, v: Value, assignment: Assignment, names: Names) -> Pull:
    """A value that a node of the unit reads, as an expression of the unit's inputs."""
    made_by = {x: n for n in unit.nodes for x in n.outputs}
    needed: dict[Node, None] = {}
    read: dict[Value, Pull] = {}

    def visit(x: Value) -> None:
        if x not in made_by:
            read[x] = pull_of(assignment.views[x])
        elif made_by[x] not in needed:
            for operand in made_by[x].inputs:
                if isinstance(operand, Value):
                    visit(operand)
            needed[made_by[x]] = None
    visit(v)
    return pulls(tuple(needed), read, names)[v]


def pull_from(buffers: Mapping[str, Storage], view: View) -> Pull:
    """The elements of a view. The one number of a constant is written into the code, since a load
    under a condition keeps compilers from vectorising."""
    held = buffers[view.buffer].weight
    if held is None or held.size != 1 or held.absent or (
            view.dtype not in WRITTEN):
        return pull_of(view)
    number = const(held.stored.item(), view.dtype)
    return Pull(view.dtype, view.shape, lambda _: number)


def read_values(unit: Unit) -> list[Value]:
    """The values that the unit reads from outside, in order of first use."""
    own = {v for n in unit.nodes for v in n.outputs}
    return list(dict.fromkeys(x for n in unit.nodes for x in n.inputs
                              if isinstance(x, Value) and x not in own))
