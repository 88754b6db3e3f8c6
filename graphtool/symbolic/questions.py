"""What is certain about a polynomial whatever its symbols are: its bounds, and comparisons."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Literal

from graphtool.errors import InputError
from graphtool.symbolic import intervals
from graphtool.symbolic.atoms import Atom, Symbol, text
from graphtool.symbolic.intervals import Interval

if TYPE_CHECKING:
    from graphtool.symbolic.poly import Dim, Poly

Relation = Literal["<", "<=", "=="]


def bounds(d: Dim) -> Interval:
    """An interval that surely holds d; `None` where a side is unbounded."""
    return (d, d) if isinstance(d, int) else _bounds(d)


@lru_cache(maxsize=1 << 16)
def _bounds(p: Poly) -> Interval:
    total: Interval = (0, 0)
    for mono, coeff in p.terms:
        term: Interval = (coeff, coeff)
        for atom, power in mono:
            for _ in range(power):
                term = intervals.multiply(term, _atom_bounds(atom))
        total = intervals.add(total, term)
    return total


def _atom_bounds(atom: Atom) -> Interval:
    if isinstance(atom, Symbol):
        return atom.lo, atom.hi
    return intervals.TABLE[atom.fn](bounds(atom.a), bounds(atom.b))


def known(a: Dim, relation: Relation, b: Dim) -> bool | None:
    """Whether the relation holds for all values of the symbols (True), none (False), or some."""
    lo, hi = bounds(a - b)
    if relation == "==":
        if lo == hi == 0:
            return True
        return False if (lo is not None and lo > 0) or (hi is not None and hi < 0) else None
    edge = 0 if relation == "<" else 1
    if hi is not None and hi < edge:
        return True
    return False if lo is not None and lo >= edge else None


def decide(a: Dim, relation: Relation, b: Dim) -> bool:
    """`known`, but raises InputError GT0310 where the bounds do not decide."""
    answer = known(a, relation, b)
    if answer is None:
        raise InputError("GT0310", f"cannot decide {text(a)} {relation} {text(b)} for all sizes",
                         hint="give the dimension tighter bounds, or bind it with `specialize`")
    return answer
