"""The cost of sums over packed panels of weights, for every element type.

It counts register tiles over the rows of a product or the pixels of an image, and bytes through the
caches.
"""

from __future__ import annotations

from collections import Counter

from graphtool import dtypes
from graphtool.ir.plan import Plan
from graphtool.kernels.choice.machine import (
    block_cycles,
    ceil,
    fetched,
    longest,
    overlapped,
    streamed,
)
from graphtool.kernels.choice.sites import Conv, Product
from graphtool.target import Target, tile_rows

ROUND = 8  # cycles to round a vector of numbers to bytes; measured on a Xeon with AMX
PACK = 0.2  # cycles to pack a byte
# products that a lane adds in one step
_GROUP = {dtypes.uint8: 4, dtypes.int16: 2}


def widths(columns: int, target: Target) -> list[int]:
    """Numbers of vectors for a panel: the usual number, and numbers that leave less of the last
    panel empty."""
    usual = 1 if columns <= target.lanes else target.nv

    def filled(nv: int) -> int:
        return -(-columns // (nv * target.lanes)) * nv
    return [usual, *(nv for nv in (3, 1) if target.lanes > 1 and filled(nv) < filled(usual))]


def all_bfloat16(s: Conv | Product, target: Target) -> bool:
    """Whether the operands are bfloat16 and the target has exact dot products of them."""
    return s.dtype is dtypes.bfloat16 and target.bf16


def integers(s: Conv | Product, t: Target) -> tuple[float, int]:
    """Multiply-adds per instruction, relative to float32, and bytes of an element."""
    group = _GROUP[s.dtype]
    return group / (1 if s.dtype is dtypes.uint8 else t.pair[t.dot8]), 4 // group


def moving(s: Product, t: Target) -> float:
    """Microseconds to round both operands of a product of integers that are only known at run time,
    and to pack the right one. Other kernels do that; no site counts it, and it can be most of the
    time."""
    if s.constant:
        return 0.0
    right = s.batch * s.k * s.n
    rounding = (s.batch * s.m * s.k + right) / t.lanes * ROUND
    return (rounding + right * PACK) / t.mhz / t.threads


def panel_bytes(s: Conv, points: int, nv: int, width: int, target: Target) -> int:
    """Bytes of constant filters in panels of nv vectors.

    The window has `points` elements, each of `width` bytes.
    """
    panels = s.groups * ceil(s.o // s.groups, nv * target.lanes)
    return points * panels * nv * target.lanes * (s.c // s.groups) * width if s.constant else 0


def conv_cost(s: Conv, c: Plan, t: Target, speed: float = 1.0, width: int = 4) -> float:
    """Expected microseconds of a direct convolution.

    `speed` is the number of multiply-adds per cycle relative to float32; elements have `width`
    bytes.
    """
    nv = c.get("nv", t.nv)
    nr, depth = nv * t.lanes, s.kh * s.kw * s.c // s.groups
    panels = s.groups * ceil(s.o // s.groups, nr)
    weights = panels * depth * nr * width
    rows = s.n * s.h
    mine = max(1 / t.threads, longest(rows * panels, t.threads) / (rows * panels))
    row = _row_cycles(s, tile_rows(t, nv, None), nv) * depth / (s.kh * s.kw)
    work = rows * panels * row * mine / speed
    line = s.sh * s.c * s.sw * s.w * width
    image = rows * line
    if c.get("rows", 1):
        traffic = streamed(t, weights, rows * mine) + fetched(t, image * mine, image)
    else:
        chunk = max(line, 0.6 * t.l2)
        chunks = max(1.0, image * mine / chunk)
        traffic = (streamed(t, weights, chunks * mine)
                   + fetched(t, panels * image * mine, min(image, chunk)))
    return overlapped(t, work, traffic)


def _row_cycles(s: Conv, most: int, nv: int) -> float:
    """Cycles for one channel in a row of outputs, in the mean: for all taps of the window, or for
    the taps that see more than padding."""
    if not s.hidden:
        return s.kh * s.kw * block_cycles(s.w, most, nv)
    alike = Counter(map(s.columns_seen, range(s.w)))
    row = sum(len(taps) * block_cycles(n, most, nv) for taps, n in alike.items())
    return row * s.rows_seen / s.h


def product_cost(s: Product, c: Plan, t: Target, speed: float = 1.0, width: int = 4,
                 copied: bool = False) -> float:
    """Expected microseconds of a product.

    `speed` is the number of multiply-adds per cycle relative to float32; elements have `width`
    bytes; `copied`: blocks of the left operand are copied before they are read.
    """
    nv = c.get("nv", t.nv)
    b = ceil(s.n, nv * t.lanes) * nv * t.lanes * s.k * width
    nv *= c.get("beside", 0) or 1
    panels = ceil(s.n, nv * t.lanes)
    most = tile_rows(t, nv, s.m)
    units = s.batch * panels * ceil(s.m, most)
    mine = longest(units, t.threads) / units
    speed = speed if copied else speed / _far(s, t)
    work = s.batch * panels * s.k * block_cycles(s.m, most, nv) * mine / speed
    traffic = product_traffic(s, t, panels, b, mine, width, (c.get("resident", 0) or 640) * 1024,
                              c.get("split", 0))
    return overlapped(t, work, traffic)


def beyond_first_cache(s: Product, t: Target) -> bool:
    """Whether the left operand is several times as large as the first-level cache."""
    return s.batch * s.m * s.k > t.l1


def _far(s: Product, t: Target) -> float:
    """How many times as long a product takes that reads a left operand made at run time in place.

    If it is transposed, each step along the depth reads a line that no prefetch follows, from
    beyond the second cache if it is larger than that; lines a multiple of 2 KB apart, and rows a
    multiple of 4 KB apart, fall on the same sets of the cache. Measured on a Xeon with AMX.
    """
    if s.constant or not beyond_first_cache(s, t):
        return 1.0
    if s.across:
        return 2.0 if s.m % 512 == 0 and s.k >= 256 else 1.15 if s.m * s.k * 4 <= t.l2 else 1.3
    return 1.5 if s.k % 1024 == 0 and s.k >= 4096 else 1.0


def product_traffic(s: Product, t: Target, panels: int, b: int, mine: float, width: int,
                    resident: int, split: int = 0) -> float:
    """Microseconds for the bytes of a product whose packed right-hand side has b bytes.

    `mine` is the greatest share of a thread; elements have `width` bytes; `resident` are the bytes
    of A that stay in a cache; `split` is what threads share, 0: the better of both.
    """
    a = s.m * s.k * width
    chunks = max(1.0, a / resident)
    traffic = fetched(t, s.batch * chunks * b * mine, b) + fetched(
        t, s.batch * panels * a * mine, min(a, resident))
    if t.threads > 1 and s.batch == 1:  # the bytes that one core reads from the other
        crossing = b if (split or best_split(s)) == 1 else a + s.m * s.n * 4
        traffic += fetched(t, crossing / t.threads, t.l2)
    return traffic


def best_split(s: Product) -> int:
    """1 if fewer bytes move between cores when threads share rows, 2 if when they share columns."""
    return 1 if s.m * (s.k + s.n) >= s.k * s.n else 2


def few_rows(s: Product, target: Target) -> bool:
    """Whether reading the weights is all the work, and they fill wide tiles."""
    return s.m <= 3 and fills_wide_tiles(s.n, target)


def fills_wide_tiles(columns: int, target: Target) -> bool:
    """Whether there are columns for tiles that are wider than usual."""
    return columns >= 4 * target.lanes


def product_widths(s: Product, target: Target) -> list[int]:
    """Numbers of vectors for a panel of a product. With few rows wide panels are possible too;
    of these only the one with the least padding is listed."""
    usual = 1 if s.n <= target.lanes else target.nv
    if few_rows(s, target):
        # what is no vector shares registers with addresses
        most = 2 * target.nv if target.freestanding else 8
        return [usual, *(nv for nv in (8, 7, 6, 5, 4) if nv != usual and nv <= most)]
    return widths(s.n, target)
