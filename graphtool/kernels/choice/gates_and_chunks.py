"""Costs that are compared before kernels are chosen.

They say whether a gate multiplies an image or the weights that read it, and how many examples of a
batch a part of the graph computes at a time.
"""

from __future__ import annotations

from graphtool.kernels.choice.machine import UNITS, barrier, fetched, streamed
from graphtool.target import Target

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
    own = resident / threads
    traffic = fetched(target, moved / threads, own if own <= 0.75 * target.l2 else resident)
    start = barrier(target) if threads > 1 else _START
    return work + traffic + streamed(target, weights, chunks) + chunks * start
