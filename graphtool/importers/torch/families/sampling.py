"""Ops on positions: the indices of max pooling, col2im, embedding bags."""

from __future__ import annotations

from functools import reduce
from itertools import product
from typing import Any

import numpy as np

from graphtool.importers.torch.families.index import by_frequency
from graphtool.importers.torch.kit import Array, Context, Dim, Refused, aten, dtypes, o, pairs
from graphtool.ops.reduce import identity

# ---- the indices of max pooling ----------------------------------------------------------------


def window_positions(c: Context, x: Array, attrs: dict[str, Any], edges: Any,
                     out: tuple[Dim, ...]) -> Array:
    """i64: for each window of x [N, C, …], the flat index of its first maximum in the plane."""
    n = x.ndim - 2
    lo, hi = (0, 0, *(p for p, _ in edges)), (0, 0, *(p + h for p, h in edges))
    least = float(identity("max", x.dtype))
    padded = x.pad(lo, hi, least)
    offsets = list(product(*(range(k) for k in attrs["window"])))
    views = []
    for offset in offsets:
        start = [k * d for k, d in zip(offset, attrs["dilation"], strict=True)]
        limit = [a + (m - 1) * s + 1 for a, m, s in zip(start, out, attrs["strides"], strict=True)]
        views.append(padded.slice((0, 0, *start), (*x.shape[:2], *limit),
                                  (1, 1, *attrs["strides"])))
    winner = o.arg_reduce(o.stack(*views, axis=x.ndim), kind="max", axis=x.ndim)
    winner = winner.reshape(winner.shape[:-1])
    flat: Any = 0
    for axis in range(n):
        table = np.array([k[axis] * attrs["dilation"][axis] for k in offsets], np.int64)
        shape = [out[axis] if i == 2 + axis else 1 for i in range(x.ndim)]
        base = c.iota(shape, 2 + axis) * attrs["strides"][axis] - edges[axis][0]
        place = c.constant(table).at(winner, 0) + base
        flat = place if axis == 0 else flat * c.number(x.shape[2 + axis], dtypes.int64) + place
    return flat  # type: ignore[no-any-return]


# ---- col2im ------------------------------------------------------------------------------------

@aten("col2im")
def col2im(c: Context, self: Array, output_size: Any, kernel_size: Any, dilation: Any,
           padding: Any, stride: Any) -> Any:
    """The sum of all windows at their places: one pad with interior gaps for each window offset."""
    size, window, spread, pad, step = (pairs(v, 2) for v in (
        output_size, kernel_size, dilation, padding, stride))
    x = self if self.ndim == 3 else self.unsqueeze(0)
    batch, channels = x.shape[0], x.shape[1] // (window[0] * window[1])
    blocks = [(size[i] + 2 * pad[i] - spread[i] * (window[i] - 1) - 1) // step[i] + 1
              for i in (0, 1)]
    x = x.reshape((batch, channels, *window, *blocks))
    parts = []
    for k in product(range(window[0]), range(window[1])):
        part = x.entry(2, k[0]).entry(2, k[1])
        lo = [k[i] * spread[i] - pad[i] for i in (0, 1)]  # negative edges crop the padding away
        hi = [size[i] - lo[i] - ((blocks[i] - 1) * step[i] + 1) for i in (0, 1)]
        parts.append(part.pad((0, 0, *lo), (0, 0, *hi), 0, (0, 0, step[0] - 1, step[1] - 1)))
    return reduce(o.add, parts).reshape(c.out.shape)


# ---- embedding bags ----------------------------------------------------------------------------

@aten("_embedding_bag", "_embedding_bag_forward_only")
def embedding_bag(c: Context, weight: Array, indices: Array, offsets: Array,
                  scale_grad_by_freq: bool = False, mode: int = 0, sparse: bool = False,
                  per_sample_weights: Array | None = None, include_last_offset: bool = False,
                  padding_idx: int = -1) -> Any:
    """Sum (0), mean (1) or max (2) of the rows of each bag; an index's bag is found by counting."""
    if any(c.used(i) for i in range(1, len(c.outs))):
        raise Refused("only the first result of an embedding bag is supported, not what it keeps "
                      "for its gradient")
    bags, count = c.out.shape[0], indices.shape[0]
    starts = offsets.cast(dtypes.int64).take(0, 0, bags).reshape((1, bags))
    begun = (c.iota((count, 1), 0) >= starts).cast(dtypes.int64)
    bag = o.reduce_sum(begun, axes=(1,)) - 1
    rows = by_frequency(o.embedding(weight, indices), scale_grad_by_freq)
    if per_sample_weights is not None:
        rows = rows * per_sample_weights.unsqueeze()
    start = float("-inf") if mode == 2 else 0.0
    counted = c.full((count, 1), 1.0, c.out.dtype)
    if padding_idx >= 0:  # rows that are skipped
        kept = o.ne(indices, padding_idx).unsqueeze()
        rows, counted = o.select(kept, rows, start), c.cast(kept, c.out.dtype)
    total = o.scatter(c.full(c.out.shape, start, c.out.dtype), bag, rows, axes=(0,),
                      kind="max" if mode == 2 else "add")
    if mode == 0:
        return total, None, None, None
    number = o.scatter(c.full((bags, 1), 0.0, c.out.dtype), bag, counted, axes=(0,), kind="add")
    if mode == 1:
        return total / o.max(number, 1.0), None, None, None
    return o.select(o.eq(number, 0.0), 0.0, total), None, None, None
