"""Donation: which outputs may be written over the input they are donated from, and in what order.

An output in place must be written after every other reader of its donor. If a reader needs the
result first, or reads other elements in the same kernel, the output is copied there at the end.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field, replace

from graphtool.ir.facets import Lowering, Movement, Trait
from graphtool.ir.graph import Graph, Module, Node, Value, is_constant, producers
from graphtool.ir.run_sizes import needs
from graphtool.loops.ir import Let, Name, Stmt, Store
from graphtool.loops.walk import accesses, map_bodies
from graphtool.lower.units import Point, Unit
from graphtool.ops import assume, concat, scatter
from graphtool.ops import slice as slice_
from graphtool.symbolic import Dim, known


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
            after = order.writers(graph.outputs[o], graph.inputs[i], {*first})
            if after is not None:
                out.in_place.add(o)
                for point, before in after.items():
                    out.after.setdefault(point, set()).update(before)
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

    def writers(self, v: Value, x: Value, first: set[Point]) -> dict[Point, set[Point]] | None:
        """What writes v over donor x, each with what must run before; None if v cannot overwrite
        x."""
        readers = self.readers(v, x)
        after: dict[Point, set[Point]] | None = (
            self.parts(v, x) if readers is None else {self.writer[v]: readers})
        for point, before in (after or {}).items():
            before |= first
            if point in before or self.leads_to(point, before):
                return None
            self.require(point, before)
        return after

    def parts(self, v: Value, x: Value) -> dict[Point, set[Point]] | None:
        """What writes v, a join of parts or one part, each with the readers of that part of donor
        x; None if v cannot overwrite x."""
        node, outputs, after = self.maker.get(v), self.graph.outputs, dict[Point, set[Point]]()
        views = self.reading(x)
        if node is None or outputs.count(v) != 1 or x in outputs or views is None:
            return None
        parts, axis = ((node.inputs, node.attrs["axis"] % v.type.rank)
                       if Movement.JOINS in node.op.movement else ((v,), 0))
        at: Dim = 0
        for y in parts:
            assert isinstance(y, Value)
            part, end = y, at + y.type.shape[axis] if y.type.rank else 1
            while (maker := self.maker.get(part)) and maker.op.movement in (
                    Movement.KEEPS, Movement.PERMUTES):
                part = maker.inputs[0]  # type: ignore[assignment]
            if maker is None or is_constant(maker):
                return None
            point, before = self.point[maker], self.reading(x, axis, at, end)
            if before is None or (point is maker and point in views):
                return None
            after.setdefault(point, set()).update(before)
            at = end
        return after

    def reading(self, x: Value, axis: int = 0, start: Dim = 0, end: Dim | None = None
                ) -> set[Point] | None:
        """All that reads donor x, or the part of it from `start` to `end` along the axis; None if
        a view of it is given out."""
        nodes = [n for n in self.read_by.get(x, ()) if n.op is not slice_ or end is None or not (
            known(n.attrs["limit"][axis], "<=", start)
            or known(end, "<=", n.attrs["start"][axis]))]
        points = set[Point]()
        while nodes:
            node = nodes.pop()
            point = self.point[node]
            if point not in points and point is node and node.op.lowering is Lowering.VIEW:
                if any(y in self.graph.outputs for y in node.outputs):
                    return None
                nodes += [r for y in node.outputs for r in self.read_by.get(y, ())]
            points.add(point)
        return points

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

    def require(self, point: Point, before: set[Point]) -> None:
        for p in before:
            self.next.setdefault(p, set()).add(point)


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
