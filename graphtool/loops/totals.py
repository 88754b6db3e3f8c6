"""What a whole run of a program costs: calls of kernels, bytes, and the arena with its workspace.

Nominal, like `traffic`: nothing is measured.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from graphtool.loops.liveness import lifetimes
from graphtool.loops.program import SCRATCH, Program, Run, Step, Times, inner_steps, runs
from graphtool.loops.traffic import moved
from graphtool.symbolic import Dim, at_least_sizes, symbols


@dataclass(frozen=True)
class Totals:
    """`calls` of kernels in the text of the program, of which `kernels` differ. `bytes` that a run
    moves; `arena` in bytes, of which at most `workspace` is the kernels' own at any time."""

    calls: int
    kernels: int
    bytes: Dim
    arena: Dim
    workspace: Dim


def totals(program: Program) -> Totals:
    """The totals of a program. What a branch or a `while` leaves open counts once; the body of a
    loop with a known trip count as often as it runs."""
    kernels = {k.name: k for k in program.kernels}
    buffers = {b.name: b for b in program.buffers}
    dims = frozenset(s.name for s in program.dims)
    called = list(runs(program.steps))
    return Totals(
        len(called), len({s.kernel for s in called}),
        sum((moved(s, kernels[s.kernel], buffers, dims) * times
             for s, times in _executions(program.steps, dims)), 0),
        program.arena, _workspace(program))


def _executions(steps: Iterable[Step], dims: frozenset[str], times: Dim = 1
                ) -> Iterator[tuple[Run, Dim]]:
    """Every run in program order, and how often it is executed."""
    for s in steps:
        if isinstance(s, Run):
            yield s, times
        known = isinstance(s, Times) and {x.name for x in symbols(s.extent)} <= dims
        yield from _executions(inner_steps(s), dims,
                               times * s.extent if isinstance(s, Times) and known else times)


def _workspace(program: Program) -> Dim:
    """The most bytes of scratch that are live at the same time, at the least sizes."""
    lives = lifetimes(program.steps)
    own = [(lives[b.name], b.bytes_of(b.size)) for b in program.buffers
           if b.label.startswith(SCRATCH) and b.name in lives]
    sums: list[Dim] = [sum((size for (first, last), size in own if first <= at <= last), 0)
                       for (at, _), _ in own]
    return max(sums, key=at_least_sizes, default=0)
