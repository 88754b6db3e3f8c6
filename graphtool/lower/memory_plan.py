"""The memory plan: an offset in one arena for each buffer."""

from __future__ import annotations

import math
from bisect import insort
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from graphtool.loops.liveness import Life, most_at_once
from graphtool.lower.buffer_assignment import Storage
from graphtool.symbolic import Dim, exact_quotient, text

ALIGN = 64
PAGE, SKEW = 4096, 9 * 64
ROUNDS = 60  # orders that are tried at most
WORK = 3_000_000  # and pairs of buffers that all of them look at
STRETCH = 64  # positions of a program that placed buffers are kept by


def plan_arena(buffers: Mapping[str, Storage], lives: Mapping[str, Life]) -> tuple[
        dict[str, Dim], Dim]:
    """Offsets in bytes and the arena's size.

    Sizes that are multiples of one symbolic factor share a region, planned in units of it; the
    regions, that of the fixed sizes first, stand one behind the other.
    """
    regions: dict[Dim, dict[str, int]] = {1: {}}
    for name, b in buffers.items():
        if b.space == "arena" and name in lives:
            factor, count = _in_units(b.size * b.dtype.bytes)
            regions.setdefault(factor, {})[name] = _room(count)
    offsets: dict[str, Dim] = {}
    base: Dim = 0
    for factor in sorted(regions, key=lambda d: (d != 1, text(d))):
        at, size = _region(regions[factor], lives)
        offsets |= {n: base + factor * o for n, o in at.items()}
        base = base + factor * size
    return offsets, base


def _room(count: int) -> int:
    size = -(-count // ALIGN) * ALIGN
    return size + SKEW if size >= 4 * PAGE and size % PAGE == 0 else size


def _in_units(size: Dim) -> tuple[Dim, int]:
    """size = factor · count with the greatest integer count."""
    if isinstance(size, int):
        return 1, size
    count = math.gcd(*(coeff for _, coeff in size.terms))
    factor = exact_quotient(size, count)
    assert factor is not None
    return factor, count


def _region(counts: Mapping[str, int], lives: Mapping[str, Life]) -> tuple[dict[str, int], int]:
    """Offsets within one region, and its size, in units.

    As long as the region is larger than what lives at once, whatever ends highest goes first next
    time: a buffer that others have walled in finds its place before them.
    """
    order = sorted(counts, key=lambda n: (-counts[n], lives[n], n))
    least = most_at_once((lives[n], count) for n, count in counts.items())
    best, size = _placed(order, counts, lives)
    offsets, tried = best, size
    for _ in range(min(ROUNDS, WORK // (len(counts) ** 2 + 1))):
        if size <= least:
            break
        top = max(order, key=lambda n: (offsets[n] + counts[n], n))
        order.remove(top)
        order.insert(0, top)
        offsets, tried = _placed(order, counts, lives)
        if tried < size:
            best, size = offsets, tried
    return best, size


def _placed(order: Sequence[str], counts: Mapping[str, int],
            lives: Mapping[str, Life]) -> tuple[dict[str, int], int]:
    """Each as low as it fits, in this order; and where the highest ends.

    What is placed is kept by stretches of time: a buffer looks at those of its own alone.
    """
    placed: defaultdict[int, list[tuple[int, int, str]]] = defaultdict(list)
    offsets: dict[str, int] = {}
    for name in order:
        first, last = lives[name]
        stretches = range(first // STRETCH, last // STRETCH + 1)
        if len(stretches) == 1:
            met: Iterable[tuple[int, int, str]] = placed[stretches[0]]
        else:
            met = sorted({p for t in stretches for p in placed[t]})
        at = _lowest(counts[name], lives[name], met, lives)
        offsets[name] = at
        for t in stretches:
            insort(placed[t], (at, at + counts[name], name))
    return offsets, max((at + counts[n] for n, at in offsets.items()), default=0)


def _lowest(size: int, life: Life, placed: Iterable[tuple[int, int, str]],
            lives: Mapping[str, Life]) -> int:
    """The lowest gap that is free for the whole life."""
    at = 0
    for start, end, other in placed:
        first, last = lives[other]
        if last < life[0] or life[1] < first:
            continue
        if start - at >= size:
            return at
        at = max(at, end)
    return at
