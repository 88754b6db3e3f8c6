"""The number of bytes that a run of a kernel moves: each element that it touches counts once.

It is nominal: a template touches whole buffers, a loop at most one element in each iteration.
"""

from __future__ import annotations

from collections.abc import Mapping

from graphtool.loops.ir import For, Stmt, Store, Template
from graphtool.loops.program import Buffer, Kernel, Run
from graphtool.loops.walk import bodies, loads, scoped, values
from graphtool.symbolic import Dim, at_least_sizes, symbols

Side = dict[str, Dim | None]  # buffer → number of accesses in all iterations; None: unknown


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
    """Add the accesses of the statements. A template touches whole buffers; those that its hooks
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
