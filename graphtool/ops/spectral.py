"""Eigenvectors of symmetric matrices, and singular vectors, by Jacobi's rotations.

General matrices, whose eigenvalues are complex, are not supported here.
"""

from __future__ import annotations

from typing import Any

from graphtool import ops as o
from graphtool.ir.graph import TensorType
from graphtool.ops.common import composite, filled
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
from graphtool.ops.rotations import (
    behind,
    diagonal,
    even,
    halves,
    known_sizes,
    ordered,
    pieces,
    rotated,
    rotation,
    rounds,
    row_lengths,
)

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
    own = o.gt(identity(gaps, n), 0.0)
    return o.select(own, 0.0, 1.0 / o.select(own, 1.0, gaps))


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
    """An orthonormal basis of `count` columns, the first of which are those of x at length 1.
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
    own = o.eq(axis_indices(x, (rows, 1), 0), axis_indices(x, (1, columns), 1))
    return o.broadcast(o.cast(own, dtype=x.dtype), shape=(x.shape[0], rows, columns))


def _svd_of_nothing(a: Any, full: bool) -> Any:
    """The results for a matrix without elements: no singular values; unit matrices if `full`."""
    kinds = _svd_types(a.type, full=full)
    return tuple(identity(a, t.shape[-1], t.shape[:-2]) if full and t.rank == a.ndim and (
        t.shape[-1] == t.shape[-2]) else filled(a, 0.0, t.shape) for t in kinds)
