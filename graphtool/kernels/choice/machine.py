"""What arithmetic and bytes cost on a machine: cycles of register tiles, and microseconds for what
comes through the caches. The costs of kernels are put together of these.
"""

from __future__ import annotations

from graphtool.target import Target

UNITS = 2  # multiply-adds, or loads, that a core starts in a cycle
LATENCY = 4  # cycles from one multiply-add to the next on the same sum
BARRIER = 2.0  # microseconds, with cores that arrive at different times
DOT_PRODUCTS = 1.8  # multiply-adds a cycle against float32, of those of pairs of bfloat16


def ceil(a: int, b: int) -> int:
    """a / b, rounded up."""
    return -(-a // b)


def cycles(rows: int, nv: int) -> float:
    """Cycles of one k-step of a register tile: of arithmetic, loads or latency, the longest."""
    return max(rows * nv / UNITS, (rows + nv) / UNITS, LATENCY)


def block_cycles(n: int, most: int, nv: int) -> float:
    """Cycles of a k-step over n rows in balanced blocks."""
    count = ceil(n, most)
    longer = n % count
    return longer * cycles(n // count + 1, nv) + (count - longer) * cycles(n // count, nv)


def overlapped(target: Target, work: float, traffic: float) -> float:
    """Microseconds of `work` cycles beside `traffic` microseconds: prefetching hides the less."""
    return max(work / target.mhz, traffic) + 0.15 * min(work / target.mhz, traffic)


def fetched(target: Target, nbytes: float, resident: float) -> float:
    """Microseconds for bytes out of the level that holds `resident` bytes."""
    for size, speed in zip((target.l1, target.l2, target.l3), target.bandwidth, strict=False):
        if resident <= 0.75 * size:
            return nbytes / speed / 1000
    return nbytes / target.bandwidth[3] / 1000


def streamed(target: Target, nbytes: float, times: float) -> float:
    """Microseconds for constant weights: once out of memory, as no network's fit a cache, and out
    of the level that holds them whenever they are read again. Less than once is a thread's share.
    """
    return min(1.0, times) * nbytes / target.bandwidth[3] / 1000 + fetched(
        target, max(0.0, times - 1) * nbytes, nbytes)


def longest(n: int, threads: int) -> int:
    """The longest share of n units."""
    return ceil(n, threads)
