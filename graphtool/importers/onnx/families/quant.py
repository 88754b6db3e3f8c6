"""Quantisation to integers and float8 and back, and the operators that compute on such tensors.

y = saturate(round(x / scale) + zero point), x = (y − zero point) · scale. A scale has one entry,
one for each index of an axis, or one for each block along it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from graphtool import dtypes
from graphtool import ops as o
from graphtool.dtypes import DType
from graphtool.importers.onnx.driver.reader import element_type
from graphtool.importers.onnx.driver.registry import onnx_op
from graphtool.importers.onnx.driver.values import axis_of, cast, dtype_of, operands, reshape, take
from graphtool.importers.onnx.families.nn import conv, matmul


def spread(p: Any, x: Any, axis: int, block: int) -> Any:
    """A scale or zero point in a shape that broadcasts to x."""
    if p is None or p.ndim == 0 or (p.ndim == 1 and p.shape[0] == 1 and not block):
        return p if p is None or p.ndim == 0 else reshape(p, ())
    axis = axis_of(axis, x.ndim)
    if p.ndim == 1 and not block:
        return reshape(p, tuple(d if k == axis else 1 for k, d in enumerate(x.shape)))
    if not block:
        return p
    n, d = p.shape[axis], x.shape[axis]
    wide = o.broadcast(reshape(p, (*p.shape[:axis + 1], 1, *p.shape[axis + 1:])),
                       shape=(*p.shape[:axis + 1], block, *p.shape[axis + 1:]))
    flat = reshape(wide, (*p.shape[:axis], n * block, *p.shape[axis + 1:]))
    return flat if n * block == d else take(flat, axis, 0, d)


def over_blocks(f: Callable[..., Any], x: Any, scale: Any, zero: Any, axis: int,
                block: int) -> Any:
    """f(x, scale, zero), with scale and zero point in shapes that broadcast to x.

    If whole blocks fill the axis, x is reshaped instead. Repeating the scales would make a tensor
    as large as x.
    """
    axis = axis_of(axis, x.ndim) if block else axis
    if not block or scale.ndim != x.ndim or scale.shape[axis] * block != x.shape[axis]:
        return f(x, *(spread(p, x, axis, block) for p in (scale, zero)))
    before, behind = x.shape[:axis], x.shape[axis + 1:]
    ones = [p if p is None else reshape(p, (*p.shape[:axis + 1], 1, *p.shape[axis + 1:]))
            for p in (scale, zero)]
    split = reshape(x, (*before, scale.shape[axis], block, *behind))
    return reshape(f(split, *ones), x.shape)


def quantized(x: Any, scale: Any, zero: Any, row: DType, saturate: bool = True) -> Any:
    """saturate(round(x / scale) + zero) as dtype `row`; scale and zero point broadcast to x."""
    y = o.div(*operands(x, scale))
    if row.is_float:
        return cast(y, row, saturate)
    if row.bits <= 16 and dtype_of(y).bits >= 32:  # floats hold all sums that are not clamped
        y = o.round(y)
        y = y if zero is None else o.add(*operands(y, cast(zero, dtype_of(y))))
        return cast(o.clamp(y, float(row.low), float(row.high)), row)
    wide = dtypes.int32 if row.bits <= 16 else dtypes.int64
    y = cast(o.clamp(o.round(y), -2.0**30, 2.0**30), wide)
    if zero is not None:
        y = o.add(*operands(y, cast(zero, wide)))
    return cast(o.clamp(y, row.low, row.high), row)


@onnx_op("QuantizeLinear", since=10)
def quantize_linear(x: Any, scale: Any, zero: Any = None, *, axis: int = 1, block_size: int = 0,
                    output_dtype: int = 0, precision: int = 0, saturate: int = 1) -> Any:
    """`div`, `round`, `add`, `clamp` and `cast` to the zero point's dtype; for float8 `div` and
    `cast`."""
    row = dtype_of(zero) if zero is not None else (
        element_type(output_dtype) if output_dtype else dtypes.uint8)
    kind = element_type(precision) if precision else dtype_of(scale)
    if kind.bits < 32:
        kind = dtypes.float32
    return over_blocks(lambda x, s, z: quantized(x, s, z, row, bool(saturate)), cast(x, kind),
                       cast(scale, kind), zero, axis, block_size)


@onnx_op("DequantizeLinear", since=10, fold=False)  # small weights stay integers too
def dequantize_linear(x: Any, scale: Any, zero: Any = None, *, axis: int = 1,
                      block_size: int = 0, output_dtype: int = 0) -> Any:
    """(x − zero point) · scale, as `sub`, `cast` and `mul`."""
    row = element_type(output_dtype) if output_dtype else dtype_of(scale)
    kind = dtypes.float32 if dtype_of(scale).bits < 32 else dtype_of(scale)
    if dtype_of(x).is_packed and not dtype_of(x).is_float:  # few runtimes move it
        x, zero = (p if p is None else cast(p, dtypes.int32) for p in (x, zero))
    return cast(over_blocks(lambda x, s, z: o.mul(*operands(centred(x, z, kind), s)), x,
                            cast(scale, kind), zero, axis, block_size), row)


def centred(x: Any, zero: Any, kind: DType) -> Any:
    """x − zero point as dtype `kind`; integers are subtracted as integers."""
    if dtype_of(x).is_float:
        x = cast(x, kind)
        return x if zero is None else o.sub(x, cast(zero, kind))
    wide = cast(x, dtypes.int64 if dtype_of(x).bits > 32 else dtypes.int32)
    wide = wide if zero is None else o.sub(*operands(wide, cast(zero, dtype_of(wide))))
    return cast(wide, kind)


@onnx_op("DynamicQuantizeLinear", since=11)
def dynamic_quantize_linear(x: Any) -> list[Any]:
    """x quantised to uint8 by its own range (extended to contain 0), scale and zero point."""
    axes = tuple(range(x.ndim))
    low, high = (reshape(f(g(x, axes=axes), 0.0), ()) for f, g in (
        (o.min, o.reduce_min), (o.max, o.reduce_max)))
    scale = o.div(o.sub(high, low), 255.0)
    zero = cast(o.clamp(o.round(o.div(o.sub(0.0, low), scale)), 0.0, 255.0), dtypes.uint8)
    return [quantized(x, scale, zero, dtypes.uint8), scale, zero]


# ---- products of integers ----------------------------------------------------------------------

def _row_wise(p: Any, rank: int) -> Any:
    """A zero point or scale for each row of the left operand, as a column."""
    if p is None or p.ndim == 0 or rank < 2:
        return p
    return reshape(p, (p.shape[0], 1)) if p.ndim == 1 and p.shape[0] != 1 else p


@onnx_op("MatMulInteger", since=10)
def matmul_integer(a: Any, b: Any, a_zero: Any = None, b_zero: Any = None) -> Any:
    """`matmul` of both operands minus their zero points, in int32."""
    left = centred(a, _row_wise(a_zero, a.ndim), dtypes.int32)
    return matmul(left, centred(b, b_zero, dtypes.int32))


@onnx_op("QLinearMatMul", since=10)
def qlinear_matmul(a: Any, a_scale: Any, a_zero: Any, b: Any, b_scale: Any, b_zero: Any,
                   y_scale: Any, y_zero: Any) -> Any:
    """An int32 `matmul` (float32 for float8), times both scales, quantised."""
    product = matmul_integer(a, b, a_zero, b_zero) if dtype_of(a).is_integer else matmul(
        centred(a, a_zero, dtypes.float32), centred(b, b_zero, dtypes.float32))
    kind = dtypes.float32
    scale = o.mul(*operands(cast(_row_wise(a_scale, a.ndim), kind), cast(b_scale, kind)))
    real = o.mul(cast(product, kind), scale)
    return quantized(real, cast(_row_wise(y_scale, a.ndim), kind), _row_wise(y_zero, a.ndim),
                     dtype_of(y_zero))


@onnx_op("ConvInteger", since=10)
def conv_integer(x: Any, w: Any, x_zero: Any = None, w_zero: Any = None, *,
                 auto_pad: str = "NOTSET", dilations: Any = None, group: int = 1,
                 kernel_shape: Any = None, pads: Any = None, strides: Any = None) -> Any:
    """`conv` of both operands minus their zero points, in int32."""
    return conv(centred(x, x_zero, dtypes.int32), _filters(w, w_zero), auto_pad=auto_pad,
                dilations=dilations, group=group, kernel_shape=kernel_shape, pads=pads,
                strides=strides)


def _filters(w: Any, zero: Any) -> Any:
    """Weights minus their zero point, which is one number or one for each output channel."""
    if zero is not None and zero.ndim == 1 and zero.shape[0] != 1:
        zero = reshape(zero, (zero.shape[0], *[1] * (w.ndim - 1)))
    elif zero is not None:
        zero = reshape(zero, ())
    return centred(w, zero, dtypes.int32)


@onnx_op("QLinearConv", since=10)
def qlinear_conv(x: Any, x_scale: Any, x_zero: Any, w: Any, w_scale: Any, w_zero: Any,
                 y_scale: Any, y_zero: Any, bias: Any = None, *,
                 auto_pad: str = "NOTSET", dilations: Any = None, group: int = 1,
                 kernel_shape: Any = None, pads: Any = None, strides: Any = None) -> Any:
    """An int32 `conv` plus its int32 bias, times both scales, quantised."""
    total = conv(centred(x, x_zero, dtypes.int32), _filters(w, w_zero), bias, auto_pad=auto_pad,
                 dilations=dilations, group=group, kernel_shape=kernel_shape, pads=pads,
                 strides=strides)
    if w_scale.ndim == 1 and w_scale.shape[0] != 1:
        w_scale = reshape(w_scale, (1, w_scale.shape[0], *[1] * (w.ndim - 2)))
    else:
        w_scale = reshape(w_scale, ())
    real = o.mul(*operands(cast(total, dtypes.float32), o.mul(*operands(x_scale, w_scale))))
    return quantized(real, y_scale, y_zero, dtype_of(y_zero))
