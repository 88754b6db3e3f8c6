"""A sort as plain loops, for languages without a kernel of it.

The place of an element is the number of elements that come before it, so that each element has a
worker of its own, which reads the whole row.
"""

from __future__ import annotations

from collections.abc import Callable

from graphtool import dtypes
from graphtool import ops as o
from graphtool.ir.op import Op
from graphtool.kernels.use import Lowered
from graphtool.loops.ir import Accumulate, Const, Expr, For, Index, Let, Load, Name, Stmt, Store
from graphtool.loops.pull import Names, View, apply, iterator
from graphtool.lower.scans import workers
from graphtool.lower.unit_use import UnitUse
from graphtool.symbolic import Dim, product, symbol_of


def sort_by_ranks(use: UnitUse) -> list[Lowered]:
    """The kernel of the node, a sort; outputs that nothing reads are not stored."""
    results = [(view, n == 0) for n in range(2) if (view := use.result(n)) is not None]
    return [_ranked(use.view(0), results, **use.node.attrs)]


def _ranked(x: View, results: list[tuple[View, bool]], *, axis: int, descending: bool) -> Lowered:
    """`results` are views of the values, and of the indices (False)."""
    names = Names()
    loops = {a: (iterator(names.new("i"), d), d) for a, d in enumerate(x.shape) if d != 1}
    idx: list[Dim] = [symbol_of(loops[a][0]) if a in loops else 0 for a in range(len(x.shape))]
    axis = axis % len(idx) if idx else 0
    n, here = (x.shape[axis], idx[axis]) if idx else (1, 0)
    other = iterator(names.new("r"), n)

    def load(at: Dim) -> Load:
        return Load(x.buffer, x.index((*idx[:axis], at, *idx[axis + 1:])[:len(idx)]), x.dtype)
    mine = Name(names.new("v"), x.dtype)
    before = _before(load(symbol_of(other)), symbol_of(other), mine, here, descending)
    one, zero = (Const(c, dtypes.int64) for c in (1, 0))
    rank = Name("running", dtypes.int64)
    place = names.index(rank, n)
    step = Accumulate(rank.name, "add", apply("select", before, one, zero, dtype=dtypes.int64))
    stores = [Store(view.buffer, view.index((*idx[:axis], place, *idx[axis + 1:])[:len(idx)]),
                    mine if values else Index(here, dtypes.int64)) for view, values in results]
    lets = [Let(name, value) for name, value in names.indices.items()]  # type: ignore[arg-type]
    body: tuple[Stmt, ...] = (
        Let(mine.name, load(here)), Let(rank.name, zero, mutable=True),
        For(other, n, "serial", (step,)), *lets, *stores)
    return Lowered(workers([*loops.values()], body, names), product(x.shape) * n)


def _before(a: Expr, at: Dim, b: Expr, here: Dim, falling: bool) -> Expr:
    """Whether element `a` of the row comes before `b`: equal ones stay in their order."""
    earlier = _is("lt", Index(at, dtypes.int64), Index(here, dtypes.int64))
    equal = apply("not", _less(b, a, falling), dtype=dtypes.bool_)
    return apply("or", _less(a, b, falling), apply("and", equal, earlier))


def _less(a: Expr, b: Expr, falling: bool) -> Expr:
    """Whether a number must come before another one; NaN counts as the greatest."""
    low, high = (b, a) if falling else (a, b)
    less = _is("lt", low, high)
    if not a.dtype.is_float:
        return less
    return apply("or", less, apply("and", _is("ne", high, high), _is("eq", low, low)))


def _is(fn: str, a: Expr, b: Expr) -> Expr:
    return apply(fn, a, b, dtype=dtypes.bool_)


LOOPS: dict[Op, Callable[[UnitUse], list[Lowered]]] = {
    o.sort: sort_by_ranks}  # ops that have kernels, where these have no text
