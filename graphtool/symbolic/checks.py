"""Checks the sizes of a run: their bounds, their steps, and which of them must be equal."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from graphtool.errors import InputError
from graphtool.symbolic.equations import Equation, solved
from graphtool.symbolic.poly import Dim, Symbol
from graphtool.symbolic.steps import at_least, divides
from graphtool.symbolic.terms import substitute, symbols

_WHY = "the model adds or joins tensors whose sizes are equal under this condition only"


def check_bounds(row: Symbol, size: Dim) -> None:
    """Raises InputError GT0515 where a size lies outside its symbol's declared range, GT0516 where
    it is none of its steps."""
    if (row.lo is not None and size < row.lo) or (row.hi is not None and size > row.hi):
        most = "" if row.hi is None else f" and at most {row.hi}"
        raise InputError("GT0515", f"{row.name} = {size}, at least {row.lo}{most} expected")
    if (size - row.offset) % row.step:
        raise InputError("GT0516", f"{divides(row)} does not hold: {row.name} is {size}",
                         hint=_WHY)


def check_required(requires: Iterable[Equation], sizes: Mapping[str, Dim]) -> None:
    """Raises InputError GT0516 for sizes that must be equal and are not."""
    known = {name: n for name, n in sizes.items() if isinstance(n, int)}
    for e in requires:
        named = {s.name for d in (e.left, e.right) for s in symbols(d)}
        if named <= known.keys() and (told := e.breach(known)):
            raise InputError("GT0516", told, hint=_WHY)


def sample_sizes(rows: Mapping[str, Symbol], requires: Iterable[Equation],
                 given: Mapping[str, int], about: int = 3) -> dict[str, Dim]:
    """Sizes that a run may have: those given, others near `about` that satisfy all conditions."""
    out: dict[str, Dim] = {}
    for name, row in rows.items():
        size = at_least(row, about)
        size = size if row.hi is None or size <= row.hi else at_least(row, row.lo or 0)
        out[name] = given.get(name, size)
    made = solved(requires, [n for n in rows if n not in given])
    return out | {name: substitute(d, out) for name, d in made.items()}
