"""Eigenvectors of Hermitian matrices, and singular vectors of complex ones, by Jacobi's rotations.

A row of each pair is turned first, so that what stands between the two is real; then the pair is
rotated as in the real case. LAPACK reflects into real tridiagonal and bidiagonal matrices, which
leaves one component of each vector real. The vectors here are turned so too: they have LAPACK's
phase, but may differ in sign.
"""

from __future__ import annotations

from typing import Any

from graphtool import ops as o
from graphtool.front.complex import Complex, times
from graphtool.importers.stablehlo.families.reflections import (
    known_sizes,
    looped,
    qr,
    reflected,
)
from graphtool.ops.common import filled
from graphtool.ops.matrices import axis_indices, identity, swap_last_axes
from graphtool.ops.spectral import (
    behind,
    diagonal,
    even,
    halves,
    ordered,
    pieces,
    rotated,
    rotation,
    rounds,
)


def eigh(a: Complex, lower: bool) -> tuple[Any, Complex]:
    """(w, V) with a·V = V·diag(w), w ascending, of a [batch, n, n]; one half of each matrix is
    read. The first components of V are real, or the last ones unless `lower`."""
    n, _ = known_sizes(a)
    x = _whole(a, lower).each(lambda p: even(p, (1, 2)))
    b, (size, _) = x.shape[0], known_sizes(x)

    def step(x: Complex, vectors: Complex, _: Any) -> tuple[Complex, ...]:
        p, q = halves(diagonal(x.real), 1)
        corner = x.each(lambda t: diagonal(halves(halves(t, 1)[0], 2)[1]))
        phase, between = _phase(corner)
        turn = rotation(p, q, between)
        columns = phase.conj().each(lambda t: t.reshape((b, 1, size // 2)))
        flat = tuple(t.reshape((b, 1, size // 2)) for t in turn)
        rows = _turned(x, phase, 1).each(lambda t: rotated(t, turn, 1))
        return (_turned(rows, columns, 2).each(lambda t: rotated(t, flat, 2)),
                _turned(vectors, phase, 1).each(lambda t: rotated(t, turn, 1)))
    _, vectors = looped(step, rounds(size), (x, _identity(x, size)))
    vectors = vectors / _lengths(vectors)
    along = times(vectors, x)
    w = along.real * vectors.real + along.imag * vectors.imag
    w = o.reduce_sum(w, axes=(2,))
    keys = behind(w, vectors.square(), n, float("inf"))
    w, *parts = ordered(keys, n, False, *vectors.parts)
    vectors = Complex(*parts).each(lambda t: pieces(t, 2, (0, n))[0])
    at = 0 if lower else n - 1
    phase, _ = _phase(vectors.each(lambda t: pieces(t, 2, (at, at + 1))[0]))
    return w.reshape((b, n)), (vectors * phase.conj()).adjoint()


def svd(a: Complex, full: bool) -> tuple[Complex, Any, Complex]:
    """(U, s, V̄ᵀ) with U·diag(s)·V̄ᵀ = a [batch, m, n], s descending; `full` makes U and V square.
    The first row of V is real, or that of U if a has more columns than rows."""
    m, n = known_sizes(a)
    if m < n:
        left, s, right = svd(a.adjoint(), full)
        return right.adjoint(), s, left.adjoint()
    scale, rows, vectors = _orthogonal(a, n)
    phase, _ = _phase(vectors.each(lambda t: pieces(t, 2, (0, 1))[0]))
    rows, vectors = rows * phase.conj(), vectors * phase.conj()
    s = _lengths(rows) * scale
    left = _completed(rows.each(swap_last_axes), m if full else n)
    return left, s.reshape((a.shape[0], n)), vectors.conj()


def _orthogonal(a: Complex, n: int) -> tuple[Any, Complex, Complex]:
    """(scale, rows, Vᵀ): the rows are orthogonal, the columns of a·V/scale, the longest first."""
    most = o.reduce_max(o.max(*map(o.abs, a.parts)), axes=(1, 2))
    scale = o.select(o.eq(most, 0.0), 1.0, most)
    rows = (a / scale).each(lambda t: even(swap_last_axes(t), (1,)))
    size, m = known_sizes(rows)

    def step(x: Complex, _: Any) -> tuple[Complex, ...]:
        p, q = (Complex(*ts) for ts in zip(*(halves(pieces(t, 2, (0, m))[0], 1)
                                             for t in x.parts), strict=True))
        between = (q * p.conj()).each(lambda t: o.reduce_sum(t, axes=(2,)))
        phase, length = _phase(between)
        lengths = [o.reduce_sum(t.square(), axes=(2,)) for t in (p, q)]
        turn = rotation(lengths[0], lengths[1], length)
        return (_turned(x, phase.conj(), 1).each(lambda t: rotated(t, turn, 1)),)
    both = rows.each(lambda t, e: o.concat(t, e, axis=2), _identity(rows, size))
    (both,) = looped(step, rounds(size), (both,))
    rows, vectors = _split(both, m, size)
    both = both / _lengths(vectors)
    keys = behind(o.reduce_sum(rows.square(), axes=(2,)), vectors.square(), n, -1.0)
    _, *parts = ordered(keys, n, True, *both.parts)
    return scale, *_split(Complex(*parts), m, n)


def _split(x: Complex, m: int, n: int) -> tuple[Complex, Complex]:
    first, second = ([pieces(t, 2, (0, m), (m, m + n))[i] for t in x.parts] for i in (0, 1))
    return Complex(*first), Complex(*second)


def _completed(x: Complex, count: int) -> Complex:
    """An orthonormal basis of `count` columns, beginning with the columns of x, which are
    orthogonal, scaled to length 1. Columns of x that are 0 are replaced by any that fit."""
    packed, tau = qr(x)
    b, (m, n) = x.shape[0], known_sizes(x)
    on_diagonal = o.eq(axis_indices(x.real, (m, 1), 0), axis_indices(x.real, (1, count), 1))
    first = o.broadcast(on_diagonal.cast(x.real.dtype), shape=(b, m, count))
    basis = reflected(packed, tau, Complex(first, filled(first, 0.0, first.shape)))
    heads = pieces(diagonal(packed.real).reshape((b, 1, packed.shape[1])), 2, (0, n))
    ones = filled(first, 1.0, (b, 1, n))
    sign = o.select(heads[0] < 0.0, -ones, ones)
    if count > n:
        sign = o.concat(sign, filled(first, 1.0, (b, 1, count - n)), axis=2)
    whole: Complex = basis * sign
    return whole


# ---- parts ------------------------------------------------------------------------------------

def _whole(a: Complex, lower: bool) -> Complex:
    """The Hermitian matrix of one half; its diagonal is real."""
    rows, columns = (axis_indices(a.real, tuple(n if i == axis else 1 for i, n in enumerate(
        a.shape)), axis) for axis in (1, 2))
    both = a.where(rows >= columns if lower else rows <= columns, a.adjoint())
    return Complex(both.real, o.select(o.eq(rows, columns), 0.0, both.imag))


def _phase(x: Complex) -> tuple[Complex, Any]:
    """(x / |x|, |x|); the phase of 0 is 1."""
    most = o.max(*map(o.abs, x.parts))
    none = o.eq(most, 0.0)
    scaled = x / o.select(none, 1.0, most)
    length = o.sqrt(o.select(none, 1.0, scaled.square()))
    unit = scaled / length
    return Complex(o.select(none, 1.0, unit.real), o.select(none, 0.0, unit.imag)), most * length


def _turned(x: Complex, phase: Complex, axis: int) -> Complex:
    """x with the second half of its lines times the phases."""
    tops, bottoms = ([halves(t, axis)[i] for t in x.parts] for i in (0, 1))
    return Complex(*tops).each(lambda s, t: o.concat(s, t, axis=axis), Complex(*bottoms) * phase)


def _identity(x: Complex, n: int) -> Complex:
    eye = identity(x.real, n, (x.shape[0],))
    return Complex(eye, filled(eye, 0.0, eye.shape))


def _lengths(rows: Complex) -> Any:
    return o.sqrt(o.reduce_sum(rows.square(), axes=(2,)))
