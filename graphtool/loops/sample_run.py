"""Sizes of the dims for a run that shows something: small ones for which nothing is empty."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Set

from graphtool.errors import InputError
from graphtool.loops.ir import For
from graphtool.loops.program import Program
from graphtool.loops.walk import statements
from graphtool.symbolic import Dim, check_required, evaluate, sample_sizes, symbols

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
