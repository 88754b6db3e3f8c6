"""Polynomials as text: anything with `terms` of symbols and calls."""

from __future__ import annotations

from typing import Any, Protocol


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
    for i, (mono, coeff) in enumerate(d.terms):
        factors = [_atom_text(a) for a, p in mono for _ in range(p)]
        if abs(coeff) != 1 or not factors:
            factors.insert(0, str(abs(coeff)))
        sign = ("-" if coeff < 0 else "") if i == 0 else (" - " if coeff < 0 else " + ")
        out += sign + "*".join(factors)
    return out


def _atom_text(a: Any) -> str:
    if hasattr(a, "name"):
        return str(a.name)
    if a.fn in ("min", "max"):
        return f"{a.fn}({text(a.a)}, {text(a.b)})"
    return f"({_operand(a.a)}{a.fn}{_operand(a.b)})"


def _operand(d: int | Sum) -> str:
    return text(d) if _is_plain(d) else f"({text(d)})"


def _is_plain(d: int | Sum) -> bool:
    """Whether d needs no parentheses next to an operator: it is a number or a single atom."""
    if isinstance(d, int):
        return d >= 0
    (mono, coeff), *more = d.terms
    return not more and coeff == 1 and len(mono) == 1 and mono[0][1] == 1
