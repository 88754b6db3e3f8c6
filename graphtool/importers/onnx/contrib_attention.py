"""`com.microsoft`: the attention operators, over the composite `attention`."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from graphtool import dtypes
from graphtool.importers.onnx import attention as whole
from graphtool.importers.onnx import nn
from graphtool.importers.onnx.contrib import microsoft
from graphtool.importers.onnx.registry import Refused
from graphtool.importers.onnx.shape import iota
from graphtool.importers.onnx.values import (
    cast,
    dim_value,
    reshape,
    take,
)
from graphtool.ir.op import ops as o


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
