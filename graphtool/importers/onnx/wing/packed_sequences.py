"""Packed sequences of `com.microsoft`: the tokens of all sequences in one row, without padding.

Attention over them is `attention` over the sequences side by side, as long as the longest may be:
their tokens are gathered, the places behind the end of each are masked, and the results are
gathered back. `cumulative_sequence_length` says where each sequence starts; of `token_offset`
only the shape, [B, S], is needed."""

from __future__ import annotations

from typing import Any

from graphtool.importers.onnx.families import attention as whole
from graphtool.importers.onnx.families import nn
from graphtool.importers.onnx.families.shape import iota
from graphtool.importers.onnx.kit import dtypes, fresh, o, product
from graphtool.importers.onnx.wing.contrib import microsoft
from graphtool.importers.onnx.wing.contrib_attention import parted
from graphtool.ops.common import filled


@microsoft("PackedAttention")
def packed_attention(x: Any, w: Any, bias: Any, offsets: Any, starts: Any, extra: Any = None, *,
                     num_heads: int, qkv_hidden_sizes: Any = None,
                     scale: float | None = None) -> Any:
    """One `matmul` that gives q, k and v of the tokens x [T, W], then `attention` over each
    sequence; [T, V]."""
    y = nn.matmul(x, w)
    y = y if bias is None else y + bias
    sizes = qkv_hidden_sizes or (y.shape[1] // 3,) * 3
    return _attended(parted(y, 1, sizes), offsets, starts, extra, num_heads, scale)


@microsoft("PackedMultiHeadAttention")
def packed_multi_head_attention(q: Any, k: Any, v: Any, bias: Any, offsets: Any, starts: Any,
                                extra: Any = None, *, num_heads: int,
                                mask_filter_value: float = -10000.0,
                                scale: float | None = None) -> Any:
    """`attention` over each sequence of q, k, v [T, W], or of [T, H, 3, D], which holds all three.

    What is behind the end of a sequence is not seen, so `mask_filter_value` has no use.
    """
    if q.ndim == 4:
        tokens, heads, _, depth = q.shape
        if heads != num_heads:
            raise ValueError(f"the packed query has {heads} heads, num_heads is {num_heads}")
        rows = [q.take(2, i, i + 1).reshape((tokens, heads * depth)) for i in range(3)]
    elif k is None or v is None:
        raise ValueError("k and v are missing")
    else:
        rows = [q, k, v]
    if bias is not None:
        parts = parted(bias, 0, [x.shape[1] for x in rows])
        rows = [x + b for x, b in zip(rows, parts, strict=True)]
    return _attended(rows, offsets, starts, extra, num_heads, scale)


def _attended(rows: list[Any], offsets: Any, starts: Any, extra: Any, heads: int,
              scale: Any) -> Any:
    """`attention` within each sequence of q, k, v [T, H·D], which begin at `starts` [B + 1]."""
    (batch, steps), tokens = offsets.shape, rows[0].shape[0]
    if not (offsets.dtype.is_integer and starts.dtype.is_integer):
        raise ValueError("token_offset and cumulative_sequence_length must be integers")
    if starts.ndim != 1 or starts.shape[0] != batch + 1:
        raise ValueError(f"{batch} sequences have {batch + 1} starts, not {tuple(starts.shape)}")
    starts = starts.cast(dtypes.int64)
    first = starts.take(0, 0, batch).reshape((batch, 1))
    ends = starts.take(0, 1, batch + 1).reshape((batch, 1))
    at = first + iota(starts, (1, steps), 1)
    inside = at < ends
    source = o.select(inside, at, 0).reshape((batch, steps, 1))
    there = inside.reshape((batch, steps, 1))
    q, k, v = (whole.heads_first(o.select(there, o.gather(x, source, axes=(0,)), 0.0), heads)
               for x in rows)
    mask = inside.reshape((batch, 1, 1, steps))
    y = whole.heads_last(o.attention(q, k, v, whole.joined(extra, mask), scale=scale or None))
    token = iota(starts, (1, tokens), 1)
    sequence = o.reduce_sum((token >= ends).cast(dtypes.int64), axes=(0,))
    place = iota(starts, (tokens,), 0) - o.gather(first.reshape((batch,)),
                                                  sequence.reshape((tokens, 1)), axes=(0,))
    return o.gather(y, o.concat(*(i.reshape((tokens, 1)) for i in (sequence, place)), axis=1),
                    axes=(0, 1))


@microsoft("RemovePadding")
def remove_padding(x: Any, counts: Any, *, ctx: Any) -> Any:
    """The tokens of x [B, S, W] without those behind the first `counts` [B] of each sequence:
    [T, W]; then where each came from and the others after them, the sums of the counts, and the
    greatest count."""
    batch, steps, _ = x.shape
    counts, places = counts.cast(dtypes.int64), product((batch, steps))
    kept = iota(x, (1, steps), 1) < counts.reshape((batch, 1))
    y = o.gather(x, o.nonzero(kept, size=fresh(x, places)), axes=(0, 1))
    flat = kept.reshape((places,)).cast(dtypes.int64)
    _, order = o.sort(1 - flat, axis=0)
    sums = o.cumulative(counts, kind="sum", axis=0)
    sums = o.concat(sums.take(0, 0, 1) * 0, sums, axis=0)
    out = [y, *(v.cast(dtypes.int32) for v in (order.reshape((batch, steps)), sums,
                                               o.reduce_max(counts, axes=(0,)).reshape((1,))))]
    return out[:ctx.outputs]


@microsoft("RestorePadding")
def restore_padding(x: Any, offsets: Any) -> Any:
    """The inverse: x [T, W] as [B, S, W] at the first T of `offsets` [B, S], with zeros between."""
    (batch, steps), (tokens, width) = offsets.shape, x.shape
    flat = offsets.cast(dtypes.int64).reshape((product((batch, steps)),))
    zeros = filled(x, 0.0, (product((batch, steps)), width))
    y = o.scatter(zeros, flat.take(0, 0, tokens).reshape((tokens, 1)), x, axes=(0,))
    return y.reshape((batch, steps, width))
