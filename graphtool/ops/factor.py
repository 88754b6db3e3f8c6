"""Factorisations and triangular systems over batches of matrices, column by column as scans.

Composites for the sizes that models have; no blocks, no calls of LAPACK. A matrix without a factor
gives NaN or infinities, not an error.
"""

from __future__ import annotations

from typing import Any

from graphtool import dtypes
from graphtool import ops as o
from graphtool.ir.graph import TensorType
from graphtool.ops.common import composite, need
from graphtool.ops.matrices import (
    as_tuple,
    blank,
    flat,
    need_matrix,
    nothing,
    places,
    scanned,
    triangle,
    turned,
)
from graphtool.symbolic import Dim, product


def _entry(x: Any, j: Any, *axes: int) -> Any:
    """x at place j of the axes, which go."""
    at = o.reshape(j, shape=(1,))
    return o.gather(x, at if len(axes) == 1 else o.concat(*[at] * len(axes), axis=0), axes=axes)


def _column(x: Any, j: Any) -> Any:
    return o.reshape(_entry(x, j, 2), shape=(*x.shape[:2], 1))


def _row(x: Any, j: Any) -> Any:
    return o.reshape(_entry(x, j, 1), shape=(x.shape[0], 1, x.shape[2]))


def _corner(x: Any, j: Any) -> Any:
    """The element on the diagonal, [batch, 1, 1]."""
    return o.reshape(_entry(x, j, 1, 2), shape=(x.shape[0], 1, 1))


# ---- Cholesky ----------------------------------------------------------------------------------

def _cholesky_types(a: TensorType) -> TensorType:
    need_matrix(a)
    return a


def _cholesky_vjp(g: Any, y: Any, a: Any) -> tuple[Any]:
    # ā = ½(S + Sᵀ), S = L⁻ᵀ·Φ(Lᵀ·ḡ)·L⁻¹; Φ keeps the lower half, the diagonal by one half
    # (Murray 2016). Spread over both halves as in torch, though only the lower one is read.
    inner = o.matmul(y, triangle(g, True), transpose_a=True)
    half = (triangle(inner, True) + triangle(inner, True, -1)) * 0.5
    left = o.triangular_solve(turned(y), half, lower=False)
    both = o.triangular_solve(turned(y), turned(left), lower=False)
    return ((both + turned(both)) * 0.5,)


@composite(types=_cholesky_types, vjp=_cholesky_vjp)
def cholesky(a: Any) -> Any:
    """L with L·Lᵀ = a and zeros above its diagonal; reads the lower half of a."""
    if nothing(a):
        return a
    n = a.shape[-1]

    def step(rest: Any, j: Any) -> Any:
        column, root = _column(rest, j), o.sqrt(_corner(rest, j))
        rows = places(rest, (1, n, 1), 1)
        new = o.select(o.gt(rows, j), column / root, o.select(o.eq(rows, j), root, 0.0))
        return rest - new * turned(new), o.reshape(new, shape=tuple(new.shape[:2]))
    _, columns = scanned(step, n, (flat(a),))
    return o.reshape(o.transpose(columns, perm=(1, 2, 0)), shape=a.shape)


# ---- triangular systems ------------------------------------------------------------------------

def _solve_types(a: TensorType, b: TensorType, *, lower: bool = True,
                 unit: bool = False) -> TensorType:
    need_matrix(a)
    need(b.rank == a.rank and b.dtype is a.dtype and b.shape[:-1] == a.shape[:-1],
         f"a right side as long as {a}, got {b}")
    return b


def _solve_vjp(g: Any, y: Any, a: Any, b: Any, *, lower: bool, unit: bool) -> tuple[Any, Any]:
    gb = o.triangular_solve(turned(a), g, lower=not lower, unit=unit)
    ga = triangle(o.matmul(gb, y, transpose_b=True), lower, (-1 if lower else 1) * int(unit))
    return -ga, gb


@composite(types=_solve_types, vjp=_solve_vjp)
def triangular_solve(a: Any, b: Any, *, lower: bool = True, unit: bool = False) -> Any:
    """x with a·x = b, of a only one half being read; `unit` takes its diagonal for ones."""
    if nothing(b):
        return b

    def step(rest: Any, j: Any, side: Any) -> Any:
        x = _row(rest, j) if unit else _row(rest, j) / _corner(side, j)
        return rest - _column(side, j) * x, o.reshape(x, shape=(x.shape[0], x.shape[2]))
    # what this does to the rows that are solved already is never read
    _, rows = scanned(step, a.shape[-1], (flat(b),), fixed=(flat(a),), reverse=not lower)
    return o.reshape(o.transpose(rows, perm=(1, 0, 2)), shape=b.shape)


# ---- LU with row pivoting ----------------------------------------------------------------------

def _short(a: TensorType) -> Dim:
    m, n = a.shape[-2:]
    need((isinstance(m, int) and isinstance(n, int)) or m == n, f"a matrix of known size, got {a}")
    return n if m == n or not isinstance(m, int) or not isinstance(n, int) else min(m, n)


def _lu_types(a: TensorType) -> tuple[TensorType, TensorType]:
    need_matrix(a, square=False)
    return a, TensorType(dtypes.int64, (*a.shape[:-2], _short(a)))


@composite(types=_lu_types)
def lu(a: Any) -> Any:
    """P·L·U = a → (L below and U on and above the diagonal, the row that each row was swapped
    with); L has ones on its diagonal."""
    if nothing(a):
        return blank(a, _lu_types(a.type))
    m, n = a.shape[-2:]

    def step(rest: Any, j: Any) -> Any:
        rows, columns = places(rest, (1, m, 1), 1), places(rest, (1, 1, n), 2)
        size = o.select(o.ge(rows, j), o.abs(_column(rest, j)), -1.0)
        best = o.arg_reduce(size, kind="max", axis=1)
        order = o.select(o.eq(rows, j), best, o.select(o.eq(rows, best), j, rows))
        rest = o.gather(rest, order, axes=(1,), batch=1)
        pivot, below = _corner(rest, j), o.gt(rows, j)
        none = o.eq(pivot, 0.0)
        factor = o.select(o.and_(below, o.not_(none)),
                          _column(rest, j) / o.select(none, 1.0, pivot), 0.0)
        inner = rest - o.select(o.gt(columns, j), factor * _row(rest, j), 0.0)
        return (o.select(o.and_(below, o.eq(columns, j)), factor, inner),
                o.reshape(best, shape=(best.shape[0],)))
    out, swaps = scanned(step, _short(a.type), (flat(a),))
    swaps = o.transpose(swaps, perm=(1, 0))
    return o.reshape(out, shape=a.shape), o.reshape(swaps, shape=(*a.shape[:-2], swaps.shape[1]))


def _order_types(swaps: TensorType, *, size: Dim) -> TensorType:
    need(swaps.rank >= 1 and swaps.dtype is dtypes.int64, f"places of rows, got {swaps}")
    return TensorType(dtypes.int64, (*swaps.shape[:-1], size))


@composite(types=_order_types)
def swapped(swaps: Any, *, size: Dim) -> Any:
    """0, 1, …, with place j swapped with place swaps[j], one after the other."""
    if nothing(swaps) or size == 0:
        line = places(swaps, (*(1,) * (swaps.ndim - 1), size), swaps.ndim - 1)
        return o.broadcast(line, shape=(*swaps.shape[:-1], size))
    batch = product(swaps.shape[:-1])
    start = o.broadcast(places(swaps, (1, size), 1), shape=(batch, size))
    by_step = o.transpose(o.reshape(swaps, shape=(batch, swaps.shape[-1])), perm=(1, 0))

    def step(order: Any, j: Any, best: Any) -> Any:
        at, best = places(order, (1, size), 1), o.reshape(best, shape=(batch, 1))
        moved = o.select(o.eq(at, j), best, o.select(o.eq(at, best), j, at))
        return (o.gather(order, o.reshape(moved, shape=(batch, size, 1)), axes=(1,), batch=1),)
    (order,) = as_tuple(scanned(step, swaps.shape[-1], (start,), (by_step,)))
    return o.reshape(order, shape=(*swaps.shape[:-1], size))


# ---- QR by reflections -------------------------------------------------------------------------

def _householder_types(a: TensorType) -> tuple[TensorType, TensorType]:
    need_matrix(a, square=False)
    return a, TensorType(a.dtype, (*a.shape[:-2], _short(a)))


@composite(types=_householder_types)
def householder(a: Any) -> Any:
    """Q·R = a → (R on and above the diagonal, below it the vectors v of the reflections
    I − τ·v·vᵀ whose product is Q; their τ), v being 1 on the diagonal, as in LAPACK's geqrf."""
    if nothing(a):
        return blank(a, _householder_types(a.type))
    m, n = a.shape[-2:]

    def step(rest: Any, j: Any) -> Any:
        rows, columns = places(rest, (1, m, 1), 1), places(rest, (1, 1, n), 2)
        column, top, below = _column(rest, j), _corner(rest, j), o.gt(rows, j)
        tail = o.select(below, column, 0.0)
        square = o.reduce_sum(tail * tail, axes=(1,))
        flat = o.eq(square, 0.0)  # nothing to reflect
        length = o.sqrt(o.select(flat, 1.0, square + top * top))
        image = o.select(o.lt(top, 0.0), length, -length)
        tau = o.select(flat, 0.0, (image - top) / image)
        v = o.select(o.eq(rows, j), 1.0, tail / (top - image))
        after = rest - tau * v * o.matmul(v, rest, transpose_a=True)
        inside = o.select(o.gt(columns, j), o.select(o.lt(rows, j), rest, after), rest)
        own = o.select(below, v, o.select(o.and_(o.eq(rows, j), o.not_(flat)), image, column))
        return (o.select(o.eq(columns, j), own, inside), o.reshape(tau, shape=(tau.shape[0],)))
    out, taus = scanned(step, _short(a.type), (flat(a),))
    taus = o.transpose(taus, perm=(1, 0))
    return o.reshape(out, shape=a.shape), o.reshape(taus, shape=(*a.shape[:-2], taus.shape[1]))


def _reflect_types(packed: TensorType, tau: TensorType, x: TensorType, *,
                   transpose: bool = False) -> TensorType:
    need_matrix(packed, square=False)
    need(tau.shape[:-1] == packed.shape[:-2] == x.shape[:-2] and x.rank == packed.rank
         and x.shape[-2] == packed.shape[-2], f"reflections {packed}, {tau} of {x}")
    return x


@composite(types=_reflect_types)
def reflect(packed: Any, tau: Any, x: Any, *, transpose: bool = False) -> Any:
    """Q·x, or Qᵀ·x, with Q as `householder` gives it."""
    if nothing(x) or nothing(tau):
        return x
    side, count = flat(packed), tau.shape[-1]
    rows = o.transpose(o.reshape(tau, shape=(side.shape[0], count)), perm=(1, 0))

    def step(y: Any, j: Any, t: Any, vectors: Any) -> Any:
        at = places(y, (1, y.shape[1], 1), 1)
        v = o.select(o.gt(at, j), _column(vectors, j), o.cast(o.eq(at, j), dtype=y.dtype))
        t = o.reshape(t, shape=(t.shape[0], 1, 1))
        return (y - t * v * o.matmul(v, y, transpose_a=True),)
    (y,) = as_tuple(scanned(step, count, (flat(x),), (rows,), (side,), reverse=not transpose))
    return o.reshape(y, shape=x.shape)


# ---- what follows from LU ----------------------------------------------------------------------

def _lu_solve_types(factors: TensorType, swaps: TensorType, b: TensorType) -> TensorType:
    need_matrix(factors)
    need(b.rank == factors.rank and b.shape[:-1] == factors.shape[:-1],
         f"a right side as long as {factors}, got {b}")
    return b


@composite(types=_lu_solve_types)
def lu_solve(factors: Any, swaps: Any, b: Any) -> Any:
    """x with a·x = b, from `lu(a)`."""
    order = o.swapped(swaps, size=b.shape[-2])
    moved = o.gather(b, o.reshape(order, shape=(*order.shape, 1)), axes=(b.ndim - 2,),
                     batch=b.ndim - 2)
    return o.triangular_solve(factors, o.triangular_solve(factors, moved, unit=True), lower=False)
