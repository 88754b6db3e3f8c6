"""Equations between sizes, what they say about single symbols, and their shortest form.

`2*((H + 1)//2) == H` says that H is a multiple of 2, `N == M` that M is another name of N. A
condition on one symbol is a set of remainders. What the declared range or other conditions imply is
dropped, and conditions that together say that a part is a multiple become that one: a pyramid of
four levels requires `((H + 1)//2) % 8 == 0`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from graphtool.errors import InputError
from graphtool.symbolic.intervals import bounds
from graphtool.symbolic.poly import (
    Atom,
    Call,
    Dim,
    Symbol,
    from_terms,
    known,
    mod,
    symbol_of,
    terms_of,
)
from graphtool.symbolic.terms import (
    at_least,
    coefficient,
    dim_of,
    evaluate,
    maximum,
    minimum,
    product,
    substitute,
    symbol,
    symbols,
)
from graphtool.symbolic.text import name_text, text

_LONGEST = 4096  # values of a symbol that are tried, one for each remainder


@dataclass(frozen=True, slots=True)
class Equation:
    """Two sizes that must be equal when the model runs."""

    left: Dim
    right: Dim

    def __str__(self) -> str:
        if (pair := _broadcast(self)) is None:
            return f"{text(self.left)} == {text(self.right)}"
        m, n = (name_text(s.name) for s in pair)
        return f"{m} == {n} or {m} == 1 or {n} == 1"

    @property
    def names(self) -> frozenset[str]:
        """The symbols on which it depends, by name."""
        return frozenset(s.name for s in symbols(self.left - self.right))

    def under(self, env: Mapping[str, Dim]) -> Equation:
        """The equation with symbols replaced by name."""
        return Equation(substitute(self.left, env), substitute(self.right, env))

    @property
    def holds(self) -> bool | None:
        """Whether the sides are equal for all sizes; None if that depends on the sizes."""
        return known(self.left, "==", self.right)

    def breach(self, sizes: Mapping[str, int]) -> str:
        """`2*((H + 1)//2) == H does not hold: 66 and 65`; empty if the sizes satisfy it."""
        left, right = evaluate(self.left, sizes), evaluate(self.right, sizes)
        if left == right:
            return ""
        if (pair := _broadcast(self)) is not None:
            left, right = (sizes[s.name] for s in pair)
        return f"{self} does not hold: {left} and {right}"


def equal_or_one(a: Symbol, b: Symbol) -> tuple[Dim, Dim]:
    """The sides of an equation which says that two sizes of 1 or more are equal, or one is 1."""
    first, second = sorted((dim_of(a), dim_of(b)), key=text)
    less, more = minimum(first, second), maximum(first, second)
    return minimum(more - less, less - 1), 0


def _broadcast(e: Equation) -> tuple[Symbol, Symbol] | None:
    """The two sizes of an equation of `equal_or_one`; None for another equation."""
    match symbols(e.left):
        case a, b if (e.left, e.right) == equal_or_one(a, b):
            return a, b
    return None


def equations(pairs: Iterable[tuple[Dim, Dim]]) -> list[Equation]:
    """The equations of these pairs that are not always true, each once."""
    pairs_ = (Equation(a, b) for a, b in pairs)
    return list(dict.fromkeys(e for e in pairs_ if e.holds is not True))


def of_one(conditions: Iterable[Equation], free: Iterable[str]) -> dict[str, list[Equation]]:
    """For each symbol of `free` the equations in it alone, if there are any."""
    out: dict[str, list[Equation]] = {}
    names = {frozenset((n,)): n for n in free}
    for e in conditions:
        if (name := names.get(e.names)) is not None:
            out.setdefault(name, []).append(e)
    return out


# ---- remainders --------------------------------------------------------------------------------

def with_steps(conditions: Iterable[Equation], free: Mapping[str, Symbol]) -> dict[str, Symbol]:
    """The symbols of `free` whose step the equations determine, by name.

    For each symbol, the equations in it alone must hold for one remainder of some divisor, and for
    no other. Raises InputError GT0317 if they hold for none.
    """
    out = {}
    for name, rows in of_one(conditions, free).items():
        stepped = _stepped(free[name], [e.left - e.right for e in rows])
        if stepped is not None and stepped != free[name]:
            out[name] = stepped
    return out


def _stepped(s: Symbol, gaps: list[Dim]) -> Symbol | None:
    period = period_of(s, gaps)
    good = None if period is None else remainders(s, gaps, period)
    if period is None or good is None:
        return None
    if not good:
        raise InputError("GT0317", f"no size {s.name} makes {text(gaps[0])} 0",
                         hint="the model adds or joins tensors whose sizes are never equal")
    step = period // len(good)
    if [r - good[0] for r in good] != list(range(0, period, step)):
        return None
    return Symbol(s.name, s.lo, s.hi, s.extent, step, good[0] % step)


def period_of(s: Symbol, gaps: Sequence[Dim]) -> int | None:
    """A number of sizes after which it repeats whether these differences are 0; None if that is
    not known, or long."""
    period = math.lcm(s.step, *(s.step * (_period(g) or _LONGEST) for g in gaps))
    return None if period > _LONGEST else period


def remainders(s: Symbol, gaps: Sequence[Dim], period: int) -> list[int] | None:
    """The remainders of the sizes for which all differences are 0; None if for some remainder that
    is not the same for all sizes."""
    good = []
    for r in range(s.offset, period, s.step):
        lo, hi = s.lo, s.hi
        turns = symbol("k", None if lo is None else -((r - lo) // period),
                       None if hi is None else (hi - r) // period)
        answers = [known(substitute(g, {s.name: turns * period + r}), "==", 0) for g in gaps]
        if None in answers and False not in answers:
            return None
        if all(answers):
            good.append(r)
    return good


def _period(d: Dim) -> int | None:
    """The period of d as a function of its atom, apart from a polynomial part; None if that is
    not known."""
    period = 1
    for mono, _ in terms_of(d):
        for atom, _ in mono:
            if isinstance(atom, Call):
                inner = _period(atom.a), _period(atom.b)
                by = 1 if atom.fn in ("min", "max") else atom.b
                if None in inner or not isinstance(by, int):
                    return None
                period = math.lcm(period, math.lcm(inner[0] or 1, inner[1] or 1) * by)
                if period > _LONGEST:
                    return None
    return period


# ---- names of one size -------------------------------------------------------------------------

def solved(conditions: Iterable[Equation], free: Sequence[str]) -> dict[str, Dim]:
    """The values of symbols of `free` that the equations determine, by name: of `N == M`, M is N.

    Of several symbols the last one in `free` whose bounds always hold is replaced (of `P == M - S`,
    M is P + S), or else the last one. The results do not mention a symbol that has one itself.
    Raises InputError GT0317 for equations that never hold.
    """
    out: dict[str, Dim] = {}
    for e in conditions:
        now = e.under(out)
        if now.holds is False:
            raise InputError("GT0317", f"{e} never holds", hint="the sizes that the model gives to "
                             "one operation differ, whatever the inputs are")
        row = None if now.holds else _solved(now.left - now.right, free)
        if row is not None:
            out = {k: substitute(d, {row[0]: row[1]}) for k, d in out.items()} | {row[0]: row[1]}
    return out


def _solved(gap: Dim, free: Sequence[str]) -> tuple[str, Dim] | None:
    """(name, dim) if gap = 0 says the size of one symbol."""
    gap = from_terms({m: c // math.gcd(*(c for _, c in terms_of(gap))) for m, c in terms_of(gap)})
    inside = {s.name: s for s in symbols(gap)}
    usual: tuple[str, Dim] | None = None
    for name in reversed([n for n in free if n in inside]):
        s, slope = inside[name], coefficient(gap, name)
        if slope not in (1, -1):
            continue
        atoms = substitute(gap, {name: s.offset}) * -slope
        value = atoms * s.step + s.offset
        low, high = bounds(value)
        above = s.lo is None or (low is not None and low >= s.lo)
        below = s.hi is None or (high is not None and high <= s.hi)
        if above and below:
            return name, value
        if usual is None and (high is None or s.lo is None or high >= s.lo) and (
                low is None or s.hi is None or low <= s.hi):
            usual = name, value
    return usual


_RANGE = 4096  # sizes of a bounded symbol that are tried one by one


def simplified(conditions: Iterable[Equation], free: Mapping[str, Symbol]) -> list[Equation]:
    """Conditions that hold for the same sizes as `conditions`, without any that others imply.

    `free` are the open sizes. A condition on several of them is kept as it is, or left out where
    it always holds if a part is the number that another condition says: `B*(H//8) == B` beside
    `H//8 == 1`.
    """
    rows = equations((e.left, e.right) for e in conditions)
    alone = [e for name, about in of_one(rows, free).items() for e in _shortest(free[name], about)]
    numbers = dict(filter(None, map(_number_of, alone)))
    return alone + [e for e in rows if (len(e.names) != 1 or not e.names <= free.keys())
                    and _with_numbers(e.left - e.right, numbers) != 0]


def _number_of(e: Equation) -> tuple[Atom, int] | None:
    """A part of a size and the number that the condition says it is; None if it says another
    thing."""
    terms = dict(terms_of(e.left - e.right))
    number = terms.pop((), 0)
    match *terms.items(),:
        case ((((atom, 1),), 1 | -1 as factor),):
            return atom, -number * factor
    return None


def _with_numbers(d: Dim, numbers: Mapping[Atom, int]) -> Dim:
    """d with these factors of its terms replaced."""
    return sum((product([coeff, *(numbers.get(atom, symbol_of(atom)) for atom, power in mono
                                  for _ in range(power))]) for mono, coeff in terms_of(d)), 0)


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
