"""What a polynomial is made of: symbols, the calls that nothing simplifies, products of them.

They are ordered by their text, so the text stands here too. Arithmetic is `poly`'s.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from graphtool.symbolic.poly import Dim


@dataclass(frozen=True, slots=True)
class Symbol:
    """A named integer in [lo, hi]; `None` is unbounded. `extent` says symbol < extent, exactly."""

    name: str
    lo: int | None = 0
    hi: int | None = None
    extent: Dim | None = None


@dataclass(frozen=True, slots=True)
class Call:
    """An irreducible `a // b`, `a % b`, `min(a, b)` or `max(a, b)`."""

    fn: Literal["//", "%", "min", "max"]
    a: Dim
    b: Dim


Atom = Symbol | Call
Monomial = tuple[tuple[Atom, int], ...]


@lru_cache(maxsize=1 << 16)
def atom_key(a: Atom) -> tuple[int, str]:
    return (0, a.name) if isinstance(a, Symbol) else (1, f"{a.fn} {text(a.a)} {text(a.b)}")


def monomial_key(mono: Monomial) -> tuple[int, tuple[tuple[tuple[int, str], int], ...]]:
    return (-sum(p for _, p in mono), tuple((atom_key(a), -p) for a, p in mono))


def times(a: Monomial, b: Monomial) -> Monomial:
    """The product, its atoms in order."""
    if not a or not b:
        return a or b
    powers = dict(a)
    for atom, p in b:
        powers[atom] = powers.get(atom, 0) + p
    return tuple(sorted(powers.items(), key=lambda item: atom_key(item[0])))


def text(d: Dim) -> str:
    """`4*B + (T//2) - 1`; `dim_parser.parse` reads it back."""
    if isinstance(d, int):
        return str(d)
    out = ""
    for i, (mono, coeff) in enumerate(d.terms):
        factors = [_atom_text(a) for a, p in mono for _ in range(p)]
        if abs(coeff) != 1 or not factors:
            factors.insert(0, str(abs(coeff)))
        sign = ("-" if coeff < 0 else "") if i == 0 else (" - " if coeff < 0 else " + ")
        out += sign + "*".join(factors)
    return out


def _atom_text(a: Atom) -> str:
    if isinstance(a, Symbol):
        return a.name
    if a.fn in ("min", "max"):
        return f"{a.fn}({text(a.a)}, {text(a.b)})"
    return f"({_operand(a.a)}{a.fn}{_operand(a.b)})"


def _operand(d: Dim) -> str:
    return text(d) if _is_plain(d) else f"({text(d)})"


def _is_plain(d: Dim) -> bool:
    """Whether d reads without parentheses beside an operator: a number, or one atom alone."""
    if isinstance(d, int):
        return d >= 0
    (mono, coeff), *more = d.terms
    return not more and coeff == 1 and len(mono) == 1 and mono[0][1] == 1
