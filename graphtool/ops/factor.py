"""Factorisations and triangular systems for batches of matrices, column by column as scans.

They are composites for the sizes that models have, without calls of LAPACK. Cholesky factors and
triangular systems of float32 and float64 have kernels; the scans are what they compute. A matrix
that has no factor gives NaN or infinities, not an error.
"""

from __future__ import annotations

from typing import Any

from graphtool import dtypes
from graphtool import ops as o
from graphtool.ir.facets import Lowering
from graphtool.ir.graph import TensorType
from graphtool.ops.common import composite, need
from graphtool.ops.matrices import (
    as_tuple,
    axis_indices,
    blank,
    flat,
    is_empty,
    need_matrix,
    scanned,
    swap_last_axes,
    triangle,
)
from graphtool.symbolic import Dim, product

_WITH_KERNEL = (dtypes.float32, dtypes.float64)


def _entry(x: Any, j: Any, *axes: int) -> Any:
    """x at index j of each of the axes, which are removed."""
    at = o.reshape(j, shape=(1,))
    return o.gather(x, at if len(axes) == 1 else o.concat(*[at] * len(axes), axis=0), axes=axes)


def _column(x: Any, j: Any) -> Any:
    return o.reshape(_entry(x, j, 2), shape=(*x.shape[:2], 1))


def _row(x: Any, j: Any) -> Any:
    return o.reshape(_entry(x, j, 1), shape=(x.shape[0], 1, x.shape[2]))


def _corner(x: Any, j: Any) -> Any:
    """The element j of the diagonal, [batch, 1, 1]."""
    return o.reshape(_entry(x, j, 1, 2), shape=(x.shape[0], 1, 1))


# ---- Cholesky ----------------------------------------------------------------------------------

def _cholesky_types(a: TensorType) -> TensorType:
    need_matrix(a)
    return a


def _cholesky_vjp(g: Any, y: Any, a: Any) -> tuple[Any]:
    # ā = ½(S + Sᵀ), S = L⁻ᵀ·Φ(Lᵀ·ḡ)·L⁻¹; Φ keeps the lower half and halves the diagonal (Murray
    # 2016). The gradient is spread over both halves as in torch, though only the lower one is read.
    inner = o.matmul(y, triangle(g, True), transpose_a=True)
    half = (triangle(inner, True) + triangle(inner, True, -1)) * 0.5
    left = o.triangular_solve(swap_last_axes(y), half, lower=False)
    both = o.triangular_solve(swap_last_axes(y), swap_last_axes(left), lower=False)
    return ((both + swap_last_axes(both)) * 0.5,)


@composite(types=_cholesky_types, vjp=_cholesky_vjp)
def cholesky(a: Any) -> Any:
    """L with L·Lᵀ = a, zeros above its diagonal. Only the lower half of a is read."""
    if is_empty(a):
        return a
    factor = (o.cholesky_whole if a.dtype in _WITH_KERNEL else _by_columns)(flat(a))
    return o.reshape(factor, shape=a.shape)


def _whole_types(a: TensorType) -> TensorType:
    need_matrix(a)
    need(a.rank == 3 and a.dtype in _WITH_KERNEL, f"a batch of matrices of f32 or f64, got {a}")
    return a


@composite(types=_whole_types, lowering=Lowering.STATEMENTS)
def cholesky_whole(a: Any) -> Any:
    """`cholesky` of [batch, n, n] by a kernel."""
    return _by_columns(a)


def _by_columns(a: Any) -> Any:
    n = a.shape[-1]

    def step(rest: Any, j: Any) -> Any:
        column, root = _column(rest, j), o.sqrt(_corner(rest, j))
        rows = axis_indices(rest, (1, n, 1), 1)
        new = o.select(o.gt(rows, j), column / root, o.select(o.eq(rows, j), root, 0.0))
        return rest - new * swap_last_axes(new), o.reshape(new, shape=tuple(new.shape[:2]))
    _, columns = scanned(step, n, (a,))
    return o.transpose(columns, perm=(1, 2, 0))


# ---- triangular systems ------------------------------------------------------------------------

def _solve_types(a: TensorType, b: TensorType, *, lower: bool = True,
                 unit: bool = False) -> TensorType:
    need_matrix(a)
    need(b.rank == a.rank and b.dtype is a.dtype and b.shape[:-1] == a.shape[:-1],
         f"the right-hand side must have as many rows as {a}, got {b}")
    return b


def _solve_vjp(g: Any, y: Any, a: Any, b: Any, *, lower: bool, unit: bool) -> tuple[Any, Any]:
    gb = o.triangular_solve(swap_last_axes(a), g, lower=not lower, unit=unit)
    ga = triangle(o.matmul(gb, y, transpose_b=True), lower, (-1 if lower else 1) * int(unit))
    return -ga, gb


@composite(types=_solve_types, vjp=_solve_vjp)
def triangular_solve(a: Any, b: Any, *, lower: bool = True, unit: bool = False) -> Any:
    """x with a·x = b. Only one half of a is read; with `unit` its diagonal is taken as ones."""
    if is_empty(b):
        return b
    solve = o.triangular_whole if b.dtype in _WITH_KERNEL else _by_rows
    return o.reshape(solve(flat(a), flat(b), lower=lower, unit=unit), shape=b.shape)


def _whole_solve_types(a: TensorType, b: TensorType, *, lower: bool = True,
                       unit: bool = False) -> TensorType:
    need(b.rank == 3 and b.dtype in _WITH_KERNEL, f"a batch of systems of f32 or f64, got {b}")
    return _solve_types(a, b, lower=lower, unit=unit)


@composite(types=_whole_solve_types, lowering=Lowering.STATEMENTS)
def triangular_whole(a: Any, b: Any, *, lower: bool = True, unit: bool = False) -> Any:
    """`triangular_solve` of [batch, n, n] and [batch, n, m] by a kernel."""
    return _by_rows(a, b, lower=lower, unit=unit)


def _by_rows(a: Any, b: Any, *, lower: bool, unit: bool) -> Any:
    def step(rest: Any, j: Any, side: Any) -> Any:
        x = _row(rest, j) if unit else _row(rest, j) / _corner(side, j)
        return rest - _column(side, j) * x, o.reshape(x, shape=(x.shape[0], x.shape[2]))
    # this also changes the rows that are solved already, which are never read again
    _, rows = scanned(step, a.shape[-1], (b,), fixed=(a,), reverse=not lower)
    return o.transpose(rows, perm=(1, 0, 2))


# ---- LU with row pivoting ----------------------------------------------------------------------

def _short(a: TensorType) -> Dim:
    m, n = a.shape[-2:]
    need((isinstance(m, int) and isinstance(n, int)) or m == n,
         f"the size of the matrix must be a known number, got {a}")
    return n if m == n or not isinstance(m, int) or not isinstance(n, int) else min(m, n)


def _lu_types(a: TensorType) -> tuple[TensorType, TensorType]:
    need_matrix(a, square=False)
    return a, TensorType(dtypes.int64, (*a.shape[:-2], _short(a)))


@composite(types=_lu_types)
def lu(a: Any) -> Any:
    """P·L·U = a. The results are L below and U on and above the diagonal, and the row that each
    row was swapped with. L has ones on its diagonal."""
    if is_empty(a):
        return blank(a, _lu_types(a.type))
    m, n = a.shape[-2:]

    def step(rest: Any, j: Any) -> Any:
        rows, columns = axis_indices(rest, (1, m, 1), 1), axis_indices(rest, (1, 1, n), 2)
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
    need(swaps.rank >= 1 and swaps.dtype is dtypes.int64,
         f"swaps must hold integer row numbers, got {swaps}")
    return TensorType(dtypes.int64, (*swaps.shape[:-1], size))


@composite(types=_order_types)
def swapped(swaps: Any, *, size: Dim) -> Any:
    """0, 1, …, size − 1 after swapping element j with element swaps[j], for each j in order."""
    if is_empty(swaps) or size == 0:
        line = axis_indices(swaps, (*(1,) * (swaps.ndim - 1), size), swaps.ndim - 1)
        return o.broadcast(line, shape=(*swaps.shape[:-1], size))
    batch = product(swaps.shape[:-1])
    start = o.broadcast(axis_indices(swaps, (1, size), 1), shape=(batch, size))
    by_step = o.transpose(o.reshape(swaps, shape=(batch, swaps.shape[-1])), perm=(1, 0))

    def step(order: Any, j: Any, best: Any) -> Any:
        at, best = axis_indices(order, (1, size), 1), o.reshape(best, shape=(batch, 1))
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
    """Q·R = a by Householder reflections, in the form of LAPACK's geqrf.

    The first result is R on and above the diagonal and, below it, the vectors v of the reflections
    I − τ·v·vᵀ, whose product is Q; v is 1 on the diagonal. The second result is the τ.
    """
    if is_empty(a):
        return blank(a, _householder_types(a.type))
    m, n = a.shape[-2:]

    def step(rest: Any, j: Any) -> Any:
        rows, columns = axis_indices(rest, (1, m, 1), 1), axis_indices(rest, (1, 1, n), 2)
        column, top, below = _column(rest, j), _corner(rest, j), o.gt(rows, j)
        tail = o.select(below, column, 0.0)
        square = o.reduce_sum(tail * tail, axes=(1,))
        flat = o.eq(square, 0.0)  # the column is zero already, so there is nothing to reflect
        length = o.sqrt(o.select(flat, 1.0, square + top * top))
        image = o.select(o.lt(top, 0.0), length, -length)
        tau = o.select(flat, 0.0, (image - top) / image)
        v = o.select(o.eq(rows, j), 1.0, tail / (top - image))
        after = rest - tau * v * o.matmul(v, rest, transpose_a=True)
        inside = o.select(o.gt(columns, j), o.select(o.lt(rows, j), rest, after), rest)
        reflected = o.select(below, v, o.select(o.and_(o.eq(rows, j), o.not_(flat)), image, column))
        return (o.select(o.eq(columns, j), reflected, inside),
                o.reshape(tau, shape=(tau.shape[0],)))
    out, taus = scanned(step, _short(a.type), (flat(a),))
    taus = o.transpose(taus, perm=(1, 0))
    return o.reshape(out, shape=a.shape), o.reshape(taus, shape=(*a.shape[:-2], taus.shape[1]))


def _reflect_types(packed: TensorType, tau: TensorType, x: TensorType, *,
                   transpose: bool = False) -> TensorType:
    need_matrix(packed, square=False)
    need(tau.shape[:-1] == packed.shape[:-2] == x.shape[:-2] and x.rank == packed.rank
         and x.shape[-2] == packed.shape[-2], f"the reflections {packed} and {tau} do not fit {x}")
    return x


@composite(types=_reflect_types)
def reflect(packed: Any, tau: Any, x: Any, *, transpose: bool = False) -> Any:
    """Q·x, or Qᵀ·x with `transpose`, for the Q that `householder` computed."""
    if is_empty(x) or is_empty(tau):
        return x
    side, count = flat(packed), tau.shape[-1]
    rows = o.transpose(o.reshape(tau, shape=(side.shape[0], count)), perm=(1, 0))

    def step(y: Any, j: Any, t: Any, vectors: Any) -> Any:
        at = axis_indices(y, (1, y.shape[1], 1), 1)
        v = o.select(o.gt(at, j), _column(vectors, j), o.cast(o.eq(at, j), dtype=y.dtype))
        t = o.reshape(t, shape=(t.shape[0], 1, 1))
        return (y - t * v * o.matmul(v, y, transpose_a=True),)
    (y,) = as_tuple(scanned(step, count, (flat(x),), (rows,), (side,), reverse=not transpose))
    return o.reshape(y, shape=x.shape)


# ---- solving with LU -------------------------------------------------------------------------

def _lu_solve_types(factors: TensorType, swaps: TensorType, b: TensorType) -> TensorType:
    need_matrix(factors)
    need(b.rank == factors.rank and b.shape[:-1] == factors.shape[:-1],
         f"the right-hand side must have as many rows as {factors}, got {b}")
    return b


@composite(types=_lu_solve_types)
def lu_solve(factors: Any, swaps: Any, b: Any) -> Any:
    """x with a·x = b, for the factors and swaps of `lu(a)`."""
    order = o.swapped(swaps, size=b.shape[-2])
    moved = o.gather(b, o.reshape(order, shape=(*order.shape, 1)), axes=(b.ndim - 2,),
                     batch=b.ndim - 2)
    return o.triangular_solve(factors, o.triangular_solve(factors, moved, unit=True), lower=False)
