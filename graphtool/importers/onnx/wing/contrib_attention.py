"""The attention operators of `com.microsoft`, as the composite `attention`."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from graphtool.importers.onnx.families import attention as whole
from graphtool.importers.onnx.families import nn
from graphtool.importers.onnx.families.shape import iota
from graphtool.importers.onnx.kit import Refused, dim_value, dtypes, o
from graphtool.importers.onnx.wing.contrib import microsoft

# ---- Attention: one product gives q, k and v ---------------------------------------------------

@microsoft("Attention")
def attention(x: Any, w: Any, bias: Any = None, mask: Any = None, past: Any = None,
              extra: Any = None, past_length: Any = None, *, num_heads: int,
              unidirectional: int = 0, scale: float | None = None,
              mask_filter_value: float = -10000.0, qkv_hidden_sizes: Any = None,
              do_rotary: int = 0, past_present_share_buffer: int = 0,
              rotary_embedding_dim: int = 0, ctx: Any) -> Any:
    """One `matmul` that gives q, k and v side by side, then `attention` over them."""
    if past_length is not None or past_present_share_buffer or do_rotary:
        raise Refused("com.microsoft.Attention with past_sequence_length, "
                      "past_present_share_buffer or do_rotary is not supported")
    y = nn.matmul(x, w)
    return projected(y if bias is None else y + bias, mask, past, extra, num_heads,
                     qkv_hidden_sizes, unidirectional, scale, mask_filter_value, ctx.outputs)


def projected(y: Any, mask: Any, past: Any, extra: Any, heads: int, sizes: Any, causal: int,
              scale: Any, hidden: float, outputs: int) -> list[Any]:
    """`attention` over y [B, S, …], which holds q, k and v side by side, and a cache
    [2, B, H, P, D] of earlier keys and values; then the new cache."""
    sizes = sizes or (y.shape[2] // 3,) * 3
    q, k, v = (whole.heads_first(part, heads) for part in parted(y, 2, sizes))
    if past is not None:
        old = [past.take(0, i, i + 1).reshape(past.shape[1:]) for i in range(2)]
        k, v = o.concat(old[0], k, axis=2), o.concat(old[1], v, axis=2)
    bias = key_bias(mask, q, k, hidden)
    out = [whole.heads_last(attended(q, k, v, bias, extra, causal, scale))]
    if outputs > 1:
        out.append(o.concat(*(x.unsqueeze(0) for x in (k, v)), axis=0))
    return out


def parted(x: Any, axis: int, sizes: Any) -> list[Any]:
    """x cut along an axis into parts of the given sizes."""
    cuts = np.cumsum((0, *sizes)).tolist()
    return [x.take(axis, a, b) for a, b in itertools.pairwise(cuts)]


def attended(q: Any, k: Any, v: Any, bias: Any, extra: Any, causal: int, scale: Any) -> Any:
    """`attention` with all terms added to the scores. A causal one also sees all cached keys."""
    steps, total = q.shape[2], k.shape[2]
    if extra is not None:
        bias = extra if bias is None else bias + extra
    plain = steps == total
    if causal and not plain:
        seen = whole.visible(q, k, total - steps, None, -1, 0)
        bias = whole.joined(bias, seen)
    return o.attention(q, k, v, bias, causal=bool(causal) and plain, scale=scale or None)


def key_bias(mask: Any, q: Any, k: Any, hidden: float) -> Any:
    """The term that onnxruntime adds to the scores for a mask: 0 for a visible key, else `hidden`.

    Masks are [B] (the number of visible keys), [2·B] (their ends, then their starts), [3·B + 2]
    (the numbers, then the starts of packed queries and keys), [B, T], [B, S, T], or
    [B, 1, max, max], of which only the rows after the cached keys are used.
    """
    if mask is None:
        return None
    batch, steps, total = q.shape[0], q.shape[2], k.shape[2]
    match mask.ndim:
        case 1:
            shown = _ranges(mask, batch, total, q)
        case 2:
            shown = o.ne(mask.reshape((batch, 1, 1, mask.shape[1])), 0)
        case 3:
            shown = o.ne(mask.reshape((batch, 1, *mask.shape[1:])), 0)
        case 4:
            shown = o.ne(mask.take(2, total - steps, total).take(3, 0, total), 0)
        case _:
            raise Refused(f"a mask of rank {mask.ndim} is not supported")
    row = q.dtype
    zero = q.builder.constant(np.zeros((), row.numpy))
    return o.select(shown, zero, max(hidden, -65504.0) if row.bits == 16 else hidden)


def _ranges(mask: Any, batch: Any, total: Any, like: Any) -> Any:
    j = iota(like, (1, 1, 1, total), 3)
    ends = mask.take(0, 0, batch).cast(dtypes.int64).reshape((batch, 1, 1, 1))
    shown = j < ends
    if mask.shape[0] in (batch, batch * 3 + 2):  # the latter: then where each lies in a packed row
        return shown
    if mask.shape[0] != batch * 2:
        raise Refused("a mask of rank 1 must have one entry for each sequence, two, or three and "
                      "two more")
    starts = mask.take(0, batch, batch * 2).cast(dtypes.int64).reshape((batch, 1, 1, 1))
    return shown & (j >= starts)


# ---- MultiHeadAttention ------------------------------------------------------------------------

@microsoft("MultiHeadAttention")
def multi_head_attention(q: Any, k: Any = None, v: Any = None, bias: Any = None, mask: Any = None,
                         extra: Any = None, past_key: Any = None, past_value: Any = None,
                         past_length: Any = None, beams: Any = None, *, num_heads: int,
                         mask_filter_value: float = -10000.0, scale: float | None = None,
                         unidirectional: int = 0, ctx: Any) -> Any:
    """`attention` over q, k and v that are separate, packed, or cached keys and values; then the
    new keys and values [B, H, T, D]."""
    if past_length is not None or beams is not None or ctx.wanted(3):
        raise Refused("a shared cache buffer, beam search, and the scores as an output are not "
                      "supported")
    biases = [None] * 3
    if bias is not None:
        width = q.shape[-1] if q.ndim == 3 else q.shape[2] * q.shape[4]
        biases = parted(bias, 0, (width, width, bias.shape[0] - 2 * width))
    q, k, v = (_headed(x, b, num_heads)
               for x, b in zip(_unpacked(q, k, v, num_heads), biases, strict=True))
    if past_key is not None:
        k, v = o.concat(past_key, k, axis=2), o.concat(past_value, v, axis=2)
    y = attended(q, k, v, key_bias(mask, q, k, mask_filter_value), extra, unidirectional, scale)
    return [whole.heads_last(y), k, v][:ctx.outputs]


def _unpacked(q: Any, k: Any, v: Any, heads: int) -> Any:
    """q, k and v from [B, S, H, 3, D], or k and v from [B, T, H, 2, D]."""
    packed = q if q.ndim == 5 else k if k is not None and k.ndim == 5 else None
    if packed is None:
        if k is None or v is None:
            raise ValueError("k and v are missing")
        return q, k, v
    b, t, h, n, d = packed.shape
    if h != heads:
        raise ValueError(f"the packed tensor has {h} heads, num_heads is {heads}")
    rows = [packed.take(3, i, i + 1).reshape((b, t, h * d)) for i in range(n)]
    return rows if n == 3 else (q, *rows)


def _headed(x: Any, bias: Any, heads: int) -> Any:
    """x [B, T, H·D] plus its bias as [B, H, T, D]; an x of rank 4 is returned unchanged."""
    if x.ndim == 4:
        return x
    return whole.heads_first(x if bias is None else x + bias, heads)


# ---- GroupQueryAttention -----------------------------------------------------------------------

@microsoft("GroupQueryAttention")
def group_query_attention(q: Any, k: Any, v: Any, past_key: Any, past_value: Any, lengths: Any,
                          total: Any, cos: Any = None, sin: Any = None, positions: Any = None,
                          extra: Any = None, sink: Any = None, k_scale: Any = None,
                          v_scale: Any = None, q_norm: Any = None, k_norm: Any = None, *,
                          num_heads: int, kv_num_heads: int, causal: int = 1, do_rotary: int = 0,
                          k_quant_type: str = "NONE", kv_cache_bit_width: int = 0,
                          local_window_size: int = -1, qk_norm_epsilon: float = 1e-6,
                          qk_output: int = 0, rotary_interleaved: int = 0,
                          scale: float | None = None, sliding_window_cache: int = 0,
                          smooth_softmax: int = 0, softcap: float = 0.0,
                          v_quant_type: str = "NONE", ctx: Any) -> Any:
    """`attention` over a cache, with fewer key heads than query heads; then the new cache.

    `lengths` [B] is the number of keys of each sequence minus one. By default the new keys are
    appended to the cache. If the model declares that the cache keeps its length, the cache is a
    buffer and the new keys are written into it.
    """
    if smooth_softmax or sink is not None or sliding_window_cache or kv_cache_bit_width \
            or k_quant_type != "NONE" or ctx.wanted(3):
        raise Refused("an attention sink, a quantised or sliding cache, and the scores as an "
                      "output are not supported")
    if k is None:
        depth = q.shape[2] // (num_heads + 2 * kv_num_heads)
        q, k, v = parted(q, 2, [n * depth for n in (num_heads, kv_num_heads, kv_num_heads)])
    q, k, v = (whole.heads_first(x, n) for x, n in ((q, num_heads), (k, kv_num_heads),
                                                    (v, kv_num_heads)))
    if q_norm is not None:
        q, k = (o.rms_norm(x, n, axes=(3,), epsilon=qk_norm_epsilon)
                for x, n in ((q, q_norm), (k, k_norm)))
    steps, past = q.shape[2], 0 if past_key is None else past_key.shape[2]
    ends = lengths.cast(dtypes.int64) + 1
    start = _starts(ends, total, steps, past, q)
    if do_rotary:
        at = positions if positions is not None else _places(start, q)
        q, k = (whole.rotated(x, cos, sin, at, bool(rotary_interleaved)) for x in (q, k))
    if past != 0:
        room = past if _stays(ctx, past) else past + steps
        k, v = (_cached(old, new, start, room) for old, new in ((past_key, k), (past_value, v)))
    left = local_window_size - 1 if local_window_size > 0 else -1
    plain = past == 0 and left < 0
    seen = None if plain or not causal else _window(start, q, k, left)
    y = o.attention(q, k, v, whole.joined(_whole_width(extra, k), seen),
                    causal=plain and bool(causal), scale=scale or None, softcap=softcap)
    return [whole.heads_last(y), k, v][:ctx.outputs]


def _starts(ends: Any, total: Any, steps: Any, past: Any, like: Any) -> Any:
    """The position of the first new key of each sequence, i64[B]; 0 in a first prompt.

    Without a cache it is the number 0.
    """
    if past == 0:
        return 0
    first = o.eq(total.cast(dtypes.int64).reshape(()), dim_value(steps, like))
    behind = ends - dim_value(steps, like)
    return o.select(first, like.builder.constant(np.zeros((), np.int64)), behind)


def _places(start: Any, q: Any) -> Any:
    batch, steps = q.shape[0], q.shape[2]
    line = iota(q, (1, steps), 1)
    line = line if isinstance(start, int) else line + start.reshape((batch, 1))
    return o.broadcast(line, shape=(batch, steps))


def _stays(ctx: Any, past: Any) -> bool:
    """Whether the model declares the same length for the new cache as for the old one."""
    name = ctx.node.output[1] if ctx.wanted(1) else ""
    graph = ctx.importer.model.graph
    for info in (*graph.output, *graph.value_info):
        if name and info.name == name:
            dims = info.type.tensor_type.shape.dim
            if len(dims) == 4 and dims[2].WhichOneof("value"):
                return bool(ctx.importer.inputs.dim(dims[2], name) == past)
    return False


def _cached(old: Any, new: Any, start: Any, room: Any) -> Any:
    """The cache enlarged to `room` positions, with the new rows written from `start` on, which has
    one entry for each sequence."""
    batch, steps = new.shape[0], new.shape[2]
    if room != old.shape[2]:
        old = o.pad(old, lo=(0,) * 4, hi=(0, 0, room - old.shape[2], 0))
    at = iota(new, (1, room), 1) - start.reshape((batch, 1))
    inside = (at >= 0) & (at < dim_value(steps, new))
    if steps == 1:
        rows = new
    else:
        index = o.select(inside, at, 0).reshape((batch, room, 1))
        rows = o.gather(new.transpose((0, 2, 1, 3)), index, axes=(1,),
                        batch=1).transpose((0, 2, 1, 3))
    return o.select(inside.reshape((batch, 1, room, 1)), rows, old)


def _window(start: Any, q: Any, k: Any, left: int) -> Any:
    """Which keys each query sees: at most its own position, and at most `left` before it."""
    i, j = iota(q, (1, 1, q.shape[2], 1), 2), iota(q, (1, 1, 1, k.shape[2]), 3)
    at = i if isinstance(start, int) else i + start.reshape((q.shape[0], 1, 1, 1))
    seen = j <= at
    return seen if left < 0 else seen & (j >= at - left)


def _whole_width(extra: Any, k: Any) -> Any:
    """An added bias padded to all positions of the cache. The padding lies over hidden keys."""
    if extra is None or extra.shape[3] == k.shape[2]:
        return extra
    return o.pad(extra, lo=(0,) * 4, hi=(0, 0, 0, k.shape[2] - extra.shape[3]))


# ---- RotaryEmbedding ---------------------------------------------------------------------------

@microsoft("RotaryEmbedding")
def rotary_embedding(x: Any, positions: Any, cos: Any, sin: Any, *, interleaved: int = 0,
                     num_heads: int = 0, rotary_embedding_dim: int = 0, scale: float = 1.0,
                     is_packed_batching: int = 0) -> Any:
    """`rotary_embedding` at the given positions; one offset [1] counts upwards from there.

    In a packed batch (`is_packed_batching`) a row may be longer than the tables, as the positions
    start again within it.
    """
    flat = x.ndim == 3
    heads = num_heads or (x.shape[2] // (2 * cos.shape[1]) if flat else 0)
    y = whole.heads_first(x, heads)
    if positions.ndim == 1:  # one offset for all
        line = iota(x, (1, y.shape[2]), 1) + positions.cast(dtypes.int64)
        positions = o.broadcast(line, shape=(y.shape[0], y.shape[2]))
    y = whole.rotated(y, cos, sin, positions, bool(interleaved))
    return whole.heads_last(y) if flat else y
