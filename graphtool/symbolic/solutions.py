"""Sizes that satisfy equations, found by trying: all values of one size for a few of the others.

An equation with quotients repeats after a number of values of each size, so that B·(K + 15) is a
multiple of 527 for some K among 527 adjacent ones, whatever B is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice, product

from graphtool.symbolic.equations import Equation, period_of, solved
from graphtool.symbolic.poly import Call, Dim, Symbol, terms_of
from graphtool.symbolic.steps import at_least
from graphtool.symbolic.terms import evaluate

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
    made = solved(requires, list(rows))
    left = [e for e in (e.under(made) for e in requires) if e.holds is None]
    sizes = {n: _near(rows[n], k) for n, k in about.items()}
    found = [list(islice(_of_group(names, own, rows, sizes), _EACH))
             for names, own in _groups(left)]
    for i in range(max(map(len, found), default=1) if all(found) else 0):
        env = dict(sizes)
        for group in found:
            env |= group[i % len(group)]
        env |= {n: evaluate(d, env) for n, d in made.items()}
        if not any(e.breach(env) for e in requires) and all(
                _fits(s, env[n]) for n, s in rows.items()):
            yield env


def _groups(rows: Iterable[Equation]) -> list[tuple[list[str], list[Equation]]]:
    """The equations by the sizes that depend on each other."""
    groups: list[tuple[set[str], list[Equation]]] = []
    for e in rows:
        names, own = set(e.names), [e]
        for other in [g for g in groups if g[0] & names]:
            groups.remove(other)
            names, own = names | other[0], [*other[1], *own]
        groups.append((names, own))
    return [(sorted(names), own) for names, own in groups]


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
            for k in islice(_line(rows[scanned], about[scanned]), count):
                tries += 1
                if tries > _TRIES:
                    return
                if not any(e.breach({scanned: k}) for e in now):
                    yield env | {scanned: k}
                    break


def _promising(s: Symbol, n: int, equations: Iterable[Equation]) -> Iterator[int]:
    """Values of a size: n, 1, its greatest, and multiples of what the numbers in the equations are
    products of."""
    found = [*range(n, n + 4 * s.step, s.step), _near(s, 1), s.hi or n]
    for m in sorted({m for e in equations for m in (*_numbers(e.left), *_numbers(e.right))}):
        for f in (d for d in range(min(m, _SCANNED), 1, -1) if m % d == 0):
            line = range(at_least(s, f), f * s.step + f + 1, s.step)
            found += [k for k in line if k % f == 0][:1]
    return (k for k in found if _fits(s, k))


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
    """The numbers by which parts of a size are divided."""
    for mono, _ in terms_of(d):
        for atom, _ in mono:
            if isinstance(atom, Call):
                if isinstance(atom.b, int):
                    yield atom.b
                yield from _numbers(atom.a)
                yield from _numbers(atom.b)
