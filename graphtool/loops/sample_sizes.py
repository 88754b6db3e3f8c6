"""Sizes of a program's dims: for a run that shows something (`sample_run`: small ones for which
nothing is empty), and for the check of the memory that it touches (`tried`)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Set
from itertools import chain

from graphtool.errors import InputError
from graphtool.loops.ir import For
from graphtool.loops.program import ENDLESS, Bind, Program, Times, every_step
from graphtool.loops.verify_kernel import fault
from graphtool.loops.walk import statements
from graphtool.symbolic import (
    Dim,
    Equation,
    Symbol,
    at_least,
    check_required,
    evaluate,
    sample_sizes,
    solved,
    symbols,
)
from graphtool.symbolic.checks import solutions
from graphtool.symbolic.equations import of_one

_MOST = 256  # the greatest size that is tried


def sample_run(program: Program) -> dict[str, Dim]:
    """Small sizes for which every buffer has elements and every loop an iteration.

    A size may be so small that a pooling leaves nothing: the mean of that is NaN. If no sizes give
    each loop an iteration, as of a loop over full blocks and one over the rest, the buffers alone
    count; if none do that, the least sizes are taken.
    """
    names = {s.name for s in program.dims}
    buffers = _open((b.size for b in program.buffers), names)
    loops = _open((s.extent for k in program.kernels for s in statements(k.body)
                   if isinstance(s, For)), names)
    for wanted in (buffers | loops, buffers):
        for about in range(1, _MOST + 1):
            if _fit(program, sizes := _sample(program, {}, about), wanted):
                return _reduced(program, sizes, about, wanted)
    return _sample(program, {}, 1)


def _open(counts: Iterable[Dim], names: Set[str]) -> Set[Dim]:
    """The counts that only the dims of these names decide."""
    return {c for c in counts if not isinstance(c, int) and {s.name for s in symbols(c)} <= names}


def _reduced(program: Program, sizes: dict[str, Dim], about: int,
             wanted: Collection[Dim]) -> dict[str, Dim]:
    """The sizes, with each dim that need not be so large at its least."""
    kept: dict[str, int] = {}
    for name, least in _sample(program, {}, 1).items():
        if isinstance(least, int):
            smaller = _sample(program, kept | {name: least}, about)
            if _fit(program, smaller, wanted):
                sizes, kept[name] = smaller, least
    return sizes


def _sample(program: Program, given: dict[str, int], about: int) -> dict[str, Dim]:
    return sample_sizes({s.name: s for s in program.dims}, program.requires, given, about)


def _fit(program: Program, sizes: dict[str, Dim], wanted: Collection[Dim]) -> bool:
    """Whether a run may have the sizes, and each count is 1 or more."""
    try:
        check_required(program.requires, sizes)
    except InputError:
        return False
    known = {n: d for n, d in sizes.items() if isinstance(d, int)}
    return all(evaluate(c, known) > 0 for c in wanted)


LARGE = 1000  # a size that is tried where a dim has no largest
NEAR = 4096  # sizes that are tried of a dim with a condition


def tried(program: Program) -> Iterator[dict[str, int]]:
    """Some sizes of the dims that satisfy what the program requires of them: all small, all large,
    and between; with the sizes that a run computes, and the counters of its loops.

    Raises InputError GT0376 where no sizes are found that satisfy the conditions.
    """
    seen = list[dict[str, int]]()
    for env in _given(program):
        for largest in (False, True):
            full = dict(env)
            for s in every_step(program.steps):
                if isinstance(s, Bind):
                    low, most = s.size.lo or 0, evaluate(s.most, full)
                    most = LARGE if most >= ENDLESS else most
                    full[s.size.name] = max(low, most) if largest else low
                elif isinstance(s, Times):
                    extent = evaluate(s.extent, full)
                    full[s.counter.name] = max(extent - 1, 0) if largest else 0
            if full not in seen:
                seen.append(full)
                yield full
    if not seen:
        raise fault("GT0376", "no sizes are found that satisfy what the program requires: "
                              + ", ".join(map(str, program.requires)))


def _given(program: Program) -> Iterator[dict[str, int]]:
    """Sizes of the dims that satisfy all conditions."""
    dims = {s.name: s for s in program.dims}
    equal = solved(program.requires, list(dims))
    lows = {n: s.lo or 0 for n, s in dims.items()}
    highs = {n: LARGE + 7 * i if s.hi is None else s.hi for i, (n, s) in enumerate(dims.items())}
    wanted = (lows, {n: lo + 1 for n, lo in lows.items()},
              {n: lo + 5 + i for i, (n, lo) in enumerate(lows.items())},
              {n: max(hi - dims[n].step + 1, lows[n]) for n, hi in highs.items()})
    conditions = of_one(program.requires, dims)
    near = ({n: next(_near(s, min(sizes[n], highs[n]), conditions.get(n, [])), 0)
             for n, s in dims.items()} for sizes in wanted)
    for sizes in near:
        env = sizes | {n: evaluate(d, sizes) for n, d in equal.items()}
        if _allowed(env, dims, program.requires):
            yield env
    if any(len(e.names) > 1 for e in program.requires):
        for about in wanted[1:3]:
            yield from solutions(dims, program.requires, about)


def _near(s: Symbol, n: int, rows: Iterable[Equation]) -> Iterator[int]:
    """Values of a dim that satisfy the conditions on it alone: from n on, then those below n."""
    start = at_least(s, n)
    above = range(start, min(ENDLESS if s.hi is None else s.hi, start + NEAR * s.step) + 1, s.step)
    below = range(start - s.step, max((s.lo or 0) - 1, start - NEAR * s.step), -s.step)
    return (k for k in chain(above, below) if not any(e.breach({s.name: k}) for e in rows))


def _allowed(env: Mapping[str, int], dims: Mapping[str, Symbol], rows: Iterable[Equation]) -> bool:
    return not any(e.breach(env) for e in rows) and all(
        env[n] >= (s.lo or 0) and (s.hi is None or env[n] <= s.hi) for n, s in dims.items())
