"""Resize and Upsample: sizes and scales known at import, one composite `resize`."""

from __future__ import annotations

import math
from typing import Any

from graphtool import dtypes
from graphtool.importers.onnx.registry import Refused, onnx_op
from graphtool.importers.onnx.values import (
    array_of,
    axes_of,
    cast,
    count_of,
    dims,
    dtype_of,
    floats,
)
from graphtool.ir.op import ops as o
from graphtool.symbolic import Dim

_MODES = {"nearest": "nearest", "linear": "linear", "bilinear": "linear", "trilinear": "linear",
          "cubic": "cubic"}


def scaled(d: Dim, scale: float) -> Dim:
    """⌊d · scale⌋; a symbolic size takes whole factors."""
    if isinstance(d, int):
        return math.floor(d * scale)
    if scale != int(scale):
        raise Refused(f"resizing a symbolic size by {scale}")
    return d * int(scale)


def _resized(x: Any, sizes: tuple[Dim, ...], scales: Any, **attrs: Any) -> Any:
    row = dtype_of(x)
    if row.is_float:
        return o.resize(x, sizes=sizes, scales=scales, **attrs)
    if attrs["mode"] == "nearest":
        return o.resize(x, sizes=sizes, scales=scales, **attrs)
    wide = o.resize(cast(x, dtypes.float64), sizes=sizes, scales=scales, **attrs)
    return cast(wide, row)


@onnx_op("Upsample", since=7)
def upsample_7(x: Any, *, mode: str = "nearest", scales: Any) -> Any:
    return _old(x, tuple(scales), mode)


@onnx_op("Upsample", since=9)
def upsample(x: Any, scales: Any, *, mode: str = "nearest") -> Any:
    return _old(x, floats(scales, "the scales"), mode)


@onnx_op("Resize", since=10)
def resize_10(x: Any, scales: Any, *, mode: str = "nearest") -> Any:
    return _old(x, floats(scales, "the scales"), mode)


def _old(x: Any, scales: tuple[float, ...], mode: str) -> Any:
    sizes = tuple(scaled(d, s) for d, s in zip(x.shape, scales, strict=True))
    return _resized(x, sizes, scales, mode=_MODES[mode], coordinates="asymmetric",
                    rounding="floor")


@onnx_op("Resize", since=11)
def resize(x: Any, roi: Any = None, scales: Any = None, sizes: Any = None, *, antialias: int = 0,
           axes: Any = None, coordinate_transformation_mode: str = "half_pixel",
           cubic_coeff_a: float = -0.75, exclude_outside: int = 0,
           extrapolation_value: float = 0.0, keep_aspect_ratio_policy: str = "stretch",
           mode: str = "nearest", nearest_mode: str = "round_prefer_floor", ctx: Any) -> Any:
    at = tuple(range(x.ndim)) if axes is None else axes_of(axes, x.ndim)
    crop = _crop(roi, at, x.ndim) if coordinate_transformation_mode == "tf_crop_and_resize" \
        else None
    room = ctx.room()
    if sizes is not None and array_of(sizes) is None and room is not None and (
            keep_aspect_ratio_policy == "stretch"):
        wanted, factors = _by_sizes(x, at, tuple(room[a] for a in at), "stretch")
    elif sizes is not None and count_of(sizes):
        wanted, factors = _by_sizes(x, at, dims(sizes, "the sizes"), keep_aspect_ratio_policy)
    else:
        wanted, factors = _by_scales(x, at, floats(scales, "the scales"), crop)
    return _resized(x, wanted, factors, mode=_MODES[mode], cubic=cubic_coeff_a, roi=crop,
                    coordinates=coordinate_transformation_mode, rounding=nearest_mode,
                    exclude_outside=bool(exclude_outside), antialias=bool(antialias),
                    extrapolation=extrapolation_value)


def _crop(roi: Any, at: tuple[int, ...], rank: int) -> tuple[float, ...]:
    """Starts of all axes, then ends; axes that are not named keep all."""
    given = floats(roi, "the region")
    full = [0.0] * rank + [1.0] * rank
    for k, a in enumerate(at):
        full[a], full[rank + a] = given[k], given[len(at) + k]
    return tuple(full)


def _by_scales(x: Any, at: tuple[int, ...], given: tuple[float, ...],
               crop: Any) -> tuple[tuple[Dim, ...], tuple[float, ...]]:
    factors = [1.0] * x.ndim
    for k, a in enumerate(at):
        factors[a] = given[k]
    sizes = []
    for a, (d, s) in enumerate(zip(x.shape, factors, strict=True)):
        span = 1.0 if crop is None else crop[x.ndim + a] - crop[a]
        sizes.append(scaled(d, s) if span == 1.0 else scaled(d, s * span))
    return tuple(sizes), tuple(factors)


def _by_sizes(x: Any, at: tuple[int, ...], given: tuple[Dim, ...],
              policy: str) -> tuple[tuple[Dim, ...], tuple[float, ...] | None]:
    wanted: list[Dim] = list(x.shape)
    for k, a in enumerate(at):
        wanted[a] = given[k]
    if policy == "stretch":
        return tuple(wanted), None
    if not all(isinstance(d, int) for d in (*wanted, *x.shape)):
        raise Refused(f"the policy {policy} on symbolic sizes")
    ratios = [given[k] / x.shape[a] for k, a in enumerate(at)]
    scale = min(ratios) if policy == "not_larger" else max(ratios)
    factors = [1.0] * x.ndim
    for a in at:
        wanted[a], factors[a] = math.floor(x.shape[a] * scale + 0.5), scale
    return tuple(wanted), tuple(factors)
