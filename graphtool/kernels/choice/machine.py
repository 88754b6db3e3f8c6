"""The cost of arithmetic and of bytes on a machine, from which the costs of kernels are computed.

It has cycles of register tiles, and microseconds for bytes that go through the caches. Two costs
are compared before kernels are chosen: whether a gate multiplies an image or the weights that read
it, and how many examples of a batch a part of the graph computes at a time.
"""

from __future__ import annotations

from graphtool.target import Target

UNITS = 2  # multiply-adds, or loads, that a core starts per cycle
LATENCY = 4  # cycles between two multiply-adds that add to the same sum
LATE = 1.8  # microseconds between the first and the last core at a barrier
NEAR = 0.75  # part of a cache that is left to what a kernel reads again
COLD = 0.5  # part of the time to bring a kernel's own memory near that nothing hides


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


def barrier(target: Target) -> float:
    """Microseconds of a barrier."""
    return LATE + target.meet


def _speeds(target: Target) -> tuple[float, ...]:
    """GB/s of a core out of each cache and out of memory, which all threads share."""
    *near, far = target.bandwidth
    return (*near, min(far, target.all_gbps / target.threads) if target.all_gbps else far)


def fetched(target: Target, nbytes: float, resident: float) -> float:
    """Microseconds to read bytes from the cache level that holds `resident` bytes; a level that
    just about holds them loses a part to the next one."""
    speeds = _speeds(target)
    for i, size in enumerate((target.l1, target.l2, target.l3)):
        if resident <= size:
            lost = max(0.0, (resident / size - NEAR) / (1 - NEAR))
            return nbytes * ((1 - lost) / speeds[i] + lost / speeds[i + 1]) / 1000
    return nbytes / speeds[-1] / 1000


def cold(target: Target, nbytes: float) -> float:
    """Microseconds more for the first use of memory that a kernel has for itself: the layers
    between two uses have taken its place in the near caches."""
    return COLD * fetched(target, nbytes, target.l2)


def streamed(target: Target, nbytes: float, times: float) -> float:
    """Microseconds to read constant weights `times` times.

    The first time they come from memory, because the weights of a whole network fit no cache; later
    from the level that holds them. Less than once is the share of one thread.
    """
    return min(1.0, times) * nbytes / _speeds(target)[-1] / 1000 + fetched(
        target, max(0.0, times - 1) * nbytes, nbytes)


def longest(n: int, threads: int) -> int:
    """The largest of `threads` shares of n units."""
    return ceil(n, threads)


_START = 0.2  # microseconds to begin and end the loops of a kernel on one thread


def gate(target: Target, image: int, weights: int) -> tuple[float, float]:
    """Expected microseconds of multiplying an image of so many bytes in a pass of its own, and
    of scaling the weights that read it instead."""
    share = image / max(1, target.threads)
    alone = fetched(target, 2 * share, 2 * share)
    scaled = (streamed(target, weights, 1) + fetched(target, weights, weights)) / max(
        1, target.threads)
    return alone, scaled


def layer(target: Target, flops: int, moved: int, weights: int, chunks: int) -> float:
    """Expected microseconds of a layer whose batch is computed in so many chunks.

    Its activations, `moved` bytes in total, come from the cache level that holds those of one
    chunk. Its weights are read again for each chunk. Memory time is added to the arithmetic, not
    hidden behind it: half of what a layer left in a cache is gone when the next one reads it.
    """
    threads = max(1, target.threads)
    work = flops / (2 * UNITS * target.lanes * threads) / target.mhz
    resident = 2 * moved / chunks
    each = resident / threads
    traffic = fetched(target, moved / threads, each if each <= 0.75 * target.l2 else resident)
    start = barrier(target) if threads > 1 else _START
    return work + traffic + streamed(target, weights, chunks) + chunks * start
