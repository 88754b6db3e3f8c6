"""Grids of integers for real numbers: a scale, a zero point, and the integer type.

x ≈ (q − zero)·scale with q = round(x / scale) + zero, cut off at the ends of the type.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from graphtool import dtypes
from graphtool import ops as o
from graphtool.dtypes import DType

Array = np.ndarray[Any, Any]
WEIGHT_MOST = 127  # weights use −127 … 127, so that −w is on the grid where w is


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
