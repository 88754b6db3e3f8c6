"""Factors of real and complex matrices as LAPACK computes and packs them, column after column; and
tridiagonal systems. Matrices have one batch axis: [batch, rows, columns].

A reflection is I − τ·v·v̄ᵀ; v is 1 at its first row, and what follows is packed below it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from graphtool.front.complex import Complex, tensors, times
from graphtool.importers.stablehlo.kit import Dim, Refused, o
from graphtool.ops.common import filled
from graphtool.ops.matrices import as_tuple, axis_indices, scanned, triangle


def known_sizes(x: Any) -> tuple[int, int]:
    """Rows and columns. Raises Refused if one of them is open."""
    m, n = x.shape[-2:]
    if not isinstance(m, int) or not isinstance(n, int):
        raise Refused("the rows and columns of the matrix must be numbers, not open sizes")
    return m, n


def looped(step: Callable[..., tuple[Complex, ...]], count: Dim, held: tuple[Complex, ...],
           rows: tuple[Complex, ...] = (), fixed: tuple[Complex, ...] = (),
           reverse: bool = False) -> tuple[Complex, ...]:
    """Run `step(*held, j, *rows, *fixed)` for each j below `count`, with row j of each of `rows`:
    the last of what it holds, and its other results stacked."""
    complex_results: list[bool] = []

    def run(*parts: Any) -> tuple[Any, ...]:
        rest = iter(parts)
        before, index = _joined(map(_is_complex, held), rest), next(rest)
        after = step(*before, index, *_joined(map(_is_complex, (*rows, *fixed)), rest))
        complex_results[:] = map(_is_complex, after)
        return tuple(tensors(after))
    parts = [tuple(tensors(xs)) for xs in (held, rows, fixed)]
    out = as_tuple(scanned(run, count, parts[0], parts[1], parts[2], reverse))
    return tuple(_joined(complex_results, iter(out)))


def _is_complex(x: Complex) -> bool:
    return x.imag is not None


def _joined(kinds: Iterable[bool], parts: Iterator[Any]) -> list[Complex]:
    return [Complex(next(parts), next(parts) if two else None) for two in kinds]


# ---- reflections and rotations of lines --------------------------------------------------------

def _numbers_of(x: Complex, axis: int) -> Any:
    """0, 1, 2, … along the rows (1) or columns (2) of a batch of matrices."""
    return axis_indices(x.real, tuple(d if i == axis else 1 for i, d in enumerate(x.shape)), axis)


def picked(x: Complex, j: Any, axis: int) -> Complex:
    """Row (1) or column (2) j of each matrix; its axis stays."""
    at = j.reshape((1,))
    shape = tuple(1 if i == axis else d for i, d in enumerate(x.shape))
    return x.each(lambda p: o.gather(p, at, axes=(axis,)).reshape(shape))


def swapped(x: Complex, a: Any, b: Any, axis: int) -> Complex:
    """x with line a (a scalar) and line b ([batch, 1, 1]) exchanged."""
    at = _numbers_of(x, axis)
    order = o.select(o.eq(at, a), b, o.select(o.eq(at, b), a, at))
    order = order.reshape((x.shape[0], x.shape[axis], 1))
    if axis == 1:
        return x.each(lambda p: o.gather(p, order, axes=(1,), batch=1))
    turned = x.each(lambda p: o.transpose(p, perm=(0, 2, 1)))
    moved = turned.each(lambda p: o.gather(p, order, axes=(1,), batch=1))
    return moved.each(lambda p: o.transpose(p, perm=(0, 2, 1)))


def _line(x: Complex) -> Complex:
    """[batch, 1, 1] as [batch]."""
    return x.each(lambda p: p.reshape((p.shape[0],)))


def _stacked(x: Complex) -> Complex:
    """[steps, batch] as [batch, steps]."""
    return x.each(lambda p: o.transpose(p, perm=(1, 0)))


def _reflection(column: Complex, top: Any) -> tuple[Complex, Complex, Complex]:
    """(v, τ, β): the conjugate of I − τ·v·v̄ᵀ takes the column below row `top` to β there and 0
    after it. β is real. A column that is so already has τ = 0."""
    rows = _numbers_of(column, 1)
    tail = column.where(rows > top, 0.0)
    first = picked(column, top, 1)
    square = o.reduce_sum(tail.square(), axes=(1,))
    off = square if first.imag is None else square + first.imag * first.imag
    none = o.eq(off, 0.0)
    length = o.sqrt(o.select(none, 1.0, square + first.square()))
    image = o.select(first.real < 0.0, length, -length)
    beta = Complex(image, *(filled(image, 0.0, image.shape) for _ in first.parts[1:]))
    gap = first - beta
    tau = (-gap / image).where(~none, 0.0)
    v = (tail / gap).where(rows > top, 0.0)
    one = o.eq(rows, top).cast(image.dtype)
    return Complex(v.real + one, v.imag), tau, beta.where(~none, first)


def _packed(rest: Complex, after: Complex, column: Complex, beta: Complex, v: Complex, j: Any,
            top: Any) -> Complex:
    """The matrix after a step: the changed columns behind j, and in column j β and v."""
    rows, columns = _numbers_of(rest, 1), _numbers_of(rest, 2)
    packed = v.where(rows > top, beta.where(o.eq(rows, top), column))
    return packed.where(o.eq(columns, j), after.where(columns > j, rest))


def qr(a: Complex, pivoting: bool = False) -> tuple[Complex, ...]:
    """(packed, τ) of Q·R = a, as geqrf; with `pivoting` also the order of the columns, as geqp3:
    each step takes the longest column that is left."""
    def step(rest: Complex, order: Complex, j: Any) -> tuple[Complex, ...]:
        if pivoting:
            below = rest.where(_numbers_of(rest, 1) >= j, 0.0)
            left = o.reduce_sum(below.square(), axes=(1,))
            left = o.select(_numbers_of(rest, 2) >= j, left, -1.0)
            best = o.arg_reduce(left, kind="max", axis=2).reshape((rest.shape[0], 1, 1))
            rest, order = swapped(rest, j, best, 2), swapped(order, j, best, 2)
        column = picked(rest, j, 2)
        v, tau, beta = _reflection(column, j)
        after = rest - tau.conj() * v * times(v.adjoint(), rest)
        return _packed(rest, after, column, beta, v, j, j), order, _line(tau)
    batch, m, n = a.shape
    order = o.broadcast(axis_indices(a.real, (1, 1, n), 2), shape=(batch, 1, n))
    packed, moved, tau = looped(step, n if m == n else min(known_sizes(a)), (a, Complex(order)))
    if not pivoting:
        return packed, _stacked(tau)
    return packed, moved.each(lambda p: p.reshape((batch, n))), _stacked(tau)


def reflected(packed: Complex, tau: Complex, x: Complex, adjoint: bool = False) -> Complex:
    """Q·x, or Q̄ᵀ·x, for the Q that `qr` packed."""
    def step(y: Complex, j: Any, t: Complex, vectors: Complex) -> tuple[Complex, ...]:
        rows = _numbers_of(y, 1)
        v = picked(vectors, j, 2).where(rows > j, 0.0)
        v = Complex(v.real + o.eq(rows, j).cast(v.real.dtype), v.imag)
        t = t.each(lambda p: p.reshape((p.shape[0], 1, 1)))
        return (y - (t.conj() if adjoint else t) * v * times(v.adjoint(), y),)
    by_step = tau.each(lambda p: o.transpose(p, perm=(1, 0)))
    (product,) = looped(step, tau.shape[1], (x,), (by_step,), (packed,), reverse=not adjoint)
    return product


def lu(a: Complex) -> tuple[Complex, Complex]:
    """(packed, rows that were swapped, from 0) of P·L·U = a; the pivot has the greatest sum of
    |real| and |imaginary part|, as LAPACK chooses it."""
    def step(rest: Complex, j: Any) -> tuple[Complex, ...]:
        rows, columns = _numbers_of(rest, 1), _numbers_of(rest, 2)
        size, *other = (abs(p) for p in picked(rest, j, 2).parts)
        for part in other:
            size = size + part
        best = o.arg_reduce(o.select(rows >= j, size, -1.0), kind="max", axis=1)
        best = best.reshape((rest.shape[0], 1, 1))
        rest = swapped(rest, j, best, 1)
        row = picked(rest, j, 1)
        pivot = picked(row, j, 2)
        none = o.eq(pivot.square(), 0.0)
        safe = Complex(o.select(none, 1.0, pivot.real), pivot.imag)
        factor = (picked(rest, j, 2) / safe).where((rows > j) & ~none, 0.0)
        inner = rest - factor * row.where(columns > j, 0.0)
        on_column = (rows > j) & o.eq(columns, j)
        return factor.where(on_column, inner), _line(Complex(best))
    _, m, n = a.shape
    packed, swaps = looped(step, n if m == n else min(known_sizes(a)), (a,))
    return packed, _stacked(swaps)


def hessenberg(a: Complex) -> tuple[Complex, Complex]:
    """(packed, τ) of Q·H·Q̄ᵀ = a with zeros below the first diagonal under the main one of H, as
    gehrd."""
    def step(rest: Complex, j: Any) -> tuple[Complex, ...]:
        top, column = j + 1, picked(rest, j, 2)
        v, tau, beta = _reflection(column, top)
        right = rest - tau * times(rest, v) * v.adjoint()
        after = right - tau.conj() * v * times(v.adjoint(), right)
        return _packed(rest, after, column, beta, v, j, top), _line(tau)
    packed, tau = looped(step, known_sizes(a)[0] - 1, (a,))
    return packed, _stacked(tau)


def tridiagonal(a: Complex, lower: bool) -> tuple[Complex, Any, Any, Complex]:
    """(packed, d, e, τ) of Q·T·Q̄ᵀ = a for a Hermitian matrix, as hetrd; one half of it is read.
    The upper half is the lower one of the matrix with its rows and columns in reverse."""
    def turned(x: Complex, axes: tuple[int, ...]) -> Complex:
        return x if lower else x.each(lambda p: o.reverse(p, axes=axes))
    half = turned(a, (1, 2))
    rows, columns = _numbers_of(half, 1), _numbers_of(half, 2)
    whole = half.where(rows >= columns, half.adjoint())
    if whole.imag is not None:
        whole = Complex(whole.real, o.select(o.eq(rows, columns), 0.0, whole.imag))
    reduced, tau = hessenberg(whole)
    packed = reduced.where(rows >= columns, half)
    d, e = (_diagonal(reduced.real, first) for first in (0, 1))
    d, e, tau = turned(Complex(d), (1,)), turned(Complex(e), (1,)), turned(tau, (1,))
    return turned(packed, (1, 2)), d.real, e.real, tau


def _diagonal(x: Any, below: int) -> Any:
    """The diagonal that many rows below the main one, [batch, n − below]."""
    n = x.shape[-1]
    only = triangle(triangle(x, True, -below), False, -below)
    line = o.reduce_sum(only, axes=(1,)).reshape((x.shape[0], n))
    return o.slice(line, start=(0, 0), limit=(x.shape[0], n - below), strides=(1, 1))


# ---- tridiagonal systems, as LAPACK's gtsv solves them ------------------------------------------

def tridiagonal_solved(below: Complex, main: Complex, above: Complex, b: Complex
                       ) -> tuple[Complex, ...]:
    """(a's second upper diagonal after the elimination, main one, first upper one, x) with a·x = b
    [batch, n, m]. Diagonals are [batch, n]; the first of `below` and the last of `above` stand
    outside of a."""
    n = main.shape[1]
    low, mid, high = (_cut(_rows(x), 1, n) for x in (below, main, above))
    given = b.each(lambda p: o.transpose(p, perm=(1, 0, 2)))
    start = [_cut(x, 0, 1).each(_inner) for x in (_rows(main), _rows(above), given)]
    diagonal, _, right, top, second, third, tops = looped(
        _eliminated, n - 1, tuple(start), (low, mid, high, _cut(given, 1, n)))
    last = right / diagonal.each(_wide)
    *_, rows = looped(_substituted, n - 1, (last, last * 0.0), (top, second, third, tops),
                      reverse=True)
    x = _with_last(rows, last).each(lambda p: o.transpose(p, perm=(1, 0, 2)))
    ends = [_cut(_rows(below), i, k) for i, k in ((0, 1), (n - 1, n))]
    two = ends[0] if n == 1 else ends[0].each(
        lambda p, q, r: o.concat(p, q, r, axis=0), _cut(third, 0, n - 2), ends[1])
    return (_rows(two), _rows(_with_last(top, diagonal)),
            _rows(_with_last(second, _cut(_rows(above), n - 1, n).each(_inner))), x)


def _eliminated(corner: Complex, side: Complex, right: Complex, _: Any, low: Complex, mid: Complex,
                high: Complex, given: Complex) -> tuple[Complex, ...]:
    """Row i is (corner, side), the next row is (low, mid, high). The row with the greater first
    element stays; the other row loses its first element."""
    swap = _size(low) > _size(corner)
    top, under = low.where(swap, corner), corner.where(swap, low)
    factor = under / top
    second, rest = mid.where(swap, side), side.where(swap, mid)
    zero = high * 0.0
    third, last = high.where(swap, zero), zero.where(swap, high)
    first, after = given.where(_wide(swap), right), right.where(_wide(swap), given)
    return (rest - factor * second, last - factor * third, after - factor.each(_wide) * first,
            top, second, third, first)


def _substituted(one: Complex, two: Complex, _: Any, top: Complex, second: Complex,
                 third: Complex, given: Complex) -> tuple[Complex, ...]:
    """Row i of x from the two rows behind it."""
    rest = given - second.each(_wide) * one - third.each(_wide) * two
    x = rest / top.each(_wide)
    return x, one, x


def _size(x: Complex) -> Any:
    """|real| + |imaginary part|."""
    size, *other = (abs(p) for p in x.parts)
    return size + other[0] if other else size


def _wide(x: Any) -> Any:
    return x.unsqueeze()


def _inner(x: Any) -> Any:
    return x.reshape(tuple(x.shape[1:]))


def _rows(x: Complex) -> Complex:
    return x.each(lambda p: o.transpose(p, perm=(1, 0)))


def _cut(x: Complex, start: Any, limit: Any) -> Complex:
    """Rows from `start` to `limit`."""
    return x.each(lambda p: o.slice(
        p, start=(start, *(0,) * (p.ndim - 1)), limit=(limit, *p.shape[1:]), strides=(1,) * p.ndim))


def _with_last(x: Complex, last: Complex) -> Complex:
    """The rows, and one more."""
    return x.each(lambda p, q: o.concat(p, q.unsqueeze(0), axis=0), last)
