"""Pooling and MaxUnpool. What ceil_mode adds becomes padding behind the input."""

from __future__ import annotations

from typing import Any

from graphtool.importers.onnx.families.nn import spans_of, window_pads
from graphtool.importers.onnx.kit import agreed_entries, array_of, dim_value, dims, o, onnx_op
from graphtool.ops.indexing import Pairs, overhang
from graphtool.symbolic import Dim, floordiv, product


def pool_pads(x: Any, spans: Any, strides: Any, pads: Any, auto_pad: str,
              ceil_mode: int) -> tuple[Pairs, tuple[Dim, ...]]:
    """The declared padding, and what ceil_mode adds behind each axis.

    An open size is required to have room for a window: without it, there is none by the
    specification, but runtimes take what there is.
    """
    space = x.shape[2:]
    padding = window_pads(space, spans, strides, pads, auto_pad)
    if pads is not None and any(max(lo_hi) >= k for lo_hi, k in zip(padding, spans, strict=True)):
        raise ValueError(f"the pads {tuple(pads)} must be smaller than the window {spans}")
    extra: list[Dim] = []
    for d, k, s, (lo, hi) in zip(space, spans, strides, padding, strict=True):
        if not ceil_mode or auto_pad not in ("NOTSET", ""):
            extra.append(0)
            continue
        extra.append(overhang(d, k, s, lo, hi))
    for d, k, (lo, hi) in zip(space, spans, _grown(padding, extra), strict=True):
        x.builder.fits(d + lo + hi - k)
    return padding, tuple(extra)


def _grown(padding: Pairs, extra: Any) -> Pairs:
    return tuple((lo, hi + e) for (lo, hi), e in zip(padding, extra, strict=True))


@onnx_op("MaxPool")
def max_pool(x: Any, *, auto_pad: str = "NOTSET", ceil_mode: int = 0, dilations: Any = None,
             kernel_shape: Any, pads: Any = None, storage_order: int = 0, strides: Any = None,
             ctx: Any) -> Any:
    """`max_pool`; output 1 is the flat position of each maximum, as an `arg_reduce_window`."""
    n = x.ndim - 2
    strides, dilations = strides or (1,) * n, dilations or (1,) * n
    spans = spans_of(kernel_shape, dilations)
    padding = _grown(*pool_pads(x, spans, strides, pads, auto_pad, ceil_mode))
    y = o.max_pool(x, window=kernel_shape, strides=strides, padding=padding, dilation=dilations)
    if not ctx.wanted(1):
        return y
    return y, _max_positions(x, kernel_shape, strides, padding, dilations, storage_order)


def _max_positions(x: Any, window: Any, strides: Any, padding: Any, dilations: Any,
                   storage_order: int) -> Any:
    """The flat position in x of each maximum, the first one of its window: row-major, or column-
    major within each image."""
    place = o.arg_reduce_window(x, kind="max", window=(1, 1, *window), strides=(1, 1, *strides),
                                padding=((0, 0), (0, 0), *padding),
                                window_dilation=(1, 1, *dilations))
    if not storage_order:
        return place
    space = x.shape[2:]
    count = dim_value(product(space), x)
    rest = o.mod(place, count)
    turned = place - rest
    step: Dim = product(space)
    weight: Dim = 1
    for d in space:
        step = floordiv(step, d)
        turned = turned + o.mod(o.div(rest, dim_value(step, x)), dim_value(d, x)) * dim_value(
            weight, x)
        weight = weight * d
    return turned


@onnx_op("AveragePool")
def average_pool(x: Any, *, auto_pad: str = "NOTSET", ceil_mode: int = 0,
                 count_include_pad: int = 0, dilations: Any = None, kernel_shape: Any,
                 pads: Any = None, strides: Any = None) -> Any:
    """`avg_pool`. With counted padding, the padding is a `pad` of its own and only what ceil_mode
    adds is not counted."""
    n = x.ndim - 2
    strides, dilations = strides or (1,) * n, dilations or (1,) * n
    padding, extra = pool_pads(x, spans_of(kernel_shape, dilations), strides, pads,
                               auto_pad, ceil_mode)
    more = {"window": kernel_shape, "strides": strides, "dilation": dilations}
    if count_include_pad and any(e != 0 for e in extra):  # only what ceil_mode adds does not count
        x = o.pad(x, lo=(0, 0, *(lo for lo, _ in padding)), hi=(0, 0, *(hi for _, hi in padding)))
        return o.avg_pool(x, padding=tuple((0, e) for e in extra), **more)
    return o.avg_pool(x, padding=_grown(padding, extra),
                      count_include_pad=bool(count_include_pad), **more)


@onnx_op("LpPool")
def lp_pool(x: Any, *, auto_pad: str = "NOTSET", ceil_mode: int = 0, dilations: Any = None,
            kernel_shape: Any, p: float = 2, pads: Any = None, strides: Any = None) -> Any:
    """(Σ |x|ᵖ)^(1/p) over each window, as `reduce_window` between two `pow`."""
    n = x.ndim - 2
    strides, dilations = strides or (1,) * n, dilations or (1,) * n
    padding = _grown(*pool_pads(x, spans_of(kernel_shape, dilations), strides, pads,
                                auto_pad, ceil_mode))
    powers = abs(x) ** float(p)
    total = o.reduce_window(
        powers, kind="sum", window=(1, 1, *kernel_shape), strides=(1, 1, *strides),
        padding=((0, 0), (0, 0), *padding), window_dilation=(1, 1, *dilations))
    return total ** (1.0 / p)


@onnx_op("GlobalAveragePool")
def global_average_pool(x: Any) -> Any:
    """`reduce_mean` over all spatial axes, which stay with size 1."""
    return o.reduce_mean(x, axes=tuple(range(2, x.ndim)))


@onnx_op("GlobalMaxPool")
def global_max_pool(x: Any) -> Any:
    """`reduce_max` over all spatial axes, which stay with size 1."""
    return o.reduce_max(x, axes=tuple(range(2, x.ndim)))


@onnx_op("GlobalLpPool")
def global_lp_pool(x: Any, *, p: float = 2) -> Any:
    """(Σ |x|ᵖ)^(1/p) over all spatial axes, which stay with size 1: `reduce_sum`, `pow`."""
    total = o.reduce_sum(abs(x) ** float(p), axes=tuple(range(2, x.ndim)))
    return total ** (1.0 / p)


@onnx_op("MaxUnpool")
def max_unpool(x: Any, indices: Any, shape: Any = None, *, kernel_shape: Any, pads: Any = None,
               strides: Any = None, ctx: Any) -> Any:
    """x written by `scatter` to the flat positions that MaxPool returned; zeros elsewhere."""
    n = x.ndim - 2
    strides, pads = strides or (1,) * n, pads or (0,) * (2 * n)
    plain = (*x.shape[:2], *((d - 1) * s + k - pads[i] - pads[i + n] for i, (d, s, k) in enumerate(
        zip(x.shape[2:], strides, kernel_shape, strict=True))))
    flat = o.broadcast(x.number(0), shape=(product(plain),))
    at = indices.reshape((product(x.shape), 1))
    y = o.scatter(flat, at, x.reshape((product(x.shape),)), axes=(0,))
    y = y.reshape(plain)
    if shape is None:
        return y
    room = ctx.room() if array_of(shape) is None else None
    wanted = dims(shape, "the output shape") if room is None else agreed_entries(
        shape, room, "the output shape")
    return o.pad(y, lo=(0,) * x.ndim, hi=tuple(a - b for a, b in zip(wanted, plain, strict=True)))
