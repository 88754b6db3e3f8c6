"""Fused operators of `com.microsoft`, which onnxruntime's optimizer and tools write; those on
images have the channels last."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from graphtool.importers.onnx.families import nn
from graphtool.importers.onnx.families.recurrent import ACTIVATIONS
from graphtool.importers.onnx.kit import Refused, axis_of, dtypes, o, onnx_op

DOMAIN = "com.microsoft"


def microsoft(*names: str) -> Callable[..., Any]:
    """A decorator that registers a handler in the domain `com.microsoft`."""
    return onnx_op(*names, domain=DOMAIN)


# ---- activations -------------------------------------------------------------------------------

@microsoft("BiasGelu")
def bias_gelu(x: Any, bias: Any) -> Any:
    """`gelu` of x + bias."""
    return o.gelu(x + bias)


@microsoft("FastGelu")
def fast_gelu(x: Any, bias: Any = None) -> Any:
    """`gelu` of x + bias in the approximation by tanh."""
    return o.gelu(x if bias is None else x + bias, approximate="tanh")


@microsoft("QuickGelu")
def quick_gelu(x: Any, *, alpha: float = 1.702) -> Any:
    """x · `sigmoid`(alpha · x)."""
    return x * o.sigmoid(x * alpha)


def _activated(y: Any, activation: str, params: Any = ()) -> Any:
    if not activation:
        return y
    name = activation.lower()
    if name == "clip":
        low, high = (*params, None, None)[:2]
        return o.clamp(y, low, high)
    if name not in ACTIVATIONS:
        raise Refused(f"the activation {activation!r} is not supported")
    a, b, fn = ACTIVATIONS[name]
    given = (*params, a, b)[:2] if params else (a, b)
    return fn(y, *map(float, given))


# ---- products and convolutions -----------------------------------------------------------------

@microsoft("FusedMatMul", "TransposeMatMul")
def fused_matmul(a: Any, b: Any, *, alpha: float = 1.0, transA: int = 0, transB: int = 0,
                 transBatchA: int = 0, transBatchB: int = 0) -> Any:
    """alpha times a `matmul` of operands whose axes may be transposed, the batch axes too."""
    a = _first_axis_last(a) if transBatchA else a
    b = _first_axis_last(b) if transBatchB else b
    if a.ndim < 2 or b.ndim < 2:
        return nn.matmul(a, b) if alpha == 1.0 else nn.matmul(a, b) * alpha
    y = o.matmul(a, b, transpose_a=bool(transA), transpose_b=bool(transB))
    return y if alpha == 1.0 else y * alpha


def _first_axis_last(x: Any) -> Any:
    """x with its first axis, which holds the rows, moved behind the batch axes."""
    return x.transpose((*range(1, x.ndim - 1), 0, x.ndim - 1)) if x.ndim > 2 else x


@microsoft("FusedGemm")
def fused_gemm(a: Any, b: Any, c: Any = None, *, activation: str = "",
               activation_alpha: float = 0.0, activation_beta: float = 0.0,
               activation_gamma: float = 0.0, alpha: float = 1.0, beta: float = 1.0,
               transA: int = 0, transB: int = 0) -> Any:
    """A Gemm (`linear` or `matmul`) and the activation."""
    y = nn.gemm(a, b, c, alpha=alpha, beta=beta, transA=transA, transB=transB)
    params = (activation_alpha, activation_beta) if activation_alpha or activation_beta else ()
    return _activated(y, activation, params)


@microsoft("FusedConv")
def fused_conv(x: Any, w: Any, b: Any = None, z: Any = None, *, activation: str = "",
               activation_params: Any = (), auto_pad: str = "NOTSET", dilations: Any = None,
               group: int = 1, kernel_shape: Any = None, pads: Any = None,
               strides: Any = None) -> Any:
    """A `conv`, plus z if it is given, and the activation."""
    y = nn.conv(x, w, b, auto_pad=auto_pad, dilations=dilations, group=group,
                kernel_shape=kernel_shape, pads=pads, strides=strides)
    return _activated(y if z is None else y + z, activation, activation_params)


# ---- norms -------------------------------------------------------------------------------------

@onnx_op("SimplifiedLayerNormalization")
def simplified_layer_norm(x: Any, scale: Any, *, axis: int = -1, epsilon: float = 1e-5,
                          stash_type: int = 1, ctx: Any) -> Any:
    """`rms_norm` over the axes from `axis` on; output 1 is 1 / the root of the mean square."""
    axes = tuple(range(axis_of(axis, x.ndim), x.ndim))
    y = o.rms_norm(x, scale, axes=axes, epsilon=epsilon)
    return [y, _inverse_root(x, axes, epsilon)] if ctx.wanted(1) else y


def _inverse_root(x: Any, axes: tuple[int, ...], epsilon: float) -> Any:
    """1 / √(mean(x²) + epsilon) in float32."""
    wide = x.cast(dtypes.float32) if x.dtype.bits < 32 else x
    return o.rsqrt(o.reduce_mean(wide * wide, axes=axes) + epsilon)


@microsoft("SkipLayerNormalization")
def skip_layer_norm(x: Any, skip: Any, gamma: Any, beta: Any = None, bias: Any = None, *,
                    epsilon: float = 1e-12, ctx: Any) -> Any:
    """`layer_norm` of x + skip + bias over the last axis, with mean, 1 / deviation and that sum."""
    total = _skipped(x, skip, bias)
    axes = (total.ndim - 1,)
    y = o.layer_norm(total, gamma, beta, axes=axes, epsilon=epsilon)
    wide = total.cast(dtypes.float32) if total.dtype.bits < 32 else total
    mean = o.reduce_mean(wide, axes=axes) if ctx.wanted(1) else None
    scale = o.rsqrt(o.reduce_var(wide, axes=axes) + epsilon) if ctx.wanted(2) else None
    return [y, mean, scale, total][:max(ctx.outputs, 1)]


@microsoft("SkipSimplifiedLayerNormalization")
def skip_simplified(x: Any, skip: Any, gamma: Any, bias: Any = None, *, epsilon: float = 1e-12,
                    ctx: Any) -> Any:
    """`rms_norm` of x + skip + bias over the last axis; output 3 is that sum.

    Raises Refused for the mean, which nothing defines here.
    """
    if ctx.wanted(1):
        raise Refused("the output mean is not defined for this operator; leave output 1 out")
    total = _skipped(x, skip, bias)
    axes = (total.ndim - 1,)
    y = o.rms_norm(total, gamma, axes=axes, epsilon=epsilon)
    scale = _inverse_root(total, axes, epsilon) if ctx.wanted(2) else None
    return [y, None, scale, total][:max(ctx.outputs, 1)]


def _skipped(x: Any, skip: Any, bias: Any) -> Any:
    total = x + skip
    return total if bias is None else total + bias


@microsoft("EmbedLayerNormalization")
def embed_layer_norm(ids: Any, segments: Any, words: Any, places: Any, kinds: Any, gamma: Any,
                     beta: Any, mask: Any = None, positions: Any = None, *,
                     epsilon: float = 1e-12, mask_index_type: int = 0, ctx: Any) -> Any:
    """`layer_norm` of the sum of word, position and segment embeddings, [B, S, H].

    Output 1 is the sum of each sequence's mask, i32[B]; output 2 is the sum of the embeddings.
    """
    steps = ids.shape[1]
    x = o.embedding(words, ids)
    x = x + (places.take(0, 0, steps) if positions is None else o.embedding(places, positions))
    if segments is not None:
        x = x + o.embedding(kinds, segments)
    y = o.layer_norm(x, gamma, beta, axes=(2,), epsilon=epsilon)
    seen = mask.cast(dtypes.int32) if mask is not None else ids.cast(dtypes.int32) * 0
    count = o.reduce_sum(seen, axes=(1,)).reshape((ids.shape[0],)) if ctx.wanted(1) else None
    return [y, count, x][:ctx.outputs]


# ---- images with channels last ------------------------------------------------------------------

def _to_first(x: Any) -> Any:
    return x.transpose((0, x.ndim - 1, *range(1, x.ndim - 1)))


def _to_last(x: Any) -> Any:
    return x.transpose((0, *range(2, x.ndim), 1))


@microsoft("NhwcConv")
def nhwc_conv(x: Any, w: Any, b: Any = None, *, auto_pad: str = "NOTSET", dilations: Any = None,
              group: int = 1, kernel_shape: Any = None, pads: Any = None,
              strides: Any = None) -> Any:
    """`conv` between two transposes: x [N, …, C] and w [M, …, C / group]."""
    return _to_last(nn.conv(_to_first(x), _to_first(w), b, auto_pad=auto_pad, dilations=dilations,
                            group=group, kernel_shape=kernel_shape, pads=pads, strides=strides))


@microsoft("GroupNorm")
def group_norm(x: Any, gamma: Any, beta: Any, *, activation: int, channels_last: int = 1,
               epsilon: float = 1e-5, groups: int) -> Any:
    """`group_norm` in float32, then `silu` if `activation` is 1."""
    if activation not in (0, 1):
        raise Refused(f"the activation {activation} is not supported, only 0 (none) and 1 (silu)")
    first = _to_first(x) if channels_last else x
    row = first.dtype
    y = o.group_norm(first.cast(dtypes.float32), gamma.cast(dtypes.float32),
                     beta.cast(dtypes.float32), groups=groups, epsilon=epsilon)
    y = (o.silu(y) if activation else y).cast(row)
    return _to_last(y) if channels_last else y


@microsoft("SkipGroupNorm")
def skip_group_norm(x: Any, gamma: Any, beta: Any, skip: Any, bias: Any = None, *,
                    activation: int, channels_last: int = 1, epsilon: float = 1e-5, groups: int,
                    ctx: Any) -> Any:
    """`group_norm` of x + skip + bias, then that sum. A skip [N, C] applies to all pixels."""
    if not channels_last:
        raise Refused("SkipGroupNorm is supported only with channels_last=1")
    if skip.ndim == 2:
        skip = skip.reshape((skip.shape[0], *(1,) * (x.ndim - 2), skip.shape[1]))
    total = x + skip
    total = total if bias is None else total + bias
    y = group_norm(total, gamma, beta, activation=activation, epsilon=epsilon, groups=groups)
    return [y, total][:ctx.outputs]


@microsoft("BiasAdd")
def bias_add(x: Any, bias: Any, skip: Any) -> Any:
    """x + bias + skip, as two `add`."""
    return x + bias + skip


@microsoft("BiasSplitGelu")
def bias_split_gelu(x: Any, bias: Any) -> Any:
    """One half of x + bias along the last axis, times the `gelu` of the other half."""
    y, last = x + bias, x.ndim - 1
    half = y.shape[last] // 2
    return y.take(last, 0, half) * o.gelu(y.take(last, half, 2 * half))
