"""The memory plan: an offset in one arena for each buffer, and where threads must wait."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from graphtool.loops.ir import Buffer
from graphtool.lower.place import Storage
from graphtool.symbolic import Dim, bounds, exact_quotient, text

ALIGN = 64
Life = tuple[int, int]  # first and last step that touches a buffer


def lifetimes(touched: Sequence[frozenset[str]]) -> dict[str, Life]:
    """From the buffers each step reads or writes, when each is alive."""
    out: dict[str, Life] = {}
    for step, names in enumerate(touched):
        for name in names:
            out[name] = (out.get(name, (step, step))[0], step)
    return out


def plan_arena(buffers: Mapping[str, Storage], lives: Mapping[str, Life]) -> tuple[
        dict[str, Dim], Dim]:
    """Offsets in bytes and the arena's size: largest first, each as low as it fits.

    Sizes that are multiples of one symbolic factor share a region, planned in units of it; the
    regions, that of the fixed sizes first, stand one behind the other.
    """
    regions: dict[Dim, dict[str, int]] = {1: {}}
    for name, b in buffers.items():
        if b.space == "arena" and name in lives:
            factor, count = _in_units(b.size * b.dtype.bytes)
            regions.setdefault(factor, {})[name] = -(-count // ALIGN) * ALIGN
    offsets: dict[str, Dim] = {}
    base: Dim = 0
    for factor in sorted(regions, key=lambda d: (d != 1, text(d))):
        at, size = _region(regions[factor], lives)
        offsets |= {n: base + factor * o for n, o in at.items()}
        base = base + factor * size
    return offsets, base


def _in_units(size: Dim) -> tuple[Dim, int]:
    """size = factor · count with the greatest integer count."""
    if isinstance(size, int):
        return 1, size
    count = math.gcd(*(coeff for _, coeff in size.terms))
    factor = exact_quotient(size, count)
    assert factor is not None
    return factor, count


def _region(counts: Mapping[str, int], lives: Mapping[str, Life]) -> tuple[dict[str, int], int]:
    """Offsets within one region, and its size, in units."""
    placed: list[tuple[int, int, str]] = []
    offsets: dict[str, int] = {}
    for name in sorted(counts, key=lambda n: (-counts[n], lives[n], n)):
        at = _lowest(counts[name], lives[name], placed, lives)
        offsets[name] = at
        placed.append((at, at + counts[name], name))
        placed.sort()
    return offsets, max((end for _, end, _ in placed), default=0)


def _lowest(size: int, life: Life, placed: Sequence[tuple[int, int, str]],
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


def barriers(reads: Sequence[frozenset[str]], writes: Sequence[frozenset[str]],
             buffers: Mapping[str, Buffer]) -> list[bool]:
    """Whether threads must wait behind each step.

    Two steps conflict when one writes memory that the other touches. Writes to one buffer by
    several steps never meet: every element of it is written once.
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
    """a <= b for all sizes."""
    hi = bounds(a - b)[1]
    return hi is not None and hi <= 0
