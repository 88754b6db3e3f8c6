"""Integer interval arithmetic; `None` is an unbounded side. A result holds every possible value."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

from graphtool.symbolic.text import Sum

Interval = tuple[int | None, int | None]


def add(x: Interval, y: Interval) -> Interval:
    """x + y."""
    (xl, xh), (yl, yh) = x, y
    return (None if xl is None or yl is None else xl + yl,
            None if xh is None or yh is None else xh + yh)


def multiply(x: Interval, y: Interval) -> Interval:
    """x · y; unbounded if a side is open and a factor may be negative."""
    if x[0] == x[1] and x[0] is not None:
        x, y = y, x
    if y[0] == y[1] and y[0] is not None:
        ends = [None if e is None else e * y[0] for e in x]
        return (ends[0], ends[1]) if y[0] >= 0 else (ends[1], ends[0])
    if None not in x and None not in y:
        corners = [a * b for a in x for b in y if a is not None and b is not None]
        return min(corners), max(corners)
    (xl, xh), (yl, yh) = x, y
    if xl is not None and yl is not None and xl >= 0 and yl >= 0:
        return xl * yl, (None if xh is None or yh is None else xh * yh)
    return None, None


def floordiv(x: Interval, y: Interval) -> Interval:
    """⌊x / y⌋; unbounded if the divisor may be less than 1."""
    (xl, xh), (yl, yh) = x, y
    if yl is None or yl < 1:
        return None, None
    lo = None if xl is None else xl // yl if xl < 0 else (0 if yh is None else xl // yh)
    hi = None if xh is None else xh // yl if xh >= 0 else (-1 if yh is None else xh // yh)
    return lo, hi


def mod(_: Interval, y: Interval) -> Interval:
    """x mod y, in [0, greatest y − 1]."""
    return 0, (None if y[1] is None else y[1] - 1)


def minimum(x: Interval, y: Interval) -> Interval:
    """min(x, y)."""
    (xl, xh), (yl, yh) = x, y
    hi = min((h for h in (xh, yh) if h is not None), default=None)
    return (None if xl is None or yl is None else min(xl, yl)), hi


def maximum(x: Interval, y: Interval) -> Interval:
    """max(x, y)."""
    (xl, xh), (yl, yh) = x, y
    lo = max((e for e in (xl, yl) if e is not None), default=None)
    return lo, (None if xh is None or yh is None else max(xh, yh))


TABLE: dict[str, Callable[[Interval, Interval], Interval]] = {
    "//": floordiv, "%": mod, "min": minimum, "max": maximum}


# ---- of polynomials ----------------------------------------------------------------------------

def bounds(d: int | Sum) -> Interval:
    """An interval that holds every value of d; `None` for an unbounded side."""
    return (d, d) if isinstance(d, int) else _bounds(d)


@lru_cache(maxsize=1 << 16)
def _bounds(p: Sum) -> Interval:
    total: Interval = (0, 0)
    for mono, coeff in p.terms:
        term: Interval = (coeff, coeff)
        for atom, power in mono:
            for _ in range(power):
                term = multiply(term, _atom_bounds(atom))
        total = add(total, term)
    return total


def _atom_bounds(atom: Any) -> Interval:
    if hasattr(atom, "name"):
        return (None if atom.lo is None else -((atom.offset - atom.lo) // atom.step),
                None if atom.hi is None else (atom.hi - atom.offset) // atom.step)
    return TABLE[atom.fn](bounds(atom.a), bounds(atom.b))
