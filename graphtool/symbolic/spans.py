"""Spans: the least and the most that a number may be, and what functions make of them.

Bounds are numbers or sizes; None is unknown.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from graphtool.symbolic.intervals import bounds as limits
from graphtool.symbolic.poly import Dim, Poly, floordiv
from graphtool.symbolic.terms import maximum, minimum

Bound = int | float | Poly | None
Span = tuple[Bound, Bound]
OPEN: Span = (None, None)


def whole(v: Bound, up: bool) -> Dim | None:
    """The bound rounded outwards to an integer."""
    if isinstance(v, float):
        return None if not math.isfinite(v) else math.ceil(v) if up else math.floor(v)
    return v


def _join(fn: Callable[[Any, Any], Any], a: Bound, b: Bound, up: bool) -> Bound:
    if isinstance(a, Poly) or isinstance(b, Poly):
        a, b = whole(a, up), whole(b, up)
    return None if a is None or b is None else fn(a, b)


def _least(a: Any, b: Any) -> Any:
    return minimum(a, b) if isinstance(a, Poly) or isinstance(b, Poly) else min(a, b)


def _most(a: Any, b: Any) -> Any:
    return maximum(a, b) if isinstance(a, Poly) or isinstance(b, Poly) else max(a, b)


def hull(*spans: Span) -> Span:
    """The smallest span around these spans."""
    low, high = spans[0]
    for a, b in spans[1:]:
        low, high = _join(_least, low, a, False), _join(_most, high, b, True)
    return low, high


def added(a: Span, b: Span, _: bool = True) -> Span:
    """The span of a + b."""
    return (_join(lambda x, y: x + y, a[0], b[0], False),
            _join(lambda x, y: x + y, a[1], b[1], True))


def negative(a: Span) -> Span:
    """The span of −a."""
    return (None if a[1] is None else -a[1]), (None if a[0] is None else -a[0])


def smaller(a: Span, b: Span, _: bool = True) -> Span:
    """The span of min(a, b)."""
    high = b[1] if a[1] is None else a[1] if b[1] is None else _join(_least, a[1], b[1], True)
    return _join(_least, a[0], b[0], False), high


def larger(a: Span, b: Span, _: bool = True) -> Span:
    """The span of max(a, b)."""
    low = b[0] if a[0] is None else a[0] if b[0] is None else _join(_most, a[0], b[0], False)
    return low, _join(_most, a[1], b[1], True)


def _numbers(a: Span) -> tuple[int | float, ...]:
    """Both bounds if they are numbers, else ()."""
    both = tuple(v for v in a if isinstance(v, (int, float)))
    return both if len(both) == 2 else ()


def _positive(a: Span) -> bool:
    """Whether no number of the range is below 0."""
    least = limits(a[0])[0] if isinstance(a[0], Poly) else a[0]
    return least is not None and least >= 0


def multiplied(a: Span, b: Span, _: bool = True) -> Span:
    """The span of a·b."""
    left, right = _numbers(a), _numbers(b)
    if left and right:
        ends = [x * y for x in left for y in right]
        return (min(ends), max(ends)) if not any(e != e for e in ends) else OPEN
    for x, y in ((a, b), (b, a)):
        if _positive(x) and not _positive(y):  # at most as far from 0 on either side
            far = _join(_most, y[1], 0, True)
            return None, _join(lambda p, q: p * q, x[1], far, True)
    if not (_positive(a) and _positive(b)):
        return OPEN
    return 0, _join(lambda p, q: p * q, a[1], b[1], True)


def divided(a: Span, b: Span, integers: bool = True) -> Span:
    """The span of a / b; of integers cut towards 0."""
    if integers:
        return _integer_quotient(a, b)
    match b:
        case (int() | float() as low, int() | float() as high) if low > 0 or high < 0:
            return multiplied(a, (1 / high, 1 / low))
    return OPEN


def _integer_quotient(a: Span, b: Span) -> Span:
    if not _positive(b):
        far = _join(_most, a[1], negative(a)[1], True)
        return negative(_integer_quotient(a, negative(b))) if _positive(negative(b)) else (
            negative((None, far))[0], far)
    least = b[0] if isinstance(b[0], int) and b[0] > 0 else 1

    def share(v: Bound) -> Bound:
        d = whole(v, True)
        return None if d is None else floordiv(maximum(d, 0), least)
    return negative((None, share(negative(a)[1])))[0], share(a[1])


def remainder(a: Span, b: Span, integers: bool = True) -> Span:
    """The span of a − b·(a / b cut towards 0), for b ≥ 0."""
    high = whole(b[1], True)
    if not integers or high is None or not _positive(b):
        return OPEN
    return (0 if _positive(a) else 1 - high), high - 1


def modulo(a: Span, b: Span, integers: bool = True) -> Span:
    """The span of a − b·⌊a / b⌋, for b ≥ 0."""
    return (0, remainder(a, b, integers)[1]) if _positive(b) else OPEN


def rounded(a: Span) -> Span:
    """The span of a rounded in any direction."""
    return whole(a[0], False), whole(a[1], True)


def distance(a: Span) -> Span:
    """The span of |a|."""
    return 0, _join(_most, a[1], negative(a)[1], True)
