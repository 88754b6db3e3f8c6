"""Operators of `com.microsoft` on images with channels last, as its tools write diffusion
models."""

from __future__ import annotations

from typing import Any

from graphtool import dtypes
from graphtool import ops as o
from graphtool.front import Refused
from graphtool.importers.onnx.families import nn
from graphtool.importers.onnx.families.contrib import microsoft


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
