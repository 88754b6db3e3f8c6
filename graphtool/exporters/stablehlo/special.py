"""Special functions that neither StableHLO nor CHLO has, by the formulas of our evaluator.

They are computed in float64: a power in the formulas loses the digits that float32 has.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from graphtool.exporters.stablehlo.kit import definition, dtypes, o
from graphtool.ir.trace import trace
from graphtool.ops.common import broadcast_shapes
from graphtool.ops.matrices import scanned

_INF = math.inf
_STEPS = 10_000


def _wide(x: Any) -> Any:
    return o.cast(x, dtype=dtypes.float64)


def _like(x: Any, value: float) -> Any:
    return o.broadcast(x.builder.constant(np.full((), value)), shape=x.shape)


@definition("i0e")
def _i0e(x: Any) -> Any:
    """The power series below 20, else the asymptotic one (DLMF 10.25.2, 10.40.1)."""
    size = o.abs(_wide(x))
    near, far = o.min(size, 20.0), o.max(size, 20.0)
    one = _like(size, 1.0)

    def series(term: Any, total: Any, k: Any, y: Any) -> tuple[Any, Any]:
        n = _wide(k) + 1.0
        term = term * y * y / (n * n * 4.0)
        return term, total + term

    def asymptotic(term: Any, total: Any, k: Any, y: Any) -> tuple[Any, Any]:
        n = _wide(k) + 1.0
        odd = n * 2.0 - 1.0
        term = term * (odd * odd) / (n * 8.0 * y)
        return term, total + term
    below = scanned(series, 59, (one, one), fixed=(near,))[1] * o.exp(o.neg(near))
    above = scanned(asymptotic, 19, (one, one), fixed=(far,))[1] / o.sqrt(far * (2 * math.pi))
    return o.cast(o.select(o.lt(size, 20.0), below, above), dtype=x.dtype)


@definition("igamma")
def _igamma(a: Any, x: Any) -> Any:
    return _gamma(a, x, upper=False)


@definition("igammac")
def _igammac(a: Any, x: Any) -> Any:
    return _gamma(a, x, upper=True)


def _gamma(a: Any, x: Any, upper: bool) -> Any:
    """P(a, x), or Q(a, x) if `upper`: by the series for x < a + 1, else by the fraction."""
    a, x, dtype = _pair(a, x)
    nan = o.or_(o.or_(o.is_nan(a), o.is_nan(x)), o.or_(o.lt(a, 0.0), o.lt(x, 0.0)))
    nan = o.or_(nan, o.or_(o.and_(o.eq(a, 0.0), o.eq(x, 0.0)),
                           o.and_(o.eq(a, _INF), o.eq(x, _INF))))
    full = o.or_(o.eq(a, 0.0), o.eq(x, _INF))
    none = o.or_(o.eq(x, 0.0), o.eq(a, _INF))
    inside = o.not_(o.or_(nan, o.or_(full, none)))
    a, x = o.select(inside, a, 1.0), o.select(inside, x, 1.0)
    lower = _series(a, o.min(x, a + 1.0))
    rest = _fraction(a, o.max(x, a + 1.0))
    near = o.lt(x, a + 1.0)
    result = o.select(near, 1.0 - lower if upper else lower, rest if upper else 1.0 - rest)
    ends = (0.0, 1.0) if upper else (1.0, 0.0)
    result = o.select(full, ends[0], o.select(none, ends[1], result))
    return o.cast(o.select(nan, math.nan, result), dtype=dtype)


def _pair(a: Any, x: Any) -> tuple[Any, Any, Any]:
    """Both operands in float64 and one shape, and the element type of the result."""
    some = x if isinstance(a, (int, float)) else a
    shapes = [v.shape for v in (a, x) if not isinstance(v, (int, float))]
    shape = broadcast_shapes(*shapes)
    a, x = (o.broadcast(some.builder.constant(np.full((), float(v))) if isinstance(
        v, (int, float)) else _wide(v), shape=shape) for v in (a, x))
    return a, x, some.dtype


def _while(step: Callable[..., Any], more: Callable[..., Any], held: tuple[Any, ...],
           fixed: tuple[Any, ...]) -> Any:
    """Steps as long as `more` is true for an element, at most 10,000."""
    types = [v.type for v in (*held, *fixed)]

    def goes_on(*xs: Any) -> Any:
        flags = more(*xs)
        return o.reshape(o.reduce_or(flags, axes=tuple(range(flags.ndim))), shape=())
    return o.while_(*held, *fixed, cond=trace(goes_on, types), body=trace(step, types),
                    carries=len(held), bound=_STEPS)


def _scale(a: Any, x: Any, gamma_of: Any) -> Any:
    return o.exp(a * o.log(x) - x - o.lgamma(gamma_of))


def _series(a: Any, x: Any) -> Any:
    one = _like(a, 1.0)
    _, total, _ = _while(
        lambda term, total, n, x: (term * (x / (n + 1.0)), total + term * (x / (n + 1.0)), n + 1.0),
        lambda term, total, n, x: o.gt(term, total * 1e-17), (one, one, a), (x,))
    return total * _scale(a, x, a + 1.0)


def _fraction(a: Any, x: Any) -> Any:
    """The continued fraction of Q(a, x), by Lentz's method."""
    def guarded(v: Any) -> Any:
        return o.select(o.gt(o.abs(v), 1e-300), v, 1e-300)

    def step(h: Any, c: Any, d: Any, b: Any, i: Any, _: Any, a: Any) -> tuple[Any, ...]:
        i, b = i + 1.0, b + 2.0
        s = o.neg(i * (i - a))
        d, c = 1.0 / guarded(s * d + b), guarded(b + s / c)
        return h * d * c, c, d, b, i, o.abs(d * c - 1.0)
    b = x + 1.0 - a
    held = (1.0 / b, _like(a, 1e300), 1.0 / b, b, _like(a, 0.0), _like(a, 1.0))
    h, *_ = _while(step, lambda *xs: o.ge(xs[5], 1e-15), held, (a,))
    return h * _scale(a, x, a)
