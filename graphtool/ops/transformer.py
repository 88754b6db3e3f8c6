"""Scaled dot-product attention in one composite, and rotary position embedding."""

from __future__ import annotations

from typing import Any

from graphtool import dtypes
from graphtool import ops as o
from graphtool.ir.facets import Precision, Trait
from graphtool.ir.graph import TensorType
from graphtool.ir.trace import like
from graphtool.ops.common import (
    broadcast_shapes,
    composite,
    count,
    equal_dims,
    equal_types,
    like_first,
    need,
)
from graphtool.symbolic import known


def _attention_types(q: TensorType, k: TensorType, v: TensorType, mask: TensorType | None = None,
                     *, causal: bool, scale: float | None, softcap: float) -> TensorType:
    need(q.rank == k.rank == v.rank >= 2, f"q {q}, k {k} and v {v} must have the same rank")
    need(q.dtype is k.dtype is v.dtype, "q, k and v must have the same element type")
    equal_dims(q.shape[-1:], k.shape[-1:], f"the last axes of q {q} and k {k} must be equal")
    equal_dims(k.shape[:-1], v.shape[:-1], f"k {k} and v {v} differ in heads or length")
    if q.rank > 2:
        equal_dims(q.shape[:-3], k.shape[:-3], f"q {q} and k {k} differ in their leading dims")
        need(q.shape[-3] == k.shape[-3] or (k.shape[-3] != 0 and known(
            q.shape[-3] % k.shape[-3], "==", 0) is True),
             f"the heads of q {q} are not a multiple of those of k {k}")
    scores = (*q.shape[:-1], k.shape[-2])
    if mask is not None:
        need(mask.dtype is dtypes.bool_ or mask.dtype is q.dtype,
             f"the mask is {mask}, expected bool or {q.dtype.short}")
        need(broadcast_shapes(mask.shape, scores) == scores,
             f"the mask {mask} does not broadcast to {TensorType(q.dtype, scores)}")
    like_first(q)
    return TensorType(q.dtype, (*q.shape[:-1], v.shape[-1]))


def _grouped(q: Any, k: Any) -> tuple[Any, Any]:
    """Operands for which k has fewer heads than q: q [.., Hkv, G, S, D], k [.., Hkv, 1, T, D]."""
    if q.ndim == 2 or q.shape[-3] == k.shape[-3]:
        return q, k
    heads, groups = k.shape[-3], q.shape[-3] // k.shape[-3]
    return (o.reshape(q, shape=(*q.shape[:-3], heads, groups, *q.shape[-2:])),
            o.reshape(k, shape=(*k.shape[:-2], 1, *k.shape[-2:])))


def _masked(scores: Any, mask: Any, causal: bool) -> Any:
    if causal:
        rows, columns = scores.shape[-2:]
        seen = o.ge(like(scores, o.iota, shape=(rows, 1), axis=0, dtype=dtypes.int64),
                    like(scores, o.iota, shape=(1, columns), axis=1, dtype=dtypes.int64))
        scores = o.select(seen, scores, float("-inf"))
    if mask is None:
        return scores
    if mask.dtype is dtypes.bool_:
        return o.select(mask, scores, float("-inf"))
    return scores + mask


def _safe_softmax(scores: Any) -> Any:
    """Softmax over the last axis that gives 0 for a row whose elements are all −∞."""
    top = o.stop_gradient(o.reduce_max(scores, axes=(-1,)))
    e = o.exp(scores - o.select(o.eq(top, float("-inf")), 0.0, top))
    total = o.reduce_sum(e, axes=(-1,))
    return e / o.select(o.eq(total, 0.0), 1.0, total)


@composite(types=_attention_types, traits=Trait.KERNEL, precision=Precision.LOW)
def attention(q: Any, k: Any, v: Any, mask: Any = None, *, causal: bool = False,
              scale: float | None = None, softcap: float = 0.0) -> Any:
    """softmax(mask(softcap(q·kᵀ·scale)))·v with q […, Hq, S, D], k and v […, Hkv, T, ·].

    Hq is a multiple of Hkv. The mask is bool (true: the column is seen) or is added to the scores,
    and broadcasts to […, Hq, S, T]. With `causal` row i sees columns 0…i. A row that sees nothing
    gives 0. The scale is 1/√D unless given. The softcap c replaces a score s by c·tanh(s/c), before
    the mask.
    """
    if scale is None:
        depth = count(q, (-1,))
        scale = max(depth, 1.0)**-0.5 if isinstance(depth, float) else o.rsqrt(depth)
    scores = attention_scores(q, k, mask, causal, scale, softcap)
    weights = o.softmax(scores, axis=-1) if mask is None else _safe_softmax(scores)
    return weighted_values(weights, v)


def attention_scores(q: Any, k: Any, mask: Any, causal: bool, scale: Any, softcap: float) -> Any:
    """The scores of `attention`, capped and masked; the heads that share keys have an axis of their
    own if there is no mask."""
    full = (*q.shape[:-1], k.shape[-2])
    scores = o.matmul(*_grouped(q, k), transpose_b=True) * scale
    if softcap:
        scores = o.tanh(scores / softcap) * softcap
    if mask is not None and scores.shape != full:
        scores = o.reshape(scores, shape=full)
    return _masked(scores, mask, causal)


def weighted_values(weights: Any, v: Any) -> Any:
    """The sums of the values, each times its weight; the weights have the shape of
    `attention_scores`, or that of q and the number of keys."""
    if weights.ndim == v.ndim:
        weights, values = _grouped(weights, v)
    else:
        values = o.reshape(v, shape=(*v.shape[:-2], 1, *v.shape[-2:]))
    y = o.matmul(weights, values)
    if y.ndim == v.ndim:
        return y
    *lead, heads, group, rows, columns = y.shape
    return o.reshape(y, shape=(*lead, heads * group, rows, columns))


def _part(x: Any, start: Any, limit: Any, step: int = 1) -> Any:
    """x[..., start:limit:step]"""
    lead = x.shape[:-1]
    return o.slice(x, start=(*(0,) * len(lead), start), limit=(*lead, limit),
                   strides=(*(1,) * len(lead), step))


def _rotary_types(x: TensorType, cos: TensorType, sin: TensorType, *,
                  interleaved: bool) -> TensorType:
    need(cos.dtype is x.dtype, f"cos {cos} and sin {sin} do not fit x {x}")
    equal_types(cos, sin, f"cos {cos} and sin {sin} do not fit x {x}")
    half = (*x.shape[:-1], cos.shape[-1])
    need(broadcast_shapes(cos.shape, half) == half and not 2 * cos.shape[-1] > x.shape[-1],
         f"cos {cos} does not broadcast to x {x}")
    return like_first(x)


@composite(types=_rotary_types, precision=Precision.FOLLOW)
def rotary_embedding(x: Any, cos: Any, sin: Any, *, interleaved: bool = False) -> Any:
    """Rotate pairs of the last axis: (a, b) → (a·cos − b·sin, a·sin + b·cos).

    cos and sin have R/2 ≤ D/2 entries and broadcast over the leading dimensions. The pairs are (i,
    i + R/2), or (2i, 2i + 1) if interleaved; elements from R on are not changed.
    """
    half, depth = cos.shape[-1], x.shape[-1]
    turned = half * 2
    if interleaved:
        a, b = _part(x, 0, turned, 2), _part(x, 1, turned, 2)
    else:
        a, b = _part(x, 0, half), _part(x, half, turned)
    pair = a * cos - b * sin, a * sin + b * cos
    if interleaved:
        y = o.reshape(o.stack(*pair, axis=-1), shape=(*x.shape[:-1], turned))
    else:
        y = o.concat(*pair, axis=-1)
    return y if turned == depth else o.concat(y, _part(x, turned, depth), axis=-1)
