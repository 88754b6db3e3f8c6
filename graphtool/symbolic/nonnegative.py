"""A proof that a polynomial is never negative, for names whose ends are polynomials themselves.

Names and calls are replaced by an end of theirs, the last defined first, until only sizes are left.
So `n - 1 - 16·i - j` with j < min(16, n - 16·i) becomes 0 for all n, where intervals of i and j
alone would say nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from graphtool.symbolic.intervals import bounds
from graphtool.symbolic.poly import (
    Atom,
    Call,
    Dim,
    Monomial,
    Poly,
    Symbol,
    floordiv,
    from_terms,
    symbol_of,
)
from graphtool.symbolic.terms import dim_of, substitute, symbols

STEPS = 400  # polynomials that one proof may look at


@dataclass(frozen=True, slots=True)
class Ends:
    """Polynomials that a name is never below, and never above; each of them holds."""

    low: tuple[Dim, ...] = ()
    high: tuple[Dim, ...] = ()


@dataclass
class Proof:
    """Proofs about the same names, in the order of their definition: an end of a name has only
    sizes and names that were defined before it."""

    names: Mapping[str, Ends]
    known: dict[Dim, bool] = field(default_factory=dict)
    left: int = STEPS

    def holds(self, d: Dim) -> bool:
        """Whether d ≥ 0 is shown for all values of its names and sizes."""
        self.left = STEPS
        return self.nonnegative(d)

    def nonnegative(self, d: Dim) -> bool:
        """As `holds`, within the steps that are left."""
        if d not in self.known:
            low = bounds(d)[0]
            if low is not None and low >= 0:
                self.known[d] = True
            elif isinstance(d, int) or self.left < 1:
                return False
            else:
                self.left -= 1
                self.known[d] = self.by_parts(d)
        return self.known[d]

    def by_parts(self, d: Poly) -> bool:
        """Whether d with one atom less is shown to be no more than d, and not negative."""
        for atom in self.order(d):
            parts = linear(d, atom)
            sign = 0 if parts is None else self.sign(parts[0])
            if parts is not None and sign:
                factor, rest = parts
                if isinstance(atom, Call):
                    return self.call(atom, factor, rest, sign)
                ends = self.names[atom.name]
                return any(self.nonnegative(rest + factor * end)
                           for end in (ends.low if sign > 0 else ends.high))
        return False

    def order(self, d: Poly) -> list[Atom]:
        """The atoms that may be replaced: calls that depend on names, names, other calls."""
        places = {name: n for n, name in enumerate(self.names)}
        found: dict[Atom, tuple[int, int]] = {}
        for mono, _ in d.terms:
            for atom, _ in mono:
                if isinstance(atom, Symbol):
                    if atom.name in places:
                        found[atom] = (1, places[atom.name])
                else:
                    inside = [places[s.name] for s in symbols(symbol_of(atom))
                              if s.name in places]
                    found[atom] = (2, max(inside)) if inside else (0, 0)
        return sorted(found, key=lambda a: found[a], reverse=True)

    def sign(self, factor: Dim) -> int:
        """1 if the factor is never negative, -1 if never positive, 0 if neither is shown."""
        if self.nonnegative(factor):
            return 1
        return -1 if self.nonnegative(-factor) else 0

    def call(self, c: Call, factor: Dim, rest: Dim, sign: int) -> bool:
        """Whether rest + factor·c is not negative."""
        match c.fn:
            case "min" | "max":
                both = (self.nonnegative(rest + factor * x) for x in (c.a, c.b))
                return all(both) if (c.fn == "min") == (sign > 0) else any(both)
            case "%":
                quotient = symbol_of(Call("//", c.a, c.b)) if isinstance(c.a, Poly) else floordiv(
                    c.a, c.b)
                return self.nonnegative(rest + factor * (c.a - c.b * quotient))
        if not self.nonnegative(c.b - 1):
            return False
        end = c.a - c.b + 1 if sign > 0 else c.a  # (a − b + 1) / b ≤ ⌊a / b⌋ ≤ a / b
        return self.nonnegative(rest * c.b + factor * end + c.b - 1)


def linear(d: Poly, atom: Atom) -> tuple[Dim, Dim] | None:
    """(c, r) in d = c·atom + r; None where d has a power of the atom."""
    factor: dict[Monomial, int] = {}
    rest: dict[Monomial, int] = {}
    for mono, coeff in d.terms:
        power = dict(mono).get(atom, 0)
        if power > 1:
            return None
        if power:
            factor[tuple((a, p) for a, p in mono if a != atom)] = coeff
        else:
            rest[mono] = coeff
    return from_terms(factor), from_terms(rest)


def sizes_for(d: Dim, least: int = 1) -> Iterator[tuple[str, Dim]]:
    """The symbols that must be larger than they need be, for d to be `least` or more; each with
    its range raised."""
    if isinstance(d, int):
        return
    constant = sum(c for mono, c in d.terms if not mono)
    (mono, coeff), *others = [t for t in d.terms if t[0]]
    needed = -((constant - least) // coeff) if coeff > 0 else 0
    least_ones = [bounds(symbol_of(a))[0] for a, _ in mono]
    if others or needed < 1 or any(low is None or low < 0 for low in least_ones):
        return
    for atom, power in mono:
        above = needed if len(mono) == 1 and power == 1 else 1
        if isinstance(atom, Symbol):
            yield atom.name, dim_of(Symbol(
                atom.name, max(atom.lo or 0, above * atom.step + atom.offset), atom.hi,
                atom.extent, atom.step, atom.offset))
        elif atom.fn == "//" and isinstance(atom.b, int):
            yield from sizes_for(atom.a, above * atom.b)
        elif atom.fn == "min":
            yield from sizes_for(atom.a, above)
            yield from sizes_for(atom.b, above)


def within(d: Dim, names: Mapping[str, Dim]) -> Dim:
    """d with the ranges of its symbols as these names have them."""
    return substitute(d, names)
