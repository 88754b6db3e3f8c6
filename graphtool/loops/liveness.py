"""When each buffer is in use, counted in runs in program order: for the memory plan and its
verifier."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import accumulate

from graphtool.loops.program import Bind, Branch, Program, Repeat, Run, Step, Times

Life = tuple[int, int]  # the first and the last position that touches a buffer


def lifetimes(steps: Iterable[Step]) -> dict[str, Life]:
    """The first and last use of each buffer; a buffer that is used both inside and outside of a
    loop is live for the whole loop."""
    walk = _Walk()
    walk.steps(steps)
    liveness = walk.liveness
    for first, last in walk.loops:  # inner loops come before the loops around them
        for name, (a, b) in liveness.items():
            if a <= last and b >= first and (a < first or b > last):
                liveness[name] = (min(a, first), max(b, last))
    return liveness


def places_of_runs(steps: Iterable[Step]) -> list[int]:
    """The position of each run in program order, as `lifetimes` counts them."""
    walk = _Walk()
    walk.steps(steps)
    return walk.runs


def most_at_once(sized: Iterable[tuple[Life, int]]) -> int:
    """The largest sum of the sizes that are live at the same time."""
    changes: dict[int, int] = {}
    for (first, last), size in sized:
        changes[first] = changes.get(first, 0) + size
        changes[last + 1] = changes.get(last + 1, 0) - size
    return max(accumulate(changes[at] for at in sorted(changes)), default=0)


def covered(spans: Iterable[tuple[int, int]]) -> int:
    """The bytes of buffers, of which each has an offset and a size; shared ones count once."""
    total, end = 0, 0
    for at, size in sorted(spans):
        total += max(0, at + size - max(at, end))
        end = max(end, at + size)
    return total


def most_live(program: Program) -> int | None:
    """The most bytes of the arena that are in use at the same time; None if sizes are symbolic."""
    liveness = lifetimes(program.steps)
    spans: list[tuple[Life, int, int]] = []
    for b in program.buffers:
        if b.space == "arena" and b.name in liveness:
            size, at = b.bytes_of(b.size), b.offset
            if not isinstance(size, int) or not isinstance(at, int):
                return None
            spans.append((liveness[b.name], at, size))
    starts = {life[0] for life, *_ in spans}
    return max((covered((at, size) for (first, last), at, size in spans if first <= t <= last)
                for t in starts), default=0)


class _Walk:
    def __init__(self) -> None:
        self.at = 0
        self.liveness: dict[str, Life] = {}
        self.loops: list[Life] = []
        self.runs: list[int] = []

    def touch(self, names: Iterable[str]) -> None:
        for name in names:
            self.liveness[name] = (self.liveness.get(name, (self.at, 0))[0], self.at)
        self.at += 1

    def steps(self, steps: Iterable[Step]) -> None:
        for s in steps:
            match s:
                case Run():
                    self.runs.append(self.at)
                    self.touch(s.args)
                case Bind():
                    self.touch([s.buffer])
                case Branch():
                    self.touch([s.pred])
                    self.steps(s.then)
                    self.steps(s.orelse)
                    # a thread may still read it while others are inside the branch
                    self.touch([s.pred])
                case Repeat():
                    first = self.at
                    self.touch([s.pred])
                    self.steps(s.cond)
                    self.touch([s.pred])
                    self.steps(s.body)
                    self.touch([s.pred])  # read again at the top
                    self.loops.append((first, self.at - 1))
                case Times():
                    first = self.at
                    self.steps(s.body)
                    self.loops.append((first, self.at - 1))
