"""Resize and Upsample: `resize` for constant sizes and scales, `resize_by` for computed ones.

Computed sizes are those that the model declares for its result, or symbolic sizes.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np

from graphtool import dtypes
from graphtool import ops as o
from graphtool.importers.onnx.driver.claims import agreed_entries, declared_size
from graphtool.importers.onnx.driver.computed import known_element
from graphtool.importers.onnx.driver.registry import onnx_op
from graphtool.importers.onnx.driver.values import (
    array_of,
    axes_of,
    count_of,
    dim_tensor,
    dims,
    floats,
)
from graphtool.ir.trace import Tracer
from graphtool.symbolic import Dim, floordiv, product

_DENOMINATOR = 1000  # of scales that are taken for a fraction
_MODES = {"nearest": "nearest", "linear": "linear", "bilinear": "linear", "trilinear": "linear",
          "cubic": "cubic"}


def scaled(d: Dim, scale: float) -> Dim:
    """⌊d · scale⌋ with the product rounded to float32, as onnx infers it: 10 · 0.7 is 7, though
    the float32 is less than 0.7. For a symbolic size by the fraction that was meant."""
    narrow = np.float32(scale)
    if isinstance(d, int):
        return int(np.floor(np.float32(d) * narrow))
    meant = Fraction(float(narrow)).limit_denominator(_DENOMINATOR)
    exact = meant if np.float32(meant) == narrow else Fraction(str(narrow))
    return floordiv(d * exact.numerator, exact.denominator)


def _resized(x: Any, sizes: tuple[Dim, ...], scales: Any, roi: Any = None, **attrs: Any) -> Any:
    """x resized by `resize`, or by `resize_by` if scales or region are computed.

    Integers are interpolated in float64.
    """
    row = x.dtype
    through = x if row.is_float or attrs["mode"] == "nearest" else x.cast(dtypes.float64)
    if isinstance(scales, Tracer) or isinstance(roi, Tracer):
        given = [v if v is None or isinstance(v, Tracer) else x.builder.constant(np.asarray(v,
                np.float64)) for v in (scales, roi)]
        return o.resize_by(through, *given, sizes=sizes, **attrs).cast(row)
    return o.resize(through, sizes=sizes, scales=scales, roi=roi, **attrs).cast(row)


@onnx_op("Upsample", since=7)
def upsample_7(x: Any, *, mode: str = "nearest", scales: Any, ctx: Any) -> Any:
    """`resize` by constant scales, at asymmetric coordinates rounded down."""
    return _old(x, np.asarray(scales, np.float32), mode, ctx)


@onnx_op("Upsample", since=9)
def upsample(x: Any, scales: Any, *, mode: str = "nearest", ctx: Any) -> Any:
    """`resize` (`resize_by` for computed scales), at asymmetric coordinates rounded down."""
    return _old(x, scales, mode, ctx)


@onnx_op("Resize", since=10)
def resize_10(x: Any, scales: Any, *, mode: str = "nearest", ctx: Any) -> Any:
    """`resize` (`resize_by` for computed scales), at asymmetric coordinates rounded down."""
    return _old(x, scales, mode, ctx)


def _old(x: Any, scales: Any, mode: str, ctx: Any) -> Any:
    sizes, factors = _by_scales(x, tuple(range(x.ndim)), scales, None, ctx)
    return _resized(x, sizes, factors, mode=_MODES[mode], coordinates="asymmetric",
                    rounding="floor")


@onnx_op("Resize", since=11)
def resize(x: Any, roi: Any = None, scales: Any = None, sizes: Any = None, *, antialias: int = 0,
           axes: Any = None, coordinate_transformation_mode: str = "half_pixel",
           cubic_coeff_a: float = -0.75, exclude_outside: int = 0,
           extrapolation_value: float = 0.0, keep_aspect_ratio_policy: str = "stretch",
           mode: str = "nearest", nearest_mode: str = "round_prefer_floor", ctx: Any) -> Any:
    """`resize`, or `resize_by` if scales or region are computed."""
    at = tuple(range(x.ndim)) if axes is None else axes_of(axes, x.ndim)
    crop = _crop(roi, at, x.ndim) if coordinate_transformation_mode == "tf_crop_and_resize" \
        else None
    if sizes is not None and count_of(sizes):
        if scales is not None and product(scales.shape) != 0:
            raise ValueError("both scales and sizes are given")
        wanted, factors = _by_sizes(x, at, sizes, keep_aspect_ratio_policy, ctx)
    else:
        wanted, factors = _by_scales(x, at, scales, crop, ctx)
    return _resized(x, wanted, factors, crop, mode=_MODES[mode], cubic=cubic_coeff_a,
                    coordinates=coordinate_transformation_mode, rounding=nearest_mode,
                    exclude_outside=bool(exclude_outside), antialias=bool(antialias),
                    extrapolation=extrapolation_value)


def _crop(roi: Any, at: tuple[int, ...], rank: int) -> Any:
    """The region's starts for all axes, then its ends; axes that are not named keep their whole
    range."""
    full = [0.0] * rank + [1.0] * rank
    places = (*at, *(rank + a for a in at))
    if array_of(roi) is not None:
        for a, v in zip(places, floats(roi, "the region"), strict=True):
            full[a] = v
        return tuple(full)
    return _placed(roi, places, full)


def _placed(row: Any, places: tuple[int, ...], full: list[float]) -> Any:
    """A row of numbers with a computed row's entries at the given places, in float64."""
    line = row.builder.constant(np.asarray(full))
    if places == tuple(range(len(full))):
        return row.reshape((len(full),)).cast(dtypes.float64)
    at = row.builder.constant(np.asarray(places, np.int64).reshape(-1, 1))
    return o.scatter(line, at, row.reshape((len(places),)).cast(dtypes.float64), axes=(0,))


def _by_scales(x: Any, at: tuple[int, ...], scales: Any, crop: Any,
               ctx: Any) -> tuple[tuple[Dim, ...], Any]:
    """The sizes that result from the scales, and the scales of all axes."""
    factors: Any = [1.0] * x.ndim
    if array_of(scales) is not None:
        for a, v in zip(at, floats(scales, "the scales"), strict=True):
            factors[a] = v
    else:
        factors = _placed(scales, at, factors)
    if isinstance(factors, Tracer) or isinstance(crop, Tracer):
        spans = _spans(x, factors, crop)
        return tuple(_measured(x, a, spans, ctx) for a in range(x.ndim)), factors
    sizes = []
    for a, (d, s) in enumerate(zip(x.shape, factors, strict=True)):
        span = 1.0 if crop is None else crop[x.ndim + a] - crop[a]
        sizes.append(scaled(d, s) if span == 1.0 else scaled(d, s * span))
    return tuple(sizes), tuple(factors)


def _spans(x: Any, factors: Any, crop: Any) -> Any:
    """The factor of each size, if scales or region are computed."""
    like = factors if isinstance(factors, Tracer) else crop
    row = factors if isinstance(factors, Tracer) else like.builder.constant(np.asarray(factors))
    if crop is None:
        return row
    whole = crop if isinstance(crop, Tracer) else like.builder.constant(np.asarray(crop))
    return row * (whole.take(0, x.ndim, 2 * x.ndim) - whole.take(0, 0, x.ndim))


def _measured(x: Any, axis: int, spans: Any, ctx: Any) -> Dim:
    """⌊d · span⌋ for a computed span: the size that the model declares, else a symbolic size."""
    span = spans.take(0, axis, axis + 1).reshape(()).cast(dtypes.float32)
    size = o.floor(dim_tensor(x.shape[axis], x.builder).cast(dtypes.float32) * span)
    return declared_size(size.cast(dtypes.int64), ctx.most(axis), f"the size of axis {axis}")


def _shared(x: Any, at: tuple[int, ...], sizes: Any, policy: str,
            ctx: Any) -> tuple[tuple[Dim, ...], Any]:
    """The sizes and scales for one common scale, chosen so that the result fits into the computed
    sizes (`not_larger`) or covers them."""
    have = x.builder.sizes([x.shape[a] for a in at])
    ratios = sizes.cast(dtypes.float64) / have.cast(dtypes.float64)
    pick = o.reduce_min if policy == "not_larger" else o.reduce_max
    scale = pick(ratios, axes=(0,))
    wanted: list[Dim] = list(x.shape)
    for a in at:
        size = o.floor(dim_tensor(x.shape[a], x.builder).cast(dtypes.float64) * scale + 0.5)
        wanted[a] = declared_size(size.cast(dtypes.int64).reshape(()), ctx.most(a),
                                  f"the size of axis {a}")
    factors = _placed(o.broadcast(scale, shape=(len(at),)), at, [1.0] * x.ndim)
    return tuple(wanted), factors


def _by_sizes(x: Any, at: tuple[int, ...], sizes: Any, policy: str,
              ctx: Any) -> tuple[tuple[Dim, ...], Any]:
    room = ctx.room()
    known = array_of(sizes) is not None or all(
        isinstance(known_element(sizes, i), int) for i in range(count_of(sizes)))
    if policy != "stretch" and not (known and all(isinstance(x.shape[a], int) for a in at)):
        return _shared(x, at, sizes, policy, ctx)
    given = dims(sizes, "the sizes") if known or room is None else agreed_entries(
        sizes, [room[a] for a in at], "the sizes")
    wanted: list[Dim] = list(x.shape)
    for k, a in enumerate(at):
        wanted[a] = given[k]
    if policy == "stretch":
        return tuple(wanted), None
    ratios = [given[k] / x.shape[a] for k, a in enumerate(at)]
    scale = min(ratios) if policy == "not_larger" else max(ratios)
    factors = [1.0] * x.ndim
    for a in at:
        wanted[a], factors[a] = math.floor(x.shape[a] * scale + 0.5), scale
    return tuple(wanted), tuple(factors)
