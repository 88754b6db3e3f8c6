"""The cost of arithmetic and of bytes on a machine, from which the costs of kernels are computed.

It has cycles of register tiles, and microseconds for bytes that go through the caches.
"""

from __future__ import annotations

from graphtool.target import Target

UNITS = 2  # multiply-adds, or loads, that a core starts per cycle
LATENCY = 4  # cycles between two multiply-adds that add to the same sum
BARRIER = 2.0  # microseconds of a barrier, when cores arrive at different times


def ceil(a: int, b: int) -> int:
    """a / b, rounded up."""
    return -(-a // b)


def cycles(rows: int, nv: int) -> float:
    """Cycles of one k-step of a register tile: the greatest of arithmetic, loads and latency."""
    return max(rows * nv / UNITS, (rows + nv) / UNITS, LATENCY)


def block_cycles(n: int, most: int, nv: int) -> float:
    """Cycles of a k-step over n rows, divided into blocks of nearly equal size."""
    count = ceil(n, most)
    longer = n % count
    return longer * cycles(n // count + 1, nv) + (count - longer) * cycles(n // count, nv)


def overlapped(target: Target, work: float, traffic: float) -> float:
    """Microseconds of `work` cycles and `traffic` microseconds together: prefetching hides most
    of the smaller one."""
    return max(work / target.mhz, traffic) + 0.15 * min(work / target.mhz, traffic)


def fetched(target: Target, nbytes: float, resident: float) -> float:
    """Microseconds to read bytes from the cache level that holds `resident` bytes."""
    for size, speed in zip((target.l1, target.l2, target.l3), target.bandwidth, strict=False):
        if resident <= 0.75 * size:
            return nbytes / speed / 1000
    return nbytes / target.bandwidth[3] / 1000


def streamed(target: Target, nbytes: float, times: float) -> float:
    """Microseconds to read constant weights `times` times.

    The first time they come from memory, because the weights of a whole network fit no cache; later
    from the level that holds them. Less than once is the share of one thread.
    """
    return min(1.0, times) * nbytes / target.bandwidth[3] / 1000 + fetched(
        target, max(0.0, times - 1) * nbytes, nbytes)


def longest(n: int, threads: int) -> int:
    """The largest of `threads` shares of n units."""
    return ceil(n, threads)
