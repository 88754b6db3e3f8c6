"""`com.microsoft`: the fused operators that onnxruntime's optimizer and its tools write."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np

from graphtool import dtypes
from graphtool.importers.onnx import attention as whole
from graphtool.importers.onnx import nn, quant
from graphtool.importers.onnx.cells import ACTIVATIONS
from graphtool.importers.onnx.pool import average_pool
from graphtool.importers.onnx.quant import dequantize_linear, quantized
from graphtool.importers.onnx.registry import Refused, add, onnx_op
from graphtool.importers.onnx.shape import iota
from graphtool.importers.onnx.values import (
    axis_of,
    cast,
    dim_value,
    dtype_of,
    operands,
    reshape,
    take,
    transpose,
)
from graphtool.ir.op import OPS
from graphtool.ir.op import ops as o

DOMAIN = "com.microsoft"


def microsoft(*names: str) -> Callable[..., Any]:
    return onnx_op(*names, domain=DOMAIN)


# ---- activations -------------------------------------------------------------------------------

@microsoft("Gelu")
def gelu(x: Any) -> Any:
    return o.gelu(x)


@microsoft("BiasGelu")
def bias_gelu(x: Any, bias: Any) -> Any:
    return o.gelu(o.add(x, bias))


@microsoft("FastGelu")
def fast_gelu(x: Any, bias: Any = None) -> Any:
    return o.gelu(x if bias is None else o.add(x, bias), approximate="tanh")


@microsoft("QuickGelu")
def quick_gelu(x: Any, *, alpha: float = 1.702) -> Any:
    return o.mul(x, o.sigmoid(o.mul(x, alpha)))


def _activated(y: Any, activation: str, params: Any = ()) -> Any:
    if not activation:
        return y
    name = activation.lower()
    if name == "clip":
        low, high = (*params, None, None)[:2]
        return o.clamp(y, low, high)
    if name not in ACTIVATIONS:
        raise Refused(f"the activation {activation!r}")
    a, b, fn = ACTIVATIONS[name]
    given = (*params, a, b)[:2] if params else (a, b)
    return fn(y, *map(float, given))


# ---- products and convolutions -----------------------------------------------------------------

@microsoft("FusedMatMul")
def fused_matmul(a: Any, b: Any, *, alpha: float = 1.0, transA: int = 0, transB: int = 0,
                 transBatchA: int = 0, transBatchB: int = 0) -> Any:
    if transBatchA or transBatchB:
        raise Refused("transposed batch axes")
    if a.ndim < 2 or b.ndim < 2:
        return nn.matmul(a, b) if alpha == 1.0 else o.mul(nn.matmul(a, b), alpha)
    y = o.matmul(a, b, transpose_a=bool(transA), transpose_b=bool(transB))
    return y if alpha == 1.0 else o.mul(y, alpha)


@microsoft("FusedGemm")
def fused_gemm(a: Any, b: Any, c: Any = None, *, activation: str = "",
               activation_alpha: float = 0.0, activation_beta: float = 0.0,
               activation_gamma: float = 0.0, alpha: float = 1.0, beta: float = 1.0,
               transA: int = 0, transB: int = 0) -> Any:
    y = nn.gemm(a, b, c, alpha=alpha, beta=beta, transA=transA, transB=transB)
    params = (activation_alpha, activation_beta) if activation_alpha or activation_beta else ()
    return _activated(y, activation, params)


@microsoft("FusedConv")
def fused_conv(x: Any, w: Any, b: Any = None, z: Any = None, *, activation: str = "",
               activation_params: Any = (), auto_pad: str = "NOTSET", dilations: Any = None,
               group: int = 1, kernel_shape: Any = None, pads: Any = None,
               strides: Any = None) -> Any:
    y = nn.conv(x, w, b, auto_pad=auto_pad, dilations=dilations, group=group,
                kernel_shape=kernel_shape, pads=pads, strides=strides)
    return _activated(y if z is None else o.add(y, z), activation, activation_params)


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


# ---- norms -------------------------------------------------------------------------------------

@onnx_op("SimplifiedLayerNormalization")
def simplified_layer_norm(x: Any, scale: Any, *, axis: int = -1, epsilon: float = 1e-5,
                          stash_type: int = 1) -> Any:
    return o.rms_norm(x, scale, axes=tuple(range(axis_of(axis, x.ndim), x.ndim)), epsilon=epsilon)


@microsoft("SkipLayerNormalization")
def skip_layer_norm(x: Any, skip: Any, gamma: Any, beta: Any = None, bias: Any = None, *,
                    epsilon: float = 1e-5, ctx: Any) -> Any:
    total = _skipped(x, skip, bias)
    y = o.layer_norm(total, gamma, beta, axes=(total.ndim - 1,), epsilon=epsilon)
    return _with_sum(y, total, ctx)


@microsoft("SkipSimplifiedLayerNormalization")
def skip_simplified(x: Any, skip: Any, gamma: Any, bias: Any = None, *, epsilon: float = 1e-5,
                    ctx: Any) -> Any:
    total = _skipped(x, skip, bias)
    y = o.rms_norm(total, gamma, axes=(total.ndim - 1,), epsilon=epsilon)
    return _with_sum(y, total, ctx)


def _skipped(x: Any, skip: Any, bias: Any) -> Any:
    total = o.add(x, skip)
    return total if bias is None else o.add(total, bias)


def _with_sum(y: Any, total: Any, ctx: Any) -> Any:
    if ctx.wanted(1) or ctx.wanted(2):
        raise Refused("the mean and the deviation as outputs")
    return [y, None, None, total][:max(ctx.outputs, 1)]


@microsoft("EmbedLayerNormalization")
def embed_layer_norm(ids: Any, segments: Any, words: Any, places: Any, kinds: Any, gamma: Any,
                     beta: Any, mask: Any = None, positions: Any = None, *,
                     epsilon: float = 1e-12, mask_index_type: int = 0, ctx: Any) -> Any:
    steps = ids.shape[1]
    x = o.embedding(words, ids)
    x = o.add(x, take(places, 0, 0, steps) if positions is None
              else o.embedding(places, positions))
    if segments is not None:
        x = o.add(x, o.embedding(kinds, segments))
    y = o.layer_norm(x, gamma, beta, axes=(2,), epsilon=epsilon)
    if ctx.wanted(1):
        if mask is None:
            raise Refused("the mask index without a mask")
        count = reshape(o.reduce_sum(cast(mask, dtypes.int32), axes=(1,)), (mask.shape[0],))
        return [y, count, x][:ctx.outputs]
    return [y, None, x][:ctx.outputs]


# ---- attention ---------------------------------------------------------------------------------

def _key_mask(mask: Any, batch: Any, steps: Any) -> Any:
    """A mask of keys [B, T] of ones and zeros, as bool [B, 1, 1, T]; 3-d ones gain a head axis."""
    if mask is None:
        return None
    if mask.ndim == 2:
        return o.ne(reshape(mask, (batch, 1, 1, steps)), 0)
    if mask.ndim == 3:
        return o.ne(reshape(mask, (batch, 1, *mask.shape[1:])), 0)
    raise Refused(f"a mask of rank {mask.ndim}")


@microsoft("Attention")
def attention(x: Any, w: Any, bias: Any = None, mask: Any = None, past: Any = None,
              extra: Any = None, past_length: Any = None, *, num_heads: int,
              unidirectional: int = 0, scale: float | None = None,
              mask_filter_value: float = -10000.0, qkv_hidden_sizes: Any = None,
              do_rotary: int = 0, past_present_share_buffer: int = 0,
              rotary_embedding_dim: int = 0, ctx: Any) -> Any:
    """One product gives q, k and v side by side."""
    if past is not None or past_length is not None or do_rotary or ctx.wanted(1):
        raise Refused("a past, or rotation, inside com.microsoft.Attention")
    y = nn.matmul(x, w)
    y = y if bias is None else o.add(y, bias)
    sizes = qkv_hidden_sizes or (w.shape[1] // 3,) * 3
    cuts = np.cumsum((0, *sizes)).tolist()
    q, k, v = (whole.heads_first(take(y, 2, a, b), num_heads)
               for a, b in itertools.pairwise(cuts))
    return _heads(q, k, v, _key_mask(mask, x.shape[0], x.shape[1]), extra, unidirectional, scale)


def _heads(q: Any, k: Any, v: Any, mask: Any, extra: Any, causal: int, scale: Any) -> Any:
    scale = scale or None
    if extra is not None:
        mask = extra if mask is None else o.select(mask, extra, float("-inf"))
    return whole.heads_last(o.attention(q, k, v, mask, causal=bool(causal), scale=scale))


@microsoft("MultiHeadAttention")
def multi_head_attention(q: Any, k: Any = None, v: Any = None, bias: Any = None, mask: Any = None,
                         extra: Any = None, past_key: Any = None, past_value: Any = None, *,
                         num_heads: int, mask_filter_value: float = -10000.0,
                         scale: float | None = None, unidirectional: int = 0, ctx: Any) -> Any:
    if k is None or v is None or q.ndim != 3:
        raise Refused("packed q, k and v")
    if bias is not None:
        width, inner = q.shape[-1], k.shape[-1]
        q = o.add(q, take(bias, 0, 0, width))
        if k.ndim == 3:
            k = o.add(k, take(bias, 0, width, width + inner))
            v = o.add(v, take(bias, 0, width + inner, bias.shape[0]))
    q, k, v = (whole.heads_first(x, num_heads) for x in (q, k, v))
    if past_key is not None:
        if unidirectional:
            raise Refused("a causal mask over a past")
        k, v = o.concat(past_key, k, axis=2), o.concat(past_value, v, axis=2)
    y = _heads(q, k, v, _key_mask(mask, q.shape[0], k.shape[2]), extra, unidirectional, scale)
    return [y, k, v][:ctx.outputs]


@microsoft("GroupQueryAttention")
def group_query_attention(q: Any, k: Any, v: Any, past_key: Any, past_value: Any, lengths: Any,
                          total: Any, cos: Any = None, sin: Any = None, positions: Any = None,
                          extra: Any = None, *, num_heads: int, kv_num_heads: int,
                          do_rotary: int = 0, rotary_interleaved: int = 0,
                          scale: float | None = None, softcap: float = 0.0,
                          local_window_size: int = -1, smooth_softmax: int = 0,
                          ctx: Any) -> Any:
    """Causal, over a past that is concatenated (not a shared buffer)."""
    if smooth_softmax or q.ndim != 3 or extra is not None:
        raise Refused("this form of GroupQueryAttention")
    if k is None:
        depth = q.shape[2] // (num_heads + 2 * kv_num_heads)
        cut = (num_heads * depth, (num_heads + kv_num_heads) * depth, q.shape[2])
        q, k, v = take(q, 2, 0, cut[0]), take(q, 2, cut[0], cut[1]), take(q, 2, cut[1], cut[2])
    q = whole.heads_first(q, num_heads)
    k, v = whole.heads_first(k, kv_num_heads), whole.heads_first(v, kv_num_heads)
    past: Any = 0 if past_key is None else past_key.shape[2]
    if do_rotary:
        if positions is None:
            line = iota(q, (1, q.shape[2]), 1)
            line = line if past == 0 else o.add(line, dim_value(past, q))
            positions = o.broadcast(line, shape=(q.shape[0], q.shape[2]))
        q, k = (whole.rotated(x, cos, sin, positions, bool(rotary_interleaved)) for x in (q, k))
    if past_key is not None and past != 0:
        k, v = o.concat(past_key, k, axis=2), o.concat(past_value, v, axis=2)
    plain = past == 0 and local_window_size < 0
    left = local_window_size - 1 if local_window_size > 0 else -1
    seen = None if plain else whole.visible(q, k, past, None, left, 0)
    y = o.attention(q, k, v, seen, causal=plain, scale=scale or None, softcap=softcap)
    return [whole.heads_last(y), k, v][:ctx.outputs]


@microsoft("RotaryEmbedding")
def rotary_embedding(x: Any, positions: Any, cos: Any, sin: Any, *, interleaved: int = 0,
                     num_heads: int = 0, rotary_embedding_dim: int = 0, scale: float = 1.0,
                     is_packed_batching: int = 0) -> Any:
    if is_packed_batching:
        raise Refused("packed batches")
    flat = x.ndim == 3
    heads = num_heads or (x.shape[2] // (2 * cos.shape[1]) if flat else 0)
    y = whole.heads_first(x, heads)
    if positions.ndim == 1:  # one offset for all
        line = o.add(iota(x, (1, y.shape[2]), 1), cast(positions, dtypes.int64))
        positions = o.broadcast(line, shape=(y.shape[0], y.shape[2]))
    y = whole.rotated(y, cos, sin, positions, bool(interleaved))
    return whole.heads_last(y) if flat else y


# ---- quantised ---------------------------------------------------------------------------------

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
