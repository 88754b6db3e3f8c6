"""Quantisation to integers and float8 and back, and the operators that compute on such tensors.

y = saturate(round(x / scale) + zero point), x = (y − zero point) · scale. A scale has one entry,
one for each index of an axis, or one for each block along it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from graphtool.importers.onnx.families.nn import conv, matmul
from graphtool.importers.onnx.kit import DType, axis_of, dtypes, element_type, o, onnx_op


def spread(p: Any, x: Any, axis: int, block: int) -> Any:
    """A scale or zero point in a shape that broadcasts to x."""
    if p is None or p.ndim == 0 or (p.ndim == 1 and p.shape[0] == 1 and not block):
        return p if p is None or p.ndim == 0 else p.reshape(())
    axis = axis_of(axis, x.ndim)
    if p.ndim == 1 and not block:
        return p.reshape(tuple(d if k == axis else 1 for k, d in enumerate(x.shape)))
    if not block:
        return p
    n, d = p.shape[axis], x.shape[axis]
    wide = o.broadcast(p.reshape((*p.shape[:axis + 1], 1, *p.shape[axis + 1:])),
                       shape=(*p.shape[:axis + 1], block, *p.shape[axis + 1:]))
    flat = wide.reshape((*p.shape[:axis], n * block, *p.shape[axis + 1:]))
    return flat if n * block == d else flat.take(axis, 0, d)


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
    ones = [p if p is None else p.reshape((*p.shape[:axis + 1], 1, *p.shape[axis + 1:]))
            for p in (scale, zero)]
    split = x.reshape((*before, scale.shape[axis], block, *behind))
    return f(split, *ones).reshape(x.shape)


def quantized(x: Any, scale: Any, zero: Any, row: DType, saturate: bool = True) -> Any:
    """saturate(round(x / scale) + zero) as dtype `row`; scale and zero point broadcast to x."""
    y = x / scale
    if row.is_float:
        return y.cast(row, saturate)
    if row.bits <= 16 and y.dtype.bits >= 32:  # floats hold all sums that are not clamped
        y = o.round(y)
        y = y if zero is None else y + zero.cast(y.dtype)
        return o.clamp(y, float(row.low), float(row.high)).cast(row)
    wide = dtypes.int32 if row.bits <= 16 else dtypes.int64
    y = o.clamp(o.round(y), -2.0 ** 30, 2.0 ** 30).cast(wide)
    if zero is not None:
        y = y + zero.cast(wide)
    return o.clamp(y, row.low, row.high).cast(row)


@onnx_op("QuantizeLinear", since=10)
def quantize_linear(x: Any, scale: Any, zero: Any = None, *, axis: int = 1, block_size: int = 0,
                    output_dtype: int = 0, precision: int = 0, saturate: int = 1) -> Any:
    """`div`, `round`, `add`, `clamp` and `cast` to the zero point's dtype; for float8 `div` and
    `cast`."""
    row = zero.dtype if zero is not None else (
        element_type(output_dtype) if output_dtype else dtypes.uint8)
    kind = element_type(precision) if precision else scale.dtype
    if kind.bits < 32:
        kind = dtypes.float32
    return over_blocks(lambda x, s, z: quantized(x, s, z, row, bool(saturate)), x.cast(kind),
                       scale.cast(kind), zero, axis, block_size)


@onnx_op("DequantizeLinear", since=10, fold=False)  # small weights stay integers too
def dequantize_linear(x: Any, scale: Any, zero: Any = None, *, axis: int = 1,
                      block_size: int = 0, output_dtype: int = 0) -> Any:
    """(x − zero point) · scale, as `sub`, `cast` and `mul`."""
    row = element_type(output_dtype) if output_dtype else scale.dtype
    kind = dtypes.float32 if scale.dtype.bits < 32 else scale.dtype
    if x.dtype.is_packed and not x.dtype.is_float:  # few runtimes move it
        x, zero = (p if p is None else p.cast(dtypes.int32) for p in (x, zero))
    return over_blocks(lambda x, s, z: centred(x, z, kind) * s, x, scale.cast(kind), zero, axis,
                       block_size).cast(row)


def centred(x: Any, zero: Any, kind: DType) -> Any:
    """x − zero point as dtype `kind`; integers are subtracted as integers."""
    if x.dtype.is_float:
        x = x.cast(kind)
        return x if zero is None else x - zero.cast(kind)
    wide = x.cast(dtypes.int64 if x.dtype.bits > 32 else dtypes.int32)
    wide = wide if zero is None else wide - zero.cast(wide.dtype)
    return wide.cast(kind)


@onnx_op("DynamicQuantizeLinear", since=11)
def dynamic_quantize_linear(x: Any) -> list[Any]:
    """x quantised to uint8 by its own range (extended to contain 0), scale and zero point."""
    axes = tuple(range(x.ndim))
    low, high = (f(g(x, axes=axes), 0.0).reshape(()) for f,
                 g in ((o.min, o.reduce_min), (o.max, o.reduce_max)))
    scale = (high - low) / 255.0
    zero = o.clamp(o.round((0.0 - low) / scale), 0.0, 255.0).cast(dtypes.uint8)
    return [quantized(x, scale, zero, dtypes.uint8), scale, zero]


# ---- products of integers ----------------------------------------------------------------------

def _row_wise(p: Any, rank: int) -> Any:
    """A zero point or scale for each row of the left operand, as a column."""
    if p is None or p.ndim == 0 or rank < 2:
        return p
    return p.reshape((p.shape[0], 1)) if p.ndim == 1 and p.shape[0] != 1 else p


@onnx_op("MatMulInteger", since=10)
def matmul_integer(a: Any, b: Any, a_zero: Any = None, b_zero: Any = None) -> Any:
    """`matmul` of both operands minus their zero points, in int32."""
    left = centred(a, _row_wise(a_zero, a.ndim), dtypes.int32)
    return matmul(left, centred(b, b_zero, dtypes.int32))


@onnx_op("QLinearMatMul", since=10)
def qlinear_matmul(a: Any, a_scale: Any, a_zero: Any, b: Any, b_scale: Any, b_zero: Any,
                   y_scale: Any, y_zero: Any) -> Any:
    """An int32 `matmul` (float32 for float8), times both scales, quantised."""
    product = matmul_integer(a, b, a_zero, b_zero) if a.dtype.is_integer else matmul(centred(a,
            a_zero, dtypes.float32), centred(b, b_zero, dtypes.float32))
    kind = dtypes.float32
    scale = _row_wise(a_scale, a.ndim).cast(kind) * b_scale.cast(kind)
    real = product.cast(kind) * scale
    return quantized(real, _row_wise(y_scale, a.ndim).cast(kind), _row_wise(y_zero, a.ndim),
                     y_zero.dtype)


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
        zero = zero.reshape((zero.shape[0], *[1] * (w.ndim - 1)))
    elif zero is not None:
        zero = zero.reshape(())
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
        w_scale = w_scale.reshape((1, w_scale.shape[0], *[1] * (w.ndim - 2)))
    else:
        w_scale = w_scale.reshape(())
    real = total.cast(dtypes.float32) * (x_scale * w_scale)
    return quantized(real, y_scale, y_zero, y_zero.dtype)
