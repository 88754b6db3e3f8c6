"""The least values of open sizes for which no shape has a negative size.

A window of 3 without padding over N elements has N − 2 results, so N is 2 or more. A smaller N is
refused where it enters, not where the window does not fit.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from graphtool.symbolic import Dim, Symbol, dim_of, known, substitute, symbols

MOST = 1 << 16  # of a least size; a model that needs more is not understood


def least_sizes(sizes: Iterable[Dim], free: Mapping[str, Symbol]) -> dict[str, int]:
    """The new lower bounds of symbols in `free`, by name.

    A size with more than one symbol tells nothing, because either of them might be larger.
    """
    out: dict[str, int] = {}
    for d in dict.fromkeys(sizes):
        own = symbols(d)
        if len(own) != 1 or own[0].name not in free or known(d, "<", 0) is not None:
            continue
        s = free[own[0].name]
        n = _least(d, s)
        if n is not None:
            out[s.name] = max(n, out.get(s.name, n))
    return out


def _least(d: Dim, s: Symbol) -> int | None:
    """The least bound n of the symbol under which d is surely not negative; None if there is
    none."""
    def fits(n: int) -> bool:
        return known(substitute(d, {s.name: dim_of(replace(s, lo=n))}), "<", 0) is False
    low, high = s.lo or 0, MOST if s.hi is None else min(s.hi, MOST)
    if high <= low or not fits(high):
        return None
    while low < high:  # a tighter bound never fits less
        middle = (low + high) // 2
        low, high = (low, middle) if fits(middle) else (middle + 1, high)
    return low
