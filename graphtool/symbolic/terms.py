"""What a polynomial is made of: its symbols, one coefficient, and itself with others put in."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from graphtool.symbolic.atoms import Atom, Monomial, Symbol
from graphtool.symbolic.poly import (
    Dim,
    floordiv,
    from_terms,
    maximum,
    minimum,
    mod,
    symbol_of,
    terms_of,
)


def symbols(d: Dim) -> tuple[Symbol, ...]:
    """The symbols in d, by name."""
    found: dict[str, Symbol] = {}

    def walk(d: Dim) -> None:
        for mono, _ in terms_of(d):
            for atom, _ in mono:
                if isinstance(atom, Symbol):
                    found[atom.name] = atom
                else:
                    walk(atom.a)
                    walk(atom.b)
    walk(d)
    return tuple(found[name] for name in sorted(found))


_FN: dict[str, Callable[[Dim, Dim], Dim]] = {
    "//": floordiv, "%": mod, "min": minimum, "max": maximum}


def substitute(d: Dim, env: Mapping[str, Dim]) -> Dim:
    """d with symbols replaced by name; simplifies again on the way."""
    if isinstance(d, int):
        return d
    total: Dim = 0
    for mono, coeff in d.terms:
        product: Dim = coeff
        for atom, power in mono:
            if isinstance(atom, Symbol):
                value = env.get(atom.name, None)
                base = symbol_of(atom) if value is None else value
            else:
                base = _FN[atom.fn](substitute(atom.a, env), substitute(atom.b, env))
            for _ in range(power):
                product = product * base
        total = total + product
    return total


def coefficient(d: Dim, name: str) -> Dim | None:
    """c where d = c·name + terms without it; None where the symbol occurs in any other way."""
    total: dict[Monomial, int] = {}
    for mono, coeff in terms_of(d):
        rest: list[tuple[Atom, int]] = []
        found = False
        for atom, power in mono:
            if isinstance(atom, Symbol):
                if atom.name != name:
                    rest.append((atom, power))
                elif power == 1:
                    found = True
                else:
                    return None
            elif name in (s.name for s in symbols(from_terms({((atom, 1),): 1}))):
                return None
            else:
                rest.append((atom, power))
        if found:
            total[tuple(rest)] = total.get(tuple(rest), 0) + coeff
    return from_terms(total)


def product(dims: Iterable[Dim]) -> Dim:
    total: Dim = 1
    for d in dims:
        total = total * d
    return total
