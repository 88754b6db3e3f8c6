"""Polynomials as text: anything with `terms` of symbols and calls.

A symbol with a step is printed as its value: of H, a multiple of 32, 16·atom is `(H//2)`.
"""

from __future__ import annotations

import json
import math
import re
from typing import Any, Protocol

from graphtool.escaping import HIDDEN, visible

Factor = tuple[Any, int, int]  # of a: (its value - offset)//divisor, as (a, offset, divisor)
Term = tuple[list[Factor], int]  # factors and coefficient

_BARE = re.compile(r"[^\W\d][\w.$~]*")  # names that need no quotes
_WORDS = ("min", "max", "true", "false", "none", "nan", "inf")


class Sum(Protocol):
    """A sum of terms: each is a coefficient times powers of atoms."""

    def __hash__(self) -> int: ...

    @property
    def terms(self) -> tuple[tuple[tuple[tuple[Any, int], ...], int], ...]:
        """((atom, power), …) and the coefficient of each term."""


def text(d: int | Sum) -> str:
    """`4*B + (T//2) - 1`; `parse` reads it back."""
    if isinstance(d, int):
        return str(d)
    out = ""
    for i, (parts, coeff) in enumerate(value_terms(d)):
        factors = [_factor_text(*f) for f in parts]
        if abs(coeff) != 1 or not factors:
            factors = [str(abs(coeff)), *factors]
        sign = ("-" if coeff < 0 else "") if i == 0 else (" - " if coeff < 0 else " + ")
        out += sign + "*".join(factors)
    return out


def name_text(name: str) -> str:
    """A symbol's name as texts of sizes have it: in double quotes with JSON's escapes, if it could
    be read as something else."""
    bare = _BARE.fullmatch(name) and name not in _WORDS and not HIDDEN.search(name)
    return name if bare else visible(json.dumps(name, ensure_ascii=False))


def value_terms(d: Sum) -> list[Term]:
    """The terms in values of symbols, where a polynomial has multiples of their steps."""
    return _expanded(d) or [_term(t) for t in d.terms]


def _term(term: Any) -> Term:
    """The factors of one term, and its coefficient. An atom with a step absorbs what it can of
    the coefficient: with step 32, 48·atom is 3·(H//2)."""
    mono, coeff = term
    factors = []
    for atom, power in mono:
        step = _step(atom)
        for _ in range(power):
            part = math.gcd(coeff, step)
            coeff //= part
            factors.append((atom, _offset(atom), step // part))
    return factors, coeff


def _expanded(d: Sum) -> list[Term] | None:
    """The terms in values of symbols instead of atoms, if a symbol has an offset and all
    coefficients stay whole: for an odd H, 2·atom + 1 is H. Else None."""
    if not any(_offset(a) for mono, _ in d.terms for a, _ in mono):
        return None
    from fractions import Fraction  # here, because loading a build should not wait for it
    total: dict[tuple[Factor, ...], Fraction] = {}
    for mono, coeff in d.terms:
        parts: dict[tuple[Factor, ...], Fraction] = {(): Fraction(coeff)}
        for atom, power in mono:
            step, offset = _step(atom), _offset(atom)
            for _ in range(power):
                more: dict[tuple[Factor, ...], Fraction] = {}
                for factors, c in parts.items():
                    for key, f in (((*factors, (atom, 0, 1)), c / step),
                                   (factors, -c * offset / step)):
                        more[key] = more.get(key, Fraction(0)) + f
                parts = more
        for factors, c in parts.items():
            total[factors] = total.get(factors, Fraction(0)) + c
    if any(c.denominator > 1 for c in total.values()):
        return None
    rows = [(list(factors), int(c)) for factors, c in total.items() if c]
    return sorted(rows, key=lambda row: (-len(row[0]), [_factor_text(*f) for f in row[0]]))


def _step(a: Any) -> int:
    return a.step if hasattr(a, "name") else 1


def _offset(a: Any) -> int:
    return a.offset if hasattr(a, "name") else 0


def _factor_text(a: Any, offset: int, divisor: int) -> str:
    less = f"({name_text(a.name)} - {offset})" if offset else _atom_text(a)
    return less if divisor == 1 else f"({less}//{divisor})"


def _atom_text(a: Any) -> str:
    if hasattr(a, "name"):
        return name_text(a.name)
    if a.fn in ("min", "max"):
        return f"{a.fn}({text(a.a)}, {text(a.b)})"
    return f"({_operand(a.a)}{a.fn}{_operand(a.b)})"


def _operand(d: int | Sum) -> str:
    shown = text(d)
    return shown if _is_plain(d) or shown.isidentifier() else f"({shown})"


def _is_plain(d: int | Sum) -> bool:
    """Whether d needs no parentheses next to an operator: it is a number or a single atom."""
    if isinstance(d, int):
        return d >= 0
    (mono, coeff), *more = d.terms
    return not more and coeff == 1 and len(mono) == 1 and mono[0][1] == 1
