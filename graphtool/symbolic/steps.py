"""Symbols that take every step-th value only, such as multiples of 32.

A symbol's value is `step·atom + offset`; its atom is what polynomials are made of. So half of an
even size is a polynomial without a division, and equal sizes have equal structure.
"""

from __future__ import annotations

from graphtool.symbolic.poly import Dim, Symbol, symbol_of
from graphtool.symbolic.text import name_text


def symbol(name: str, lo: int | None = 0, hi: int | None = None, extent: Dim | None = None,
           step: int = 1, offset: int = 0) -> Dim:
    """The value of a new symbol; a plain int if its bounds allow only one value."""
    return dim_of(Symbol(name, lo, hi, extent, step, offset))


def dim_of(s: Symbol) -> Dim:
    """The value of a symbol; a plain int if its bounds allow only one value."""
    if s.lo is not None and s.hi is not None:
        least = at_least(s, s.lo)
        if least <= s.hi < least + s.step:
            return least
    return symbol_of(s) * s.step + s.offset


def at_least(s: Symbol, n: int) -> int:
    """The least value of the symbol that is n or more."""
    n = n if s.lo is None else max(n, s.lo)
    return n + (s.offset - n) % s.step


def divides(s: Symbol) -> str:
    """`H % 32 == 0`, what a symbol with a step requires; empty for any other."""
    return f"{name_text(s.name)} % {s.step} == {s.offset}" if s.step > 1 else ""
