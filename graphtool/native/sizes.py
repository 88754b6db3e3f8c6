"""The open sizes that build.json states, with what must hold of them.

Models of fixed sizes load without this file, and so without the algebra of sizes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from graphtool.errors import InputError
from graphtool.io.manifest_rows import DimRow
from graphtool.symbolic import Dim, Equation, Symbol, dim_of, divides
from graphtool.symbolic.checks import WHY
from graphtool.symbolic.parse import parse
from graphtool.symbolic.text import name_text

Pairs = Sequence[tuple[int | str, int | str]]


def dim_table(rows: Sequence[DimRow]) -> dict[str, Dim]:
    """The dims by name."""
    return {r.name: dim_of(symbol_of(r)) for r in rows}


def require(rows: Sequence[DimRow], equal: Pairs, sizes: Mapping[str, Dim]) -> None:
    """Raises InputError GT2231, with both sizes, for sizes that the model was not compiled for."""
    known = {name: n for name, n in sizes.items() if isinstance(n, int)}
    for r in rows:
        if r.name in known and (known[r.name] - r.offset) % r.step:
            raise _broken(f"{divides(symbol_of(r))} does not hold: {name_text(r.name)} is "
                          f"{known[r.name]}")
    for e in equations(rows, equal):
        if breach := e.breach(known):
            raise _broken(breach)


def equations(rows: Sequence[DimRow], equal: Pairs) -> tuple[Equation, ...]:
    """The pairs of dims that must be equal."""
    table = dim_table(rows) if equal else {}
    return tuple(Equation(*(d if isinstance(d, int) else parse(d, table) for d in pair))
                 for pair in equal)


def symbol_of(r: DimRow) -> Symbol:
    """The symbol that a row describes."""
    return Symbol(r.name, r.min, r.max, None, r.step, r.offset)


def _broken(breach: str) -> InputError:
    return InputError("GT2231", breach, hint=WHY)
