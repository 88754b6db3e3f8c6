"""Composites of a few ops: activations that do not overflow and keep NaN; means, linear, embedding.

Where the gradient at a kink is a convention (relu′(0) = 0), the vjp here states it.
"""

from __future__ import annotations

import math
from typing import Any

from graphtool import ops as o
from graphtool.ir.facets import BROADCAST, OVER, Indexing, Movement, Precision, Trait, Weighing
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
from graphtool.ops.costs import taken
from graphtool.ops.reduce import kept_dims

_ROOT_HALF = 0.7071067811865476  # √½
_ROOT_TWO_OVER_PI = 0.7978845608028654
_INV_ROOT_TWO_PI = 0.3989422804014327


def _numeric(x: TensorType) -> TensorType:
    need(x.dtype.is_float or x.dtype.is_integer, f"is not defined on {x.dtype.short}")
    return x


@composite(axes=BROADCAST, types=_numeric, traits=Trait.EXACT, precision=Precision.FOLLOW,
           scaled_by=(0,), vjp=lambda g, y, x: (o.select(o.le(y, 0), 0, g),))
def relu(x: Any) -> Any:
    """max(x, 0), written as a select: the gradient at 0 is then 0, and NaN stays NaN."""
    return o.select(o.le(x, 0), 0, x)


def _gelu_vjp(g: Any, _y: Any, x: Any, *, approximate: str) -> tuple[Any, ...]:
    if approximate == "tanh":
        inner = x * (x * x * (0.044715 * _ROOT_TWO_OVER_PI) + _ROOT_TWO_OVER_PI)
        t = o.tanh(inner)
        slope = x * x * (3 * 0.044715 * _ROOT_TWO_OVER_PI) + _ROOT_TWO_OVER_PI
        return (g * ((t + 1.0) * 0.5 + x * 0.5 * (1.0 - t * t) * slope),)
    cdf = (o.erf(x * _ROOT_HALF) + 1.0) * 0.5
    return (g * (cdf + x * o.exp(x * x * -0.5) * _INV_ROOT_TWO_PI),)


def _gelu_types(x: TensorType, *, approximate: str) -> TensorType:
    need(approximate in ("none", "tanh"), f"approximate must be none or tanh, not {approximate!r}")
    return like_first(x)


@composite(axes=BROADCAST, types=_gelu_types, vjp=_gelu_vjp, precision=Precision.FOLLOW)
def gelu(x: Any, *, approximate: str = "none") -> Any:
    """x·Φ(x), by erf or by its tanh approximation (Hendrycks and Gimpel 2016)."""
    if approximate == "tanh":
        inner = x * (x * x * (0.044715 * _ROOT_TWO_OVER_PI) + _ROOT_TWO_OVER_PI)
        return x * 0.5 * (o.tanh(inner) + 1.0)
    return x * 0.5 * (o.erf(x * _ROOT_HALF) + 1.0)


def _silu_vjp(g: Any, y: Any, x: Any) -> tuple[Any, ...]:
    s = o.sigmoid(x)
    return (g * (s + y * (1.0 - s)),)


@composite(axes=BROADCAST, types=like_first, vjp=_silu_vjp, precision=Precision.FOLLOW)
def silu(x: Any) -> Any:
    """x·sigmoid(x), also called swish."""
    return x * o.sigmoid(x)


@composite(axes=BROADCAST, types=like_first, precision=Precision.FOLLOW)
def mish(x: Any) -> Any:
    """x·tanh(log(1 + eˣ))."""
    return x * o.tanh(o.softplus(x))


def _softplus_vjp(g: Any, _y: Any, x: Any, *, beta: float, threshold: float) -> tuple[Any, ...]:
    scaled = x * beta
    return (o.select(o.gt(scaled, threshold), g, g * o.sigmoid(scaled)),)


@composite(axes=BROADCAST, types=like_first, vjp=_softplus_vjp)
def softplus(x: Any, *, beta: float = 1.0, threshold: float = 20.0) -> Any:
    """log(1 + e^(β·x)) / β, and x itself where β·x > threshold; never overflows."""
    scaled = x * beta
    soft = o.max(scaled, 0) + o.log1p(o.exp(-o.abs(scaled)))
    return o.select(o.gt(scaled, threshold), x, soft / beta)


def _elu_vjp(g: Any, _y: Any, x: Any, *, alpha: float) -> tuple[Any, ...]:
    return (o.select(o.le(x, 0), g * o.exp(o.min(x, 0)) * alpha, g),)  # g at NaN, as torch


@composite(axes=BROADCAST, types=like_first, vjp=_elu_vjp, precision=Precision.FOLLOW)
def elu(x: Any, *, alpha: float = 1.0) -> Any:
    """x where positive, else α·(eˣ − 1). The exponential is never taken of a positive x; 0 stays
    0, also for an infinite α."""
    return o.select(_kept(x, alpha), x, o.expm1(o.min(x, 0)) * alpha)


def _kept(x: Any, alpha: float) -> Any:
    """Whether the function is x there; its other form is 0 · ∞ at 0 if α is infinite."""
    return o.gt(x, 0) if math.isfinite(alpha) else o.ge(x, 0)


@composite(axes=BROADCAST, types=like_first, precision=Precision.FOLLOW)
def selu(x: Any, *, alpha: float = 1.6732632423543772, gamma: float = 1.0507009873554805) -> Any:
    """γ·elu(x, α) (Klambauer et al. 2017)."""
    return o.elu(x, alpha=alpha) * gamma


def _celu_vjp(g: Any, _y: Any, x: Any, *, alpha: float) -> tuple[Any, ...]:
    return (o.select(o.le(x, 0), g * o.exp(o.min(x, 0) / alpha), g),)


@composite(axes=BROADCAST, types=like_first, vjp=_celu_vjp, precision=Precision.FOLLOW)
def celu(x: Any, *, alpha: float = 1.0) -> Any:
    """x where positive, else α·(e^(x/α) − 1); 0 stays 0, also for an infinite α."""
    return o.select(_kept(x, alpha), x, o.expm1(o.min(x, 0) / alpha) * alpha)


@composite(axes=BROADCAST, types=like_first, precision=Precision.FOLLOW)
def leaky_relu(x: Any, *, slope: float = 0.01) -> Any:
    """x where positive, else slope·x."""
    return o.select(o.gt(x, 0), x, x * slope)


def _prelu_types(x: TensorType, slope: TensorType) -> TensorType:
    need(x.dtype is slope.dtype, f"element types differ: {x.dtype.short} and {slope.dtype.short}")
    return TensorType(_numeric(x).dtype, broadcast_shapes(x.shape, slope.shape))


@composite(axes=BROADCAST, types=_prelu_types, precision=Precision.FOLLOW)
def prelu(x: Any, slope: Any) -> Any:
    """x where positive, else slope·x; the slope broadcasts as NumPy does."""
    return o.select(o.gt(x, 0), x, x * slope)


def _hard_sigmoid_vjp(g: Any, y: Any, _x: Any, *, alpha: float, beta: float) -> tuple[Any, ...]:
    return (o.select(o.and_(o.gt(y, 0), o.lt(y, 1)), g * alpha, 0.0),)


@composite(axes=BROADCAST, types=like_first, vjp=_hard_sigmoid_vjp, precision=Precision.FOLLOW)
def hard_sigmoid(x: Any, *, alpha: float = 1 / 6, beta: float = 0.5) -> Any:
    """min(max(α·x + β, 0), 1); the gradient is 0 at both bounds."""
    return o.clamp(x * alpha + beta, 0, 1)


def _hardtanh_vjp(g: Any, y: Any, _x: Any, *, lo: float, hi: float) -> tuple[Any, ...]:
    return (o.select(o.or_(o.le(y, lo), o.ge(y, hi)), 0.0, g),)


@composite(axes=BROADCAST, types=like_first, traits=Trait.EXACT, vjp=_hardtanh_vjp,
           precision=Precision.FOLLOW)
def hardtanh(x: Any, *, lo: float = -1.0, hi: float = 1.0) -> Any:
    """min(max(x, lo), hi); the gradient is 0 at both bounds, while that of clamp is 1 there."""
    return o.clamp(x, lo, hi)


def _hard_swish_vjp(g: Any, _y: Any, x: Any) -> tuple[Any, ...]:
    inside = o.select(o.ge(x, 3), g, g * (x / 3.0 + 0.5))
    return (o.select(o.le(x, -3), 0.0, inside),)


@composite(axes=BROADCAST, types=like_first, vjp=_hard_swish_vjp, precision=Precision.FOLLOW)
def hard_swish(x: Any) -> Any:
    """x·min(max(x/6 + ½, 0), 1); the gradient is 0 at −3 and 1 at 3."""
    return x * o.clamp(x * (1 / 6) + 0.5, 0, 1)


@composite(axes=BROADCAST, types=like_first)
def softsign(x: Any) -> Any:
    """x / (1 + |x|)."""
    return x / (o.abs(x) + 1.0)


@composite(axes=BROADCAST, types=like_first, vjp=lambda g, y, x: (g * o.sigmoid(-x),))
def log_sigmoid(x: Any) -> Any:
    """log(sigmoid(x)), stable on both sides."""
    return o.min(x, 0) - o.log1p(o.exp(-o.abs(x)))


@composite(axes=BROADCAST, types=like_first, traits=Trait.EXACT, precision=Precision.FOLLOW)
def thresholded_relu(x: Any, *, alpha: float = 1.0) -> Any:
    """x where x > α, else 0; NaN gives 0."""
    return o.select(o.gt(x, alpha), x, 0.0)


def _reduced(x: TensorType, *, axes: tuple[int, ...], **_: Any) -> TensorType:
    return TensorType(x.dtype, kept_dims(x.shape, axes))


def _mean_vjp(g: Any, _y: Any, x: Any, *, axes: tuple[int, ...]) -> tuple[Any, ...]:
    return (o.broadcast(g / count(x, axes), shape=x.shape),)


@composite(axes=OVER, types=_reduced, vjp=_mean_vjp)
def reduce_mean(x: Any, *, axes: tuple[int, ...]) -> Any:
    """Σ x / n over axes, kept as 1; integers truncate."""
    return o.reduce_sum(x, axes=axes) / count(x, axes)


@composite(axes=OVER, types=_reduced)
def reduce_var(x: Any, *, axes: tuple[int, ...], correction: int = 0) -> Any:
    """Σ (x − mean)² / (n − correction) over axes, in two passes."""
    centred = x - o.reduce_mean(x, axes=axes)
    return o.reduce_sum(centred * centred, axes=axes) / (count(x, axes) - float(correction))


def _linear_types(x: TensorType, w: TensorType, bias: TensorType | None = None) -> TensorType:
    need(x.rank >= 1 and w.rank == 2, f"x {x} and w {w}: w must be [out, in]")
    need(x.dtype is w.dtype, f"element types differ: {x.dtype.short} and {w.dtype.short}")
    equal_dims(x.shape[-1:], w.shape[1:], f"inner dimensions differ: x {x}, w {w}")
    if bias is not None:
        want = TensorType(x.dtype, w.shape[:1])
        equal_types(bias, want, f"the bias is {bias}, {want} expected")
    return TensorType(x.dtype, (*x.shape[:-1], w.shape[0]))


@composite(types=_linear_types, precision=Precision.LOW, weighing=Weighing("product"))
def linear(x: Any, w: Any, bias: Any = None) -> Any:
    """x·wᵀ + bias with w [out, in]."""
    rows = x if x.ndim >= 2 else o.reshape(x, shape=(1, *x.shape))
    y = o.matmul(rows, w, transpose_b=True)
    y = y if x.ndim >= 2 else o.reshape(y, shape=w.shape[:1])
    return y if bias is None else y + bias


def _embedding_types(table: TensorType, ids: TensorType) -> TensorType:
    need(ids.dtype.is_integer, "the ids must be integers")
    need(table.rank >= 1, "the table needs an axis")
    return TensorType(table.dtype, (*ids.shape, *table.shape[1:]))


@composite(types=_embedding_types, category="data", precision=Precision.FOLLOW, traffic=taken,
           indexing=Indexing((0,), draws=True), weighing=Weighing("table", data=1, weight=0))
def embedding(table: Any, ids: Any) -> Any:
    """y[i…] = table[ids[i…]]: one row of the table for each id; ids are not negative."""
    return o.gather(table, o.reshape(ids, shape=(*ids.shape, 1)), axes=(0,))


@composite(precision=Precision.FOLLOW, movement=Movement.STACKS)
def stack(*xs: Any, axis: int) -> Any:
    """The operands joined along a new axis."""
    axis = check_axis(axis, xs[0].ndim + 1)
    wide = [o.reshape(x, shape=(*x.shape[:axis], 1, *x.shape[axis:])) for x in xs]
    return o.concat(*wide, axis=axis)
