"""Factorisations and triangular systems over batches of matrices, column by column as scans.

Composites for the sizes that models have; no blocks, no calls of LAPACK. A matrix without a factor
gives NaN or infinities, not an error.
"""

from __future__ import annotations

from typing import Any

from graphtool import dtypes
from graphtool.ir.graph import TensorType
from graphtool.ir.op import ops as o
from graphtool.ir.trace import like, trace
from graphtool.ops.common import composite, filled, need
from graphtool.symbolic import Dim, product


def _matrix(x: TensorType, square: bool = True) -> None:
    need(x.rank >= 2 and x.dtype.is_float, f"a matrix of floats, got {x}")
    need(not square or x.shape[-1] == x.shape[-2], f"a square matrix, got {x}")


def _flat(x: Any) -> Any:
    """[batch, rows, columns]"""
    return o.reshape(x, shape=(product(x.shape[:-2]), *x.shape[-2:]))


def _places(x: Any, shape: tuple[Dim, ...], axis: int) -> Any:
    return like(x, o.iota, shape=shape, axis=axis, dtype=dtypes.int64)


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


def _as_tuple(x: Any) -> tuple[Any, ...]:
    return x if isinstance(x, tuple) else (x,)


def _nothing(x: Any) -> bool:
    return 0 in x.shape


def _blank(x: Any, kinds: Any) -> Any:
    """Results without elements, of the types."""
    made = tuple(filled(x, 0.0, t.shape, t.dtype) for t in _as_tuple(kinds))
    return made if isinstance(kinds, tuple) else made[0]


def _scan(step: Any, count: Dim, held: tuple[Any, ...], rows: tuple[Any, ...] = (),
          fixed: tuple[Any, ...] = (), reverse: bool = False) -> Any:
    """`step(*held, j, *rows, *fixed)` for each j below `count`, with a row of each of `rows`."""
    xs = (_places(held[0], (count,), 0), *rows)
    types = [*(x.type for x in held), *(TensorType(x.dtype, x.shape[1:]) for x in xs),
             *(x.type for x in fixed)]
    return o.scan(*held, *xs, *fixed, body=trace(step, types), carries=len(held), xs=len(xs),
                  length=count, reverse=reverse)


def triangle(x: Any, lower: bool, diagonal: int = 0) -> Any:
    """x with zeros above (or below) the diagonal that lies `diagonal` to the right."""
    m, n = x.shape[-2:]
    offset = _places(x, (1, n), 1) - _places(x, (m, 1), 0)
    return o.select(o.le(offset, diagonal) if lower else o.ge(offset, diagonal), x, 0.0)


def _turned(x: Any) -> Any:
    return o.transpose(x, perm=(*range(x.ndim - 2), x.ndim - 1, x.ndim - 2))


# ---- Cholesky ----------------------------------------------------------------------------------

def _cholesky_types(a: TensorType) -> TensorType:
    _matrix(a)
    return a


def _cholesky_vjp(g: Any, y: Any, a: Any) -> tuple[Any]:
    # ā = ½(S + Sᵀ), S = L⁻ᵀ·Φ(Lᵀ·ḡ)·L⁻¹; Φ keeps the lower half, the diagonal by one half
    # (Murray 2016). Spread over both halves as in torch, though only the lower one is read.
    inner = o.matmul(y, triangle(g, True), transpose_a=True)
    half = (triangle(inner, True) + triangle(inner, True, -1)) * 0.5
    left = o.triangular_solve(_turned(y), half, lower=False)
    both = o.triangular_solve(_turned(y), _turned(left), lower=False)
    return ((both + _turned(both)) * 0.5,)


@composite(types=_cholesky_types, vjp=_cholesky_vjp)
def cholesky(a: Any) -> Any:
    """L with L·Lᵀ = a and zeros above its diagonal; reads the lower half of a."""
    if _nothing(a):
        return a
    n = a.shape[-1]

    def step(rest: Any, j: Any) -> Any:
        column, root = _column(rest, j), o.sqrt(_corner(rest, j))
        rows = _places(rest, (1, n, 1), 1)
        new = o.select(o.gt(rows, j), column / root, o.select(o.eq(rows, j), root, 0.0))
        return rest - new * _turned(new), o.reshape(new, shape=tuple(new.shape[:2]))
    _, columns = _scan(step, n, (_flat(a),))
    return o.reshape(o.transpose(columns, perm=(1, 2, 0)), shape=a.shape)


# ---- triangular systems ------------------------------------------------------------------------

def _solve_types(a: TensorType, b: TensorType, *, lower: bool = True,
                 unit: bool = False) -> TensorType:
    _matrix(a)
    need(b.rank == a.rank and b.dtype is a.dtype and b.shape[:-1] == a.shape[:-1],
         f"a right side as long as {a}, got {b}")
    return b


def _solve_vjp(g: Any, y: Any, a: Any, b: Any, *, lower: bool, unit: bool) -> tuple[Any, Any]:
    gb = o.triangular_solve(_turned(a), g, lower=not lower, unit=unit)
    ga = triangle(o.matmul(gb, y, transpose_b=True), lower, (-1 if lower else 1) * int(unit))
    return -ga, gb


@composite(types=_solve_types, vjp=_solve_vjp)
def triangular_solve(a: Any, b: Any, *, lower: bool = True, unit: bool = False) -> Any:
    """x with a·x = b, of a only one half being read; `unit` takes its diagonal for ones."""
    if _nothing(b):
        return b

    def step(rest: Any, j: Any, side: Any) -> Any:
        x = _row(rest, j) if unit else _row(rest, j) / _corner(side, j)
        return rest - _column(side, j) * x, o.reshape(x, shape=(x.shape[0], x.shape[2]))
    # what this does to the rows that are solved already is never read
    _, rows = _scan(step, a.shape[-1], (_flat(b),), fixed=(_flat(a),), reverse=not lower)
    return o.reshape(o.transpose(rows, perm=(1, 0, 2)), shape=b.shape)


# ---- LU with row pivoting ----------------------------------------------------------------------

def _short(a: TensorType) -> Dim:
    m, n = a.shape[-2:]
    need((isinstance(m, int) and isinstance(n, int)) or m == n, f"a matrix of known size, got {a}")
    return n if m == n or not isinstance(m, int) or not isinstance(n, int) else min(m, n)


def _lu_types(a: TensorType) -> tuple[TensorType, TensorType]:
    _matrix(a, square=False)
    return a, TensorType(dtypes.int64, (*a.shape[:-2], _short(a)))


@composite(types=_lu_types)
def lu(a: Any) -> Any:
    """P·L·U = a → (L below and U on and above the diagonal, the row that each row was swapped
    with); L has ones on its diagonal."""
    if _nothing(a):
        return _blank(a, _lu_types(a.type))
    m, n = a.shape[-2:]

    def step(rest: Any, j: Any) -> Any:
        rows, columns = _places(rest, (1, m, 1), 1), _places(rest, (1, 1, n), 2)
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
    out, swaps = _scan(step, _short(a.type), (_flat(a),))
    swaps = o.transpose(swaps, perm=(1, 0))
    return o.reshape(out, shape=a.shape), o.reshape(swaps, shape=(*a.shape[:-2], swaps.shape[1]))


def _order_types(swaps: TensorType, *, size: Dim) -> TensorType:
    need(swaps.rank >= 1 and swaps.dtype is dtypes.int64, f"places of rows, got {swaps}")
    return TensorType(dtypes.int64, (*swaps.shape[:-1], size))


@composite(types=_order_types)
def swapped(swaps: Any, *, size: Dim) -> Any:
    """0, 1, …, with place j swapped with place swaps[j], one after the other."""
    if _nothing(swaps) or size == 0:
        line = _places(swaps, (*(1,) * (swaps.ndim - 1), size), swaps.ndim - 1)
        return o.broadcast(line, shape=(*swaps.shape[:-1], size))
    batch = product(swaps.shape[:-1])
    start = o.broadcast(_places(swaps, (1, size), 1), shape=(batch, size))
    turns = o.transpose(o.reshape(swaps, shape=(batch, swaps.shape[-1])), perm=(1, 0))

    def step(order: Any, j: Any, best: Any) -> Any:
        at, best = _places(order, (1, size), 1), o.reshape(best, shape=(batch, 1))
        moved = o.select(o.eq(at, j), best, o.select(o.eq(at, best), j, at))
        return (o.gather(order, o.reshape(moved, shape=(batch, size, 1)), axes=(1,), batch=1),)
    (order,) = _as_tuple(_scan(step, swaps.shape[-1], (start,), (turns,)))
    return o.reshape(order, shape=(*swaps.shape[:-1], size))


# ---- QR by reflections -------------------------------------------------------------------------

def _householder_types(a: TensorType) -> tuple[TensorType, TensorType]:
    _matrix(a, square=False)
    return a, TensorType(a.dtype, (*a.shape[:-2], _short(a)))


@composite(types=_householder_types)
def householder(a: Any) -> Any:
    """Q·R = a → (R on and above the diagonal, below it the vectors v of the reflections
    I − τ·v·vᵀ whose product is Q; their τ), v being 1 on the diagonal, as in LAPACK's geqrf."""
    if _nothing(a):
        return _blank(a, _householder_types(a.type))
    m, n = a.shape[-2:]

    def step(rest: Any, j: Any) -> Any:
        rows, columns = _places(rest, (1, m, 1), 1), _places(rest, (1, 1, n), 2)
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
    out, taus = _scan(step, _short(a.type), (_flat(a),))
    taus = o.transpose(taus, perm=(1, 0))
    return o.reshape(out, shape=a.shape), o.reshape(taus, shape=(*a.shape[:-2], taus.shape[1]))


def _reflect_types(packed: TensorType, tau: TensorType, x: TensorType, *,
                   transpose: bool = False) -> TensorType:
    _matrix(packed, square=False)
    need(tau.shape[:-1] == packed.shape[:-2] == x.shape[:-2] and x.rank == packed.rank
         and x.shape[-2] == packed.shape[-2], f"reflections {packed}, {tau} of {x}")
    return x


@composite(types=_reflect_types)
def reflect(packed: Any, tau: Any, x: Any, *, transpose: bool = False) -> Any:
    """Q·x, or Qᵀ·x, with Q as `householder` gives it."""
    if _nothing(x) or _nothing(tau):
        return x
    side, count = _flat(packed), tau.shape[-1]
    rows = o.transpose(o.reshape(tau, shape=(side.shape[0], count)), perm=(1, 0))

    def step(y: Any, j: Any, t: Any, vectors: Any) -> Any:
        at = _places(y, (1, y.shape[1], 1), 1)
        v = o.select(o.gt(at, j), _column(vectors, j), o.cast(o.eq(at, j), dtype=y.dtype))
        t = o.reshape(t, shape=(t.shape[0], 1, 1))
        return (y - t * v * o.matmul(v, y, transpose_a=True),)
    (y,) = _as_tuple(_scan(step, count, (_flat(x),), (rows,), (side,), reverse=not transpose))
    return o.reshape(y, shape=x.shape)


# ---- what follows from LU ----------------------------------------------------------------------

def _lu_solve_types(factors: TensorType, swaps: TensorType, b: TensorType) -> TensorType:
    _matrix(factors)
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


def identity(x: Any, n: Dim, batch: tuple[Dim, ...] = ()) -> Any:
    """[*batch, n, n] with ones on the diagonal."""
    one = o.eq(_places(x, (1, n), 1), _places(x, (n, 1), 0))
    plain = o.select(one, filled(x, 1.0, (n, n)), 0.0)
    return o.broadcast(plain, shape=(*batch, n, n))
