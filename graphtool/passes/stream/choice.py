"""Which loop over rows is best: about how many bytes are live in each one and after it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import accumulate
from math import gcd

from graphtool.ir.graph import Graph, Value, is_constant, readers_of
from graphtool.passes.stream.plan import Plan, bytes_of, plans, row_bytes, stored


def best_plan(graph: Graph) -> Plan | None:
    """The loop with which the fewest bytes are live at once, if they are fewer than without; of
    equals the one with fewer loops in it."""
    least, best = _peak(graph, 0), None
    for plan in plans(graph):
        after = _peak(graph, graph.nodes.index(plan.end) + 1)
        for p in nested(plan):
            if (bytes_ := max(_loop_peak(p), after)) < least:
                least, best = bytes_, p
    return best


def nested(p: Plan) -> Iterator[Plan]:
    """The plan with no loop in the loop, then with one more each time."""
    yield p
    while faster := [b for b in p.band.values() if b > p.units[-1]]:
        unit = gcd(*faster)
        if unit == p.units[-1]:
            return
        p = replace(p, units=(*p.units, unit))
        yield p


def _loop_peak(p: Plan) -> int:
    """About the most bytes that are live in the loops: what is carried, the result, what the loops
    inside have given, and the rows that a node sees or makes."""
    carried, at = p.carried(), {n.outputs[0]: i for i, n in enumerate(p.nodes)}
    held = bytes_of(p.end.outputs[0]) + sum(row_bytes(v) * n for (_, v), n in carried.items())
    most = 0
    for loop in range(len(p.units)):
        change, last = [0] * (len(p.nodes) + 1), _last_uses(p, loop)
        inside = {v: p.rows(v, loop) * row_bytes(v) for v in p.leaving(loop + 1)}
        for v, end in last.items():
            before = carried.get((loop, v), 0) * row_bytes(v)
            joined = p.rows(v, loop) * row_bytes(v) + before
            if v in inside:
                change[0] += inside[v]
                change[end + 1] -= inside[v]
            if v not in inside or before:
                change[at[v]] += joined
                change[end + 1] -= joined
        most = max(most, held + max(accumulate(change)))
        held += sum(inside.values())
    return most


def _last_uses(p: Plan, loop: int) -> dict[Value, int]:
    """The number of the last node of a loop that reads an image in memory, or is computed with
    one that does."""
    readers, last = readers_of(p.graph), dict[Value, int]()
    for i, node in reversed(list(enumerate(p.nodes))):
        y = node.outputs[0]
        if p.loop(y) == loop:
            end = i if stored(y, readers) else last.get(y, i)
            for x in p.images[node]:
                last[x] = max(last.get(x, 0), end)
    return {v: i for v, i in last.items() if stored(v, readers)}


def _peak(graph: Graph, start: int) -> int:
    """About the most bytes of images that are live at once in the nodes from `start`, where a
    result may take the place of its operand."""
    readers, at = readers_of(graph), {n: i for i, n in enumerate(graph.nodes)}
    change = [0] * (len(graph.nodes) + 1)
    for i, node in enumerate(graph.nodes):
        v = node.outputs[0]
        last = max((at[r] for r in readers.get(v, ())), default=i)
        if last >= start and not (node.op.movement or is_constant(node)) and stored(v, readers):
            change[max(i, start)] += bytes_of(v)
            change[last] -= bytes_of(v)
    return max(accumulate(change))
