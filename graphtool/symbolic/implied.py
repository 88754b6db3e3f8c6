"""Conditions on one open size in their shortest form.

A condition on one symbol is a set of remainders. What the declared range or other conditions imply
is dropped, and conditions that together say that a part is a multiple become that one: a pyramid of
four levels requires `((H + 1)//2) % 8 == 0`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from graphtool.symbolic.equations import Equation, equations, of_one, period_of, remainders
from graphtool.symbolic.poly import Call, Dim, Symbol, mod, symbol_of
from graphtool.symbolic.steps import at_least, dim_of
from graphtool.symbolic.terms import evaluate
from graphtool.symbolic.text import text

_RANGE = 4096  # sizes of a bounded symbol that are tried one by one


def simplified(found: Iterable[Equation], free: Mapping[str, Symbol]) -> list[Equation]:
    """Conditions that hold for the same sizes as all of `found`, without those that others imply.

    `free` are the open sizes. A condition on several of them is kept as it is.
    """
    rows = equations((e.left, e.right) for e in found)
    alone = of_one(rows, free)
    of_several = [e for e in rows if len(e.names) != 1 or not e.names <= free.keys()]
    return [e for name, own in alone.items() for e in _shortest(free[name], own)] + of_several


def satisfying(s: Symbol, rows: Sequence[Equation]) -> tuple[int, int] | None:
    """A least size and a step, all of whose sizes satisfy the conditions on this one symbol; None
    if there is none, or it cannot be found."""
    period = period_of(s, [e.left - e.right for e in rows])
    good = period and remainders(s, [e.left - e.right for e in rows], period)
    if not period or not good:
        return None
    start = min(good, key=lambda r: (r != 0, r))
    least = max(s.lo or 0, 1)
    least += (start - least) % period
    return None if s.hi is not None and least > s.hi else (least, period)


def _shortest(s: Symbol, rows: list[Equation]) -> list[Equation]:
    sizes = _tried(s, rows)
    if sizes is None:
        return rows
    right = [{n for n in sizes if not e.breach({s.name: n})} for e in rows]
    wanted = set(sizes).intersection(*right)
    if len(rows) > 1 and (one := _multiple(s, rows, sizes, wanted)) is not None:
        rows, right = [one], [wanted]
    kept = list(range(len(rows)))
    for i in reversed(range(len(rows))):
        rest = [right[k] for k in kept if k != i]
        if set(sizes).intersection(*rest) == wanted:
            kept.remove(i)
    return [rows[i] for i in kept]


def _tried(s: Symbol, rows: Sequence[Equation]) -> range | None:
    """Sizes such that conditions which agree on them agree on all; None if none are known."""
    least = at_least(s, 0)
    if s.hi is not None and s.hi - least < _RANGE:
        return range(least, s.hi + 1, s.step)
    gaps = [e.left - e.right for e in rows]
    period = period_of(s, gaps)
    if not period or any(remainders(s, [g], period) is None for g in gaps):
        return None
    return range(least, least + period, s.step)


def _multiple(s: Symbol, rows: Sequence[Equation], sizes: range,
              wanted: set[int]) -> Equation | None:
    """`part % m == 0` for a part of the conditions, if it holds for the wanted sizes only."""
    parts = {dim_of(s), *(d for e in rows for d in (*_parts(e.left), *_parts(e.right)))}
    period = len(sizes) * s.step
    for part in sorted(parts, key=lambda d: (len(text(d)), text(d))):
        values = {n: evaluate(part, {s.name: n}) for n in sizes}
        turn = evaluate(part, {s.name: sizes[0] + period}) - values[sizes[0]]
        for m in range(2, period + 1):
            if turn % m == 0 and {n for n, v in values.items() if v % m == 0} == wanted:
                return Equation(mod(part, m), 0)
    return None


def _parts(d: Dim) -> list[Dim]:
    """The quotients that a size is made of, those inside others too."""
    if isinstance(d, int):
        return []
    calls = [a for mono, _ in d.terms for a, _ in mono if isinstance(a, Call)]
    return [p for c in calls for p in (*([symbol_of(c)] if c.fn == "//" else []), *_parts(c.a),
                                       *_parts(c.b))]
