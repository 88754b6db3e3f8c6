"""Images read at computed positions: GridSample, RoiAlign, MaxRoiPool, DeformConv.

Most of them use `sample`: gathers at the corners around each position, and their weighted sum.
"""

from __future__ import annotations

import itertools
import math
from functools import partial
from typing import Any

import numpy as np

from graphtool.importers.onnx.families.nn import bias_added, check_window
from graphtool.importers.onnx.families.shape import iota
from graphtool.importers.onnx.kit import Refused, dtypes, o, onnx_op, product


def read(x: Any, index: list[Any]) -> Any:
    """x [N, C, …] at integer positions, one array [N, O] for each axis: [N, O, C]."""
    columns = [i.cast(dtypes.int64).reshape((*i.shape, 1)) for i in index]
    joined = o.concat(*columns, axis=2) if len(columns) > 1 else columns[0]
    return o.gather(x, joined, axes=tuple(range(2, x.ndim)), batch=1)


def _read_inside(x: Any, index: list[Any], zeros: bool) -> tuple[Any, Any]:
    """The values at positions clamped into the image, and which were inside (or None)."""
    inside = None
    clamped = []
    for i, d in zip(index, x.shape[2:], strict=True):
        last = i.number(d - 1)
        if zeros:
            ok = (i >= 0.0) & (i <= last)
            inside = ok if inside is None else inside & ok
        clamped.append(o.clamp(i, 0.0, last))
    return read(x, clamped), inside


def sample(x: Any, at: list[Any], mode: str = "linear", zeros: bool = True,
           fold: Any = None, cubic: float = -0.75) -> Any:
    """x [N, C, …] interpolated at positions, one array [N, O] for each axis: [N, O, C].

    Neighbours outside the image read 0 with `zeros`, else the border. `fold` maps a neighbour's
    position into the image before the read.
    """
    if mode == "nearest":
        taps = [[(o.round(p), None)] for p in at]
    elif mode == "linear":
        taps = [_linear(p) for p in at]
    else:
        taps = [_cubic(p, cubic) for p in at]
    total = None
    for corner in itertools.product(*taps):
        index = [i if fold is None else fold(i, a) for a, (i, _) in enumerate(corner)]
        value, inside = _read_inside(x, index, zeros)
        weight = None
        for _, w in corner:
            weight = w if weight is None else weight if w is None else weight * w
        if inside is not None:
            value = o.select(inside.unsqueeze(), value, 0.0)
        part = value if weight is None else value * weight.unsqueeze()
        total = part if total is None else total + part
    return total


def _linear(p: Any) -> list[tuple[Any, Any]]:
    low = o.floor(p)
    rest = p - low
    return [(low, 1.0 - rest), (low + 1.0, rest)]


def _cubic(p: Any, a: float) -> list[tuple[Any, Any]]:
    """The four neighbours of a position and their weights by Keys' kernel."""
    low = o.floor(p)
    t = p - low

    def near(d: Any) -> Any:
        return ((d * (a + 2) - (a + 3)) * d * d) + 1.0

    def far(d: Any) -> Any:
        return ((d * a - 5 * a) * d + 8 * a) * d - 4 * a
    return [(low - 1.0, far(t + 1.0)), (low, near(t)), (low + 1.0, near(1.0 - t)),
            (low + 2.0, far(2.0 - t))]


# ---- GridSample --------------------------------------------------------------------------------

_MODES = {"bilinear": "linear", "linear": "linear", "bicubic": "cubic", "cubic": "cubic",
          "nearest": "nearest"}


@onnx_op("GridSample", since=16)
def grid_sample(x: Any, grid: Any, *, align_corners: int = 0, mode: str = "linear",
                padding_mode: str = "zeros") -> Any:
    """x interpolated at the positions of `grid` [N, …, D] by `gather`; they lie in −1…1, and the
    last axis of x comes first."""
    sizes = [x.number(d) for d in x.shape[2:]]
    out = tuple(grid.shape[1:-1])
    flat = grid.cast(x.dtype).reshape((grid.shape[0], product(out), len(sizes)))
    at = []
    for axis, d in enumerate(sizes):
        k = len(sizes) - 1 - axis
        g = flat.take(2, k, k + 1).reshape(tuple(flat.shape[:2]))
        at.append((g + 1.0) * ((d - 1.0) * 0.5) if align_corners else
                  ((g + 1.0) * d - 1.0) * 0.5)
    kind = _MODES[mode]
    fold = None
    if padding_mode == "reflection":
        if kind == "cubic":
            fold = partial(_reflected, sizes, bool(align_corners))
        else:
            at = [_reflected(sizes, bool(align_corners), p, a) for a, p in enumerate(at)]
    elif padding_mode == "border" and kind != "cubic":
        at = [o.clamp(p, 0.0, d - 1.0) for p, d in zip(at, sizes, strict=True)]
    # linear positions are in the image by now: a neighbour outside has weight 0, and 0 · ∞ is NaN
    y = sample(x, at, kind, padding_mode == "zeros" or kind == "linear", fold)
    return y.transpose((0, 2, 1)).reshape((x.shape[0], x.shape[1], *out))


def _reflected(sizes: list[Any], corners: bool, p: Any, axis: int) -> Any:
    """p mirrored into the image, at the border pixels' centres (`corners`) or outer edges."""
    last = sizes[axis] - 1.0
    lo, span = (0.0, o.max(last, 1.0)) if corners else (-0.5, sizes[axis])
    period = o.mod(p - lo, span * 2.0)
    mirrored = o.select(period > span, span * 2.0 - period, period)
    return o.clamp(mirrored + lo, 0.0, last)


# ---- RoiAlign ----------------------------------------------------------------------------------

@onnx_op("RoiAlign", since=10)
def roi_align_10(x: Any, rois: Any, batch: Any, *, mode: str = "avg", output_height: int = 1,
                 output_width: int = 1, sampling_ratio: int = 0,
                 spatial_scale: float = 1.0) -> Any:
    """RoiAlign without the half-pixel shift."""
    return roi_align(x, rois, batch, coordinate_transformation_mode="output_half_pixel", mode=mode,
                     output_height=output_height, output_width=output_width,
                     sampling_ratio=sampling_ratio, spatial_scale=spatial_scale)


@onnx_op("RoiAlign", since=16)
def roi_align(x: Any, rois: Any, batch: Any, *, coordinate_transformation_mode: str = "half_pixel",
              mode: str = "avg", output_height: int = 1, output_width: int = 1,
              sampling_ratio: int = 0, spatial_scale: float = 1.0) -> Any:
    """Regions divided into output_height × output_width bins, each reduced from sampling_ratio²
    interpolated samples: [regions, C, height, width]."""
    if sampling_ratio <= 0:
        raise Refused("sampling_ratio=0 is not supported, because each region then has its own "
                      "number of samples; set sampling_ratio to 1 or more")
    half = coordinate_transformation_mode == "half_pixel"
    box = rois * spatial_scale - (0.5 if half else 0.0)
    x0, y0, x1, y1 = (box.take(1, k, k + 1) for k in range(4))
    images = o.gather(x, batch.cast(dtypes.int64).reshape((batch.shape[0], 1)), axes=(0,))
    n, s = rois.shape[0], sampling_ratio
    lines = []
    for low, high, bins, d in ((y0, y1, output_height, x.shape[2]),
                               (x0, x1, output_width, x.shape[3])):
        size = high - low
        size = size if half else o.max(size, 1.0)
        steps = (np.arange(bins * s) + 0.5) / (bins * s)
        lines.append((low + size * x.builder.constant(steps.astype(x.dtype.numpy)[None]), d))
    (ys, h), (xs, w) = lines
    shape = (n, output_height * s, output_width * s)
    at, inside = [], None
    for line, d, where in ((ys, h, (n, shape[1], 1)), (xs, w, (n, 1, shape[2]))):
        p = o.broadcast(line.reshape(where), shape=shape).reshape((n, shape[1] * shape[2]))
        ok = (p >= -1.0) & (p <= p.number(d))
        inside = ok if inside is None else inside & ok
        at.append(o.clamp(p, 0.0, p.number(d - 1)))
    return _binned(images, at, inside, (n, output_height, s, output_width, s), mode)


def _binned(images: Any, at: list[Any], inside: Any, shape: tuple[Any, ...], mode: str) -> Any:
    channels = images.shape[1]
    if mode == "max":  # ONNX takes the greatest weighted corner, not the greatest sample
        value: Any = None
        for (y, wy), (x, wx) in itertools.product(*(_linear(p) for p in at)):
            corner, _ = _read_inside(images, [y, x], False)
            part = corner * (wy * wx).reshape((*wy.shape, 1))
            value = part if value is None else o.max(value, part)
    else:
        value = sample(images, at, "linear", False)
    value = o.select(inside.unsqueeze(), value, 0.0)
    bins = value.reshape((*shape, channels))
    best = o.reduce_max(bins, axes=(2, 4)) if mode == "max" else o.reduce_mean(bins, axes=(2, 4))
    n, height, _, width, _ = shape
    return best.reshape((n, height, width, channels)).transpose((0, 3, 1, 2))


@onnx_op("MaxRoiPool")
def max_roi_pool(x: Any, rois: Any, *, pooled_shape: Any, spatial_scale: float = 1.0) -> Any:
    """The greatest element in each bin of each region, by masks and `reduce_max`.

    Bins consist of whole pixels; an empty bin gives 0.
    """
    at = rois.take(1, 0, 1).cast(dtypes.int64).reshape((rois.shape[0], 1))
    y = o.gather(x, at, axes=(0,))  # [regions, C, H, W]
    corners = [o.floor(rois.take(1, k, k + 1) * spatial_scale + 0.5) for k in range(1, 5)]
    empty: Any = None
    for axis, low, high, bins in ((3, corners[0], corners[2], pooled_shape[1]),
                                  (2, corners[1], corners[3], pooled_shape[0])):
        step = o.max(high - low + 1.0, 1.0) * (1 / bins)
        line = x.builder.constant(np.arange(bins, dtype=x.dtype.numpy)[None])
        start = (o.floor(line * step) + low).reshape((*step.shape[:1], bins, 1))
        end = (o.ceil((line + 1.0) * step) + low).reshape((*step.shape[:1], bins, 1))
        pixel = iota(x.number(0), x.shape[axis:axis + 1], 0).cast(x.dtype)
        mine = (pixel >= start) & (pixel < end)  # [regions, bins, d]
        y, none = _greatest(y, mine, axis)
        empty = none if empty is None else empty | none
    return o.select(empty, 0.0, y)


def _greatest(y: Any, mine: Any, axis: int) -> tuple[Any, Any]:
    """The maximum over an axis within each bin, and which bins are empty, [regions, 1, …]."""
    n, bins, d = mine.shape
    behind = (1,) * (3 - axis)
    mask = mine.reshape((n, 1, *(1,) * (axis - 2), bins, d, *behind))
    wide = y.reshape((*y.shape[:axis], 1, *y.shape[axis:]))
    best = o.reduce_max(o.select(mask, wide, -math.inf), axes=(axis + 1,))
    none = ~o.reduce_or(mask, axes=(axis + 1,))
    shape = (*best.shape[:axis + 1], *best.shape[axis + 2:])
    return (best.reshape(shape), none.reshape((n, 1, *(1,) * (axis - 2), bins, *behind)))


# ---- DeformConv --------------------------------------------------------------------------------

@onnx_op("DeformConv", since=19)
def deform_conv(x: Any, w: Any, offset: Any, bias: Any = None, mask: Any = None, *,
                dilations: Any = None, group: int = 1, kernel_shape: Any = None,
                offset_group: int = 1, pads: Any = None, strides: Any = None) -> Any:
    """A convolution in which each read has its own offset and weight: `gather`, then `matmul`."""
    if x.ndim != 4:
        raise Refused(f"DeformConv is supported over 2 spatial axes, x has {x.ndim - 2}")
    check_window(w, kernel_shape)
    n, channels, *_ = x.shape
    kernel = tuple(w.shape[2:])
    if not all(isinstance(k, int) for k in kernel):
        raise Refused("the kernel of the weights must have a fixed size; fix it with "
                      "--dynamic NAME=SIZE")
    taps, (height, width) = math.prod(kernel), tuple(offset.shape[2:])
    strides, dilations, pads = strides or (1, 1), dilations or (1, 1), pads or (0,) * 4
    base = []
    for a, (s, d, lo) in enumerate(zip(strides, dilations, pads, strict=False)):
        out, tap = (iota(x.number(0), (*kernel, height, width), i) for i in (2 + a, a))
        line = out * s + tap * d - lo
        base.append(line.reshape((1, taps * height * width)).cast(x.dtype))
    moved = offset.reshape((n * offset_group, taps, 2, height * width))
    at = [moved.take(2, k, k + 1).reshape((n * offset_group, taps * height * width)) + base[k]
          for k in range(2)]
    each = channels // offset_group
    images = x.reshape((n * offset_group, each, *x.shape[2:]))
    seen = sample(images, at)  # [n·groups, taps·out, each]
    if mask is not None:
        seen = seen * mask.reshape((n * offset_group, taps * height * width, 1))
    columns = seen.transpose((0, 2, 1)).reshape((n, group, channels // group * taps, height *
                                                 width))
    rows = w.reshape((1, group, w.shape[0] // group, channels // group * taps))
    y = o.matmul(rows, columns).reshape((n, w.shape[0], height, width))
    return bias_added(y, bias)
