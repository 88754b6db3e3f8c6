"""Donation: which outputs may be written over the input they are donated from, and in what order.

An output in place must be written after every other reader of its donor. If a reader needs the
result first, or reads other elements in the same kernel, the output is copied there at the end.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field, replace

from graphtool.ir.facets import Lowering, Trait
from graphtool.ir.graph import Graph, Module, Node, Value, producers
from graphtool.ir.run_sizes import needs
from graphtool.loops.ir import Let, Name, Stmt, Store
from graphtool.loops.walk import accesses, map_bodies
from graphtool.lower.units import Point, Unit
from graphtool.ops import assume, concat, scatter
from graphtool.ops import slice as slice_


@dataclass
class Donation:
    """`donors`: output → its input. `in_place`: the outputs that units write over their donor
    themselves.

    `after`: the units that must run before a unit that overwrites a donor. A run that fails
    leaves the donors as they were, so what can make it fail is among them.
    """

    donors: dict[int, int] = field(default_factory=dict)
    in_place: set[int] = field(default_factory=set)
    after: dict[Point, set[Point]] = field(default_factory=dict)


def donation(module: Module, units: list[Unit], first: Collection[Point] = ()) -> Donation:
    """Chooses outputs to write in place, for each pair of an output and an input of one type; an
    input is donated once. No donor is overwritten before the units in `first` have run."""
    graph = module.graph
    out = Donation()
    for o, i in module.donations:
        if i not in out.donors.values() and graph.outputs[o].type == graph.inputs[i].type:
            out.donors[o] = i
    if out.donors:
        order = _Order(graph, units)
        for o, i in out.donors.items():
            if order.windowed(graph.outputs[o], graph.inputs[i]):
                out.in_place.add(o)
                continue
            before = order.readers(graph.outputs[o], graph.inputs[i])
            if before is None:
                continue
            unit = order.writer[graph.outputs[o]]
            if unit in first:
                continue
            before |= {*first}
            if before and order.leads_to(unit, before):
                continue
            out.in_place.add(o)
            out.after.setdefault(unit, set()).update(before)
            order.require(unit, before)
    return out


def scattered_into(node: Node, x: Value) -> bool:
    """Whether the node writes updates into x, and reads it for nothing else."""
    return node.op is scatter and node.inputs[0] is x and x not in node.inputs[1:]


class _Order:
    """The order in which units run, with the edges that donations add."""

    def __init__(self, graph: Graph, units: list[Unit]) -> None:
        self.graph = graph
        self.point: dict[Node, Point] = {n: n for n in graph.nodes}
        self.point |= {n: u for u in units for n in u.nodes}
        self.writer = {v: u for u in units for v in u.outputs}
        self.read_by: dict[Value, list[Node]] = {}
        self.maker = made_by = producers(graph)
        self.next: dict[Point, set[Point]] = {}
        for n in graph.nodes:
            for x in n.inputs:
                if isinstance(x, Value):
                    self.read_by.setdefault(x, []).append(n)
                    if x in made_by and self.point[made_by[x]] is not self.point[n]:
                        self.next.setdefault(self.point[made_by[x]], set()).add(self.point[n])
        for n, makers in needs(graph).items():
            for m in makers:
                if self.point[m] is not self.point[n]:
                    self.next.setdefault(self.point[m], set()).add(self.point[n])

    def readers(self, v: Value, x: Value) -> set[Point] | None:
        """The readers of donor x besides the unit that writes v; None if v cannot overwrite x."""
        unit, outputs = self.writer.get(v), self.graph.outputs
        if unit is None or outputs.count(v) != 1:
            return None
        pending, seen, points = [x], {x}, set[Point]()
        while pending:
            here = pending.pop()
            if here in outputs:
                return None  # given out unchanged as well
            for node in self.read_by.get(here, ()):
                point = self.point[node]
                if point is unit:
                    if here is not x or not (self.elementwise(node, unit, v)
                                             or scattered_into(node, x)):
                        return None
                    continue
                points.add(point)
                if point is node and node.op.lowering is Lowering.VIEW:
                    fresh = [y for y in node.outputs if y not in seen]
                    seen.update(fresh)
                    pending += fresh
        return points

    def windowed(self, v: Value, x: Value) -> bool:
        """Whether v consists of parts of donor x at their own places, and of new parts beside them.

        Then a run writes the new parts and nothing else. All that reads x reads those parts of it
        that stay, so that no order is needed; a run that fails leaves these as they were.
        """
        node = self.maker.get(v)
        if node is None or node.op is not concat or self.graph.outputs.count(v) != 1 or (
                x in self.graph.outputs):
            return False
        axis, at, kept = node.attrs["axis"] % v.type.rank, 0, set[Node]()
        for y in node.inputs:
            assert isinstance(y, Value)
            part = self.maker.get(y)
            while part is not None and part.op is assume and isinstance(part.inputs[0], Value):
                part = self.maker.get(part.inputs[0])
            if part is not None and part.op is slice_ and part.inputs[0] is x:
                start = part.attrs["start"]
                if any(a != (at if i == axis else 0) for i, a in enumerate(start)) or any(
                        s != 1 for s in part.attrs["strides"]):
                    return False
                kept.add(part)
            at = at + y.type.shape[axis]
        return bool(kept) and kept >= set(self.read_by.get(x, ()))

    def elementwise(self, node: Node, unit: Unit, v: Value) -> bool:
        """Whether everything that the unit computes from the node's result has v's shape, element
        by element."""
        inside, pending, seen = set(unit.nodes), [node], {node}
        while pending:
            here = pending.pop()
            if Trait.ELEMENTWISE not in here.op.traits or (
                    here.outputs[0].type.shape != v.type.shape):
                return False
            for reader in self.read_by.get(here.outputs[0], ()):
                if reader in inside and reader not in seen:
                    seen.add(reader)
                    pending.append(reader)
        return True

    def leads_to(self, start: Point, goals: set[Point]) -> bool:
        """Whether one of the goals depends on `start`."""
        pending, seen = [start], {start}
        while pending:
            for p in self.next.get(pending.pop(), ()):
                if p in goals:
                    return True
                if p not in seen:
                    seen.add(p)
                    pending.append(p)
        return False

    def require(self, unit: Unit, before: set[Point]) -> None:
        for p in before:
            self.next.setdefault(p, set()).add(unit)


# ---- kernels that read what they overwrite -----------------------------------------------------

def stores_last(body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    """The statements; in a block that loads from a buffer it also stores to, all values are
    computed before any store."""
    return tuple(map_bodies(s, stores_last) for s in _block(body))


def _block(body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    stores = [s for s in body if isinstance(s, Store)]
    if len(stores) < 2 or not _reads_own(stores, body):
        return body
    out: list[Stmt] = []
    held: list[Stmt] = []
    for s in body:
        if isinstance(s, Store):
            name = f"new{len(held)}"
            out.append(Let(name, s.value))
            held.append(replace(s, value=Name(name, s.value.dtype)))
        else:
            out.append(s)
    return (*out, *held)


def _reads_own(stores: list[Store], body: tuple[Stmt, ...]) -> bool:
    read = {b for b, write in accesses(body) if not write}
    return any(s.buffer in read for s in stores)
