"""Resizing one axis after the other: gathers with constant indices, times constant weights.

Element o of the result along an axis is Σₖ weight[o, k]·x[index[o, k]]. If a size is known only at
run time, the indices and weights are computed. The names of coordinates are ONNX's.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from graphtool import ops as o
from graphtool.ir.axes import Axes
from graphtool.ir.facets import Trait
from graphtool.ir.graph import TensorType
from graphtool.ops.common import Array, composite, need
from graphtool.ops.coordinates import COORDINATES, MODES, ROUNDING, keys
from graphtool.ops.resample_computed import resized_along
from graphtool.symbolic import Dim, exact_quotient

_DENSE = 8  # from this number of taps on, one matrix product is faster than a sum of gathers

def _resize_types(x: TensorType, *, sizes: tuple[Dim, ...], mode: str, coordinates: str,
                  rounding: str, scales: Any, roi: Any, cubic: float, exclude_outside: bool,
                  antialias: bool, extrapolation: float) -> TensorType:
    need(len(sizes) == x.rank, f"sizes must have {x.rank} entries, got {len(sizes)}")
    for name, value, table in (("mode", mode, MODES), ("coordinates", coordinates, COORDINATES),
                               ("rounding", rounding, ROUNDING)):
        need(value in table, f"{name} must be one of {', '.join(table)}, not {value!r}")
    need(scales is None or len(scales) == x.rank, "scales must have one entry per axis")
    need(roi is None or len(roi) == 2 * x.rank, "roi must have a start and an end for each axis")
    need(x.dtype.is_float or mode == "nearest", f"mode {mode} is not defined on {x.dtype.short}")
    return TensorType(x.dtype, sizes)


@composite(types=_resize_types, traits=Trait.LAYOUT,
           axes=Axes(each={"scales": 1.0}, spans=("roi",), sizes=("sizes",)))
def resize(x: Any, *, sizes: tuple[Dim, ...], mode: str = "nearest",
           coordinates: str = "half_pixel", rounding: str = "round_prefer_floor",
           scales: tuple[float, ...] | None = None, roi: tuple[float, ...] | None = None,
           cubic: float = -0.75, exclude_outside: bool = False, antialias: bool = False,
           extrapolation: float = 0.0) -> Any:
    """x resampled to `sizes` (all axes), by nearest, linear or cubic interpolation.

    The coordinates use `scales` in place of the ratio of the sizes; `roi` (starts, then ends) is
    for tf_crop_and_resize. torch's nearest is asymmetric with floor; its bicubic has cubic = −0.75.
    """
    outside: list[Any] = []
    # the first axis comes last: that step, the largest, copies whole rows
    for axis, size in reversed(list(enumerate(sizes))):
        scale = None if scales is None else scales[axis]
        crop = (0.0, 1.0) if roi is None else (roi[axis], roi[x.ndim + axis])
        cropped = coordinates == "tf_crop_and_resize" and crop != (0.0, 1.0)
        if x.shape[axis] == size and scale in (None, 1.0) and not cropped:
            continue
        factor = exact_quotient(size, x.shape[axis])
        if mode == "nearest" and isinstance(factor, int) and scale in (None, factor) and (
                _repeats(coordinates, rounding)):
            x = _repeat(x, axis, factor)
            continue
        if not isinstance(size, int) or not isinstance(x.shape[axis], int):
            x, lost = resized_along(x, axis, size, scale, crop, mode=mode, rounding=rounding,
                                    coordinates=coordinates, cubic=cubic, antialias=antialias,
                                    exclude_outside=exclude_outside)
            outside += [] if lost is None else [lost]
            continue
        at = _positions(x.shape[axis], size, coordinates, scale, crop)
        if coordinates == "tf_crop_and_resize":
            outside.append(_along((at < 0) | (at > x.shape[axis] - 1), axis, x.ndim))
        x = _resample(x, axis, *_taps(at, x.shape[axis], size, scale, mode, rounding, cubic,
                                      exclude_outside, antialias))
    for lost in outside:
        x = o.select(lost, extrapolation, x)
    return x


def _repeats(coordinates: str, rounding: str) -> bool:
    """Whether nearest with an integer factor only repeats elements."""
    if coordinates in ("half_pixel", "pytorch_half_pixel", "half_pixel_symmetric"):
        return rounding.startswith("round")
    return coordinates in ("asymmetric", "tf_half_pixel_for_nn") and rounding == "floor"


def _repeat(x: Any, axis: int, times: int) -> Any:
    before, n, after = x.shape[:axis], x.shape[axis], x.shape[axis + 1:]
    wide = o.broadcast(o.reshape(x, shape=(*before, n, 1, *after)),
                       shape=(*before, n, times, *after))
    return o.reshape(wide, shape=(*before, n * times, *after))


def _along(line: Array, axis: int, rank: int) -> Array:
    return line.reshape(-1, *(1,) * (rank - 1 - axis))


def _positions(n: int, m: int, coordinates: str, scale: float | None,
               crop: tuple[float, float]) -> Array:
    """The position of each of the m results among the n inputs."""
    line = np.arange(m, dtype=np.float64)
    if scale is None and n and m and coordinates in ("half_pixel", "asymmetric"):
        half = 0.5 if coordinates == "half_pixel" else 0.0
        return (line + half) * n / m - half  # one rounding less than by the ratio
    width = m if scale is None or coordinates != "align_corners" else scale * n  # not rounded
    parts = (n, width, scale or m / max(n, 1), *crop)
    with np.errstate(all="ignore"):
        return np.asarray(COORDINATES[coordinates](
            line, *(np.asarray(p, np.float64) for p in parts)))


def _taps(at: Array, n: int, m: int, scale: float | None, mode: str, rounding: str,
          cubic: float, exclude_outside: bool, antialias: bool) -> tuple[Array, Array | None]:
    """Indices [m, K], and weights [m, K] unless one tap is simply taken."""
    if mode == "nearest":
        index = ROUNDING[rounding](at)
        return np.clip(index, 0, max(n - 1, 0)).astype(np.int64)[:, None], None
    stretch = max(1.0, 1 / (scale or m / n)) if antialias else 1.0
    reach = 1 if mode == "linear" else 2
    half = int(np.ceil(reach * stretch)) if stretch > 1 else reach
    index = np.floor(at)[:, None] + np.arange(1 - half, half + 1)
    distance = np.abs(at[:, None] - index) / stretch
    weights = np.maximum(1 - distance, 0) if mode == "linear" else keys(distance, cubic)
    if exclude_outside:  # else the border counts for all taps beyond it
        weights = np.where((index < 0) | (index > n - 1), 0, weights)
    if exclude_outside or antialias:
        weights = weights / weights.sum(1, keepdims=True)
    return np.clip(index, 0, n - 1).astype(np.int64), weights


def _resample(x: Any, axis: int, index: Array, weights: Array | None) -> Any:
    """The weighted sum of gathers along an axis, or a matrix product where the taps are many."""
    perm = (axis, *(a for a in range(x.ndim) if a != axis))
    back = tuple(perm.index(a) for a in range(x.ndim))

    def taken(column: Array) -> Any:
        rows = o.gather(x, column[:, None], axes=(axis,))
        return rows if axis == 0 else o.transpose(rows, perm=back)
    if weights is None:
        return taken(index[:, 0])
    kind = x.dtype.numpy
    if index.shape[1] > _DENSE:
        return _dense(x, axis, index, weights)
    total = None
    for k in range(index.shape[1]):
        weight = _along(weights[:, k], axis, x.ndim).astype(kind)
        part = taken(index[:, k]) * weight
        if (weight == 0).any():  # NaN and infinity stay where their weight is not 0
            part = o.select(weight == 0, 0.0, part)
        total = part if total is None else total + part
    return total


def _dense(x: Any, axis: int, index: Array, weights: Array) -> Any:
    n = x.shape[axis]
    matrix = np.zeros((len(index), n))
    np.add.at(matrix, (np.arange(len(index))[:, None], index), weights)
    to_last = (*(a for a in range(x.ndim) if a != axis), axis)
    last = x if axis == x.ndim - 1 else o.transpose(x, perm=to_last)
    rows = last if x.ndim > 1 else o.reshape(last, shape=(1, n))
    y = o.matmul(rows, matrix.astype(x.dtype.numpy), transpose_b=True)
    if x.ndim == 1:
        return o.reshape(y, shape=(len(index),))
    return y if axis == x.ndim - 1 else o.transpose(
        y, perm=tuple(to_last.index(a) for a in range(x.ndim)))
