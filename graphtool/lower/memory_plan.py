"""The memory plan: an offset in one arena for each buffer, and barriers between the steps.

There is a barrier between two steps if one needs memory that the other writes. The emitted driver
itself waits around branches and loops; only runs between them are analysed here.
"""

from __future__ import annotations

import math
from bisect import insort
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from graphtool.loops.liveness import Life, most_at_once
from graphtool.loops.program import Buffer, Kernel, Run, Step, map_inner
from graphtool.loops.sharing import NEVER, Sharing
from graphtool.lower.kernel import touched
from graphtool.lower.views import Storage
from graphtool.symbolic import Dim, bounds, exact_quotient, text

ALIGN = 64
PAGE, SKEW = 4096, 9 * 64
ROUNDS = 60  # the greatest number of orders that are tried
WORK = 3_000_000  # the greatest number of pairs of buffers that all attempts compare
STRETCH = 64  # number of program positions in a stretch; assigned buffers are looked up by stretch


def plan_arena(buffers: Mapping[str, Storage], liveness: Mapping[str, Life], align: int = ALIGN,
               sharing: Mapping[tuple[str, str], Sharing] | None = None
               ) -> tuple[dict[str, Dim], Dim]:
    """The offset of each buffer, and the arena's size, both in bytes and multiples of `align`.

    `sharing` says which operands and results of a step may share memory, if all sizes are fixed.
    Sizes that are multiples of one symbolic factor share a region, which is planned in units of
    that factor. The regions follow each other; the one with the fixed sizes is first.
    """
    regions: dict[Dim, dict[str, int]] = {1: {}}
    for name, b in buffers.items():
        if b.space == "arena" and name in liveness:
            factor, count = _in_units(b.size * b.dtype.bytes)
            regions.setdefault(factor, {})[name] = _room(count, align)
    offsets: dict[str, Dim] = {}
    base: Dim = 0
    for factor in sorted(regions, key=lambda d: (d != 1, text(d))):
        at, size = (_shared_region(regions[factor], liveness, sharing, align)
                    if sharing and len(regions) == 1 else _region(regions[factor], liveness))
        offsets |= {n: base + factor * o for n, o in at.items()}
        base = base + factor * size
    return offsets, base


def _room(count: int, align: int) -> int:
    """The bytes that a buffer takes; without a cache, pages need not be told apart."""
    size = -(-count // align) * align
    return size + SKEW if align == ALIGN and size >= 4 * PAGE and size % PAGE == 0 else size


def _in_units(size: Dim) -> tuple[Dim, int]:
    """The factors of a size = factor · count, with the greatest integer count."""
    if isinstance(size, int):
        return 1, size
    count = math.gcd(*(coeff for _, coeff in size.terms))
    factor = exact_quotient(size, count)
    assert factor is not None
    return factor, count


def _region(counts: Mapping[str, int], liveness: Mapping[str, Life]) -> tuple[dict[str, int], int]:
    """Offsets within one region, and its size, in units.

    While the region is larger than the most that is live at once, the buffer with the highest end
    is assigned earlier in the next attempt, so that others cannot block it.
    """
    order = sorted(counts, key=lambda n: (-counts[n], liveness[n], n))
    least = most_at_once((liveness[n], count) for n, count in counts.items())
    best, size = _assigned(order, counts, liveness)
    offsets, tried = best, size
    for _ in range(min(ROUNDS, WORK // (len(counts) ** 2 + 1))):
        if size <= least:
            break
        top = max(order, key=lambda n: (offsets[n] + counts[n], n))
        order.remove(top)
        order.insert(0, top)
        offsets, tried = _assigned(order, counts, liveness)
        if tried < size:
            best, size = offsets, tried
    return best, size


def _shared_region(counts: Mapping[str, int], liveness: Mapping[str, Life],
                   sharing: Mapping[tuple[str, str], Sharing], align: int
                   ) -> tuple[dict[str, int], int]:
    """As `_region`, where results may overlap their operands."""
    least, best, size = max(counts.values(), default=0), dict[str, int](), NEVER
    rounds = max(1, min(ROUNDS, WORK // (len(counts) ** 2 + 1)))
    # of equal ones the operand first, which suits results in its place, or the result first
    for sign in (1, -1):
        order = sorted(counts, key=lambda n: (-counts[n], sign * liveness[n][0], n))
        for _ in range(rounds):
            if size <= least:
                break
            offsets: dict[str, int] = {}
            for name in order:
                offsets[name] = _lowest_shared(name, counts, liveness, sharing, align, offsets)
            tried = max((at + counts[n] for n, at in offsets.items()), default=0)
            if tried < size:
                best, size = offsets, tried
            top = max(order, key=lambda n: (offsets[n] + counts[n], n))
            order.remove(top)
            order.insert(0, top)
    return best, size


def _lowest_shared(name: str, counts: Mapping[str, int], liveness: Mapping[str, Life],
                   sharing: Mapping[tuple[str, str], Sharing], align: int,
                   offsets: Mapping[str, int]) -> int:
    """The lowest place that is free for as long as the buffer is live, or may be shared with those
    that are assigned."""
    size, life = counts[name], liveness[name]
    closed: list[tuple[int, int, int]] = []  # no place between two, but for the third one
    for other, at in offsets.items():
        first, last = liveness[other]
        if last < life[0] or life[1] < first:
            continue
        low, high, same = at - size, at + counts[other], NEVER
        if how := sharing.get((other, name)):  # it is the result
            high_result = at - -(-how.behind // align) * align
            closed.append((max(low, high_result), high, at if how.same else NEVER))
            continue
        if how := sharing.get((name, other)):  # it is the operand
            high, same = min(high, at + -(-how.behind // align) * align), at if how.same else same
        closed.append((low, high, same))
    places = sorted({0, *(h for _, h, _ in closed), *(s for *_, s in closed if s < NEVER)})
    return next(p for p in places if p >= 0 and all(
        not low < p < high or p == same for low, high, same in closed))


def _assigned(order: Sequence[str], counts: Mapping[str, int],
              liveness: Mapping[str, Life]) -> tuple[dict[str, int], int]:
    """The offset of each buffer, as low as possible in this order, and the highest end.

    Assigned buffers are listed by stretches of the program, so a buffer is compared only with those
    of its own stretches.
    """
    assigned: defaultdict[int, list[tuple[int, int, str]]] = defaultdict(list)
    offsets: dict[str, int] = {}
    for name in order:
        first, last = liveness[name]
        stretches = range(first // STRETCH, last // STRETCH + 1)
        if len(stretches) == 1:
            rivals: Iterable[tuple[int, int, str]] = assigned[stretches[0]]
        else:
            rivals = sorted({p for t in stretches for p in assigned[t]})
        at = _lowest(counts[name], liveness[name], rivals, liveness)
        offsets[name] = at
        for t in stretches:
            insort(assigned[t], (at, at + counts[name], name))
    return offsets, max((at + counts[n] for n, at in offsets.items()), default=0)


def _lowest(size: int, life: Life, assigned: Iterable[tuple[int, int, str]],
            liveness: Mapping[str, Life]) -> int:
    """The lowest gap that is free for as long as the buffer is live."""
    at = 0
    for start, end, other in assigned:
        first, last = liveness[other]
        if last < life[0] or life[1] < first:
            continue
        if start - at >= size:
            return at
        at = max(at, end)
    return at


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
            if isinstance(s, Run):
                plain.append(s)
                continue
            out += [*self.runs(plain), map_inner(s, self.steps)]
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
