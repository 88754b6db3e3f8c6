"""Sets barriers: between two steps if one needs memory that the other writes.

The emitted driver itself waits around branches and loops; only runs between them are analysed here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from graphtool.loops.program import Bind, Branch, Buffer, Kernel, Repeat, Run, Step, Times
from graphtool.lower.kernel import touched
from graphtool.symbolic import Dim, bounds


class Barriers:
    """Sets the barriers after the runs of a program's steps."""

    def __init__(self, kernels: Sequence[Kernel], buffers: Mapping[str, Buffer]) -> None:
        self.kernels, self.buffers = {k.name: k for k in kernels}, buffers
        self.read = {k.name: touched(k.body)[1] for k in kernels}

    def steps(self, steps: Sequence[Step]) -> tuple[Step, ...]:
        """The steps with their barriers set, in branches and loops too."""
        out: list[Step] = []
        plain: list[Run] = []
        for s in steps:
            match s:
                case Run():
                    plain.append(s)
                    continue
                case Bind():
                    pass
                case Branch():
                    s = replace(s, then=self.steps(s.then), orelse=self.steps(s.orelse))
                case Repeat():
                    s = replace(s, cond=self.steps(s.cond), body=self.steps(s.body))
                case Times():
                    s = replace(s, body=self.steps(s.body))
            out += [*self.runs(plain), s]
            plain = []
        return (*out, *self.runs(plain))

    def runs(self, plain: Sequence[Run]) -> list[Run]:
        """Consecutive runs with their barriers set."""
        effects = [self.effects(r) for r in plain]
        wait = barriers([r for r, _ in effects], [w for _, w in effects], self.buffers)
        return [replace(r, barrier=b) for r, b in zip(plain, wait, strict=True)]

    def effects(self, run: Run) -> tuple[frozenset[str], frozenset[str]]:
        """The buffers that a run reads and writes. A window may be read from the buffer that is
        written."""
        kernel = self.kernels[run.kernel]
        pairs = list(zip(run.args, kernel.params, strict=True))
        return (frozenset(a for a, p in pairs if p.name in self.read[kernel.name]),
                frozenset(a for a, p in pairs if not p.const))


def barriers(reads: Sequence[frozenset[str]], writes: Sequence[frozenset[str]],
             buffers: Mapping[str, Buffer]) -> list[bool]:
    """For each step, whether threads must wait after it.

    Two steps conflict when one writes memory that the other touches. Writes of several steps to one
    buffer do not conflict: every element is written once.
    """
    out = [False] * len(reads)
    since_reads: set[str] = set()
    since_writes: set[str] = set()
    for i, (r, w) in enumerate(zip(reads, writes, strict=True)):
        conflict = (_meet(r, since_writes, buffers, True) or _meet(w, since_reads, buffers, True)
                    or _meet(w, since_writes, buffers, False))
        if conflict and i:
            out[i - 1] = True
            since_reads, since_writes = set(), set()
        since_reads |= r
        since_writes |= w
    return out


def _meet(a: frozenset[str], b: set[str], buffers: Mapping[str, Buffer], same: bool) -> bool:
    """Whether a buffer of a overlaps one of b in memory; `same` counts a buffer with itself."""
    if same and a & b:
        return True
    for x in a:
        for y in b:
            if x != y and _overlap(buffers[x], buffers[y]):
                return True
    return False


def _overlap(x: Buffer, y: Buffer) -> bool:
    if x.space != "arena" or y.space != "arena":
        return False  # the caller's buffers and the weights are apart
    size_x, size_y = x.size * x.dtype.bytes, y.size * y.dtype.bytes
    apart = _certainly(x.offset + size_x, y.offset) or _certainly(y.offset + size_y, x.offset)
    return not apart


def _certainly(a: Dim, b: Dim) -> bool:
    """Whether a <= b for all sizes."""
    hi = bounds(a - b)[1]
    return hi is not None and hi <= 0
