"""Exact integer polynomials over named symbols, used for dimensions and for loop indices alike.

A `Poly` is canonical: equal polynomials have equal structure, and one without symbols is always a
plain `int`. Symbols have bounds, so floor division, modulo, min and max simplify when they are
built. A comparison that the bounds do not decide raises an error.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from graphtool.errors import UndecidedOrder
from graphtool.symbolic.intervals import bounds
from graphtool.symbolic.text import text

Relation = Literal["<", "<=", "=="]


@dataclass(frozen=True, slots=True)
class Symbol:
    """A named integer in [lo, hi]; `None` is unbounded. With an `extent`, 0 ≤ symbol < extent.

    Its value is `step·atom + offset`: as an atom of a polynomial it stands for the whole number of
    steps (see steps.py).
    """

    name: str
    lo: int | None = 0
    hi: int | None = None
    extent: Dim | None = None
    step: int = 1
    offset: int = 0


@dataclass(frozen=True, slots=True)
class Call:
    """An irreducible `a // b`, `a % b`, `min(a, b)` or `max(a, b)`."""

    fn: Literal["//", "%", "min", "max"]
    a: Dim
    b: Dim


Atom = Symbol | Call
Monomial = tuple[tuple[Atom, int], ...]


class Poly:
    """Σ coefficient · Π atomᵖᵒʷᵉʳ, sorted; build with `symbol` and arithmetic, never directly."""

    __slots__ = ("_hash", "terms")

    def __init__(self, terms: tuple[tuple[Monomial, int], ...]) -> None:
        self.terms = terms
        self._hash = hash(terms)

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Poly) and self._hash == other._hash
                                 and self.terms == other.terms)

    def __hash__(self) -> int:
        return self._hash

    def __add__(self, other: Dim) -> Dim:
        if not isinstance(other, (int, Poly)):
            return NotImplemented
        total = dict(self.terms)
        for mono, coeff in terms_of(other):
            total[mono] = total.get(mono, 0) + coeff
        return from_terms(total)

    __radd__ = __add__

    def __mul__(self, other: Dim) -> Dim:
        if isinstance(other, int):
            return from_terms({m: c * other for m, c in self.terms}) if other else 0
        if not isinstance(other, Poly):
            return NotImplemented
        total: dict[Monomial, int] = {}
        for m1, c1 in self.terms:
            for m2, c2 in other.terms:
                mono = times(m1, m2)
                total[mono] = total.get(mono, 0) + c1 * c2
        return from_terms(total)

    __rmul__ = __mul__

    def __neg__(self) -> Dim:
        return self * -1

    def __sub__(self, other: Dim) -> Dim:
        return self + other * -1

    def __rsub__(self, other: Dim) -> Dim:
        return other + self * -1

    def __floordiv__(self, other: Dim) -> Dim:
        return floordiv(self, other)

    def __rfloordiv__(self, other: int) -> Dim:
        return floordiv(other, self)

    def __mod__(self, other: Dim) -> Dim:
        return mod(self, other)

    def __rmod__(self, other: int) -> Dim:
        return mod(other, self)

    def __lt__(self, other: Dim) -> bool:
        return decide(self, "<", other)

    def __le__(self, other: Dim) -> bool:
        return decide(self, "<=", other)

    def __gt__(self, other: Dim) -> bool:
        return decide(other, "<", self)

    def __ge__(self, other: Dim) -> bool:
        return decide(other, "<=", self)

    def __bool__(self) -> bool:
        return not decide(self, "==", 0)

    def __repr__(self) -> str:
        return text(self)


Dim = int | Poly


def symbol_of(atom: Atom) -> Dim:
    """The polynomial of one atom, 1·atom."""
    return Poly(((((atom, 1),), 1),))


# ---- construction ------------------------------------------------------------------------------

def terms_of(d: Dim) -> Iterable[tuple[Monomial, int]]:
    """(monomial, coefficient) of each term; an int is the coefficient of the empty monomial."""
    return d.terms if isinstance(d, Poly) else ((((), d),) if d else ())


def from_terms(total: Mapping[Monomial, int]) -> Dim:
    """The polynomial with these coefficients, canonical; an int if no symbol is left."""
    terms = [(m, c) for m, c in total.items() if c]
    if not terms:
        return 0
    if len(terms) == 1:
        return terms[0][1] if not terms[0][0] else Poly((terms[0],))
    terms.sort(key=lambda t: monomial_key(t[0]))
    return Poly(tuple(terms))


@lru_cache(maxsize=1 << 16)
def atom_key(a: Atom) -> tuple[int, str]:
    """The sort key of an atom: symbols by name, then calls by text."""
    return (0, a.name) if isinstance(a, Symbol) else (1, f"{a.fn} {text(a.a)} {text(a.b)}")


def monomial_key(mono: Monomial) -> tuple[int, tuple[tuple[tuple[int, str], int], ...]]:
    """The sort key of a monomial: a higher degree comes first."""
    return (-sum(p for _, p in mono), tuple((atom_key(a), -p) for a, p in mono))


def times(a: Monomial, b: Monomial) -> Monomial:
    """The product of two monomials, its atoms sorted."""
    if not a or not b:
        return a or b
    powers = dict(a)
    for atom, p in b:
        powers[atom] = powers.get(atom, 0) + p
    return tuple(sorted(powers.items(), key=lambda item: atom_key(item[0])))


# ---- comparison --------------------------------------------------------------------------------

def known(a: Dim, relation: Relation, b: Dim) -> bool | None:
    """True if the relation holds for all values of the symbols, False if for none, None if
    undecided. Raises KeyError for another relation: `a >= b` is `b <= a`."""
    lo, hi = bounds(a - b)
    if relation == "==":
        if lo == hi == 0:
            return True
        return False if (lo is not None and lo > 0) or (hi is not None and hi < 0) else None
    edge = {"<": 0, "<=": 1}[relation]
    if hi is not None and hi < edge:
        return True
    return False if lo is not None and lo >= edge else None


def decide(a: Dim, relation: Relation, b: Dim) -> bool:
    """The answer of `known`; raises InputError GT0310 if the bounds do not decide."""
    answer = known(a, relation, b)
    if answer is None:
        raise UndecidedOrder(
            "GT0310", f"cannot decide {text(a)} {relation} {text(b)} for all sizes", [(a, b)],
            hint="give the dimension tighter bounds, or bind it with `specialize`")
    return answer


# ---- division ----------------------------------------------------------------------------------

def _divide_term(mono: Monomial, coeff: int, by: Dim) -> tuple[Monomial, int] | None:
    """One term divided by an int or by a single term; None if the quotient is not exact."""
    if isinstance(by, int):
        return (mono, coeff // by) if coeff % by == 0 else None
    if len(by.terms) != 1:
        return None
    (bmono, bcoeff), = by.terms
    powers = dict(mono)
    for atom, p in bmono:
        if powers.get(atom, 0) < p:
            return None
        powers[atom] -= p
    if coeff % bcoeff:
        return None
    return tuple((a, p) for a, p in powers.items() if p), coeff // bcoeff


def exact_quotient(a: Dim, b: Dim) -> Dim | None:
    """a / b if every term of a divides exactly, else None."""
    if b == 0:
        return None
    if a == b:
        return 1
    total: dict[Monomial, int] = {}
    for mono, coeff in terms_of(a):
        q = _divide_term(mono, coeff, b)
        if q is None:
            return None
        total[q[0]] = q[1]
    return from_terms(total)


def _split(a: Dim, b: Dim) -> tuple[Dim, Dim]:
    """(quotient, rest) of a = b·quotient + rest; in quotient is all that is known to be there."""
    if a == b:
        return 1, 0
    quotient: dict[Monomial, int] = {}
    rest: dict[Monomial, int] = {}
    for mono, coeff in terms_of(a):
        q = _divide_term(mono, coeff, b)
        if q is not None:
            quotient[q[0]] = quotient.get(q[0], 0) + q[1]
        elif not mono and isinstance(b, int):
            quotient[()] = quotient.get((), 0) + coeff // b
            rest[()] = coeff % b
        else:
            rest[mono] = coeff
    left = from_terms(rest)
    lo, hi = bounds(left)
    if isinstance(b, int) and lo is not None and hi is not None and 0 != lo // b == hi // b:
        return from_terms(quotient) + lo // b, left - lo // b * b
    return from_terms(quotient), left


def below(rest: Dim, b: Dim) -> bool:
    """Whether 0 <= rest < b holds for all values of the symbols."""
    if rest == 0:
        return True
    lo, hi = bounds(rest)
    if lo is None or lo < 0:
        return False
    least = bounds(b)[0]
    if hi is not None and least is not None and hi < least:
        return True
    if isinstance(rest, Poly) and rest.terms[0][1] == 1 and len(rest.terms) == 1:
        (atom, power), *more = rest.terms[0][0]
        if power == 1 and not more:
            if isinstance(atom, Symbol) and atom.extent is not None:
                return atom.extent == b
            if isinstance(atom, Call) and atom.fn == "%":
                return atom.b == b
    return _nestedbelow(rest, b)


def _nestedbelow(rest: Dim, b: Dim) -> bool:
    """i·n + j < m·n where i < m and j < n: the row-major index of a smaller box."""
    if not isinstance(rest, Poly) or not isinstance(b, Poly) or len(rest.terms) < 2:
        return False
    for mono, coeff in rest.terms:
        for atom, power in mono:
            if power != 1 or not isinstance(atom, Symbol) or atom.extent is None:
                continue
            stride = _divide_term(mono, coeff, symbol_of(atom))
            if stride is None:
                continue
            n = from_terms({stride[0]: stride[1]})
            if exact_quotient(b, n) == atom.extent and below(rest - from_terms({mono: coeff}), n):
                return True
    return False


def floordiv(a: Dim, b: Dim) -> Dim:
    """⌊a / b⌋ for b > 0."""
    if isinstance(a, int) and isinstance(b, int):
        return a // b
    if b == 1:
        return a
    quotient, rest = _split(a, b)
    if below(rest, b):
        return quotient
    if isinstance(rest, Poly) and isinstance(b, int):
        g = math.gcd(b, *(c for _, c in rest.terms))
        if g > 1:
            return quotient + floordiv(_exact(rest, g), b // g)
        g = math.gcd(b, *(c for m, c in rest.terms if m))
        if g > 1:  # (g·p + c) // (g·q) = (p + c//g) // q
            parts = {m: (c // g) for m, c in rest.terms}
            return quotient + floordiv(from_terms(parts), b // g)
        atom = single_call(rest, "//")
        if atom is not None and isinstance(atom.b, int):  # (x // m) // n = x // (m·n)
            return quotient + floordiv(atom.a, atom.b * b)
    return quotient + symbol_of(Call("//", rest, b))


def mod(a: Dim, b: Dim) -> Dim:
    """a − b·⌊a / b⌋ for b > 0."""
    if isinstance(a, int) and isinstance(b, int):
        return a % b
    if b == 1:
        return 0
    _, rest = _split(a, b)
    if below(rest, b):
        return rest
    if isinstance(rest, Poly) and isinstance(b, int):
        g = math.gcd(b, *(c for _, c in rest.terms))
        if g > 1:
            return mod(_exact(rest, g), b // g) * g
        atom = single_call(rest, "%")
        if atom is not None and isinstance(atom.b, int) and atom.b % b == 0:
            return mod(atom.a, b)
    return symbol_of(Call("%", rest, b))


def _exact(p: Poly, g: int) -> Dim:
    return from_terms({m: c // g for m, c in p.terms})


def single_call(d: Poly, fn: str) -> Call | None:
    """The call of `fn` that d is; None if it is anything else."""
    if len(d.terms) == 1 and d.terms[0][1] == 1 and len(d.terms[0][0]) == 1:
        atom, power = d.terms[0][0][0]
        if power == 1 and isinstance(atom, Call) and atom.fn == fn:
            return atom
    return None
