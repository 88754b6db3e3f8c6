"""What a run costs: flops of an expression, the bytes that a kernel moves; calls, bytes and memory
of the whole program.

The numbers are nominal, nothing is measured: each element that a kernel touches counts once, a
template touches whole buffers, and a loop at most one element in each iteration.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from graphtool.loops.ir import Apply, For, Load, Stmt, Store, Template
from graphtool.loops.liveness import lifetimes
from graphtool.loops.program import (
    SCRATCH,
    Buffer,
    Kernel,
    Program,
    Run,
    Step,
    Times,
    inner_steps,
    runs,
)
from graphtool.loops.pull import PExpr, Reduce
from graphtool.loops.walk import bodies, fold, loads, scoped, values
from graphtool.scalars.table import BY_NAME
from graphtool.symbolic import Dim, at_least_sizes, bounds, product, symbols

Side = dict[str, Dim | None]  # buffer → number of accesses in all iterations; None: unknown
# from this number of flops on, reading a value back is cheaper than computing it
LEAST_FLOPS = 8


def cost(e: PExpr, memo: dict[PExpr, int] | None = None) -> int:
    """Nominal flops of one evaluation, reductions multiplied out (unbounded extents count 64)."""
    return fold(e, _cost, {} if memo is None else memo)


def _cost(e: PExpr, parts: list[int]) -> int:
    match e:
        case Apply(fn):
            row = BY_NAME.get(fn)
            return (row.flops if row else 1) + sum(parts)
        case Reduce():
            size = bounds(product(d for _, d in e.iters))[1] or 64
            return size * (1 + sum(parts))
        case Load():
            return 1
        case _:
            return 0


def moved(run: Run, kernel: Kernel, buffers: Mapping[str, Buffer], known: frozenset[str]) -> Dim:
    """Bytes that a run moves, in the symbols `known`: the size of each buffer, or less if loops
    touch less of it.

    A buffer that is read and written counts twice, because it is both loaded and stored.
    """
    reads: Side = {}
    writes: Side = {}
    _count(kernel.body, known, (reads, writes))
    total: Dim = 0
    for name, param in zip(run.args, kernel.params, strict=True):
        b = buffers[name]
        for side in (reads, writes):
            size, times = b.size, side.get(param.name, 0)
            if times is not None and at_least_sizes(times) < at_least_sizes(size):
                size = times
            total = total + b.bytes_of(size)
    return total


def _count(body: tuple[Stmt, ...], known: frozenset[str], sides: tuple[Side, Side]) -> None:
    """Add the accesses of the statements. A template touches whole buffers; buffers that its hooks
    do not store are scratch, which each thread keeps in its cache."""
    def inner(s: Stmt, times: Dim | None) -> list[Dim | None]:
        if isinstance(s, For):
            open_ended = any(x.name not in known for x in symbols(s.extent))
            times = None if times is None or open_ended else times * s.extent
        return [None if isinstance(s, Template) else times] * len(bodies(s))

    reads, writes = sides
    start: Dim | None = 1
    for s, times in scoped(body, start, inner):
        for load in loads(*values(s)):
            _add(reads, load.buffer, times)
        match s:
            case Store():
                _add(writes, s.buffer, times)
            case Template():
                reads.update(dict.fromkeys(s.reads))
                writes.update(dict.fromkeys(() if s.hooks else s.writes))


def _add(side: Side, buffer: str, times: Dim | None) -> None:
    before = side.get(buffer, 0)
    side[buffer] = None if times is None or before is None else before + times


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
             for s, times in executions(program.steps, dims)), 0),
        program.arena, _workspace(program))


def executions(steps: Iterable[Step], dims: frozenset[str], times: Dim = 1
                ) -> Iterator[tuple[Run, Dim]]:
    """Every run in program order, and how often it is executed."""
    for s in steps:
        if isinstance(s, Run):
            yield s, times
        known = isinstance(s, Times) and {x.name for x in symbols(s.extent)} <= dims
        yield from executions(inner_steps(s), dims,
                               times * s.extent if isinstance(s, Times) and known else times)


def _workspace(program: Program) -> Dim:
    """The most bytes of scratch that are live at the same time, at the least sizes."""
    lives = lifetimes(program.steps)
    rooms = [(lives[b.name], b.bytes_of(b.size)) for b in program.buffers
             if b.label.startswith(SCRATCH) and b.name in lives]
    sums: list[Dim] = [sum((size for (first, last), size in rooms if first <= at <= last), 0)
                       for (at, _), _ in rooms]
    return max(sums, key=at_least_sizes, default=0)
