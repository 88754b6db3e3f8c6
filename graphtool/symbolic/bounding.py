"""Bounds of open sizes that follow from the equations which a run must satisfy."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from graphtool.symbolic.equations import Equation, of_one
from graphtool.symbolic.poly import Symbol
from graphtool.symbolic.terms import dim_of

MOST = 1 << 16  # of a bound; a model that needs more is not understood


def with_bounds(conditions: Iterable[Equation], free: Mapping[str, Symbol]
                ) -> dict[str, tuple[int, int | None]]:
    """The bounds of symbols of `free` that are tighter by the equations in them alone, by name.

    `1 == H//6` says that H is 6 to 11, and then the quotient is 1 wherever it stands.
    """
    out = {}
    for name, rows in of_one(conditions, free).items():
        now = free[name].lo or 0, free[name].hi
        if (bounds_ := _where(free[name], rows)) != now and bounds_ is not None:
            out[name] = bounds_
    return out


def _where(s: Symbol, rows: Sequence[Equation]) -> tuple[int, int | None] | None:
    """Bounds outside of which one of the equations surely fails; None if it fails everywhere."""
    def may(lo: int, hi: int | None) -> bool:
        part = {s.name: dim_of(replace(s, lo=lo, hi=hi))}
        return all(e.under(part).holds is not False for e in rows)
    low, high = s.lo or 0, MOST if s.hi is None else min(s.hi, MOST)
    if high <= low or not may(low, s.hi):
        return None
    # a part of sizes where an equation fails is one too: both searches are of ordered answers
    last = s.hi if may(high, s.hi) else low - 1 + bisect_left(
        range(low, high), True, key=lambda n: not may(n, s.hi))
    first = low if may(low, low) else low + bisect_left(
        range(low, high), True, key=lambda n: may(low, n))
    return (first, last) if last is None or first <= last else None
