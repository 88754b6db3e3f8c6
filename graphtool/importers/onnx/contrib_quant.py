"""`com.microsoft`: operators on quantised tensors, and products with packed weights."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from graphtool import dtypes
from graphtool.importers.onnx import quant
from graphtool.importers.onnx.contrib import DOMAIN, microsoft
from graphtool.importers.onnx.pool import average_pool
from graphtool.importers.onnx.quant import dequantize_linear, quantized
from graphtool.importers.onnx.registry import Refused, add
from graphtool.importers.onnx.values import (
    axis_of,
    cast,
    dtype_of,
    operands,
    reshape,
    take,
    transpose,
)
from graphtool.ir.op import OPS
from graphtool.ir.op import ops as o


@microsoft("MatMulNBits")
def matmul_nbits(x: Any, packed: Any, scales: Any, zero: Any = None, group_index: Any = None,
                 bias: Any = None, *, K: int, N: int, bits: int = 4, block_size: int,
                 accuracy_level: int = 0, weight_prepacked: int = 0) -> Any:
    """Weights [N, blocks, bytes] of 2, 4 or 8 bits, low bits first, with a scale per block."""
    if group_index is not None or weight_prepacked:
        raise Refused("reordered groups or prepacked weights")
    blocks = -(-K // block_size)
    each = unpacked(packed, bits)  # [N, blocks, block]
    if zero is None:
        centre: Any = float(2**(bits - 1))
    elif dtype_of(zero) is dtypes.uint8:
        flat = unpacked(reshape(zero, (N, zero.shape[-1] if zero.ndim == 2 else
                                       zero.shape[0] // N)), bits)
        centre = cast(reshape(take(flat, 1, 0, blocks), (N, blocks, 1)), dtype_of(x))
    else:
        centre = reshape(zero, (N, blocks, 1))
    real = o.mul(o.sub(cast(each, dtype_of(x)), centre),
                 cast(reshape(scales, (N, blocks, 1)), dtype_of(x)))
    w = take(reshape(real, (N, blocks * block_size)), 1, 0, K)
    y = o.linear(x, w) if bias is None else o.linear(x, w, bias)
    return y


def unpacked(x: Any, bits: int) -> Any:
    """Bytes as their 8 / bits numbers, along the last axis."""
    if bits == 8:
        return x
    parts = [o.and_(o.shift_right(x, s), 2**bits - 1) if s else o.and_(x, 2**bits - 1)
             for s in range(0, 8, bits)]
    wide = o.concat(*(reshape(p, (*p.shape, 1)) for p in parts), axis=x.ndim)
    return reshape(wide, (*x.shape[:-1], x.shape[-1] * len(parts)))


add(["QuantizeLinear"], quant.quantize_linear, domain=DOMAIN)
add(["DequantizeLinear"], quant.dequantize_linear, domain=DOMAIN)


def _real(x: Any, scale: Any, zero: Any) -> Any:
    return dequantize_linear(x, reshape(scale, ()), None if zero is None else reshape(zero, ()))


def _binary(op: str) -> Callable[..., Any]:
    def handler(a: Any, a_scale: Any, a_zero: Any, b: Any, b_scale: Any, b_zero: Any,
                y_scale: Any, y_zero: Any = None) -> Any:
        y = OPS[op](*operands(_real(a, a_scale, a_zero), _real(b, b_scale, b_zero)))
        return quantized(y, reshape(y_scale, ()), y_zero, dtype_of(a))
    return handler


for _name, _op in (("QLinearAdd", "add"), ("QLinearMul", "mul")):
    add([_name], _binary(_op), domain=DOMAIN)


@microsoft("QLinearSigmoid")
def qlinear_sigmoid(x: Any, x_scale: Any, x_zero: Any, y_scale: Any, y_zero: Any = None) -> Any:
    return quantized(o.sigmoid(_real(x, x_scale, x_zero)), y_scale, y_zero, dtype_of(x))


@microsoft("QLinearLeakyRelu")
def qlinear_leaky_relu(x: Any, x_scale: Any, x_zero: Any, y_scale: Any, y_zero: Any = None, *,
                       alpha: float = 0.01) -> Any:
    y = o.leaky_relu(_real(x, x_scale, x_zero), slope=alpha)
    return quantized(y, y_scale, y_zero, dtype_of(x))


@microsoft("QLinearSoftmax")
def qlinear_softmax(x: Any, x_scale: Any, x_zero: Any, y_scale: Any, y_zero: Any = None, *,
                    axis: int = -1, opset: int = 13) -> Any:
    if opset < 13:
        raise Refused("QLinearSoftmax with the old flattening")
    y = o.softmax(_real(x, x_scale, x_zero), axis=axis_of(axis, x.ndim))
    return quantized(y, y_scale, y_zero, dtype_of(x))


@microsoft("QLinearConcat")
def qlinear_concat(y_scale: Any, y_zero: Any, *parts: Any, axis: int) -> Any:
    reals = [_real(*parts[i:i + 3]) for i in range(0, len(parts), 3)]
    y = o.concat(*reals, axis=axis_of(axis, reals[0].ndim))
    return quantized(y, y_scale, y_zero, dtype_of(parts[0]))


@microsoft("QLinearGlobalAveragePool")
def qlinear_global_average_pool(x: Any, x_scale: Any, x_zero: Any, y_scale: Any, y_zero: Any, *,
                                channels_last: int = 0) -> Any:
    axes = tuple(range(1, x.ndim - 1)) if channels_last else tuple(range(2, x.ndim))
    y = o.reduce_mean(_real(x, x_scale, x_zero), axes=axes)
    return quantized(y, y_scale, y_zero, dtype_of(x))


@microsoft("QLinearAveragePool")
def qlinear_average_pool(x: Any, x_scale: Any, x_zero: Any, y_scale: Any, y_zero: Any = None, *,
                         auto_pad: str = "NOTSET", ceil_mode: int = 0, channels_last: int = 0,
                         count_include_pad: int = 0, kernel_shape: Any, pads: Any = None,
                         strides: Any = None) -> Any:
    if channels_last:
        raise Refused("channels last")
    y = average_pool(_real(x, x_scale, x_zero), auto_pad=auto_pad, ceil_mode=ceil_mode,
                        count_include_pad=count_include_pad, kernel_shape=kernel_shape, pads=pads,
                        strides=strides)
    return quantized(y, y_scale, y_zero, dtype_of(x))


@microsoft("QGemm")
def qgemm(a: Any, a_scale: Any, a_zero: Any, b: Any, b_scale: Any, b_zero: Any, c: Any = None,
          y_scale: Any = None, y_zero: Any = None, *, alpha: float = 1.0, transA: int = 0,
          transB: int = 0) -> Any:
    left, right = quant.centred(a, a_zero, dtypes.int32), quant.centred(b, b_zero, dtypes.int32)
    left = transpose(left, (1, 0)) if transA else left
    right = transpose(right, (1, 0)) if transB else right
    total = o.matmul(left, right)
    total = total if c is None else o.add(total, c)
    scale = o.mul(*operands(reshape(a_scale, ()), b_scale))
    real = o.mul(o.mul(cast(total, dtypes.float32), scale), alpha)
    return real if y_scale is None else quantized(real, y_scale, y_zero, dtype_of(a))


@microsoft("MatMulIntegerToFloat")
def matmul_integer_to_float(a: Any, b: Any, a_scale: Any, b_scale: Any, a_zero: Any = None,
                            b_zero: Any = None, bias: Any = None) -> Any:
    total = cast(quant.matmul_integer(a, b, a_zero, b_zero), dtype_of(a_scale))
    y = o.mul(total, o.mul(*operands(a_scale, b_scale)))
    return y if bias is None else o.add(y, bias)
