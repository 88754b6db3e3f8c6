"""The sizes of a run: found from the shapes of its inputs (`4*n + 1` is 9, so n is 2), and checked:
their bounds, their steps, and which of them must be equal.

Sizes that satisfy all equations are found by trying all values of one size for a few of the others.
An equation with quotients repeats after a number of values of each size, so that B·(K + 15) is a
multiple of 527 for some K among 527 adjacent ones, whatever B is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, islice, product

from graphtool.errors import InputError
from graphtool.symbolic.equations import Equation, period_of, solved
from graphtool.symbolic.poly import Call, Dim, Poly, Symbol, exact_quotient, terms_of
from graphtool.symbolic.terms import at_least, dim_of, divides, evaluate, substitute, symbols
from graphtool.symbolic.text import name_text

_SCANNED = 4096  # values of one size that are tried for the same values of others, at most
_TRIES = 16_384  # sizes of one group that are tried in all
_LEAST = 64  # at least: a difference is 0 somewhere, or everywhere after a period
_FEW = 10  # values of each of the others
_EACH = 4  # solutions of each group of sizes that depend on each other


def solutions(rows: Mapping[str, Symbol], requires: Iterable[Equation], about: Mapping[str, int]
              ) -> Iterator[dict[str, int]]:
    """Sizes that satisfy all equations, near `about`; none where none are found.

    Raises InputError GT0317 for equations that never hold.
    """
    requires = [e for e in requires if e.names <= rows.keys()]
    equal = solved(requires, list(rows))
    left = [e for e in (e.under(equal) for e in requires) if e.holds is None]
    sizes = {n: _near(rows[n], k) for n, k in about.items()}
    candidates = [list(islice(_of_group(names, conditions, rows, sizes), _EACH))
                  for names, conditions in _groups(left)]
    for i in range(max(map(len, candidates), default=1) if all(candidates) else 0):
        env = dict(sizes)
        for group in candidates:
            env |= group[i % len(group)]
        env |= {n: evaluate(d, env) for n, d in equal.items()}
        if not any(e.breach(env) for e in requires) and all(
                _fits(s, env[n]) for n, s in rows.items()):
            yield env


def _groups(rows: Iterable[Equation]) -> list[tuple[list[str], list[Equation]]]:
    """The equations by the sizes that depend on each other."""
    groups: list[tuple[set[str], list[Equation]]] = []
    for e in rows:
        names, equations = set(e.names), [e]
        for other in [g for g in groups if g[0] & names]:
            groups.remove(other)
            names, equations = names | other[0], [*other[1], *equations]
        groups.append((names, equations))
    return [(sorted(names), equations) for names, equations in groups]


def _of_group(names: Sequence[str], equations: Sequence[Equation], rows: Mapping[str, Symbol],
              about: Mapping[str, int]) -> Iterator[dict[str, int]]:
    tries = 0
    few = {n: list(islice(dict.fromkeys(_promising(rows[n], about[n], equations)), _FEW))
           for n in names}
    for scanned in reversed(names):
        others = [n for n in names if n != scanned]
        for values in product(*(few[n] for n in others)):
            env: dict[str, int] = dict(zip(others, values, strict=True))
            now = [e for e in (e.under(env) for e in equations) if e.holds is not True]
            if any(e.holds is False for e in now):
                continue
            period = period_of(rows[scanned], [e.left - e.right for e in now])
            count = max(period or _SCANNED, _LEAST)
            line = islice(_line(rows[scanned], about[scanned]), count)
            for k in chain(_exact(rows[scanned], now), line):
                tries += 1
                if tries > _TRIES:
                    return
                if not any(e.breach({scanned: k}) for e in now):
                    yield env | {scanned: k}
                    break


def _exact(s: Symbol, equations: Iterable[Equation]) -> Iterator[int]:
    """The values of a size for which an equation that is a line in it holds: 512 of 2·K = 1024."""
    found = (solve(e.left - e.right, s, 0) for e in equations)
    return (k for k in found if k is not None and _fits(s, k))


def _promising(s: Symbol, n: int, equations: Iterable[Equation]) -> Iterator[int]:
    """Values of a size: n, 1, its greatest, and multiples of the factors of the numbers in the
    equations, its own among them."""
    numbers = [*range(n, n + 4 * s.step, s.step), _near(s, 1), s.hi or n]
    for m in sorted({m for e in equations for m in (*_numbers(e.left), *_numbers(e.right))}):
        for f in (d for d in range(min(m, _SCANNED), 1, -1) if m % d == 0):
            line = range(at_least(s, f), f * s.step + f + 1, s.step)
            numbers += [k for k in line if k % f == 0][:1]
    return (k for k in numbers if _fits(s, k))


def _line(s: Symbol, n: int) -> Iterator[int]:
    """Values of a size: from n on, then those below."""
    last = n + _SCANNED * s.step if s.hi is None else min(s.hi, n + _SCANNED * s.step)
    low = at_least(s, s.lo or 0)
    return chain(range(n, last + 1, s.step), range(n - s.step, low - 1, -s.step))


def _near(s: Symbol, n: int) -> int:
    """A value of the size that is n, or little more if it can be, else less."""
    least = at_least(s, n)
    return least if s.hi is None or least <= s.hi else s.hi - (s.hi - s.offset) % s.step


def _fits(s: Symbol, n: int) -> bool:
    return n >= (s.lo or 0) and (s.hi is None or n <= s.hi) and (n - s.offset) % s.step == 0


def _numbers(d: Dim) -> Iterator[int]:
    """The divisors in a size, and its term without a symbol."""
    for mono, factor in terms_of(d):
        if not mono and abs(factor) > 1:
            yield abs(factor)
        for atom, _ in mono:
            if isinstance(atom, Call):
                if isinstance(atom.b, int):
                    yield atom.b
                yield from _numbers(atom.a)
                yield from _numbers(atom.b)


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
        if named <= known.keys() and (breach := e.breach(known)):
            raise InputError("GT0516", breach, hint=WHY)


def sample_sizes(rows: Mapping[str, Symbol], requires: Iterable[Equation],
                 given: Mapping[str, int], about: int = 3) -> dict[str, Dim]:
    """Sizes that a run may have: those given, others near `about` that satisfy all conditions."""
    out: dict[str, Dim] = {}
    for name, row in rows.items():
        size = at_least(row, about)
        size = size if row.hi is None or size <= row.hi else at_least(row, row.lo or 0)
        out[name] = given.get(name, size)
    requires = list(requires)
    equal = solved(requires, [n for n in rows if n not in given])
    near = out | {name: substitute(d, out) for name, d in equal.items()}
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
    terms = line(d, s)
    steps = exact_quotient(n - terms[0], terms[1]) if terms else None
    return terms[2] + steps * terms[3] if terms and isinstance(steps, int) else None


def line(d: Dim, s: Symbol) -> tuple[int, int, int, int] | None:
    """(at, slope, first, step) where d is a line in s: it is `at` where s is `first`, and `slope`
    more for each `step` of s. None if it is not."""
    if any(isinstance(atom, Call) for mono, _ in terms_of(d) for atom, _ in mono):
        return None  # nor can one whose divisor is s be computed where s is 0
    at = substitute(d, {s.name: s.offset})
    slope = substitute(d, {s.name: s.offset + s.step}) - at
    if not isinstance(at, int) or not isinstance(slope, int) or not slope:
        return None
    straight = (dim_of(s) - s.offset) * slope == (d - at) * s.step
    return (at, slope, s.offset, s.step) if straight else None


def _is_plain(d: Dim) -> bool:
    names = symbols(d)
    return len(names) == 1 and d == dim_of(names[0])
