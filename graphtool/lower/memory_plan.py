"""The memory plan: an offset in one arena for each buffer."""

from __future__ import annotations

import math
from bisect import insort
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from graphtool.loops.liveness import Life, most_at_once
from graphtool.lower.storage import Storage
from graphtool.symbolic import Dim, exact_quotient, text

ALIGN = 64
PAGE, SKEW = 4096, 9 * 64
ROUNDS = 60  # the greatest number of orders that are tried
WORK = 3_000_000  # the greatest number of pairs of buffers that all attempts compare
STRETCH = 64  # number of program positions in a stretch, by which assigned buffers are looked up


def plan_arena(buffers: Mapping[str, Storage], liveness: Mapping[str, Life]) -> tuple[
        dict[str, Dim], Dim]:
    """The offset of each buffer, and the arena's size, both in bytes.

    Sizes that are multiples of one symbolic factor share a region, which is planned in units of
    that factor. The regions follow each other; the one with the fixed sizes is first.
    """
    regions: dict[Dim, dict[str, int]] = {1: {}}
    for name, b in buffers.items():
        if b.space == "arena" and name in liveness:
            factor, count = _in_units(b.size * b.dtype.bytes)
            regions.setdefault(factor, {})[name] = _room(count)
    offsets: dict[str, Dim] = {}
    base: Dim = 0
    for factor in sorted(regions, key=lambda d: (d != 1, text(d))):
        at, size = _region(regions[factor], liveness)
        offsets |= {n: base + factor * o for n, o in at.items()}
        base = base + factor * size
    return offsets, base


def _room(count: int) -> int:
    size = -(-count // ALIGN) * ALIGN
    return size + SKEW if size >= 4 * PAGE and size % PAGE == 0 else size


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
