"""Running sums, products, maxima and minima, for devices: each worker takes a slab of a row.

Where rows are few and long, the first kernel reduces each slab, the next ones compute what comes
before each slab, which is a shorter scan, and the last one scans each slab from there. The order of
the terms depends on the sizes alone, so each run gives the same bits.
"""

from __future__ import annotations

from graphtool import dtypes
from graphtool.kernels.use import Lowered
from graphtool.loops.ir import Accumulate, Const, Expr, For, Index, Let, Load, Name, Stmt, Store
from graphtool.loops.pull import Names, View, cast, iterator
from graphtool.lower.loop_axes import joined_loops
from graphtool.lower.slabs import BUSY, LEAST, TERMS, even, room
from graphtool.lower.views import Storage
from graphtool.ops.reduce import identity
from graphtool.symbolic import (
    Dim,
    Symbol,
    ceildiv,
    minimum,
    product,
    symbol_of,
    typical,
    typical_size,
)

STEP = {"sum": "add", "prod": "mul", "max": "max", "min": "min"}


def scans(x: View, out: View, buffers: dict[str, Storage], label: str, *, kind: str, axis: int,
          reverse: bool = False, exclusive: bool = False) -> list[Lowered]:
    """The kernels of a scan of x along an axis."""
    axis %= len(x.shape)
    n, others = x.shape[axis], [d for i, d in enumerate(x.shape) if i != axis]
    rows, terms = typical_size(product(others)), typical_size(n)
    count = even(n, min(BUSY // max(1, rows), terms // TERMS))
    if count < LEAST:
        return [_slabs(x, out, axis, kind, 1, reverse, exclusive)]
    sums, before = (room(buffers, x.dtype.computes, (count, *others), label) for _ in range(2))
    return [_slabs(x, sums, axis, kind, count, reverse, whole=True),
            *scans(sums, before, buffers, label, kind=kind, axis=0, exclusive=True),
            _slabs(x, out, axis, kind, count, reverse, exclusive, before)]


def _slabs(x: View, out: View, axis: int, kind: str, count: int, reverse: bool,
           exclusive: bool = False, before: View | None = None, whole: bool = False) -> Lowered:
    """A kernel in which a worker takes one of `count` slabs of a row, from what comes `before` it;
    it stores the scan, or for each slab as a `whole` what that adds."""
    names, wide, n = Names(), x.dtype.computes, x.shape[axis]
    slab = (iterator(names.new("i"), count), count)
    loops = {a: (iterator(names.new("i"), d), d) for a, d in enumerate(x.shape)
             if a != axis and d != 1}
    idx: list[Dim] = [symbol_of(loops[a][0]) if a in loops else 0 for a in range(len(x.shape))]
    length = ceildiv(n, count)
    first = symbol_of(slab[0]) * length if count > 1 else 0
    here = length if isinstance(n, int) and n % count == 0 else minimum(length, n - first)
    k = iterator(names.new("i"), here)
    at = n - 1 - first - symbol_of(k) if reverse else first + symbol_of(k)
    place, row = (*idx[:axis], at, *idx[axis + 1:]), (*idx[:axis], *idx[axis + 1:])
    running = Name("running", wide)
    step: Stmt = Accumulate("running", STEP[kind], cast(Load(
        x.buffer, x.index(place), x.dtype), wide))  # type: ignore[arg-type]
    start: Expr = Const(identity(kind, x.dtype), wide) if before is None else Load(
        before.buffer, before.index((symbol_of(slab[0]), *row)), wide)
    value: Expr = cast(running, out.dtype)  # type: ignore[assignment]
    let = Let("running", start, mutable=True)
    if whole:
        total = Store(out.buffer, out.index((symbol_of(slab[0]), *row)), value)
        body: tuple[Stmt, ...] = (let, For(k, here, "serial", (step,)), total)
    else:
        store = Store(out.buffer, out.index(place), value)
        body = (let, For(k, here, "serial", (store, step) if exclusive else (step, store)))
    inner = sorted(loops, key=lambda a: -typical(x.strides[a]))
    return Lowered(workers([slab] * (count > 1) + [loops[a] for a in inner], body, names),
                   product(x.shape))


def workers(loops: list[tuple[Symbol, Dim]], body: tuple[Stmt, ...], names: Names
             ) -> tuple[Stmt, ...]:
    """The body in one loop whose iterations workers share; without `loops` one of them runs it."""
    one = (iterator(names.new("i"), 1), 1)
    (it, extent), parts = joined_loops(loops or [one], names)
    lets = tuple(Let(s.name, Index(d, dtypes.int64)) for s, d in parts)
    return (For(it, extent, "parallel", (*lets, *body)),)
