"""The quantise and dequantise calls that pt2e leaves in a graph (`quantized_decomposed.*`)."""

from __future__ import annotations

from typing import Any

from graphtool import dtypes
from graphtool import ops as o
from graphtool.importers.torch.context import Context, axis_of
from graphtool.importers.torch.table import aten
from graphtool.ir.trace import Tracer

_SPACE = "quantized_decomposed"


def _along(c: Context, v: Tracer, x: Tracer, axis: int) -> Tracer:
    """One number for each channel, to go beside x."""
    at = axis_of(axis, x.ndim)
    return c.reshape(v, [d if i == at else 1 for i, d in enumerate(x.shape)])


def _quantized(c: Context, x: Tracer, scale: Any, zero: Any, low: int, high: int) -> Any:
    """clamp(round(x·(1/scale)) + zero)"""
    inverse = 1.0 / scale if isinstance(scale, float) else o.div(1.0, c.cast(scale, x.dtype))
    steps = o.add(o.round(o.mul(x, inverse)), c.cast(zero, x.dtype))
    return c.cast(o.clamp(steps, float(low), float(high)), c.out.dtype)


def _dequantized(c: Context, x: Tracer, scale: Any, zero: Any) -> Any:
    """(x − zero)·scale, in the type of the result"""
    wide = c.cast(x, c.out.dtype)
    moved = wide if zero is None else o.sub(wide, c.cast(zero, wide.dtype))
    return o.mul(moved, c.cast(scale, wide.dtype))


@aten("quantize_per_tensor", namespace=_SPACE)
def quantize_per_tensor(c: Context, input: Tracer, scale: Any, zero_point: Any, quant_min: int,
                        quant_max: int, dtype: Any) -> Any:
    return _quantized(c, input, _scalar(c, scale), _scalar(c, zero_point), quant_min, quant_max)


@aten("dequantize_per_tensor", namespace=_SPACE)
def dequantize_per_tensor(c: Context, input: Tracer, scale: Any, zero_point: Any, quant_min: int,
                          quant_max: int, dtype: Any, *, out_dtype: Any = None) -> Any:
    return _dequantized(c, input, _scalar(c, scale), _scalar(c, zero_point))


def _scalar(c: Context, x: Any) -> Any:
    """Scales that torch computes are tensors of one element."""
    return c.reshape(x, ()) if isinstance(x, Tracer) else x


@aten("quantize_per_channel", namespace=_SPACE)
def quantize_per_channel(c: Context, input: Tracer, scales: Tracer, zero_points: Tracer, axis: int,
                         quant_min: int, quant_max: int, dtype: Any) -> Any:
    return _quantized(c, input, _along(c, scales, input, axis),
                      _along(c, zero_points, input, axis), quant_min, quant_max)


@aten("dequantize_per_channel", namespace=_SPACE)
def dequantize_per_channel(c: Context, input: Tracer, scales: Tracer, zero_points: Tracer | None,
                           axis: int, quant_min: int, quant_max: int, dtype: Any, *,
                           out_dtype: Any = None) -> Any:
    zero = None if zero_points is None else _along(c, zero_points, input, axis)
    return _dequantized(c, input, _along(c, scales, input, axis), zero)


@aten("choose_qparams.tensor", namespace=_SPACE)
def choose_qparams(c: Context, input: Tracer, quant_min: int, quant_max: int, eps: float,
                   dtype: Any) -> Any:
    """(scale, zero point) that put the span of the data, 0 with it, on quant_min..quant_max."""
    axes = tuple(range(input.ndim))
    low = o.min(o.reduce_min(input, axes=axes), 0.0)
    high = o.max(o.reduce_max(input, axes=axes), 0.0)
    scale = o.max(o.div(o.sub(high, low), float(quant_max - quant_min)), float(eps))
    zero = o.clamp(o.sub(float(quant_min), o.round(o.div(low, scale))), float(quant_min),
                   float(quant_max))
    return tuple(c.reshape(c.cast(x, t), (1,)) for x, t in (
        (scale, dtypes.float64), (zero, dtypes.int64)))


@aten("_int_mm")
def int_mm(c: Context, self: Tracer, mat2: Tracer) -> Any:
    """A product of int8 in int32, which torchao's dynamic quantisation leaves."""
    return o.matmul(*(o.cast(x, dtype=dtypes.int32) for x in (self, mat2)))
