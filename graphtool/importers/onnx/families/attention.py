"""Attention and RotaryEmbedding as the composites of the same names.

An Attention whose score matrix is an output is expanded by the body that onnx defines for it.
"""

from __future__ import annotations

import math
from typing import Any

from graphtool.importers.onnx.families.shape import iota
from graphtool.importers.onnx.kit import Dim, Refused, dim_value, dtypes, o, onnx_op


def heads_first(x: Any, heads: int | None) -> Any:
    """x [B, S, H·D] as [B, H, S, D]; an x of rank 4 is returned unchanged."""
    if x.ndim == 4:
        return x
    if not heads:
        raise ValueError("the number of heads is missing")
    batch, steps, width = x.shape
    return x.reshape((batch, steps, heads, width // heads)).transpose((0, 2, 1, 3))


def heads_last(x: Any) -> Any:
    """x [B, H, S, D] as [B, S, H·D]."""
    batch, heads, steps, depth = x.shape
    return x.transpose((0, 2, 1, 3)).reshape((batch, steps, heads * depth))


@onnx_op("Attention", since=23, fold=False)
def attention(q: Any, k: Any, v: Any, mask: Any = None, past_key: Any = None,
              past_value: Any = None, lengths: Any = None, *, is_causal: int = 0,
              kv_num_heads: int | None = None, q_num_heads: int | None = None,
              left_window_size: int = -1, right_window_size: int = -1,
              qk_matmul_output_mode: int = 0, scale: float | None = None, softcap: float = 0.0,
              softmax_precision: int = 0, ctx: Any) -> Any:
    """`attention` over heads first, with the cache joined in front of the keys and values; then the
    new keys and values [B, H, T, D].

    Windows, lengths and cached keys become one mask, since `attention` itself knows only `causal`.
    With the scores as an output it is onnx's function body.
    """
    if ctx.wanted(3):
        return ctx.body()
    if (past_key is None) != (past_value is None):
        raise ValueError("past_key and past_value belong together")
    flat = q.ndim == 3
    q, k, v = (heads_first(x, n) for x, n in ((q, q_num_heads), (k, kv_num_heads),
                                              (v, kv_num_heads)))
    past: Dim = 0
    if past_key is not None:
        past = past_key.shape[2]
        k, v = o.concat(past_key, k, axis=2), o.concat(past_value, v, axis=2)
    right = 0 if is_causal else right_window_size
    plain = lengths is None and past == 0 and left_window_size < 0 and right in (-1, 0)
    seen = None if plain else visible(q, k, past, lengths, left_window_size, right)
    if mask is not None and mask.dtype.is_integer and mask.dtype is not dtypes.bool_:
        mask = mask.cast(q.dtype)  # numbers are added to the scores, whatever their type
    mask = padded_mask(mask, k.shape[2])
    left, factor = (q, scale) if q.dtype.bits > 16 else (_prescaled(q, scale), 1.0)
    keys = k if left is q else _prescaled(k, scale)
    y = o.attention(left, keys, v, joined(mask, seen), causal=plain and right == 0, scale=factor,
                    softcap=softcap)
    return [heads_last(y) if flat else y, k, v][:ctx.outputs]


def _prescaled(x: Any, scale: float | None) -> Any:
    """x times the square root of the scale. 16-bit types round at this point, as ONNX does."""
    if scale is None and not isinstance(x.shape[-1], int):
        raise Refused("attention in a 16-bit type over heads of symbolic width is not supported "
                      "without the attribute scale")
    return x * math.sqrt(x.shape[-1] ** (-0.5) if scale is None else scale)


def padded_mask(mask: Any, total: Dim) -> Any:
    """The mask padded to `total` keys. The padding hides the keys that a shorter mask leaves
    out."""
    if mask is None or mask.shape[-1] in (total, 1):
        return mask
    hi = (0,) * (mask.ndim - 1) + (total - mask.shape[-1],)
    fill = 0.0 if mask.dtype is dtypes.bool_ else float("-inf")
    return o.pad(mask, lo=(0,) * mask.ndim, hi=hi, value=fill)


def visible(q: Any, k: Any, past: Dim, lengths: Any, left: int, right: int) -> Any:
    """Which keys each query may see, bool [B or 1, 1, S, T].

    Query i has the position i plus the number of earlier keys.
    """
    rows, columns = q.shape[2], k.shape[2]
    j = iota(q, (1, 1, 1, columns), 3)
    at = iota(q, (1, 1, rows, 1), 2)
    seen = None
    if lengths is not None:
        n = lengths.cast(dtypes.int64).reshape((lengths.shape[0], 1, 1, 1))
        seen = j < n
        at = at + (n - dim_value(rows, q))
    elif past != 0:
        at = at + dim_value(past, q)
    if right >= 0:
        ok = j <= at + right
        seen = ok if seen is None else seen & ok
    if left >= 0:
        ok = j >= at - left
        seen = ok if seen is None else seen & ok
    return seen


def joined(mask: Any, seen: Any) -> Any:
    """One mask from a given mask (bool, or added to the scores) and the keys that may be seen."""
    if mask is None or seen is None:
        return seen if mask is None else mask
    if mask.dtype is dtypes.bool_:
        return mask & seen
    return o.select(seen, mask, float("-inf"))


# ---- rotary embedding --------------------------------------------------------------------------

@onnx_op("RotaryEmbedding", since=23)
def rotary_embedding(x: Any, cos: Any, sin: Any, positions: Any = None, *, interleaved: int = 0,
                     num_heads: int = 0, rotary_embedding_dim: int = 0) -> Any:
    """`rotary_embedding` of x [B, S, H·D] or [B, H, S, D], in x's own layout."""
    flat = x.ndim == 3
    y = rotated(heads_first(x, num_heads), cos, sin, positions, bool(interleaved))
    return heads_last(y) if flat else y


def rotated(x: Any, cos: Any, sin: Any, positions: Any, interleaved: bool) -> Any:
    """`rotary_embedding` of x [B, H, S, D].

    The tables of cosines and sines are [P, R/2] and read at `positions`, or [B, S, R/2] without
    positions.
    """
    if positions is not None:
        at = positions.unsqueeze()
        cos, sin = o.gather(cos, at, axes=(0,)), o.gather(sin, at, axes=(0,))
    batch, steps, half = cos.shape
    return o.rotary_embedding(x, cos.reshape((batch, 1, steps, half)),
                              sin.reshape((batch, 1, steps, half)), interleaved=interleaved)
