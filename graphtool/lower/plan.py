"""The memory plan: an offset in one arena for each buffer, and where threads must wait."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from graphtool.loops.ir import Buffer
from graphtool.lower.place import Storage
from graphtool.symbolic import Dim, Poly, bounds, ceildiv, exact_quotient, maximum

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

    Where sizes are symbolic the plan is made for one unit of their common factor, so that the
    offsets are multiples of it; without one, for the upper bounds; failing that, without reuse.
    """
    sizes = {n: b.size * b.dtype.bytes for n, b in buffers.items()
             if b.space == "arena" and n in lives}
    unit = _unit(list(sizes.values()))
    if unit is None:
        return _stacked(sizes)
    counts = {n: _units(s, unit) for n, s in sizes.items()}
    placed: list[tuple[int, int, str]] = []
    offsets: dict[str, int] = {}
    for name in sorted(counts, key=lambda n: (-counts[n], lives[n], n)):
        at = _lowest(counts[name], lives[name], placed, lives)
        offsets[name] = at
        placed.append((at, at + counts[name], name))
        placed.sort()
    total = max((end for _, end, _ in placed), default=0)
    return {n: o * unit for n, o in offsets.items()}, total * unit


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


def _unit(sizes: list[Dim]) -> Dim | None:
    """The factor that all symbolic sizes share; 1 for a plan in bytes, for the upper bounds."""
    symbolic = [s for s in sizes if isinstance(s, Poly)]
    if symbolic and len(symbolic[0].terms) == 1:
        factor: Dim = Poly(((symbolic[0].terms[0][0], 1),))
        # fixed sizes are counted in it too, which a factor of 0 would leave without room
        positive = len(symbolic) == len(sizes) or (bounds(factor)[0] or 0) > 0
        if positive and all(isinstance(exact_quotient(s, factor), int) for s in symbolic):
            return factor
    return 1 if all(bounds(s)[1] is not None for s in symbolic) else None


def _units(size: Dim, unit: Dim) -> int:
    if isinstance(unit, int):
        most = size if isinstance(size, int) else bounds(size)[1]
        assert most is not None
        return -(-most // ALIGN) * ALIGN
    share = exact_quotient(size, unit)
    if not isinstance(share, int):  # a fixed size: covered by the least value of the unit
        assert isinstance(size, int)
        share = -(-size // max(bounds(unit)[0] or 1, 1))
    return -(-share // ALIGN) * ALIGN


def _stacked(sizes: Mapping[str, Dim]) -> tuple[dict[str, Dim], Dim]:
    offsets: dict[str, Dim] = {}
    total: Dim = 0
    for name in sorted(sizes):
        offsets[name] = total
        total = total + ceildiv(maximum(sizes[name], 0), ALIGN) * ALIGN
    return offsets, total


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
