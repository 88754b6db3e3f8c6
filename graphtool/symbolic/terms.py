"""Polynomials of sizes: extremes, rounded division, symbols, coefficients, substitution,
evaluation.

Some symbols take every step-th value only, such as multiples of 32. Their value is `step·atom +
offset`, and polynomials are made of the atom: half of an even size is a polynomial without a
division, and equal sizes have equal structure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import Any, Literal

from graphtool.symbolic.intervals import bounds
from graphtool.symbolic.poly import (
    Atom,
    Call,
    Dim,
    Monomial,
    Symbol,
    below,
    floordiv,
    from_terms,
    mod,
    single_call,
    symbol_of,
    terms_of,
)
from graphtool.symbolic.text import name_text, text


def ceildiv(a: Dim, b: Dim) -> Dim:
    """⌈a / b⌉ for b > 0."""
    return -floordiv(-a, b) if isinstance(a, int) else floordiv(a + b - 1, b)


def minimum(a: Dim, b: Dim) -> Dim:
    """min(a, b): a or b if their bounds decide, else an irreducible Call."""
    return _extreme("min", a, b)


def maximum(a: Dim, b: Dim) -> Dim:
    """max(a, b): a or b if their bounds decide, else an irreducible Call."""
    return _extreme("max", a, b)


def _extreme(fn: Literal["min", "max"], a: Dim, b: Dim) -> Dim:
    lo, hi = bounds(a - b)
    if hi is not None and hi <= 0:
        return a if fn == "min" else b
    if lo is not None and lo >= 0:
        return b if fn == "min" else a
    for whole, part in ((a, b), (b, a)):  # max(max(a, b), b)
        if part in _operands(fn, whole):
            return whole
    for least, most in ((a, b), (b, a)):
        if least != 0 and below(least, most + 1):  # an iterator and the end of its own range
            return least if fn == "min" else most
    first, second = sorted((a, b), key=text)
    return symbol_of(Call(fn, first, second))


def _operands(fn: Literal["min", "max"], d: Dim) -> list[Dim]:
    """What a minimum or a maximum is one of, those inside it too."""
    call = None if isinstance(d, int) else single_call(d, fn)
    return [] if call is None else [x for e in (call.a, call.b) for x in (e, *_operands(fn, e))]


@lru_cache(maxsize=1 << 16)
def symbols(d: Dim) -> tuple[Symbol, ...]:
    """The symbols in d, by name."""
    by_name: dict[str, Symbol] = {}

    def walk(d: Dim) -> None:
        for mono, _ in terms_of(d):
            for atom, _ in mono:
                if isinstance(atom, Symbol):
                    by_name[atom.name] = atom
                else:
                    walk(atom.a)
                    walk(atom.b)
    walk(d)
    return tuple(by_name[name] for name in sorted(by_name))


def at_least_sizes(d: Dim) -> int:
    """The value of d with each symbol at its least size, 1 or more; 0 if that is no number."""
    value = substitute(d, {s.name: max(s.lo or 0, 1) for s in symbols(d)})
    return value if isinstance(value, int) else 0


UNKNOWN = 128  # the typical size of an open size without an upper bound


def typical_size(d: Dim) -> int:
    """A size at the typical value of each open size, as `typical` gives it; 1 where an open one is
    then smaller, as in a branch that such sizes do not take."""
    return d if isinstance(d, int) else max(typical(d), 1)


def typical(d: Dim) -> int:
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
        occurs = False
        for atom, power in mono:
            if isinstance(atom, Symbol):
                if atom.name != name:
                    rest.append((atom, power))
                elif power == 1:
                    occurs = True
                else:
                    return None
            elif name in (s.name for s in symbols(from_terms({((atom, 1),): 1}))):
                return None
            else:
                rest.append((atom, power))
        if occurs:
            total[tuple(rest)] = total.get(tuple(rest), 0) + coeff
    return from_terms(total)


def product(dims: Iterable[Dim]) -> Dim:
    """The product of the sizes; 1 for none."""
    total: Dim = 1
    for d in dims:
        total = total * d
    return total


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
