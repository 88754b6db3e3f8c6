"""Images of another size, and grids: Resize and Upsample (`resize` for constant sizes and scales,
`resize_by` for computed ones), AffineGrid, Col2Im."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np

from graphtool.importers.onnx.driver.claims import agreed_entries, declared_size
from graphtool.importers.onnx.driver.values import (
    array_of,
    axes_of,
    count_of,
    dim_tensor,
    dim_value,
    dims,
    floats,
    ints,
)
from graphtool.importers.onnx.families.shape import iota
from graphtool.importers.onnx.kit import Refused, Tracer, dtypes, known_element, o, onnx_op
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


# ---- grids --------------------------------------------------------------------------------------

@onnx_op("AffineGrid", since=20)
def affine_grid(theta: Any, size: Any, *, align_corners: int = 0, ctx: Any) -> Any:
    """theta [N, d, d + 1] applied to the points (x, y, …, 1) of an image whose sides run from −1 to
    1: [N, …, H, W, d]."""
    rank = count_of(size) - 2
    room = ctx.room() if array_of(size) is None else None
    given = size.take(0, 2, rank + 2)
    sides = agreed_entries(given, room[1:-1], "the size") if room is not None else dims(
        given, "the size")
    points = []
    for axis in reversed(range(rank)):  # x runs along the last axis
        place = tuple(sides[axis] if k == axis else 1 for k in range(rank))
        line = iota(theta, (1, *place), axis + 1, theta.dtype)
        steps = _scalar(sides[axis], theta).cast(theta.dtype)
        points.append(line * (2.0 / o.max(steps - 1.0, 1.0)) - 1.0 if align_corners
                      else (line * 2.0 + 1.0) / steps - 1.0)
    columns = []
    for j in range(rank):
        def entry(k: int, j: int = j) -> Any:
            one = theta.take(1, j, j + 1).take(2, k, k + 1)
            return one.reshape((theta.shape[0], *(1,) * rank))
        y = entry(rank)
        for k, p in enumerate(points):
            y = y + entry(k) * p
        whole = o.broadcast(y, shape=(theta.shape[0], *sides))
        columns.append(whole.unsqueeze())
    return o.concat(*columns, axis=rank + 1)


def _scalar(d: Dim, like: Any) -> Any:
    return iota(like, (1,), 0).number(0).number(d) if isinstance(d, int) else dim_tensor(d,
        like.builder)


@onnx_op("Col2Im", since=18)
def col2im(x: Any, image: Any, block: Any, *, dilations: Any = None, pads: Any = None,
           strides: Any = None, ctx: Any) -> Any:
    """Blocks added to a padded image at their positions, by `scatter`; the image is then
    cropped."""
    n, room = count_of(image), ctx.room()
    known = array_of(image) is not None and array_of(block) is not None
    room = None if known else room
    size: tuple[Dim, ...] = dims(image, "the image shape") if room is None else agreed_entries(
        image, room[2:], "the image shape")
    dilations, strides, pads = dilations or (1,) * n, strides or (1,) * n, pads or (0,) * (2 * n)
    wide = [d + pads[i] + pads[i + n] for i, d in enumerate(size)]
    if array_of(block) is not None and all(isinstance(d, int) for d in size):
        kernel = ints(block, "the block shape")
        channels: Dim = x.shape[1] // math.prod(kernel)
        place = x.builder.constant(_places(wide, kernel, dilations, strides))
    else:
        channels = _channels(x, block, None if room is None else room[1])
        place = _computed_places(x, channels, wide, block, dilations, strides)
    apart = x.reshape((x.shape[0], channels, place.shape[0]))
    canvas = o.broadcast(x.number(0).reshape((1, 1, 1)),
                         shape=(x.shape[0], channels, product(wide)))
    total = o.scatter(canvas, place, apart.transpose((2, 0, 1)), axes=(2,), kind="add")
    full = total.reshape((x.shape[0], channels, *wide))
    return o.slice(full, start=(0, 0, *pads[:n]), strides=(1,) * (n + 2), limit=(
        x.shape[0], channels, *(pads[i] + size[i] for i in range(n))))


def _places(wide: Any, kernel: Any, dilations: Any, strides: Any) -> Any:
    """The position in the flat image of each element of each block, [taps · blocks, 1]."""
    place = np.zeros((1, 1), np.int64)
    for d, k, r, s in zip(wide, kernel, dilations, strides, strict=True):
        count = (d - (k - 1) * r - 1) // s + 1
        line = np.arange(k)[:, None] * r + np.arange(count)[None] * s
        place = (place[:, None, :, None] * d + line[None, :, None, :]).reshape(
            place.shape[0] * k, -1)
    return place.reshape(-1, 1)


def _channels(x: Any, block: Any, declared: int | None) -> Dim:
    taps = o.reduce_prod(block.cast(dtypes.int64), axes=(0,))
    if not isinstance(x.shape[1], int):
        raise Refused("a block_shape that the run computes needs a fixed number of channels; fix "
                      "it with --dynamic NAME=SIZE, or make block_shape a constant")
    count = dim_tensor(x.shape[1], block.builder) / taps.reshape(())
    return declared_size(count, declared, "the number of channels", 1, x.shape[1])


def _computed_places(x: Any, channels: Dim, wide: Any, block: Any, dilations: Any,
                     strides: Any) -> Any:
    """The same if the run computes the sizes: tap and block follow from the index."""
    blocks = x.shape[2]
    line = iota(x, (product(x.shape[1:]) // channels, 1), 0)
    tap, at = line / dim_value(blocks, x), o.mod(line, dim_value(blocks, x))
    place: Any = None
    step: Any = None
    for a in reversed(range(len(wide))):
        k = block.take(0, a, a + 1).cast(dtypes.int64).reshape(())
        d, r, s = wide[a], dilations[a], strides[a]
        reach = (k - 1) * r
        count = (_scalar(d, x) - reach - 1) / s + 1
        here = o.mod(tap, k) * r + o.mod(at, count) * s
        tap, at = tap / k, at / count
        place = here if place is None else place + here * step
        step = _scalar(d, x) if step is None else step * _scalar(d, x)
    return place
