"""Operators of `com.microsoft` on quantised tensors, and products with packed weights."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from graphtool.importers.onnx.families import quant
from graphtool.importers.onnx.families.index import gather
from graphtool.importers.onnx.families.pool import average_pool, max_pool
from graphtool.importers.onnx.families.quant import dequantize_linear, quantized
from graphtool.importers.onnx.families.recurrent import CELLS, DEFAULTS, StepCell, layer
from graphtool.importers.onnx.kit import OPS, DType, Refused, add, axis_of, dtypes, o, product
from graphtool.importers.onnx.wing.contrib import DOMAIN, fused_conv, microsoft
from graphtool.importers.onnx.wing.contrib_attention import projected


@microsoft("MatMulNBits")
def matmul_nbits(x: Any, packed: Any, scales: Any, zero: Any = None, group_index: Any = None,
                 bias: Any = None, *, K: int, N: int, bits: int = 4, block_size: int,
                 accuracy_level: int = 0, weight_prepacked: int = 0) -> Any:
    """x times packed weights [N, blocks, bytes], as `linear_nbits` for float32.

    Weights have 2, 4 or 8 bits, low bits first, and one scale for each block of a row. For other
    dtypes or permuted columns they are unpacked, and the product is a `linear`. With accuracy level
    4 the model asks for activations in 8 bits.
    """
    if weight_prepacked:
        raise Refused("prepacked weights are not supported; export the model without "
                      "weight_prepacked")
    blocks, row = -(-K // block_size), x.dtype
    centre = _centres(zero, N, blocks, bits, row)
    scales = scales.reshape((N, blocks)).cast(row)
    if group_index is not None or row is not dtypes.float32:
        w = _real_weights(packed, scales, centre, group_index, bits, K)
        return o.linear(x, w) if bias is None else o.linear(x, w, bias)
    flat = x.reshape((product(x.shape[:-1]), K))
    y = o.linear_nbits(flat, packed.reshape((N, blocks, block_size * bits // 8)), scales,
                       *([] if centre is None else [centre]), bits=bits, block=block_size,
                       activations="q8" if accuracy_level == 4 else "exact")
    y = y.reshape((*x.shape[:-1], N))
    return y if bias is None else y + bias


@microsoft("GatherBlockQuantized")
def gather_block_quantized(x: Any, indices: Any, scales: Any, zero: Any = None, *, bits: int = 4,
                           block_size: int = 128, gather_axis: int = 0,
                           quantize_axis: int = 1) -> Any:
    """The drawn rows of a table, of their scales and of their zero points, dequantised by blocks.

    Raises Refused for a table whose small integers are packed in bytes.
    """
    if not x.dtype.is_packed:
        raise Refused("a table whose small integers are packed in bytes is not supported; use an "
                      "int4 or uint4 tensor")
    at, over = axis_of(gather_axis, x.ndim), axis_of(quantize_axis, x.ndim)
    if at == over:
        raise ValueError("gather_axis and quantize_axis must be different axes")
    parts = [p if p is None else gather(p, indices, axis=at) for p in (x, scales, zero)]
    moved = over + indices.ndim - 1 if over > at else over
    return dequantize_linear(*parts, axis=moved, block_size=block_size)


def _centres(zero: Any, rows: int, blocks: int, bits: int, row: DType) -> Any:
    """The zero points [rows, blocks] as numbers, unpacked if necessary; None if there are none."""
    if zero is None:
        return None
    if zero.dtype is dtypes.uint8:
        flat = unpacked(zero.reshape((rows, product(zero.shape) // rows)), bits)
        zero = flat.take(1, 0, blocks)
    return zero.reshape((rows, blocks)).cast(row)


def _real_weights(packed: Any, scales: Any, centre: Any, group_index: Any, bits: int,
                  columns: int) -> Any:
    """The weights as real numbers, [N, K]. `group_index` gives the block of each column."""
    rows, blocks = scales.shape
    q = unpacked(packed.reshape((rows, blocks, product(packed.shape) // (rows * blocks))),
                 bits).cast(scales.dtype)
    if group_index is not None:
        at = group_index.reshape((group_index.shape[0], 1))
        q = q.reshape((rows, product(q.shape[1:]))).take(1, 0, columns)
        scales, centre = (v if v is None else o.gather(v, at, axes=(1,)).transpose((1, 0))
                          for v in (scales, centre))
    else:
        scales, centre = (v if v is None else v.reshape((rows, blocks, 1))
                          for v in (scales, centre))
    w = (q - (float(2 ** (bits - 1)) if centre is None else centre)) * scales
    return w.reshape((rows, product(w.shape[1:]))).take(1, 0, columns)


def unpacked(x: Any, bits: int) -> Any:
    """Each byte as its 8 / bits numbers, along the last axis."""
    if bits == 8:
        return x
    parts = [x >> s & 2 ** bits - 1 if s else x & 2 ** bits - 1 for s in range(0, 8, bits)]
    wide = o.concat(*(p.unsqueeze() for p in parts), axis=x.ndim)
    return wide.reshape((*x.shape[:-1], x.shape[-1] * len(parts)))


add(["QuantizeLinear"], quant.quantize_linear, domain=DOMAIN)
add(["DequantizeLinear"], quant.dequantize_linear, domain=DOMAIN)


def _real(x: Any, scale: Any, zero: Any) -> Any:
    return dequantize_linear(x, scale.reshape(()), None if zero is None else zero.reshape(()))


def _binary(op: str) -> Callable[..., Any]:
    def handler(a: Any, a_scale: Any, a_zero: Any, b: Any, b_scale: Any, b_zero: Any,
                y_scale: Any, y_zero: Any = None) -> Any:
        y = OPS[op](_real(a, a_scale, a_zero), _real(b, b_scale, b_zero))
        return quantized(y, y_scale.reshape(()), y_zero, a.dtype)
    return handler


for _name, _op in (("QLinearAdd", "add"), ("QLinearMul", "mul")):
    add([_name], _binary(_op), domain=DOMAIN)


@microsoft("QLinearSigmoid")
def qlinear_sigmoid(x: Any, x_scale: Any, x_zero: Any, y_scale: Any, y_zero: Any = None) -> Any:
    """x dequantised, its `sigmoid`, and the result quantised."""
    return quantized(o.sigmoid(_real(x, x_scale, x_zero)), y_scale, y_zero, x.dtype)


@microsoft("QLinearLeakyRelu")
def qlinear_leaky_relu(x: Any, x_scale: Any, x_zero: Any, y_scale: Any, y_zero: Any = None, *,
                       alpha: float = 0.01) -> Any:
    """x dequantised, its `leaky_relu`, and the result quantised."""
    y = o.leaky_relu(_real(x, x_scale, x_zero), slope=alpha)
    return quantized(y, y_scale, y_zero, x.dtype)


@microsoft("QLinearSoftmax")
def qlinear_softmax(x: Any, x_scale: Any, x_zero: Any, y_scale: Any, y_zero: Any = None, *,
                    axis: int = -1, opset: int = 13) -> Any:
    """x dequantised, its `softmax`, and the result quantised.

    Before opset 13 all axes from `axis` on are normalised together.
    """
    at, real = axis_of(axis, x.ndim), _real(x, x_scale, x_zero)
    if opset < 13:
        flat = (product(x.shape[:at]), product(x.shape[at:]))
        y = o.softmax(real.reshape(flat), axis=1).reshape(x.shape)
    else:
        y = o.softmax(real, axis=at)
    return quantized(y, y_scale, y_zero, x.dtype)


@microsoft("QLinearConcat")
def qlinear_concat(y_scale: Any, y_zero: Any, *parts: Any, axis: int) -> Any:
    """All parts dequantised, joined by `concat`, and quantised with the one result scale."""
    reals = [_real(*parts[i:i + 3]) for i in range(0, len(parts), 3)]
    y = o.concat(*reals, axis=axis_of(axis, reals[0].ndim))
    return quantized(y, y_scale, y_zero, parts[0].dtype)


@microsoft("QLinearGlobalAveragePool")
def qlinear_global_average_pool(x: Any, x_scale: Any, x_zero: Any, y_scale: Any, y_zero: Any, *,
                                channels_last: int = 0) -> Any:
    """x dequantised, its `reduce_mean` over all pixels, and the result quantised."""
    axes = tuple(range(1, x.ndim - 1)) if channels_last else tuple(range(2, x.ndim))
    y = o.reduce_mean(_real(x, x_scale, x_zero), axes=axes)
    return quantized(y, y_scale, y_zero, x.dtype)


@microsoft("QLinearAveragePool")
def qlinear_average_pool(x: Any, x_scale: Any, x_zero: Any, y_scale: Any, y_zero: Any = None, *,
                         auto_pad: str = "NOTSET", ceil_mode: int = 0, channels_last: int = 0,
                         count_include_pad: int = 0, kernel_shape: Any, pads: Any = None,
                         strides: Any = None) -> Any:
    """x dequantised, its `avg_pool`, and the result quantised; channels may come last."""
    real = _real(x, x_scale, x_zero)
    y = average_pool(_channels_second(real) if channels_last else real, auto_pad=auto_pad,
                     ceil_mode=ceil_mode, count_include_pad=count_include_pad,
                     kernel_shape=kernel_shape, pads=pads, strides=strides)
    y = _channels_last(y) if channels_last else y
    return quantized(y, y_scale, y_zero, x.dtype)


def _channels_second(x: Any) -> Any:
    return x.transpose((0, x.ndim - 1, *range(1, x.ndim - 1)))


def _channels_last(x: Any) -> Any:
    return x.transpose((0, *range(2, x.ndim), 1))


@microsoft("QLinearConv")
def qlinear_conv(x: Any, x_scale: Any, x_zero: Any, w: Any, w_scale: Any, w_zero: Any,
                 y_scale: Any, y_zero: Any, bias: Any = None, *, auto_pad: str = "NOTSET",
                 channels_last: int = 0, dilations: Any = None, group: int = 1,
                 kernel_shape: Any = None, pads: Any = None, strides: Any = None) -> Any:
    """ONNX's QLinearConv, with transposes around it if channels come last."""
    y = quant.qlinear_conv(_channels_second(x) if channels_last else x, x_scale, x_zero, w, w_scale,
                           w_zero, y_scale, y_zero, bias, auto_pad=auto_pad, dilations=dilations,
                           group=group, kernel_shape=kernel_shape, pads=pads, strides=strides)
    return _channels_last(y) if channels_last else y


@microsoft("NhwcFusedConv")
def nhwc_fused_conv(x: Any, w: Any, b: Any = None, z: Any = None, *, activation: str = "",
                    activation_params: Any = (), auto_pad: str = "NOTSET", dilations: Any = None,
                    group: int = 1, kernel_shape: Any = None, pads: Any = None,
                    strides: Any = None) -> Any:
    """A fused `conv` on images with channels last and filters with channels second."""
    y = fused_conv(_channels_second(x), w, b, None if z is None else _channels_second(z),
                   activation=activation, activation_params=activation_params, auto_pad=auto_pad,
                   dilations=dilations, group=group, kernel_shape=kernel_shape, pads=pads,
                   strides=strides)
    return _channels_last(y)


@microsoft("NhwcMaxPool")
def nhwc_max_pool(x: Any, *, auto_pad: str = "NOTSET", ceil_mode: int = 0, dilations: Any = None,
                  kernel_shape: Any, pads: Any = None, strides: Any = None, ctx: Any) -> Any:
    """`max_pool` between two transposes, on images with channels last."""
    y = max_pool(_channels_second(x), auto_pad=auto_pad, ceil_mode=ceil_mode, pads=pads,
                 dilations=dilations, kernel_shape=kernel_shape, strides=strides, ctx=ctx)
    return _channels_last(y)


@microsoft("QLinearWhere")
def qlinear_where(cond: Any, a: Any, a_scale: Any, a_zero: Any, b: Any, b_scale: Any, b_zero: Any,
                  y_scale: Any, y_zero: Any) -> Any:
    """`select` between two dequantised operands, and the result quantised."""
    y = o.select(cond, _real(a, a_scale, a_zero), _real(b, b_scale, b_zero))
    return quantized(y, y_scale.reshape(()), y_zero, a.dtype)


@microsoft("QGemm")
def qgemm(a: Any, a_scale: Any, a_zero: Any, b: Any, b_scale: Any, b_zero: Any, c: Any = None,
          y_scale: Any = None, y_zero: Any = None, *, alpha: float = 1.0, transA: int = 0,
          transB: int = 0) -> Any:
    """The `matmul` of centred int32 operands plus c, scaled to float32.

    It is quantised if a result scale is given.
    """
    if transB and b_zero is not None and b_zero.ndim == 1:  # one a column of the product
        b_zero = b_zero.reshape((b_zero.shape[0], 1))
    left, right = quant.centred(a, a_zero, dtypes.int32), quant.centred(b, b_zero, dtypes.int32)
    left = left.transpose((1, 0)) if transA else left
    right = right.transpose((1, 0)) if transB else right
    total = o.matmul(left, right)
    total = total if c is None else total + c
    scale = a_scale.reshape(()) * b_scale
    real = total.cast(dtypes.float32) * scale * alpha
    return real if y_scale is None else quantized(real, y_scale, y_zero, a.dtype)


@microsoft("MatMulIntegerToFloat")
def matmul_integer_to_float(a: Any, b: Any, a_scale: Any, b_scale: Any, a_zero: Any = None,
                            b_zero: Any = None, bias: Any = None) -> Any:
    """The `matmul` of centred int32 operands, times both scales, plus the bias."""
    total = quant.matmul_integer(a, b, a_zero, b_zero).cast(a_scale.dtype)
    y = total * (a_scale * b_scale)
    return y if bias is None else y + bias


@microsoft("DynamicQuantizeMatMul")
def dynamic_quantize_matmul(x: Any, b: Any, b_scale: Any, b_zero: Any = None,
                            bias: Any = None) -> Any:
    """x quantised by its own range, then an integer `matmul`, scaled to floats."""
    q, scale, zero = quant.dynamic_quantize_linear(x)
    return matmul_integer_to_float(q, b, scale, b_scale, zero, b_zero, bias)


@microsoft("DynamicQuantizeLSTM")
def dynamic_quantize_lstm(
        x: Any, w: Any, r: Any, bias: Any = None, sequence_lens: Any = None, initial_h: Any = None,
        initial_c: Any = None, peephole: Any = None, w_scale: Any = None, w_zero: Any = None,
        r_scale: Any = None, r_zero: Any = None, *, activation_alpha: Any = None,
        activation_beta: Any = None, activations: Any = None, clip: float = 0.0,
        direction: str = "forward", hidden_size: int | None = None, input_forget: int = 0) -> Any:
    """An LSTM with weights [D, columns, 4·H] in bytes: x, and each state, is quantised by its own
    range."""
    cell = StepCell(CELLS["LSTM"], activations or DEFAULTS["LSTM"] * w.shape[0], activation_alpha,
                    activation_beta, clip, {"input_forget": input_forget}, dynamic_quantize_matmul)
    start = o.broadcast(x.number(0).reshape((1, 1, 1)), shape=(w.shape[0], x.shape[1], r.shape[1]))
    states = [start if s is None else s for s in (initial_h, initial_c)]
    return layer(cell, x, (w, w_scale, w_zero), (r, r_scale, r_zero), bias, tuple(states),
                 direction, sequence_lens, peephole)


@microsoft("QAttention")
def qattention(x: Any, w: Any, bias: Any, x_scale: Any, w_scale: Any, mask: Any = None,
               x_zero: Any = None, w_zero: Any = None, past: Any = None, *, num_heads: int,
               unidirectional: int = 0, scale: float | None = None, do_rotary: int = 0,
               mask_filter_value: float = -10000.0, past_present_share_buffer: int = 0,
               ctx: Any) -> Any:
    """Attention whose product of x and the joined weights is an integer `matmul`."""
    if do_rotary or past_present_share_buffer:
        raise Refused("com.microsoft.QAttention with past_present_share_buffer or do_rotary is "
                      "not supported")
    y = matmul_integer_to_float(x, w, x_scale.reshape(()), w_scale, x_zero, w_zero, bias)
    return projected(y, mask, past, None, num_heads, None, unidirectional, scale,
                     mask_filter_value, ctx.outputs)
