"""Ranges of activations from a histogram: which part of the values the grid should cover.

A narrow range has fine steps and cuts off large values, a wide one has coarse steps. The methods
differ in how they weigh one against the other.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np

from graphtool.passes.quantise.grids import Grid, grid_of

Array = np.ndarray[Any, Any]
BINS = 2048
Method = Literal["minmax", "percentile", "entropy", "mse"]
METHODS: tuple[Method, ...] = get_args(Method)
# the parts of the whole range that are tried
_SHARES = np.concatenate([np.linspace(1.0, 0.5, 41), np.geomspace(0.48, 0.01, 40)])


@dataclass(frozen=True)
class Seen:
    """The values of one tensor: the least and the greatest, and how many are in each of BINS equal
    parts between them (None for min-max, which needs no histogram)."""

    low: float
    high: float
    counts: Array | None = None

    @property
    def centres(self) -> Array:
        """The number in the middle of each bin."""
        edges = np.linspace(self.low, self.high, BINS + 1)
        return np.asarray((edges[:-1] + edges[1:]) / 2)


def histogram(x: Array, low: float, high: float) -> Array:
    """How many elements of x are in each of BINS equal parts of low … high."""
    counts, _ = np.histogram(x, BINS, (low, high if high > low else low + 1.0))
    return counts


def chosen(seen: Seen, method: Method, symmetric: bool, percentile: float = 99.99) -> Grid:
    """The grid for the values: of `percentile` percent of them in that method."""
    if method == "minmax" or seen.counts is None or seen.high <= seen.low:
        return grid_of(seen.low, seen.high, symmetric)
    if method == "percentile":
        return grid_of(*_percentile(seen, percentile), symmetric)
    lost = _squared_error if method == "mse" else _divergence
    return _best(seen, symmetric, lost)


def _percentile(seen: Seen, percentile: float) -> tuple[float, float]:
    """The range without the outer (100 − percentile) percent, half of them at each end."""
    assert seen.counts is not None
    share = np.cumsum(seen.counts) / max(int(seen.counts.sum()), 1)
    out = (1 - percentile / 100) / (2 if seen.low < 0 < seen.high else 1)
    edges = np.linspace(seen.low, seen.high, BINS + 1)
    low = edges[int(np.searchsorted(share, out, side="right"))] if seen.low < 0 else seen.low
    high = edges[min(int(np.searchsorted(share, 1 - out)) + 1, BINS)] if seen.high > 0 else (
        seen.high)
    return float(low), float(high)


def _best(seen: Seen, symmetric: bool, lost: Callable[[Seen, Grid], float]) -> Grid:
    """The grid with the least loss: both ends are moved together, then each alone."""
    low, high = seen.low, seen.high
    best = (np.inf, low, high)

    def tried(left: float, right: float) -> tuple[float, float, float]:
        return lost(seen, grid_of(left, right, symmetric)), left, right

    best = min((tried(low * t, high * t) for t in _SHARES), key=lambda row: row[0])
    if low < 0 < high and not symmetric:
        _, left, right = best
        best = min([best, *(tried(low * t, right) for t in _SHARES)], key=lambda row: row[0])
        _, left, right = best
        best = min([best, *(tried(left, high * t) for t in _SHARES)], key=lambda row: row[0])
    return grid_of(best[1], best[2], symmetric)


def _squared_error(seen: Seen, grid: Grid) -> float:
    """Σ count·(x − its number on the grid)², with the middle of a bin for x."""
    assert seen.counts is not None
    x = seen.centres
    return float((seen.counts * (x - grid.rounded(x)) ** 2).sum())


def _divergence(seen: Seen, grid: Grid) -> float:
    """The Kullback–Leibler divergence of the values from their numbers on the grid.

    As in calibration by entropy: what is cut off counts for the outermost bin that is kept, and
    the values of a step are spread evenly over those bins of the step that are not empty. Zeros do
    not count: every grid has them, and after a relu there would be little else.
    """
    assert seen.counts is not None
    x, counts = seen.centres, seen.counts.copy()
    counts[int(np.abs(x).argmin())] = 0
    inside = np.flatnonzero((x >= grid.low - grid.scale / 2) & (x <= grid.high + grid.scale / 2))
    if not inside.size:
        return np.inf
    first, last = int(inside[0]), int(inside[-1])
    kept = counts[first:last + 1].astype(np.float64)
    p = kept.copy()
    p[0] += counts[:first].sum()
    p[-1] += counts[last + 1:].sum()
    steps = np.clip(np.rint(x[first:last + 1] / grid.scale), -grid.zero + grid.dtype.low,
                    grid.dtype.high - grid.zero).astype(np.int64)
    steps -= steps.min()
    filled = p > 0
    total = np.bincount(steps, kept)
    among = np.bincount(steps, filled.astype(np.float64))
    q = np.where(filled, total[steps] / np.maximum(among[steps], 1), 0.0)
    p, q = p / max(p.sum(), 1), q / max(q.sum(), 1)
    both = p > 0
    return float((p[both] * np.log(p[both] / np.maximum(q[both], 1e-9))).sum())
