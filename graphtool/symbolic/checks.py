"""The sizes of a run: found from the shapes of its inputs (`4*n + 1` is 9, so n is 2), and checked:
their bounds, their steps, and which of them must be equal."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from graphtool.errors import InputError
from graphtool.symbolic.equations import Equation, solved
from graphtool.symbolic.poly import Dim, Poly, Symbol, exact_quotient
from graphtool.symbolic.solutions import solutions
from graphtool.symbolic.steps import at_least, dim_of, divides
from graphtool.symbolic.terms import substitute, symbols
from graphtool.symbolic.text import name_text

WHY = "the model adds or joins tensors, or chooses a branch, under this condition only"

_ZERO = "`--dynamic {}=0..` imports the model for 0 too, if every operation allows that"


def check_bounds(row: Symbol, size: Dim) -> None:
    """Raises InputError GT0515 where a size lies outside its symbol's declared range, GT0516 where
    it is none of its steps."""
    if (row.lo is not None and size < row.lo) or (row.hi is not None and size > row.hi):
        most = "" if row.hi is None else f" and at most {row.hi}"
        raise InputError("GT0515", f"{name_text(row.name)} = {size}, at least {row.lo}{most} "
                                   "expected", hint=_ZERO.format(row.name) if size == 0 else "")
    if (size - row.offset) % row.step:
        raise InputError("GT0516", f"{divides(row)} does not hold: {name_text(row.name)} is {size}",
                         hint=WHY)


def check_required(requires: Iterable[Equation], sizes: Mapping[str, Dim]) -> None:
    """Raises InputError GT0516 for sizes that must be equal and are not."""
    known = {name: n for name, n in sizes.items() if isinstance(n, int)}
    for e in requires:
        named = {s.name for d in (e.left, e.right) for s in symbols(d)}
        if named <= known.keys() and (told := e.breach(known)):
            raise InputError("GT0516", told, hint=WHY)


def sample_sizes(rows: Mapping[str, Symbol], requires: Iterable[Equation],
                 given: Mapping[str, int], about: int = 3) -> dict[str, Dim]:
    """Sizes that a run may have: those given, others near `about` that satisfy all conditions."""
    out: dict[str, Dim] = {}
    for name, row in rows.items():
        size = at_least(row, about)
        size = size if row.hi is None or size <= row.hi else at_least(row, row.lo or 0)
        out[name] = given.get(name, size)
    requires = list(requires)
    made = solved(requires, [n for n in rows if n not in given])
    near = out | {name: substitute(d, out) for name, d in made.items()}
    numbers = {n: d for n, d in near.items() if isinstance(d, int)}
    if len(numbers) < len(near) or not any(e.breach(numbers) for e in requires
                                           if e.names <= numbers.keys()):
        return near
    kept = {n: replace(s, lo=given[n], hi=given[n]) if n in given else s for n, s in rows.items()}
    return {**next(solutions(kept, requires, numbers), numbers)}


# ---- from shapes -------------------------------------------------------------------------------

def bind(pairs: Iterable[tuple[Dim, int]], sizes: dict[str, Dim]) -> None:
    """Add the symbols that pairs of a dimension and its size determine: first from plain symbols,
    then from a·s + b. What contradicts itself is for the caller to find."""
    open_ = [(d, n) for d, n in pairs if isinstance(d, Poly)]
    for d, n in sorted(open_, key=lambda p: not _is_plain(p[0])):
        free = [s for s in symbols(d) if s.name not in sizes]
        if len(free) == 1:
            solved = solve(substitute(d, sizes), free[0], n)
            if solved is not None:
                sizes[free[0].name] = solved


def solve(d: Dim, s: Symbol, n: int) -> int | None:
    """The value of s with d(s) = n where d is a·s + b; n where d is s, whatever its step."""
    if d == dim_of(s):
        return n
    found = line(d, s)
    steps = exact_quotient(n - found[0], found[1]) if found else None
    return found[2] + steps * found[3] if found and isinstance(steps, int) else None


def line(d: Dim, s: Symbol) -> tuple[int, int, int, int] | None:
    """(at, slope, first, step) where d is a line in s: it is `at` where s is `first`, and `slope`
    more for each `step` of s. None if it is not."""
    at = substitute(d, {s.name: s.offset})
    slope = substitute(d, {s.name: s.offset + s.step}) - at
    if not isinstance(at, int) or not isinstance(slope, int) or not slope:
        return None
    straight = (dim_of(s) - s.offset) * slope == (d - at) * s.step
    return (at, slope, s.offset, s.step) if straight else None


def _is_plain(d: Dim) -> bool:
    found = symbols(d)
    return len(found) == 1 and d == dim_of(found[0])
