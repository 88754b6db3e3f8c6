"""Kernels that find indices out of range, one before each kernel that reads or writes by them.

An index that is known to be in range is not checked: a constant, a position along an axis, a
clamped value. A check reads only the indices, which are few compared with the elements that they
address. Reads still clamp their indices, so a check need not run before them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from graphtool import dtypes
from graphtool import ops as o
from graphtool.dtypes import DType
from graphtool.ir.facets import Movement
from graphtool.ir.graph import Graph, Node, Value, is_constant
from graphtool.loops.dim_names import author_text
from graphtool.loops.ir import Const
from graphtool.loops.pull import Names, PExpr, Pull, apply, cast, index
from graphtool.loops.view import dense, pull_of
from graphtool.lower.exprs import cost
from graphtool.lower.kernel import KernelTable, Made
from graphtool.lower.members import pulls
from graphtool.lower.nest import nest
from graphtool.lower.storage import Assignment, Storage
from graphtool.lower.units import Unit
from graphtool.ops.reduce import lower_reduce
from graphtool.symbolic import Dim, bounds, known, product

Interval = tuple[Dim, Dim]  # the least and the greatest number
Check = tuple[Made, str, str]  # the kernel, a label, the place in the source
_DEPTH = 12  # nodes that are looked through


class IndexChecks:
    """The checks of a graph; an index that two nodes use alike is checked once."""

    def __init__(self, graph: Graph) -> None:
        self.made = {v: n for n in graph.nodes for v in n.outputs}
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
            if node.op not in (o.gather, o.scatter):
                continue
            x, indices = node.inputs[0], node.inputs[1]
            if not isinstance(x, Value) or not isinstance(indices, Value):
                continue
            for column, axis in enumerate(node.attrs["axes"]):
                extent = x.type.shape[axis]
                if not self.inside(indices, column, extent):
                    yield node, indices, column, extent

    def read(self, unit: Unit) -> set[Value]:
        """What the unit's checks read of other units."""
        own = {v: n for n in unit.nodes for v in n.outputs}
        pending = [indices for _, indices, _, _ in self.unknown(unit)]
        seen: set[Value] = set()
        while pending:
            v = pending.pop()
            if v in own and v not in seen:
                pending += [x for x in own[v].inputs if isinstance(x, Value)]
            seen.add(v)
        return seen - own.keys()

    def check(self, unit: Unit, node: Node, column: int, extent: Dim, assignment: Assignment,
              table: KernelTable) -> Check:
        """The kernel that looks at one column of the indices of `node`."""
        slot = sum(b.space == "check" for b in assignment.buffers.values())
        name, axis = f"check{slot}", node.attrs["axes"][column]
        label = f"an index is out of range for axis {axis} of size {author_text(extent)}"
        assignment.buffers[name] = Storage(name, dtypes.int32, 1, "check", slot, label=label)
        names = Names()
        found = self.pull(unit, node.inputs[1], assignment, names)
        lead = found.shape[:-1]
        kind = _arithmetic(found.dtype, extent)
        below = _number(extent - 1, kind)

        def room(at: Any) -> PExpr:
            """How far an index is from the nearer end of the axis; negative if it is outside."""
            value = cast(found.at((*at, column)), kind)
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
        work = product(lead) * (cost(found.at((0,) * len(found.shape))) + 3)
        most = bounds(work)[1]
        made = (*table.add(body, assignment.buffers, 0 if most is None else most), work)
        return made, f"indices of {node.outputs[0].hint or node.op.name}", node.where

    def pull(self, unit: Unit, indices: Any, assignment: Assignment, names: Names) -> Pull:
        """The indices as an expression of what the unit reads."""
        own = {v: n for n in unit.nodes for v in n.outputs}
        needed: dict[Node, None] = {}
        read: dict[Value, Pull] = {}

        def visit(v: Value) -> None:
            if v not in own:
                read[v] = pull_of(assignment.views[v])
            elif own[v] not in needed:
                for x in own[v].inputs:
                    if isinstance(x, Value):
                        visit(x)
                needed[own[v]] = None
        visit(indices)
        return pulls(tuple(needed), read, names)[indices]

    # ---- what is known -------------------------------------------------------------------------

    def inside(self, v: Value, column: int, extent: Dim) -> bool:
        """Whether all numbers of that column are known to be in [0, extent)."""
        if any(d == 0 for d in v.type.shape):
            return True
        node = self.made.get(v)
        if node is not None and node.op is o.concat and v.type.rank - 1 == node.attrs["axis"]:
            parts = [x for x in node.inputs if isinstance(x, Value)]
            if all(p.type.shape[-1] == 1 for p in parts):
                v, column = parts[column], 0
        found = self.interval(v, _DEPTH, column)
        return found is not None and known(0, "<=", found[0]) is True and (
            known(found[1], "<", extent) is True)

    def interval(self, x: Any, depth: int, column: int | None = None) -> Interval | None:
        """The least and greatest number that a value or literal can be; None if not known."""
        if not isinstance(x, Value):
            return (int(x), int(x)) if isinstance(x, (int, bool)) else None
        if x.type.dtype is dtypes.bool_:
            return 0, 1
        found = self.computed(x, depth, column)
        if found is None and x.type.dtype.is_integer and x.type.dtype.bits <= 16:
            return x.type.dtype.low, x.type.dtype.high
        return found

    def computed(self, x: Value, depth: int, column: int | None) -> Interval | None:
        """The same by the node that makes the value."""
        node = self.made.get(x)
        if node is None or depth == 0:
            return None
        if is_constant(node):
            data = node.attrs["data"].source
            if column is not None and data.ndim and column < data.shape[-1]:
                data = data[..., column]  # of a broadcast column there is one
            whole = x.type.dtype.is_integer and data.size
            return (int(data.min()), int(data.max())) if whole else None

        def of(n: int) -> Interval | None:
            return self.interval(node.inputs[n], depth - 1)
        if node.op is o.iota:
            return 0, node.attrs["shape"][node.attrs["axis"]] - 1
        if node.op is o.arg_reduce and isinstance(node.inputs[0], Value):
            return 0, node.inputs[0].type.shape[node.attrs["axis"]] - 1
        if node.op is o.clamp:
            return _clamped(of(0), of(1), of(2))
        if node.op in (o.min, o.max):
            return _extreme(of(0), of(1), node.op is o.max)
        if node.op is o.select:
            return _union(of(1), of(2))
        if node.op is o.cast and isinstance(node.inputs[0], Value) and (
                node.inputs[0].type.dtype.is_integer and x.type.dtype.bits >= 32):
            return of(0)
        if node.op.movement & (Movement.ONCE | Movement.REPEATS):
            return self.interval(node.inputs[0], depth - 1,
                                 column if node.op is o.broadcast else None)
        return None


def _arithmetic(kind: DType, extent: Dim) -> DType:
    """The type to compare in: one that holds the indices and the extent."""
    small = kind.is_integer and (kind.bits < 32 or kind is dtypes.int32)
    return dtypes.int32 if small and isinstance(extent, int) and extent < 2**31 else dtypes.int64


def _number(d: Dim, kind: DType) -> PExpr:
    return Const(d, kind) if isinstance(d, int) else cast(index(d), kind)


def _least(a: Dim, b: Dim) -> Dim | None:
    return a if known(a, "<=", b) else b if known(b, "<=", a) else None


def _union(a: Interval | None, b: Interval | None) -> Interval | None:
    if a is None or b is None:
        return None
    low, high = _least(a[0], b[0]), _least(-1 * a[1], -1 * b[1])
    return None if low is None or high is None else (low, -1 * high)


def _extreme(a: Interval | None, b: Interval | None, greatest: bool) -> Interval | None:
    """Of max(a, b) or min(a, b)."""
    if a is None or b is None:
        return None
    sign = -1 if greatest else 1
    low, high = (_least(sign * x, sign * y) for x, y in zip(a, b, strict=True))
    return None if low is None or high is None else (sign * low, sign * high)


def _clamped(x: Interval | None, low: Interval | None, high: Interval | None) -> Interval | None:
    """Of clamp(x, low, high): within the limits whatever x is."""
    if low is None or high is None:
        return None
    return low[0], high[1]
