"""Bounds of medians of measured times. No distribution is assumed; a spell of noise counts once."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from math import comb

BLOCKS = 50  # a moment of noise that lasts several rounds is in one block, and counts once
Bounds = tuple[float, float]


def median_bounds(numbers: Sequence[float]) -> Bounds | None:
    """Bounds of 95 % for the median of what the numbers were drawn from; None for fewer than 6.

    Of n numbers in order, x_k and x_(n+1-k) enclose the median but for the chance that fewer than k
    of them lie on one side of it, 2 P(B < k) with B binomial in n and 1/2 (the sign test). So no
    distribution is assumed.
    """
    ordered, n = sorted(numbers), len(numbers)
    k, outside = 0, 0.0
    while (outside := outside + 2 * comb(n, k) / 2**n) <= 0.05:
        k += 1
    return (ordered[k - 1], ordered[n - k]) if k else None


def block_medians(times: Sequence[float]) -> list[float]:
    """The medians of at most BLOCKS blocks of successive times."""
    size = -(-len(times) // BLOCKS)
    return [statistics.median(times[i:i + size]) for i in range(0, len(times), size)]


def ratios(ours: Sequence[float], others: Sequence[float]) -> list[float]:
    """The other's time over ours in each block of rounds: both were measured in turns."""
    return [b / a for a, b in zip(block_medians(ours), block_medians(others), strict=True)]
