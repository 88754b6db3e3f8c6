"""The softmax family and the normalisations. Values are shifted first, in two passes, so that
nothing overflows."""

from __future__ import annotations

from typing import Any

from graphtool import ops as o
from graphtool.ir.facets import ALONG, OVER
from graphtool.ir.graph import TensorType
from graphtool.ops.common import (
    broadcast_shapes,
    check_axis,
    composite,
    count,
    equal_dims,
    equal_types,
    like_first,
    need,
)
from graphtool.ops.reduce import kept_dims

# ---- softmax -----------------------------------------------------------------------------------


def _along_axis(x: TensorType, *, axis: int) -> TensorType:
    check_axis(axis, x.rank)
    return like_first(x)


def _softmax_vjp(g: Any, y: Any, _x: Any, *, axis: int) -> tuple[Any, ...]:
    gy = g * y
    return (gy - y * o.reduce_sum(gy, axes=(axis,)),)


@composite(axes=ALONG, types=_along_axis, vjp=_softmax_vjp)
def softmax(x: Any, *, axis: int) -> Any:
    """exp(x − max) / Σ exp(x − max) along an axis."""
    e = o.exp(x - o.reduce_max(x, axes=(axis,)))
    return e / o.reduce_sum(e, axes=(axis,))


def _log_softmax_vjp(g: Any, y: Any, _x: Any, *, axis: int) -> tuple[Any, ...]:
    return (g - o.exp(y) * o.reduce_sum(g, axes=(axis,)),)


@composite(axes=ALONG, types=_along_axis, vjp=_log_softmax_vjp)
def log_softmax(x: Any, *, axis: int) -> Any:
    """x − max − log Σ exp(x − max) along an axis."""
    shifted = x - o.reduce_max(x, axes=(axis,))
    return shifted - o.log(o.reduce_sum(o.exp(shifted), axes=(axis,)))


def _logsumexp_types(x: TensorType, *, axes: tuple[int, ...]) -> TensorType:
    return TensorType(like_first(x).dtype, kept_dims(x.shape, axes))


def _finite_or_zero(x: Any) -> Any:
    return o.select(o.is_inf(x), 0.0, x)


def _logsumexp_vjp(g: Any, y: Any, x: Any, *, axes: tuple[int, ...]) -> tuple[Any, ...]:
    return (g * o.exp(x - _finite_or_zero(y)),)


@composite(axes=OVER, types=_logsumexp_types, vjp=_logsumexp_vjp)
def logsumexp(x: Any, *, axes: tuple[int, ...]) -> Any:
    """log Σ exp(x) over axes, which stay with size 1; computed as max + log Σ exp(x − max)."""
    top = _finite_or_zero(o.reduce_max(x, axes=axes))
    return o.log(o.reduce_sum(o.exp(x - top), axes=axes)) + top


# ---- normalisation -----------------------------------------------------------------------------


def _affine(y: Any, scale: Any, bias: Any, axis: int | None = None) -> Any:
    """y·scale + bias; both are optional. With an axis, they are vectors along it."""
    def placed(v: Any) -> Any:
        if axis is None or y.ndim - 1 - axis == 0:
            return v
        return o.reshape(v, shape=(v.shape[0], *(1,) * (y.ndim - 1 - axis)))
    y = y if scale is None else y * placed(scale)
    return y if bias is None else y + placed(bias)


def _normalised(x: Any, axes: tuple[int, ...], epsilon: float) -> Any:
    centred = x - o.reduce_mean(x, axes=axes)
    return centred * o.rsqrt(o.reduce_mean(centred * centred, axes=axes) + epsilon)


def _axes_norm_types(x: TensorType, *affine: TensorType | None, axes: tuple[int, ...],
                     epsilon: float) -> TensorType:
    kept_dims(x.shape, axes)
    for v in affine:
        need(v is None or (v.dtype is x.dtype and broadcast_shapes(v.shape, x.shape) == x.shape),
             f"scale or bias {v} does not broadcast to {x}")
    return like_first(x)


def _layer_norm_vjp(g: Any, _y: Any, x: Any, scale: Any = None, bias: Any = None, *,
                    axes: tuple[int, ...], epsilon: float) -> tuple[Any, ...]:
    # with x̂ = (x − mean)/σ:  dx = (ĝ − mean(ĝ) − x̂·mean(ĝ·x̂))/σ, ĝ = g·scale
    centred = x - o.reduce_mean(x, axes=axes)
    inverse = o.rsqrt(o.reduce_mean(centred * centred, axes=axes) + epsilon)
    hat, scaled = centred * inverse, g if scale is None else g * scale
    across = o.reduce_mean(scaled, axes=axes) + hat * o.reduce_mean(scaled * hat, axes=axes)
    return ((scaled - across) * inverse, None if scale is None else g * hat,
            None if bias is None else g)


@composite(types=_axes_norm_types, vjp=_layer_norm_vjp, scaled_by=(1, 2))
def layer_norm(x: Any, scale: Any = None, bias: Any = None, *, axes: tuple[int, ...],
               epsilon: float = 1e-5) -> Any:
    """(x − mean) / √(var + ε)·scale + bias over axes; scale and bias broadcast to x."""
    return _affine(_normalised(x, axes, epsilon), scale, bias)


def _rms_norm_vjp(g: Any, _y: Any, x: Any, scale: Any = None, *, axes: tuple[int, ...],
                  epsilon: float) -> tuple[Any, ...]:
    inverse = o.rsqrt(o.reduce_mean(x * x, axes=axes) + epsilon)
    hat, scaled = x * inverse, g if scale is None else g * scale
    gx = (scaled - hat * o.reduce_mean(scaled * hat, axes=axes)) * inverse
    return gx, None if scale is None else g * hat


@composite(types=_axes_norm_types, vjp=_rms_norm_vjp, scaled_by=(1,))
def rms_norm(x: Any, scale: Any = None, *, axes: tuple[int, ...], epsilon: float = 1e-5) -> Any:
    """x / √(mean(x²) + ε)·scale over axes."""
    return _affine(x * o.rsqrt(o.reduce_mean(x * x, axes=axes) + epsilon), scale, None)


def _channel_types(x: TensorType, *vectors: TensorType | None, axis: int = 1,
                   **_: Any) -> TensorType:
    axis = check_axis(axis, x.rank)
    want = TensorType(x.dtype, (x.shape[axis],))
    for v in vectors:
        if v is not None:
            equal_types(v, want, f"a vector with one entry per channel must be {want}, got {v}")
    return like_first(x)


def _group_types(x: TensorType, *vectors: TensorType | None, groups: int,
                 epsilon: float) -> TensorType:
    need(x.rank >= 2, f"x {x} needs a batch and a channel axis")
    message = f"the channels of {x} cannot be divided into {groups} groups"
    need(groups >= 1, message)
    equal_dims((x.shape[1] % groups,), (0,), message)
    return _channel_types(x, *vectors)


@composite(types=_group_types, scaled_by=(1, 2))
def group_norm(x: Any, scale: Any = None, bias: Any = None, *, groups: int,
               epsilon: float = 1e-5) -> Any:
    """(x − mean) / √(var + ε)·scale + bias of x [N, C, …], over the channels of each group and
    over space (Wu and He 2018)."""
    centred = x - _group_mean(x, groups)
    y = centred * o.rsqrt(_group_mean(centred * centred, groups) + epsilon)
    return _affine(y, scale, bias, 1)


def _group_mean(x: Any, groups: int) -> Any:
    """The mean of each group, repeated for each of its channels.

    x itself is not reshaped, so it keeps its layout; only the means of its channels are grouped.
    """
    n, c, *space = x.shape
    if groups == 1:
        return o.reduce_mean(x, axes=tuple(range(1, x.ndim)))
    of_channels = o.reduce_mean(x, axes=tuple(range(2, x.ndim))) if space else x
    ones = (1,) * len(space)
    means = o.reduce_mean(o.reshape(of_channels, shape=(n, groups, c // groups, *ones)), axes=(2,))
    every = o.broadcast(means, shape=(n, groups, c // groups, *ones))
    return o.reshape(every, shape=(n, c, *ones))


@composite(types=_channel_types, scaled_by=(1, 2))
def instance_norm(x: Any, scale: Any = None, bias: Any = None, *, epsilon: float = 1e-5) -> Any:
    """(x − mean) / √(var + ε)·scale + bias of x [N, C, …], over the spatial axes of each channel
    of each sample."""
    return _affine(_normalised(x, tuple(range(2, x.ndim)), epsilon), scale, bias, 1)


@composite(types=_channel_types, scaled_by=(1, 2))
def batch_norm(x: Any, scale: Any | None, bias: Any | None, mean: Any, var: Any, *,
               epsilon: float = 1e-5, axis: int = 1, momentum: float | None = 0.1) -> Any:
    """For inference: (x − mean) / √(var + ε)·scale + bias with given statistics along an axis.

    `momentum` matters in training only: the weight of a batch in the statistics; none if they are
    the means over all batches.
    """
    axis = axis % x.ndim
    factor = o.rsqrt(var + epsilon)
    factor = factor if scale is None else factor * scale
    centred = _affine(x, None, -mean, axis)
    return _affine(centred, factor, bias, axis)


def _batch_types(x: TensorType, *vectors: TensorType | None, epsilon: float,
                 axis: int = 1) -> tuple[TensorType, TensorType, TensorType]:
    y = _channel_types(x, *vectors, axis=axis)
    vector = TensorType(x.dtype, (x.shape[axis],))
    return y, vector, vector


def _batch_norm_vjp(g: Any, _y: Any, x: Any, scale: Any = None, bias: Any = None, *,
                    epsilon: float, axis: int) -> tuple[Any, ...]:
    # with x̂ = (x − mean)/σ:  dx = (g − mean(g) − x̂·mean(g·x̂))·scale/σ; the two sums are the
    # gradients of bias and scale
    axis = axis % x.ndim
    axes = tuple(a for a in range(x.ndim) if a != axis)
    centred = x - o.reduce_mean(x, axes=axes)
    inverse = o.rsqrt(o.reduce_mean(centred * centred, axes=axes) + epsilon)
    gy, gmean, gvar = g
    share, flat = 1.0 / count(x, axes), (x.shape[axis],)
    out: list[Any] = [None, None, None]
    if gy is not None:
        hat = centred * inverse
        total, product = o.reduce_sum(gy, axes=axes), o.reduce_sum(gy * hat, axes=axes)
        factor = inverse if scale is None else inverse * o.reshape(scale, shape=total.shape)
        out = [(gy - total * share - hat * (product * share)) * factor,
               None if scale is None else o.reshape(product, shape=flat),
               None if bias is None else o.reshape(total, shape=flat)]
    for gone, factor in ((gmean, share), (gvar, centred * (2.0 * share))):
        if gone is not None:
            more = o.reshape(gone, shape=inverse.shape) * factor
            out[0] = more if out[0] is None else out[0] + more
    return tuple(out)


@composite(types=_batch_types, vjp=_batch_norm_vjp)
def batch_norm_training(x: Any, scale: Any = None, bias: Any = None, *, epsilon: float = 1e-5,
                        axis: int = 1) -> Any:
    """For training: x normalised over all axes but one → (y, mean, biased variance of the
    batch)."""
    axis = axis % x.ndim
    axes = tuple(a for a in range(x.ndim) if a != axis)
    mean = o.reduce_mean(x, axes=axes)
    centred = x - mean
    var = o.reduce_mean(centred * centred, axes=axes)
    y = _affine(centred * o.rsqrt(var + epsilon), scale, bias, axis)
    flat = (x.shape[axis],)
    return y, o.reshape(mean, shape=flat), o.reshape(var, shape=flat)


@composite(types=lambda x, **_: like_first(x))
def lrn(x: Any, *, size: int, alpha: float = 1e-4, beta: float = 0.75, bias: float = 1.0) -> Any:
    """x / (bias + α/size·Σ x²)^β. The sum is over `size` neighbouring channels (axis 1); ⌊(size −
    1)/2⌋ of them lie before."""
    window = (1, size, *(1,) * (x.ndim - 2))
    lo = (size - 1) // 2
    padding = ((0, 0), (lo, size - 1 - lo), *((0, 0),) * (x.ndim - 2))
    total = o.reduce_window(x * x, kind="sum", window=window, padding=padding)
    return x * o.pow(total * (alpha / size) + bias, -beta)


@composite(axes=OVER, types=lambda x, *, axes, order, epsilon: TensorType(
    x.dtype, kept_dims(x.shape, axes)))
def norm(x: Any, *, axes: tuple[int, ...], order: float = 2.0, epsilon: float = 0.0) -> Any:
    """(Σ |x|ᵖ)^(1/p) over axes, which stay with size 1. p may be ±∞; p = 0 counts the nonzeros.
    The gradient at 0 is 0."""
    if order == 2.0:
        return root(o.reduce_sum(x * x, axes=axes) + epsilon, 2.0)
    size = o.abs(x)
    match order:
        case 0.0:
            return o.reduce_sum(o.cast(o.ne(x, 0), dtype=x.dtype), axes=axes)
        case 1.0:
            return o.reduce_sum(size, axes=axes)
        case _ if order == float("inf"):
            return o.reduce_max(size, axes=axes)
        case _ if order == float("-inf"):
            return o.reduce_min(size, axes=axes)
    return root(o.reduce_sum(o.pow(size, order), axes=axes), order)


def root(total: Any, order: float) -> Any:
    """total^(1/order) for a length: its gradient at 0 is 0, where that of the power is ∞.

    torch takes 0 for the gradient of a norm, of a distance and of a standard deviation there.
    """
    zero = o.eq(total, 0)
    some = o.select(zero, 1.0, total)
    return o.select(zero, 0.0, o.sqrt(some) if order == 2.0 else o.pow(some, 1 / order))


