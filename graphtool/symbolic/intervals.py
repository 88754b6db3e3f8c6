"""Integer interval arithmetic; `None` is an unbounded side. A result holds every possible value."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

from graphtool.symbolic.text import Sum, text

Interval = tuple[int | None, int | None]
Terms = frozenset[tuple[Any, int]]  # (monomial, coefficient) of a sum
MOST_POWERS, MOST_TERMS = 6, 32  # of polynomials that are expanded for tighter bounds
FEW = 3  # quotients of a sum, any of which is taken out first


def add(x: Interval, y: Interval) -> Interval:
    """x + y."""
    (xl, xh), (yl, yh) = x, y
    return (None if xl is None or yl is None else xl + yl,
            None if xh is None or yh is None else xh + yh)


def multiply(x: Interval, y: Interval) -> Interval:
    """x · y; unbounded if a side is open and a factor may have either sign."""
    if x[0] == x[1] and x[0] is not None:
        x, y = y, x
    if y[0] == y[1] and y[0] is not None:
        ends = [None if e is None else e * y[0] for e in x]
        return (ends[0], ends[1]) if y[0] >= 0 else (ends[1], ends[0])
    if None not in x and None not in y:
        corners = [a * b for a in x for b in y if a is not None and b is not None]
        return min(corners), max(corners)
    (xl, xh), (yl, yh) = x, y
    for a, b in ((x, y), (y, x)):
        if a[1] is not None and a[1] <= 0:
            return _negated(multiply(_negated(a), b))
    if xl is not None and yl is not None and xl >= 0 and yl >= 0:
        return xl * yl, (None if xh is None or yh is None else xh * yh)
    return None, None


def _negated(x: Interval) -> Interval:
    return None if x[1] is None else -x[1], None if x[0] is None else -x[0]


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
    return _of_terms(frozenset(p.terms))


@lru_cache(maxsize=1 << 16)  # quotients can be taken out in any order, with the same sums
def _of_terms(terms: Terms) -> Interval:
    total: Interval = (0, 0)
    for mono, coeff in terms:
        term: Interval = (1, 1)
        for atom, power in mono:
            for _ in range(power):
                term = multiply(term, _atom_bounds(atom))
        total = add(total, multiply(term, (coeff, coeff)))
    if _curved(terms):
        total = _both(total, _from_the_least(terms))
    if 1 < len(terms) <= MOST_TERMS:
        quotients = [term for term in terms if _is_quotient(term[0])]
        if len(quotients) > FEW:  # each order of many would be too many
            quotients = [max(quotients, key=lambda term: _outermost(term[0][0][0]))]
        for mono, coeff in quotients:
            total = _both(total, _by_remainder(terms, mono, coeff))
    return total


def _outermost(quotient: Any) -> tuple[int, str]:
    """A key by which deeper quotients come later; others by text, as in every process."""
    return _depth(quotient), f"{text(quotient.a)} {quotient.b}"


@lru_cache(maxsize=1 << 16)
def _depth(atom: Any) -> int:
    """How many calls are in each other."""
    sides = () if hasattr(atom, "name") else (atom.a, atom.b)
    return 1 + max((_depth(a) for d in sides if not isinstance(d, int)
                    for mono, _ in d.terms for a, _ in mono), default=0)


def _is_quotient(mono: Any) -> bool:
    """Whether a monomial is one quotient by a number."""
    if len(mono) != 1 or mono[0][1] != 1 or hasattr(mono[0][0], "name"):
        return False
    return mono[0][0].fn == "//" and isinstance(mono[0][0].b, int)


def _by_remainder(terms: Terms, mono: Any, coeff: int) -> Interval:
    """The bounds of a sum with the term c·⌊a / b⌋, which b makes c·(a − r) with 0 ≤ r < b: n − ⌊n /
    2⌋ is (n + r) / 2, which is not negative though ⌊n / 2⌋ alone has no upper bound."""
    quotient = mono[0][0]
    by = quotient.b
    wide = {m: c * by for m, c in terms if m != mono}
    for m, c in quotient.a.terms:
        wide[m] = wide.get(m, 0) + coeff * c
    lo, hi = add(_of_terms(frozenset((m, c) for m, c in wide.items() if c)),
                 multiply((0, by - 1), (-coeff, -coeff)))
    return None if lo is None else -(-lo // by), None if hi is None else hi // by


def _both(x: Interval, y: Interval) -> Interval:
    """What both intervals hold."""
    lows, highs = ([e for e in ends if e is not None] for ends in zip(x, y, strict=True))
    return max(lows, default=None), min(highs, default=None)


def _curved(terms: Terms) -> bool:
    """Whether terms of different signs may depend on each other in more than a straight line."""
    signs = {coeff > 0 for _, coeff in terms}
    degree = max((sum(power for _, power in mono) for mono, _ in terms), default=0)
    return len(signs) == 2 and 1 < degree <= MOST_POWERS and len(terms) <= MOST_TERMS


def _from_the_least(terms: Terms) -> Interval:
    """The bounds of a sum as a polynomial in what each atom has above its least value.

    With n ≥ 2, n² − 4n + 4 is t² with t = n − 2 ≥ 0, though n² − 4n alone has no bounds.
    """
    powers: dict[tuple[Any, ...], int] = {}
    above: dict[Any, Interval] = {}
    for mono, coeff in terms:
        parts: dict[tuple[Any, ...], int] = {(): coeff}
        for atom, power in mono:
            lo, hi = _atom_bounds(atom)
            base = 0 if lo is None else lo
            above[atom] = (None if lo is None else 0, None if hi is None else hi - base)
            for _ in range(power):
                grown: dict[tuple[Any, ...], int] = {}
                for key, c in parts.items():
                    for more, factor in (((atom,), 1), ((), base)):
                        grown[key + more] = grown.get(key + more, 0) + c * factor
                parts = grown
        for key, c in parts.items():  # the atoms of a monomial are sorted
            powers[key] = powers.get(key, 0) + c
    total: Interval = (0, 0)
    for key, c in powers.items():
        term: Interval = (1, 1)
        for atom in key:
            term = multiply(term, above[atom])
        total = add(total, multiply(term, (c, c)) if c else (0, 0))
    return total


def _atom_bounds(atom: Any) -> Interval:
    if hasattr(atom, "name"):
        return (None if atom.lo is None else -((atom.offset - atom.lo) // atom.step),
                None if atom.hi is None else (atom.hi - atom.offset) // atom.step)
    return TABLE[atom.fn](bounds(atom.a), bounds(atom.b))
