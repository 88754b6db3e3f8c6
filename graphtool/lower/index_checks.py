"""Kernels that find indices out of range, one before each kernel that reads or writes by them.

An index that is known to be in range is not checked: a constant, a position along an axis, a
clamped value. A check reads only the indices, which are few compared with the elements that they
address. Reads still clamp their indices, so a check need not run before them. All that can make a
run fail happens before the run overwrites a donated input: a run that fails leaves the state as it
was.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from graphtool import dtypes
from graphtool import ops as o
from graphtool.dtypes import DType
from graphtool.ir.facets import Movement, Trait
from graphtool.ir.graph import Graph, Node, Value, is_constant, producers
from graphtool.ir.run_sizes import all_nodes, defined
from graphtool.loops.dim_names import author_text
from graphtool.loops.ir import Const
from graphtool.loops.program import INDICES_OF, Bind, Kernel, Run, Step, runs
from graphtool.loops.pull import Names, PExpr, Pull, apply, cast, dense, index, pull_of
from graphtool.loops.totals import cost
from graphtool.lower.kernel import KernelTable, Made
from graphtool.lower.nest import nest
from graphtool.lower.units import Point, Unit, operand_pull
from graphtool.lower.views import Assignment, Storage
from graphtool.ops.reduce import lower_reduce
from graphtool.symbolic import Dim, Poly, bounds, known, product
from graphtool.symbolic.spans import OPEN, Bound, Span

Check = tuple[Made, str, str]  # the kernel, a label, the place in the source
_DEPTH = 12  # nodes that are looked through


class IndexChecks:
    """The checks of a graph; an index that two nodes use alike is checked once."""

    def __init__(self, graph: Graph) -> None:
        self.made_by = producers(graph)
        self.done: set[tuple[Value, int, Dim]] = set()

    def of_unit(self, unit: Unit, assignment: Assignment, table: KernelTable) -> Iterator[Check]:
        """The checks of the unit's indices."""
        for node, indices, column, extent in self.unknown(unit):
            if (indices, column, extent) not in self.done:
                self.done.add((indices, column, extent))
                yield self.check(unit, node, column, extent, assignment, table)

    def unknown(self, unit: Unit) -> Iterator[tuple[Node, Value, int, Dim]]:
        """The unit's reads and writes by indices that may be out of range: the node, its indices,
        the column of them, and the size of the axis."""
        for node in unit.nodes:
            if (indexing := node.op.indexing) is None:
                continue
            x, indices = node.inputs[indexing.into], node.inputs[indexing.indices]
            if not isinstance(x, Value) or not isinstance(indices, Value):
                continue
            for column, axis in enumerate(node.attrs["axes"]):
                extent = x.type.shape[axis]
                if not self.inside(indices, column, extent):
                    yield node, indices, column, extent

    def read(self, unit: Unit) -> set[Value]:
        """What the unit's checks read of other units."""
        made_by = {v: n for n in unit.nodes for v in n.outputs}
        pending = [indices for _, indices, _, _ in self.unknown(unit)]
        seen: set[Value] = set()
        while pending:
            v = pending.pop()
            if v in made_by and v not in seen:
                pending += [x for x in made_by[v].inputs if isinstance(x, Value)]
            seen.add(v)
        return seen - made_by.keys()

    def check(self, unit: Unit, node: Node, column: int, extent: Dim, assignment: Assignment,
              table: KernelTable) -> Check:
        """The kernel that looks at one column of the indices of `node`."""
        slot = sum(b.space == "check" for b in assignment.buffers.values())
        name, axis = f"check{slot}", node.attrs["axes"][column]
        label = f"an index is out of range for axis {axis} of size {author_text(extent)}"
        assignment.buffers[name] = Storage(name, dtypes.int32, 1, "check", slot, label=label)
        names = Names()
        x = node.inputs[1]
        assert isinstance(x, Value)
        indices = operand_pull(unit, x, assignment, names)
        lead = indices.shape[:-1]
        kind = _arithmetic(indices.dtype, extent)
        below = _number(extent - 1, kind)

        def room(at: Any) -> PExpr:
            """How far an index is from the nearer end of the axis; negative if it is outside."""
            value = cast(indices.at((*at, column)), kind)
            return apply("min", value, apply("sub", below, value))
        start = int(np.iinfo(kind.numpy).max)
        least = lower_reduce(names, "min", start, Pull(kind, lead, room), (*range(len(lead)),))
        flag = dense(name, dtypes.int32, (1,) * len(lead))
        old = pull_of(flag)

        def failed(at: Any) -> PExpr:
            """1 if an index is outside now, or was in an earlier iteration of a loop."""
            bad = apply("lt", least.at(at), Const(0, kind), dtype=dtypes.bool_)
            return apply("or", old.at(at), cast(bad, dtypes.int32))
        body = nest(names, [(flag, Pull(dtypes.int32, flag.shape, failed))])
        work = product(lead) * (cost(indices.at((0,) * len(indices.shape))) + 3)
        most = bounds(work)[1]
        call = (*table.add(body, assignment.buffers, 0 if most is None else most), work)
        return call, f"{INDICES_OF}{node.outputs[0].hint or node.op.name}", node.where

    # ---- what is known -------------------------------------------------------------------------

    def inside(self, v: Value, column: int, extent: Dim) -> bool:
        """Whether all numbers of that column are known to be in [0, extent)."""
        if any(d == 0 for d in v.type.shape):
            return True
        node = self.made_by.get(v)
        if node is not None and Movement.JOINS in node.op.movement and (
                v.type.rank - 1 == node.attrs["axis"]):
            parts = [x for x in node.inputs if isinstance(x, Value)]
            if all(p.type.shape[-1] == 1 for p in parts):
                v, column = parts[column], 0
        least, most = self.span(v, _DEPTH, column)
        return isinstance(least, (int, Poly)) and isinstance(most, (int, Poly)) and (
            known(0, "<=", least) is True and known(most, "<", extent) is True)

    def span(self, x: Any, depth: int, column: int | None = None) -> Span:
        """The least and the greatest number that a value or literal can be."""
        if not isinstance(x, Value):
            return (int(x), int(x)) if isinstance(x, (int, bool)) else OPEN
        kind = x.type.dtype
        if kind is dtypes.bool_:
            return 0, 1
        if not kind.is_integer:
            return OPEN  # a float may be NaN, which no span holds
        range_ = self.computed(x, depth, column)
        return (kind.low, kind.high) if kind.bits <= 16 and None in range_ else range_

    def computed(self, x: Value, depth: int, column: int | None) -> Span:
        """The same by the node that makes the value."""
        node = self.made_by.get(x)
        if node is None or depth == 0:
            return OPEN
        if is_constant(node):
            data = node.attrs["data"].source
            if column is not None and data.ndim and column < data.shape[-1]:
                data = data[..., column]  # of a broadcast column there is one
            return (int(data.min()), int(data.max())) if data.size else OPEN
        if node.op.movement & (Movement.ONCE | Movement.REPEATS):
            return self.span(node.inputs[0], depth - 1,
                             column if node.op is o.broadcast else None)
        if Trait.CONVERTS in node.op.traits and (span := self.clamped(node.inputs[0])) is not OPEN:
            return span
        if node.op.span is None:
            return OPEN
        kinds = tuple(v.type if isinstance(v, Value) else v for v in node.inputs)
        range_ = node.op.span(kinds, *(self.span(v, depth - 1) for v in node.inputs), **node.attrs)
        return range_ if all(_fits(node, v) for v in range_) else OPEN

    def clamped(self, x: Any) -> Span:
        """The same for a clamped float that is cast to a whole number, where NaN becomes 0."""
        node = self.made_by.get(x)
        if node is None or node.op is not o.clamp:
            return OPEN
        ends = [int(e) for e in node.inputs[1:] if isinstance(e, (int, float)) and math.isfinite(e)]
        return (min(0, *ends), max(0, *ends)) if len(ends) == 2 else OPEN


def _fits(node: Node, bound: Bound) -> bool:
    """Whether a bound of an op's result is no wrong one because the result wrapped around.

    Open sizes are no larger than what an int32 index can reach; sums of them may be.
    """
    kind = node.outputs[0].type.dtype
    computes = Trait.ELEMENTWISE in node.op.traits and Trait.PICKS not in node.op.traits
    if bound is None:  # where one bound is open, a sum that wraps passes the other
        return not computes
    if isinstance(bound, Poly):
        return kind.bits >= (64 if computes and len(node.inputs) > 1 else 32)
    return kind.low <= bound <= kind.high


def _arithmetic(kind: DType, extent: Dim) -> DType:
    """The type of the comparison: it holds the indices and the extent."""
    small = kind.is_integer and (kind.bits < 32 or kind is dtypes.int32)
    return dtypes.int32 if small and isinstance(extent, int) and extent < 2**31 else dtypes.int64


def _number(d: Dim, kind: DType) -> PExpr:
    return Const(d, kind) if isinstance(d, int) else cast(index(d), kind)


def decisive(graph: Graph, units: Sequence[Unit]) -> set[Point]:
    """What must run before it is known whether the run fails: the producers of indices that are
    checked, nodes that define sizes, and loops and branches with either inside."""
    point: dict[Node, Point] = {n: n for n in graph.nodes}
    point |= {n: u for u in units for n in u.nodes}
    checks = IndexChecks(graph)
    out = {point[n] for n in graph.nodes if defined(n) is not None or _fails_inside(n)}
    out |= {point[checks.made_by[v]] for u in units for v in checks.read(u) if v in checks.made_by}
    return out


def _fails_inside(node: Node) -> bool:
    return any(n.op.indexing is not None or defined(n) is not None
               for a in node.attrs.values() if isinstance(a, Graph) for n in all_nodes(a))


def early(steps: Sequence[Step], kernels: Sequence[Kernel],
          buffers: Mapping[str, Storage]) -> list[Step]:
    """The steps, with each check of indices right after the last step that writes what it reads."""
    by_name = {k.name: k for k in kernels}

    def written(s: Step) -> set[str]:
        return {a for r in runs((s,)) for a, p in zip(r.args, by_name[r.kernel].params, strict=True)
                if not p.const}
    out: list[Step] = []
    writes: list[set[str]] = []
    for s in steps:
        at = len(out)
        if isinstance(s, Run) and any(buffers[a].space == "check" for a in s.args):
            while at and not isinstance(out[at - 1], Bind) and writes[at - 1].isdisjoint(s.args):
                at -= 1
        out.insert(at, s)
        writes.insert(at, written(s))
    return out
