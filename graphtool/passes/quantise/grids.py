"""Grids of integers for real numbers, and the range of activations that a grid should cover.

x ≈ (q − zero)·scale with q = round(x / scale) + zero, cut off at the ends of the type. A narrow
range has fine steps and cuts off large values, a wide one has coarse steps. The methods differ in
how they weigh one against the other; they read a histogram.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np

from graphtool import dtypes
from graphtool import ops as o
from graphtool.dtypes import DType

Array = np.ndarray[Any, Any]
WEIGHT_MOST = 127  # weights use −127 … 127, so that −w is on the grid where w is
BINS = 2048
Method = Literal["minmax", "percentile", "entropy", "mse"]
METHODS: tuple[Method, ...] = get_args(Method)
# the parts of the whole range that are tried
_SHARES = np.concatenate([np.linspace(1.0, 0.5, 41), np.geomspace(0.48, 0.01, 40)])


@dataclass(frozen=True)
class Grid:
    """The grid of one tensor: the same scale and zero point for all its elements."""

    scale: float
    zero: int
    dtype: DType

    @property
    def low(self) -> float:
        """The least real number of the grid."""
        return (self.dtype.low - self.zero) * self.scale

    @property
    def high(self) -> float:
        """The greatest real number of the grid."""
        return (self.dtype.high - self.zero) * self.scale

    def rounded(self, x: Array) -> Array:
        """The nearest numbers of the grid, in the type of x."""
        steps = np.rint(x / x.dtype.type(self.scale))
        kept = np.clip(steps, self.dtype.low - self.zero, self.dtype.high - self.zero)
        return np.asarray(kept * x.dtype.type(self.scale), x.dtype)


def grid_of(low: float, high: float, symmetric: bool = False) -> Grid:
    """The grid of 256 numbers for low … high, which contains 0.

    It is uint8 with a zero point; or if `symmetric`, int8 with the zero point 0 (uint8 where no
    number is negative).
    """
    low, high = min(low, 0.0), max(high, 0.0)
    if symmetric and low < 0:
        scale = max(-low / 128, high / 127)
        return Grid(_single(scale), 0, dtypes.int8)
    scale = _single((high - low) / 255)
    zero = 0 if symmetric else int(np.clip(np.rint(-low / scale), 0, 255))
    return Grid(scale, zero, dtypes.uint8)


def _single(scale: float) -> float:
    """The scale as a float32 that can be divided by; 1 for a tensor of zeros."""
    single = float(np.float32(scale))
    return single if single > float(np.finfo(np.float32).tiny) else 1.0


def channel_scales(w: Array, axis: int, bits: int = 8) -> Array:
    """One scale for each index of `axis`, float32, in a shape that broadcasts to w: the largest
    weight of a channel becomes the largest integer."""
    others = tuple(a for a in range(w.ndim) if a != axis % w.ndim)
    most = np.abs(w).max(axis=others, keepdims=True, initial=0.0) / (2 ** (bits - 1) - 1)
    tiny = np.finfo(np.float32).tiny
    return np.where(most > tiny, most, 1.0).astype(np.float32)


def channel_integers(w: Array, scales: Array) -> Array:
    """The weights as int8 on the grids of `scales`."""
    steps = np.rint(w.astype(np.float64) / scales)
    return np.clip(steps, -WEIGHT_MOST, WEIGHT_MOST).astype(np.int8)


# ---- as nodes of a graph -----------------------------------------------------------------------

def quantised(x: Any, grid: Grid) -> Any:
    """The integers for x, as ONNX's QuantizeLinear computes them."""
    steps = o.round(o.div(x, grid.scale))
    steps = o.add(steps, float(grid.zero)) if grid.zero else steps
    kept = o.clamp(steps, float(grid.dtype.low), float(grid.dtype.high))
    return o.cast(kept, dtype=grid.dtype)


def real(q: Any, scale: Any, zero: int = 0) -> Any:
    """(q − zero)·scale in float32; the scale is a number, or broadcasts to q."""
    wide = o.cast(q, dtype=dtypes.float32)
    return o.mul(o.sub(wide, float(zero)) if zero else wide, scale)


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
