"""Systems with tridiagonal matrices of real or complex numbers, as LAPACK's gtsv solves them."""

from __future__ import annotations

from typing import Any

from graphtool import ops as o
from graphtool.importers.stablehlo.families.numbers import Numbers, looped


def solved(below: Numbers, main: Numbers, above: Numbers, b: Numbers) -> tuple[Numbers, ...]:
    """(a's second upper diagonal after the elimination, main one, first upper one, x) with a·x = b
    [batch, n, m]. Diagonals are [batch, n]; the first of `below` and the last of `above` stand
    outside of a."""
    n = main.shape[1]
    low, mid, high = (_cut(_rows(x), 1, n) for x in (below, main, above))
    given = b.each(lambda p: o.transpose(p, perm=(1, 0, 2)))
    start = [_cut(x, 0, 1).each(_first) for x in (_rows(main), _rows(above), given)]
    own, _, right, top, second, third, tops = looped(
        _eliminated, n - 1, tuple(start), (low, mid, high, _cut(given, 1, n)))
    last = right / own.each(_wide)
    *_, rows = looped(_substituted, n - 1, (last, last * 0.0), (top, second, third, tops),
                      reverse=True)
    x = _with_last(rows, last).each(lambda p: o.transpose(p, perm=(1, 0, 2)))
    ends = [_cut(_rows(below), i, k) for i, k in ((0, 1), (n - 1, n))]
    two = ends[0] if n == 1 else ends[0].each(
        lambda p, q, r: o.concat(p, q, r, axis=0), _cut(third, 0, n - 2), ends[1])
    return (_rows(two), _rows(_with_last(top, own)),
            _rows(_with_last(second, _cut(_rows(above), n - 1, n).each(_first))), x)


def _eliminated(own: Numbers, side: Numbers, right: Numbers, _: Any, low: Numbers, mid: Numbers,
                high: Numbers, given: Numbers) -> tuple[Numbers, ...]:
    """Row i is (own, side), and the next one (low, mid, high): that with the greater first element
    stays, and leaves a row without it."""
    swap = o.gt(_size(low), _size(own))
    top, under = low.where(swap, own), own.where(swap, low)
    factor = under / top
    second, rest = mid.where(swap, side), side.where(swap, mid)
    zero = high * 0.0
    third, last = high.where(swap, zero), zero.where(swap, high)
    first, after = given.where(_wide(swap), right), right.where(_wide(swap), given)
    return (rest - factor * second, last - factor * third, after - factor.each(_wide) * first,
            top, second, third, first)


def _substituted(one: Numbers, two: Numbers, _: Any, top: Numbers, second: Numbers,
                 third: Numbers, given: Numbers) -> tuple[Numbers, ...]:
    """Row i of x from the two rows behind it."""
    rest = given - second.each(_wide) * one - third.each(_wide) * two
    x = rest / top.each(_wide)
    return x, one, x


def _size(x: Numbers) -> Any:
    """|real| + |imaginary part|."""
    size, *other = (o.abs(p) for p in x.parts)
    return o.add(size, other[0]) if other else size


def _wide(x: Any) -> Any:
    return o.reshape(x, shape=(*x.shape, 1))


def _first(x: Any) -> Any:
    return o.reshape(x, shape=tuple(x.shape[1:]))


def _rows(x: Numbers) -> Numbers:
    return x.each(lambda p: o.transpose(p, perm=(1, 0)))


def _cut(x: Numbers, start: Any, limit: Any) -> Numbers:
    """Rows from `start` to `limit`."""
    return x.each(lambda p: o.slice(
        p, start=(start, *(0,) * (p.ndim - 1)), limit=(limit, *p.shape[1:]), strides=(1,) * p.ndim))


def _with_last(x: Numbers, last: Numbers) -> Numbers:
    """The rows, and one more."""
    return x.each(lambda p, q: o.concat(p, o.reshape(q, shape=(1, *q.shape)), axis=0), last)
