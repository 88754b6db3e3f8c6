"""Eigenvectors of symmetric matrices, and singular vectors, by Jacobi's rotations.

Each round rotates half as many pairs of rows as there are rows, all at once. In one sweep every row
is paired once with every other row, as in a round-robin tournament. The number of sweeps is fixed
and grows with the logarithm of the size. General matrices, whose eigenvalues are complex, are not
supported here.
"""

from __future__ import annotations

from typing import Any

import ml_dtypes

from graphtool import ops as o
from graphtool.ir.graph import TensorType
from graphtool.ops.common import composite, filled, need
from graphtool.ops.matrices import (
    as_tuple,
    axis_indices,
    blank,
    flat,
    identity,
    is_empty,
    need_matrix,
    scanned,
    swap_last_axes,
    triangle,
)

_SWEEPS = 6  # plus one for each doubling of the size: convergence is quadratic once it begins


def rounds(n: int) -> int:
    """The rounds of all sweeps over n rows (n is even)."""
    return (_SWEEPS + n.bit_length()) * (n - 1)


def pieces(x: Any, axis: int, *bounds: tuple[int, int]) -> list[Any]:
    """The parts of x between these (start, limit) along the axis."""
    def piece(start: int, limit: int) -> Any:
        return o.slice(x, start=tuple(start if i == axis else 0 for i in range(x.ndim)),
                       limit=tuple(limit if i == axis else d for i, d in enumerate(x.shape)),
                       strides=(1,) * x.ndim)
    return [piece(*b) for b in bounds]


def halves(x: Any, axis: int) -> list[Any]:
    """Both halves of x along the axis; line i of one is paired with line i of the other."""
    n = x.shape[axis]
    return pieces(x, axis, (0, n // 2), (n // 2, n))


def _paired(top: Any, bottom: Any, axis: int) -> Any:
    """Both halves in the order of the next round: all rows but the first move on by one in a
    ring."""
    h = top.shape[axis]
    if h == 1:
        return o.concat(top, bottom, axis=axis)
    first, middle, last = pieces(top, axis, (0, 1), (1, h - 1), (h - 1, h))
    second, rest = pieces(bottom, axis, (0, 1), (1, h))
    return o.concat(first, second, *([middle] if h > 2 else []), rest, last, axis=axis)


def rotated(x: Any, turn: tuple[Any, Any], axis: int) -> Any:
    """p, q → c·p − s·q, s·p + c·q for the pairs of rows or columns, in the order of the next
    round."""
    (top, bottom), (c, s) = halves(x, axis), turn
    return _paired(c * top - s * bottom, s * top + c * bottom, axis)


def rotation(p: Any, q: Any, between: Any) -> tuple[Any, Any]:
    """(c, s) of the rotation by at most 45° that takes ((p, x), (x, q)) to a diagonal matrix.

    An x so small that it is rounding error beside p and q is not rotated: such rotations would add
    up over the sweeps.
    """
    noise = 0.5 * float(ml_dtypes.finfo(p.dtype.numpy).eps)
    none = o.le(o.abs(between), o.sqrt(o.abs(p)) * o.sqrt(o.abs(q)) * noise)
    ratio = (q - p) / (o.select(none, 1.0, between) * 2.0)
    tan = 1.0 / (o.abs(ratio) + o.sqrt(ratio * ratio + 1.0))
    tan = o.select(none, 0.0, o.select(o.lt(ratio, 0.0), -tan, tan))
    c = 1.0 / o.sqrt(tan * tan + 1.0)
    return c, tan * c


def even(x: Any, axes: tuple[int, ...]) -> Any:
    """x with one more line of zeros along the axes if their size is odd and cannot be paired."""
    for axis in axes:
        if x.shape[axis] % 2:
            shape = tuple(1 if i == axis else d for i, d in enumerate(x.shape))
            x = o.concat(x, filled(x, 0.0, shape), axis=axis)
    return x


def ordered(keys: Any, count: int, descending: bool, *vectors: Any) -> tuple[Any, ...]:
    """The first `count` keys [b, n, 1] in order, and the rows of `vectors` that belong to them."""
    _, order = o.sort(keys, axis=1, descending=descending)
    (order,) = pieces(order, 1, (0, count))
    return tuple(o.gather(x, order, axes=(1,), batch=1) for x in (keys, *vectors))


def row_lengths(rows: Any) -> Any:
    """The length of each row: many rotations have kept it near 1, not at 1."""
    return o.sqrt(o.reduce_sum(rows * rows, axes=(2,)))


def diagonal(x: Any) -> Any:
    """The diagonal, [b, n, 1]."""
    on_diagonal = o.eq(axis_indices(x, (1, x.shape[1], 1), 1),
                       axis_indices(x, (1, 1, x.shape[2]), 2))
    return o.reduce_sum(o.select(on_diagonal, x, 0.0), axes=(2,))


def behind(keys: Any, vectors: Any, n: int, last: float) -> Any:
    """The keys, where the one of the line that `even` added is replaced by `last`, so that it
    is sorted last."""
    if vectors.shape[1] == n:
        return keys
    (place,) = pieces(vectors, 2, (n, n + 1))
    return o.select(o.ne(place, 0.0), last, keys)


def known_sizes(a: TensorType) -> tuple[int, int]:
    """Rows and columns of a matrix. Raises TypeMismatch GT0412 if one of them is open."""
    m, n = a.shape[-2:]
    need(isinstance(m, int) and isinstance(n, int),
         f"the size of the matrix must be a known number, got {a}")
    assert isinstance(m, int) and isinstance(n, int)
    return m, n


# ---- symmetric matrices ------------------------------------------------------------------------

def _eigh_types(a: TensorType) -> tuple[TensorType, TensorType]:
    need_matrix(a)
    known_sizes(a)
    return TensorType(a.dtype, a.shape[:-1]), a


def _eigh_vjp(g: Any, y: Any, a: Any) -> tuple[Any]:
    # ā = V·(diag(ḡ_w) + (Vᵀ·ḡ_V) / (w_j − w_i))·Vᵀ, as in torch, which does not make it symmetric
    (gw, gv), (w, v) = g, y
    n, wide = a.shape[-1], (*w.shape[:-1], 1, w.shape[-1])
    inner: Any = None if gw is None else identity(a, n) * o.reshape(gw, shape=wide)
    if gv is not None:
        row = o.reshape(w, shape=wide)
        mixed = o.matmul(v, gv, transpose_a=True) * _inverse(row - swap_last_axes(row), n)
        inner = mixed if inner is None else inner + mixed
    return (o.matmul(o.matmul(v, inner), v, transpose_b=True),)


def _inverse(gaps: Any, n: int) -> Any:
    """1 divided by the gaps; 0 on the diagonal."""
    on_diagonal = o.gt(identity(gaps, n), 0.0)
    return o.select(on_diagonal, 0.0, 1.0 / o.select(on_diagonal, 1.0, gaps))


@composite(types=_eigh_types, vjp=_eigh_vjp)
def eigh(a: Any) -> Any:
    """(w, V) with a·V = V·diag(w), w ascending. Only the lower half of a is read."""
    if is_empty(a):
        return blank(a, _eigh_types(a.type))
    n, _ = known_sizes(a.type)
    x = even(flat(triangle(a, True) + swap_last_axes(triangle(a, True, -1))), (1, 2))
    size, b = x.shape[1], x.shape[0]

    def step(x: Any, vectors: Any, _: Any) -> Any:
        p, q = halves(diagonal(x), 1)
        _, corner = halves(halves(x, 1)[0], 2)
        turn = rotation(p, q, diagonal(corner))
        c, s = (o.reshape(t, shape=(b, 1, size // 2)) for t in turn)
        return (rotated(rotated(x, turn, 1), (c, s), 2),
                rotated(vectors, turn, 1))
    _, vectors = scanned(step, rounds(size), (x, identity(x, size, (b,))))
    vectors = vectors / row_lengths(vectors)
    # closer to the eigenvalues than the diagonal after all rotations
    w = o.reduce_sum(o.matmul(vectors, x) * vectors, axes=(2,))
    w, vectors = ordered(behind(w, vectors, n, float("inf")), n, False, vectors)
    (vectors,) = pieces(vectors, 2, (0, n))
    return o.reshape(w, shape=a.shape[:-1]), o.reshape(swap_last_axes(vectors), shape=a.shape)


# ---- singular values ---------------------------------------------------------------------------

def _svd_types(a: TensorType, *, full: bool = False) -> tuple[TensorType, ...]:
    need_matrix(a, square=False)
    (m, n), lead = known_sizes(a), a.shape[:-2]
    k = min(m, n)
    return (TensorType(a.dtype, (*lead, m, m if full else k)), TensorType(a.dtype, (*lead, k)),
            TensorType(a.dtype, (*lead, n if full else k, n)))


def _svd_vjp(g: Any, y: Any, a: Any, *, full: bool) -> tuple[Any]:
    # ā = U·(X_U·S + S·X_V + diag(ḡ_s))·Vᵀ, X = (Zᵀ·ḡ − ḡᵀ·Z) / (s_j² − s_i²) for Z = U, V, plus the
    # parts of ḡ_U, ḡ_V outside of U and V, divided by s. Vectors that complete a basis have no
    # gradient.
    (m, n), axis = known_sizes(a.type), a.ndim - 1
    k = min(m, n)
    gs, s = g[1], o.reshape(y[1], shape=(*y[1].shape[:-1], 1, k))
    (u,), (v,) = pieces(y[0], axis, (0, k)), pieces(swap_last_axes(y[2]), axis, (0, k))
    by_gap = _inverse(s * s - swap_last_axes(s * s), k)
    inner = filled(a, 0.0, (*a.shape[:-2], k, k)) if gs is None else (
        identity(a, k) * o.reshape(gs, shape=s.shape))
    outside = []
    for z, gz, side in ((u, g[0], 0), (v, None if g[2] is None else swap_last_axes(g[2]), 1)):
        if gz is None:
            continue
        (gz,) = pieces(gz, axis, (0, k))
        along = o.matmul(z, gz, transpose_a=True)
        x = (along - swap_last_axes(along)) * by_gap
        inner = inner + (swap_last_axes(s) * x if side else x * s)
        if z.shape[-2] > k:
            rest = (gz - o.matmul(z, along)) / s
            outside.append(o.matmul(u, rest, transpose_b=True) if side else (
                o.matmul(rest, v, transpose_b=True)))
    total = o.matmul(o.matmul(u, inner), v, transpose_b=True)
    for part in outside:
        total = total + part
    return (total,)


@composite(types=_svd_types, vjp=_svd_vjp)
def svd(a: Any, *, full: bool = False) -> Any:
    """(U, s, Vᵀ) with U·diag(s)·Vᵀ = a, s descending; `full` makes U and V square."""
    if is_empty(a):
        return _svd_of_nothing(a, full)
    (m, n), lead = known_sizes(a.type), a.shape[:-2]
    tall, long, short = (a, m, n) if m >= n else (swap_last_axes(a), n, m)
    scale, parts, right = _orthogonal(flat(tall), short)
    lengths = o.sqrt(o.reduce_sum(parts * parts, axes=(2,)))
    left = _completed(swap_last_axes(parts), long if full else short)
    s = o.reshape(lengths * scale, shape=(*lead, short))
    left = o.reshape(left, shape=(*lead, *left.shape[1:]))
    right = o.reshape(right, shape=(*lead, short, short))
    return (left, s, right) if m >= n else (swap_last_axes(right), s, swap_last_axes(left))


def _orthogonal(a: Any, n: int) -> tuple[Any, Any, Any]:
    """(scale, rows, Vᵀ): the rows are orthogonal, the columns of a·V/scale, the longest first."""
    most = o.reduce_max(o.abs(a), axes=(1, 2))
    scale = o.select(o.eq(most, 0.0), 1.0, most)
    rows = even(swap_last_axes(a / scale), (1,))
    b, size, m = rows.shape

    def step(x: Any, _: Any) -> Any:
        (columns,) = pieces(x, 2, (0, m))
        p, q = halves(columns, 1)
        sums = [o.reduce_sum(s * t, axes=(2,)) for s, t in ((p, p), (q, q), (p, q))]
        return (rotated(x, rotation(*sums), 1),)
    both = o.concat(rows, identity(a, size, (b,)), axis=2)
    (both,) = as_tuple(scanned(step, rounds(size), (both,)))
    rows, vectors = pieces(both, 2, (0, m), (m, m + size))
    both = both / row_lengths(vectors)
    keys = behind(o.reduce_sum(rows * rows, axes=(2,)), vectors, n, -1.0)
    _, both = ordered(keys, n, True, both)
    rows, vectors = pieces(both, 2, (0, m), (m, m + n))
    return scale, rows, vectors


def _completed(x: Any, count: int) -> Any:
    """An orthonormal basis of `count` columns, beginning with the columns of x, scaled to length 1.
    Columns of x that are 0 are replaced by any that fit."""
    packed, tau = o.householder(x)
    b, m, n = x.shape
    basis = o.reflect(packed, tau, _first_columns(x, m, count))
    negative = o.reshape(o.lt(diagonal(packed), 0.0), shape=(b, 1, packed.shape[1]))
    (negative,) = pieces(negative, 2, (0, n))
    sign = o.select(negative, filled(x, -1.0, (b, 1, n)), filled(x, 1.0, (b, 1, n)))
    return basis * (sign if count == n else o.concat(sign, filled(x, 1.0, (b, 1, count - n)),
                                                     axis=2))


def _first_columns(x: Any, rows: int, columns: int) -> Any:
    on_diagonal = o.eq(axis_indices(x, (rows, 1), 0), axis_indices(x, (1, columns), 1))
    return o.broadcast(o.cast(on_diagonal, dtype=x.dtype), shape=(x.shape[0], rows, columns))


def _svd_of_nothing(a: Any, full: bool) -> Any:
    """The results for a matrix without elements: no singular values; unit matrices if `full`."""
    kinds = _svd_types(a.type, full=full)
    return tuple(identity(a, t.shape[-1], t.shape[:-2]) if full and t.rank == a.ndim and (
        t.shape[-1] == t.shape[-2]) else filled(a, 0.0, t.shape) for t in kinds)
