"""Attention as our one op, its gradient, torch's fused transformer layers, and flex_attention,
whose score and mask functions become ops on whole tensors."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from graphtool.importers.torch.driver.captured import CapturedProgram
from graphtool.importers.torch.kit import Array, Context, Refused, aten, broadcast_shapes, dtypes, o
from graphtool.ir.graph import Graph, Node, is_constant
from graphtool.ir.replay import replay
from graphtool.scalars.table import BY_NAME
from graphtool.symbolic import Dim


@aten("scaled_dot_product_attention")
def scaled_dot_product_attention(c: Context, query: Array, key: Array, value: Array,
                                 attn_mask: Array | None = None, dropout_p: float = 0.0,
                                 is_causal: bool = False, *, scale: float | None = None,
                                 enable_gqa: bool = False) -> Any:
    """softmax(scale·q·kᵀ + mask)·v by our attention op; refuses dropout, which is random."""
    if dropout_p:
        raise Refused("attention with dropout is random; call model.eval() before the import")
    lead = _lead(query, key, value)
    q, k, v = (x.broadcast((*lead[x], *x.shape[-2:])) for x in (query, key, value))
    if attn_mask is not None and attn_mask.dtype is not dtypes.bool_:
        attn_mask = attn_mask.cast(q.dtype)
    return o.attention(q, k, v, attn_mask, causal=is_causal, scale=scale)


def _lead(q: Array, k: Array, v: Array) -> dict[Array, tuple[Dim, ...]]:
    """Leading dims of q, k, v: batch dims broadcast; each keeps its number of heads."""
    if q.ndim == 2:
        return {x: () for x in (q, k, v)}
    batch = broadcast_shapes(q.shape[:-3], k.shape[:-3], v.shape[:-3])
    return {x: (*batch, x.shape[-3]) for x in (q, k, v)}


def _scores(c: Context, q: Array, k: Array, mask: Array | None, causal: bool,
            scale: float) -> Any:
    """scale·q·kᵀ plus the mask, [..., queries, keys]; −∞ at masked places."""
    s = o.matmul(q, k, transpose_b=True) * scale
    if causal:
        rows, cols = (c.iota(s.shape[-2:], axis) for axis in (0, 1))
        s = o.select(rows >= cols, s, -math.inf)
    if mask is None:
        return s
    return o.select(mask, s, -math.inf) if mask.dtype is dtypes.bool_ else s + mask.cast(s.dtype)


def _scale_of(q: Array, scale: float | None) -> float:
    width = q.shape[-1]
    if scale is None and not isinstance(width, int):
        raise Refused("attention over heads of symbolic width is not supported without a scale; "
                      "give `scale`, or fix the width")
    return float(scale) if scale is not None else 1 / math.sqrt(width)  # type: ignore[arg-type]


@aten("_scaled_dot_product_flash_attention_for_cpu")
def flash_attention(c: Context, query: Array, key: Array, value: Array, dropout_p: float = 0.0,
                    is_causal: bool = False, *, attn_mask: Array | None = None,
                    scale: float | None = None) -> Any:
    """(attention, the logarithm of each row's sum of exponentials [..., queries])."""
    y = scaled_dot_product_attention(c, query, key, value, attn_mask, dropout_p, is_causal,
                                     scale=scale)
    if not c.used(1):
        return y, None
    s = _scores(c, query, key, attn_mask, is_causal, _scale_of(query, scale))
    wide = s if s.dtype is dtypes.float64 else s.cast(dtypes.float32)
    return y, o.logsumexp(wide, axes=(s.ndim - 1,)).reshape(s.shape[:-1])


@aten("_scaled_dot_product_flash_attention_for_cpu_backward")
def flash_attention_backward(c: Context, grad_out: Array, query: Array, key: Array,
                             value: Array, out: Array, logsumexp: Array, dropout_p: float,
                             is_causal: bool, *, attn_mask: Array | None = None,
                             scale: float | None = None) -> Any:
    """With P = exp(S − log Σ): dV = PᵀG, dS = P∘(GVᵀ − Σ G∘Y), dQ = scale·dS·K, dK = scale·dSᵀQ"""
    if dropout_p:
        raise Refused("the gradient of attention with dropout is not supported, because dropout "
                      "is random; set dropout to 0")
    factor = _scale_of(query, scale)
    s = _scores(c, query, key, attn_mask, is_causal, factor)
    sums = logsumexp.unsqueeze().cast(s.dtype)
    p = o.select(s > -math.inf, o.exp(s - sums), 0.0)  # all masked: 0, not NaN
    along = o.reduce_sum(grad_out * out, axes=(out.ndim - 1,))
    ds = p * (o.matmul(grad_out, value, transpose_b=True) - along)
    return (o.matmul(ds, key) * factor, o.matmul(ds, query, transpose_a=True) * factor,
            o.matmul(p, grad_out, transpose_a=True))


# ---- the fused layers that nn.TransformerEncoder runs without gradients -------------------------

def _heads(x: Array, w: Array, b: Array, count: int) -> list[Array]:
    """Queries, keys and values of one projection, each [batch, heads, length, width]."""
    batch, length, width = x.shape
    y = o.linear(x, w, b).reshape((batch, length, 3, count, width // count))
    y = y.transpose([2, 0, 3, 1, 4])
    return [y.entry(0, i) for i in range(3)]


def _self_attention(x: Array, heads: int, qkv: tuple[Array, Array], proj: tuple[Array, Array],
                    mask: Array | None, kind: int | None) -> Any:
    if mask is not None:  # true where not to look; kind 1 masks keys, [batch, length]
        batch, length, _ = x.shape
        shape = (batch, 1, 1, length) if kind == 1 else (
            mask.shape if mask.ndim != 3 else (batch, heads, length, length))
        mask = ~mask.cast(dtypes.bool_).reshape(shape)
    q, k, v = _heads(x, *qkv, heads)
    y = o.attention(q, k, v, mask)
    return o.linear(y.transpose([0, 2, 1, 3]).reshape(x.shape), *proj)


@aten("_transformer_encoder_layer_fwd")
def encoder_layer(c: Context, src: Array, embed_dim: int, num_heads: int, qkv_weight: Array,
                  qkv_bias: Array, proj_weight: Array, proj_bias: Array, use_gelu: bool,
                  norm_first: bool, eps: float, norm_weight_1: Array, norm_bias_1: Array,
                  norm_weight_2: Array, norm_bias_2: Array, ffn_weight_1: Array,
                  ffn_bias_1: Array, ffn_weight_2: Array, ffn_bias_2: Array,
                  mask: Array | None = None, mask_type: int | None = None) -> Any:
    """x + attention(x), then x + feed_forward(x), with a layer norm before or after each sum."""
    def norm(x: Any, w: Array, b: Array) -> Any:
        return o.layer_norm(x, w, b, axes=(x.ndim - 1,), epsilon=float(eps))

    def attend(x: Any) -> Any:
        return _self_attention(x, num_heads, (qkv_weight, qkv_bias), (proj_weight, proj_bias),
                               mask, mask_type)

    def feed(x: Any) -> Any:
        inner = o.linear(x, ffn_weight_1, ffn_bias_1)
        return o.linear(o.gelu(inner) if use_gelu else o.relu(inner), ffn_weight_2, ffn_bias_2)
    first, second = (norm_weight_1, norm_bias_1), (norm_weight_2, norm_bias_2)
    if norm_first:
        x = src + attend(norm(src, *first))
        return x + feed(norm(x, *second))
    x = norm(src + attend(src), *first)
    return norm(x + feed(x), *second)


@aten("_native_multi_head_attention")
def multi_head_attention(c: Context, query: Array, key: Array, value: Array, embed_dim: int,
                         num_head: int, qkv_weight: Array, qkv_bias: Array, proj_weight: Array,
                         proj_bias: Array, mask: Array | None = None, need_weights: bool = True,
                         average_attn_weights: bool = True, mask_type: int | None = None) -> Any:
    """Self-attention with its projections, [batch, length, width]; refuses q, k, v that differ."""
    if query is not key or key is not value or c.used(1):
        raise Refused("query, key and value must be the same tensor, and the attention weights "
                      "must stay unused (need_weights=False)")
    return _self_attention(query, num_head, (qkv_weight, qkv_bias), (proj_weight, proj_bias),
                           mask, mask_type), None


# ---- flex_attention -----------------------------------------------------------------------------

_PER_ELEMENT = frozenset(BY_NAME) | {"select", "clamp", "cast"}
_MOVES = ("reshape", "broadcast")  # of one element: nothing


@aten("flex_attention", namespace="higher_order")
def flex_attention(c: Context, query: Array, key: Array, value: Array, score_mod: CapturedProgram,
                   block_mask: tuple[Any, ...], scale: float, kernel_options: Any = None,
                   score_buffers: tuple[Any, ...] = (), mask_buffers: tuple[Any, ...] = ()) -> Any:
    """softmax(f(scale·q·kᵀ, batch, head, row, column), masked)·v; a row that is masked everywhere
    gives 0. If f returns its score unchanged, this is our attention op."""
    if score_buffers or mask_buffers:
        raise Refused("a score or mask function that reads other tensors is not supported; use "
                      "scaled_dot_product_attention and add them as a mask")
    if any(c.used(i) for i in range(1, len(c.outs))):
        raise Refused("only the first result of flex_attention is supported, not what it keeps "
                      "for its gradient")
    batch, heads, rows, _ = query.shape
    shape = (batch, heads, rows, key.shape[-2])
    at = [c.iota([d if i == axis else 1 for i, d in enumerate(shape)], axis, dtypes.int32)
          for axis, d in enumerate(shape)]
    mask = _over(c, c.region(block_mask[-1]), at)
    mask = mask.broadcast(shape)
    function = c.region(score_mod)
    if function.outputs[0] is function.inputs[0]:
        return o.attention(query, key, value, mask, scale=scale), None, None
    key, value = (_for_heads(c, x, heads) for x in (key, value))
    scores = o.matmul(query, key, transpose_b=True) * scale
    scores = o.select(mask, _over(c, function, [scores, *at]), float("-inf"))
    some = o.reduce_or(mask, axes=(3,))
    weights = o.softmax(o.select(some, scores, 0.0), axis=3)
    return o.matmul(o.select(some, weights, 0.0), value), None, None


def _for_heads(c: Context, x: Array, heads: Any) -> Array:
    """Keys and values once for each head of the queries."""
    batch, few, *rest = x.shape
    if few == heads:
        return x
    wide = x.reshape((batch, few, 1, *rest)).broadcast((batch, few, heads // few, *rest))
    return wide.reshape((batch, heads, *rest))


def _over(c: Context, graph: Graph, operands: Sequence[Array]) -> Array:
    """What a graph of single elements gives for tensors of them."""
    def apply(node: Node, *xs: Any) -> Sequence[Any]:
        if node.op.name in _MOVES:
            return (xs[0],)
        if node.op.name not in _PER_ELEMENT and not is_constant(node):
            raise Refused(f"the score function contains {node.op.name}, but only elementwise ops "
                          "are supported in it")
        return (c.emit(node.op, xs, dict(node.attrs)),)
    return replay(graph, operands, apply)[0]  # type: ignore[no-any-return]
