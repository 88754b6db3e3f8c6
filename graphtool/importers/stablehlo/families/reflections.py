"""Factors of real and complex matrices as LAPACK computes and packs them, column after column.

A reflection is I − τ·v·v̄ᵀ; v is 1 at its first row, and what follows is packed below it.
"""

from __future__ import annotations

from typing import Any

from graphtool import ops as o
from graphtool.importers.stablehlo.families.numbers import Numbers, known_sizes, looped, times
from graphtool.ops.common import filled
from graphtool.ops.matrices import axis_indices, triangle


def _numbers_of(x: Numbers, axis: int) -> Any:
    """0, 1, 2, … along the rows (1) or columns (2) of a batch of matrices."""
    return axis_indices(x.real, tuple(d if i == axis else 1 for i, d in enumerate(x.shape)), axis)


def picked(x: Numbers, j: Any, axis: int) -> Numbers:
    """Row (1) or column (2) j of each matrix; its axis stays."""
    at = o.reshape(j, shape=(1,))
    shape = tuple(1 if i == axis else d for i, d in enumerate(x.shape))
    return x.each(lambda p: o.reshape(o.gather(p, at, axes=(axis,)), shape=shape))


def swapped(x: Numbers, a: Any, b: Any, axis: int) -> Numbers:
    """x with line a (a scalar) and line b ([batch, 1, 1]) exchanged."""
    at = _numbers_of(x, axis)
    order = o.select(o.eq(at, a), b, o.select(o.eq(at, b), a, at))
    order = o.reshape(order, shape=(x.shape[0], x.shape[axis], 1))
    if axis == 1:
        return x.each(lambda p: o.gather(p, order, axes=(1,), batch=1))
    turned = x.each(lambda p: o.transpose(p, perm=(0, 2, 1)))
    moved = turned.each(lambda p: o.gather(p, order, axes=(1,), batch=1))
    return moved.each(lambda p: o.transpose(p, perm=(0, 2, 1)))


def _line(x: Numbers) -> Numbers:
    """[batch, 1, 1] as [batch]."""
    return x.each(lambda p: o.reshape(p, shape=(p.shape[0],)))


def _stacked(x: Numbers) -> Numbers:
    """[steps, batch] as [batch, steps]."""
    return x.each(lambda p: o.transpose(p, perm=(1, 0)))


def _reflection(column: Numbers, top: Any) -> tuple[Numbers, Numbers, Numbers]:
    """(v, τ, β): the conjugate of I − τ·v·v̄ᵀ takes the column below row `top` to β there and 0
    after it. β is real. A column that is so already has τ = 0."""
    rows = _numbers_of(column, 1)
    tail = column.where(o.gt(rows, top), 0.0)
    first = picked(column, top, 1)
    square = o.reduce_sum(tail.square(), axes=(1,))
    off = square if first.imag is None else o.add(square, o.mul(first.imag, first.imag))
    none = o.eq(off, 0.0)
    length = o.sqrt(o.select(none, 1.0, o.add(square, first.square())))
    image = o.select(o.lt(first.real, 0.0), length, o.neg(length))
    beta = Numbers(image, *(filled(image, 0.0, image.shape) for _ in first.parts[1:]))
    gap = first - beta
    tau = (Numbers(*(o.neg(p) for p in gap.parts)) / image).where(o.not_(none), 0.0)
    v = (tail / gap).where(o.gt(rows, top), 0.0)
    one = o.cast(o.eq(rows, top), dtype=image.dtype)
    return (Numbers(o.add(v.real, one), v.imag), tau, beta.where(o.not_(none), first))


def _packed(rest: Numbers, after: Numbers, column: Numbers, own: Numbers, v: Numbers, j: Any,
            top: Any) -> Numbers:
    """The matrix after a step: the changed columns behind j, and in column j β and v."""
    rows, columns = _numbers_of(rest, 1), _numbers_of(rest, 2)
    packed = v.where(o.gt(rows, top), own.where(o.eq(rows, top), column))
    return packed.where(o.eq(columns, j), after.where(o.gt(columns, j), rest))


def qr(a: Numbers, pivoting: bool = False) -> tuple[Numbers, ...]:
    """(packed, τ) of Q·R = a, as geqrf; with `pivoting` also the order of the columns, of which
    each step takes the longest that is left, as geqp3."""
    def step(rest: Numbers, order: Numbers, j: Any) -> tuple[Numbers, ...]:
        if pivoting:
            below = rest.where(o.ge(_numbers_of(rest, 1), j), 0.0)
            left = o.reduce_sum(below.square(), axes=(1,))
            left = o.select(o.ge(_numbers_of(rest, 2), j), left, -1.0)
            best = o.reshape(o.arg_reduce(left, kind="max", axis=2), shape=(rest.shape[0], 1, 1))
            rest, order = swapped(rest, j, best, 2), swapped(order, j, best, 2)
        column = picked(rest, j, 2)
        v, tau, beta = _reflection(column, j)
        after = rest - tau.conj() * v * times(v.adjoint(), rest)
        return _packed(rest, after, column, beta, v, j, j), order, _line(tau)
    batch, m, n = a.shape
    order = o.broadcast(axis_indices(a.real, (1, 1, n), 2), shape=(batch, 1, n))
    packed, moved, tau = looped(step, n if m == n else min(known_sizes(a)), (a, Numbers(order)))
    if not pivoting:
        return packed, _stacked(tau)
    return packed, moved.each(lambda p: o.reshape(p, shape=(batch, n))), _stacked(tau)


def reflected(packed: Numbers, tau: Numbers, x: Numbers, adjoint: bool = False) -> Numbers:
    """Q·x, or Q̄ᵀ·x, for the Q that `qr` packed."""
    def step(y: Numbers, j: Any, t: Numbers, vectors: Numbers) -> tuple[Numbers, ...]:
        rows = _numbers_of(y, 1)
        v = picked(vectors, j, 2).where(o.gt(rows, j), 0.0)
        v = Numbers(o.add(v.real, o.cast(o.eq(rows, j), dtype=v.real.dtype)), v.imag)
        t = t.each(lambda p: o.reshape(p, shape=(p.shape[0], 1, 1)))
        return (y - (t.conj() if adjoint else t) * v * times(v.adjoint(), y),)
    by_step = tau.each(lambda p: o.transpose(p, perm=(1, 0)))
    (made,) = looped(step, tau.shape[1], (x,), (by_step,), (packed,), reverse=not adjoint)
    return made


def lu(a: Numbers) -> tuple[Numbers, Numbers]:
    """(packed, rows that were swapped, from 0) of P·L·U = a; the pivot has the greatest sum of
    |real| and |imaginary part|, as LAPACK chooses it."""
    def step(rest: Numbers, j: Any) -> tuple[Numbers, ...]:
        rows, columns = _numbers_of(rest, 1), _numbers_of(rest, 2)
        size, *other = (o.abs(p) for p in picked(rest, j, 2).parts)
        for part in other:
            size = o.add(size, part)
        best = o.arg_reduce(o.select(o.ge(rows, j), size, -1.0), kind="max", axis=1)
        best = o.reshape(best, shape=(rest.shape[0], 1, 1))
        rest = swapped(rest, j, best, 1)
        row = picked(rest, j, 1)
        pivot = picked(row, j, 2)
        none = o.eq(pivot.square(), 0.0)
        safe = Numbers(o.select(none, 1.0, pivot.real), pivot.imag)
        factor = (picked(rest, j, 2) / safe).where(
            o.and_(o.gt(rows, j), o.not_(none)), 0.0)
        inner = rest - factor * row.where(o.gt(columns, j), 0.0)
        own = o.and_(o.gt(rows, j), o.eq(columns, j))
        return factor.where(own, inner), _line(Numbers(best))
    _, m, n = a.shape
    packed, swaps = looped(step, n if m == n else min(known_sizes(a)), (a,))
    return packed, _stacked(swaps)


def hessenberg(a: Numbers) -> tuple[Numbers, Numbers]:
    """(packed, τ) of Q·H·Q̄ᵀ = a with zeros below the first diagonal under the main one of H, as
    gehrd."""
    def step(rest: Numbers, j: Any) -> tuple[Numbers, ...]:
        top, column = o.add(j, 1), picked(rest, j, 2)
        v, tau, beta = _reflection(column, top)
        right = rest - tau * times(rest, v) * v.adjoint()
        after = right - tau.conj() * v * times(v.adjoint(), right)
        return _packed(rest, after, column, beta, v, j, top), _line(tau)
    packed, tau = looped(step, known_sizes(a)[0] - 1, (a,))
    return packed, _stacked(tau)


def tridiagonal(a: Numbers, lower: bool) -> tuple[Numbers, Any, Any, Numbers]:
    """(packed, d, e, τ) of Q·T·Q̄ᵀ = a for the Hermitian matrix of which one half is read, as hetrd.
    The upper half is the lower one of the matrix with its rows and columns in reverse."""
    def turned(x: Numbers, axes: tuple[int, ...]) -> Numbers:
        return x if lower else x.each(lambda p: o.reverse(p, axes=axes))
    half = turned(a, (1, 2))
    rows, columns = _numbers_of(half, 1), _numbers_of(half, 2)
    own = half.where(o.ge(rows, columns), half.adjoint())
    if own.imag is not None:
        own = Numbers(own.real, o.select(o.eq(rows, columns), 0.0, own.imag))
    made, tau = hessenberg(own)
    packed = made.where(o.ge(rows, columns), half)
    d, e = (_diagonal(made.real, first) for first in (0, 1))
    d, e, tau = turned(Numbers(d), (1,)), turned(Numbers(e), (1,)), turned(tau, (1,))
    return turned(packed, (1, 2)), d.real, e.real, tau


def _diagonal(x: Any, below: int) -> Any:
    """The diagonal that many rows below the main one, [batch, n − below]."""
    n = x.shape[-1]
    only = triangle(triangle(x, True, -below), False, -below)
    line = o.reshape(o.reduce_sum(only, axes=(1,)), shape=(x.shape[0], n))
    return o.slice(line, start=(0, 0), limit=(x.shape[0], n - below), strides=(1, 1))
