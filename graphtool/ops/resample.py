"""Resizing one axis after the other: gathers with constant indices, times constant weights.

Element o of the result along an axis is Σₖ weight[o, k]·x[index[o, k]]. If a size is known only at
run time, the indices and weights are computed. The names of coordinates are ONNX's.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from graphtool import dtypes
from graphtool import ops as o
from graphtool.ir.facets import Axes, Trait
from graphtool.ir.graph import TensorType
from graphtool.ir.trace import like
from graphtool.ops.common import Array, composite, need
from graphtool.ops.indexing import COORDINATES, MODES, ROUNDING, keys
from graphtool.symbolic import Dim, exact_quotient


def _line(x: Any, n: Dim) -> Any:
    return like(x, o.iota, shape=(n,), axis=0, dtype=dtypes.float64)


def _number(x: Any, d: Any) -> Any:
    """A dimension, a number or a scalar as a float64 scalar."""
    if isinstance(d, float):
        return o.mul(_number(x, 1), d)
    if hasattr(d, "dtype"):
        return d
    return like(x, o.dim, of=d, dtype=dtypes.float64)


def resized_along(x: Any, axis: int, size: Dim, scale: Any, crop: tuple[Any, Any], *, mode: str,
                  coordinates: str, rounding: str, cubic: float, exclude_outside: bool,
                  antialias: bool) -> tuple[Any, Any]:
    """x with one axis resampled, and where that axis reads outside the region, or None.

    `scale` and `crop` are numbers or float64 scalars; the default scale is the ratio of the sizes.
    """
    n, m = _number(x, x.shape[axis]), _number(x, size)
    line = _line(x, size)
    if scale is None and coordinates in ("half_pixel", "asymmetric"):
        half = 0.5 if coordinates == "half_pixel" else 0.0
        at = (line + half) * n / m - half  # one rounding less than by the ratio
    else:
        width = m if scale is None or coordinates != "align_corners" else _number(x, scale) * n
        factor = m / o.max(n, 1.0) if scale is None else _number(x, scale)
        at = COORDINATES[coordinates](line, n, width, factor, *(_number(x, c) for c in crop))
    lost = None
    if coordinates == "tf_crop_and_resize":
        lost = _spread_along(o.or_(o.lt(at, 0.0), o.gt(at, n - 1.0)), axis, x.ndim)
    if mode == "nearest":
        return _taken(x, ROUNDING[rounding](at), n, axis), lost
    if antialias:
        factor = m / o.max(n, 1.0) if scale is None else _number(x, scale)
        return _spread(x, at, n, axis, o.max(1.0 / factor, 1.0), mode, cubic, exclude_outside), lost
    return _interpolated(x, at, n, axis, mode, cubic, exclude_outside), lost


def _spread_along(line: Any, axis: int, rank: int) -> Any:
    return o.reshape(line, shape=(*line.shape, *(1,) * (rank - 1 - axis)))


def _taken(x: Any, index: Any, n: Any, axis: int) -> Any:
    """x at integer positions along an axis; positions beyond the border are moved to it."""
    inside = o.cast(o.max(o.min(index, n - 1.0), 0.0), dtype=dtypes.int64)
    rows = o.gather(x, o.reshape(inside, shape=(*inside.shape, 1)), axes=(axis,))
    return rows if axis == 0 else o.transpose(
        rows, perm=(*range(1, axis + 1), 0, *range(axis + 1, x.ndim)))


def _kernel(distance: Any, mode: str, cubic: float) -> Any:
    return o.max(1.0 - distance, 0.0) if mode == "linear" else keys(distance, cubic)


def _interpolated(x: Any, at: Any, n: Any, axis: int, mode: str, cubic: float,
                  exclude_outside: bool) -> Any:
    """The weighted sum of the two or four neighbours."""
    half = 1 if mode == "linear" else 2
    low = o.floor(at)
    taps = [low + float(k) for k in range(1 - half, half + 1)]
    weights = [_kernel(o.abs(at - i), mode, cubic) for i in taps]
    if exclude_outside:
        weights = [_inside(i, w, n) for i, w in zip(taps, weights, strict=True)]
        total = weights[0]
        for w in weights[1:]:
            total = total + w
        weights = [w / total for w in weights]
    y = None
    for i, w in zip(taps, weights, strict=True):
        weight = _spread_along(o.cast(w, dtype=x.dtype), axis, x.ndim)
        part = o.select(o.eq(weight, 0.0), 0.0, _taken(x, i, n, axis) * weight)
        y = part if y is None else y + part
    return y


def _inside(index: Any, weight: Any, n: Any) -> Any:
    return o.select(o.or_(o.lt(index, 0.0), o.gt(index, n - 1.0)), 0.0, weight)


def _spread(x: Any, at: Any, n: Any, axis: int, stretch: Any, mode: str, cubic: float,
            exclude_outside: bool) -> Any:
    """Antialiased: the kernel is as wide as the distance between two results.

    It is a matrix product with all positions that the kernel can reach, also those beyond the
    border.
    """
    reach = (1 if mode == "linear" else 2) * x.shape[axis] + 1
    index = _line(x, x.shape[axis] + reach * 2) - _number(x, reach)
    column = o.reshape(index, shape=(1, *index.shape))
    distance = o.abs(o.reshape(at, shape=(*at.shape, 1)) - column) / stretch
    weights = _kernel(distance, mode, cubic)
    if exclude_outside:
        weights = _inside(column, weights, n)
    weights = o.cast(weights / o.reduce_sum(weights, axes=(1,)), dtype=x.dtype)
    wide = _taken(x, index, n, axis)
    order = (*(a for a in range(x.ndim) if a != axis), axis)
    last = wide if axis == x.ndim - 1 else o.transpose(wide, perm=order)
    rows = last if x.ndim > 1 else o.reshape(last, shape=(1, *last.shape))
    y = o.matmul(rows, weights, transpose_b=True)
    if x.ndim == 1:
        return o.reshape(y, shape=at.shape)
    return y if axis == x.ndim - 1 else o.transpose(
        y, perm=tuple(order.index(a) for a in range(x.ndim)))


def _resize_by_types(x: TensorType, scales: Any = None, roi: Any = None, *,
                     sizes: tuple[Dim, ...], mode: str, coordinates: str, rounding: str,
                     cubic: float, exclude_outside: bool, antialias: bool,
                     extrapolation: float) -> TensorType:
    need(len(sizes) == x.rank, f"sizes must have {x.rank} entries, got {len(sizes)}")
    for name, value, table in (("mode", mode, MODES), ("coordinates", coordinates, COORDINATES),
                               ("rounding", rounding, ROUNDING)):
        need(value in table, f"{name} must be one of {', '.join(table)}, not {value!r}")
    for name, got, count in (("scales", scales, x.rank), ("roi", roi, 2 * x.rank)):
        want = TensorType(dtypes.float64, (count,))
        need(got is None or got == want, f"{name} must be {want}, got {got}")
    need(x.dtype.is_float or mode == "nearest", f"mode {mode} is not defined on {x.dtype.short}")
    return TensorType(x.dtype, sizes)


@composite(types=_resize_by_types)
def resize_by(x: Any, scales: Any = None, roi: Any = None, *, sizes: tuple[Dim, ...],
              mode: str = "nearest", coordinates: str = "half_pixel",
              rounding: str = "round_prefer_floor", cubic: float = -0.75,
              exclude_outside: bool = False, antialias: bool = False,
              extrapolation: float = 0.0) -> Any:
    """`resize` with computed scales f64[rank] and region f64[2·rank]; `sizes` is the resulting
    shape.

    No gradient flows to the scales and the region.
    """
    outside = []
    rank = x.ndim
    scales, roi = (None if v is None else o.stop_gradient(v) for v in (scales, roi))
    for axis in reversed(range(rank)):
        crop = (0.0, 1.0) if roi is None else (_entry(roi, axis), _entry(roi, rank + axis))
        x, lost = resized_along(x, axis, sizes[axis], None if scales is None else _entry(
            scales, axis), crop, mode=mode, coordinates=coordinates, rounding=rounding, cubic=cubic,
            exclude_outside=exclude_outside, antialias=antialias)
        outside += [] if lost is None else [lost]
    for lost in outside:
        x = o.select(lost, extrapolation, x)
    return x


def _entry(row: Any, i: int) -> Any:
    return o.reshape(o.slice(row, start=(i,), limit=(i + 1,), strides=(1,)), shape=())


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
    times = [1] * x.ndim
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
            times[axis] = factor
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
    x = _repeated(x, times)
    for lost in outside:
        x = o.select(lost, extrapolation, x)
    return x


def _repeats(coordinates: str, rounding: str) -> bool:
    """Whether nearest with an integer factor only repeats elements."""
    if coordinates in ("half_pixel", "pytorch_half_pixel", "half_pixel_symmetric"):
        return rounding.startswith("round")
    return coordinates in ("asymmetric", "tf_half_pixel_for_nn") and rounding == "floor"


def _repeated(x: Any, times: Sequence[int]) -> Any:
    """x with each element so many times along each axis, in one copy."""
    if set(times) <= {1}:
        return x
    parts = [(n,) if k == 1 else (n, k) for n, k in zip(x.shape, times, strict=True)]
    ones = o.reshape(x, shape=tuple(d for n, *k in parts for d in (n, *(1 for _ in k))))
    wide = o.broadcast(ones, shape=tuple(d for part in parts for d in part))
    return o.reshape(wide, shape=tuple(n * k for n, k in zip(x.shape, times, strict=True)))


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
