"""Queries of a polynomial: its symbols, a coefficient, substitution and evaluation."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import Any

from graphtool.symbolic.extremes import maximum, minimum
from graphtool.symbolic.poly import (
    Atom,
    Dim,
    Monomial,
    Symbol,
    floordiv,
    from_terms,
    mod,
    symbol_of,
    terms_of,
)


@lru_cache(maxsize=1 << 16)
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


def at_least_sizes(d: Dim) -> int:
    """The value of d with each symbol at its least size, 1 or more; 0 if that is no number."""
    value = substitute(d, {s.name: max(s.lo or 0, 1) for s in symbols(d)})
    return value if isinstance(value, int) else 0


UNKNOWN = 128  # the typical size of an open size without an upper bound


def typical_size(d: Dim) -> int:
    """The value of d at the typical value of each open size: its upper bound; UNKNOWN without one.

    What cannot be computed for all sizes at once is decided at it: the costs of kernels, and which
    of two strides is the longer one. A stride that no value makes the longer one is the shorter or
    as long here too, so that the order in memory comes out as for numbers.
    """
    if isinstance(d, int):
        return d
    return evaluate(d, {s.name: max(UNKNOWN, s.lo or 0) if s.hi is None else s.hi
                        for s in symbols(d)})


_FN: dict[str, Callable[[Dim, Dim], Dim]] = {
    "//": floordiv, "%": mod, "min": minimum, "max": maximum}


def substitute(d: Dim, env: Mapping[str, Dim]) -> Dim:
    """d with the named symbols replaced; the result is simplified again."""
    if isinstance(d, int) or not any(s.name in env for s in symbols(d)):
        return d
    total: Dim = 0
    for mono, coeff in d.terms:
        product: Dim = coeff
        for atom, power in mono:
            if isinstance(atom, Symbol):
                value = env.get(atom.name, None)
                if value is None:
                    base = symbol_of(atom)
                else:
                    base = value if atom.step == 1 else floordiv(value - atom.offset, atom.step)
            else:
                base = _FN[atom.fn](substitute(atom.a, env), substitute(atom.b, env))
            for _ in range(power):
                product = product * base
        total = total + product
    return total


def evaluate(d: Dim, env: Mapping[str, Any]) -> int:
    """The value of d, given its symbols' values by name; a division by 0 gives 0."""
    if isinstance(d, int):
        return d
    total = 0
    for mono, coeff in d.terms:
        for atom, power in mono:
            if isinstance(atom, Symbol):
                value = (int(env[atom.name]) - atom.offset) // atom.step
            else:
                a, b = evaluate(atom.a, env), evaluate(atom.b, env)
                value = {"//": a // b if b else 0, "%": a % b if b else 0, "min": min(a, b),
                         "max": max(a, b)}[atom.fn]
            coeff *= value ** power
        total += coeff
    return total


def coefficient(d: Dim, name: str) -> Dim | None:
    """c in d = c·atom + terms without the symbol of this name; None if it occurs in any other
    way."""
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
    """The product of the sizes; 1 for none."""
    total: Dim = 1
    for d in dims:
        total = total * d
    return total
