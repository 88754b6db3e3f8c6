"""Reading and writing by position: max pooling's indices, col2im, grid sampling, embedding bags."""

from __future__ import annotations

from functools import reduce
from itertools import product
from typing import Any

import numpy as np

from graphtool import dtypes
from graphtool import ops as o
from graphtool.importers.torch.context import Context, Missing, pairs
from graphtool.importers.torch.table import aten
from graphtool.ir.trace import Tracer
from graphtool.ops.reduce import identity
from graphtool.symbolic import Dim

# ---- the indices of max pooling ----------------------------------------------------------------


def window_positions(c: Context, x: Tracer, attrs: dict[str, Any], edges: Any,
                     out: tuple[Dim, ...]) -> Tracer:
    """For each window of x [N, C, …] the flat index, within the plane, of its first maximum."""
    n = x.ndim - 2
    lo, hi = (0, 0, *(p for p, _ in edges)), (0, 0, *(p + h for p, h in edges))
    least = float(identity("max", x.dtype))
    padded = o.pad(x, lo=lo, hi=hi, value=least)
    offsets = list(product(*(range(k) for k in attrs["window"])))
    views = []
    for offset in offsets:
        start = [k * d for k, d in zip(offset, attrs["dilation"], strict=True)]
        limit = [a + (m - 1) * s + 1 for a, m, s in zip(start, out, attrs["strides"], strict=True)]
        views.append(o.slice(padded, start=(0, 0, *start), limit=(*x.shape[:2], *limit),
                             strides=(1, 1, *attrs["strides"])))
    winner = o.arg_reduce(o.stack(*views, axis=x.ndim), kind="max", axis=x.ndim)
    winner = c.reshape(winner, winner.shape[:-1])
    flat: Any = 0
    for axis in range(n):
        table = np.array([k[axis] * attrs["dilation"][axis] for k in offsets], np.int64)
        inner = o.gather(c.constant(table), c.reshape(winner, (*winner.shape, 1)), axes=(0,))
        shape: list[Dim] = [1] * x.ndim
        shape[2 + axis] = out[axis]
        base = o.sub(o.mul(c.iota(shape, 2 + axis), attrs["strides"][axis]), edges[axis][0])
        place = o.add(inner, base)
        flat = place if axis == 0 else o.add(
            o.mul(flat, c.number(x.shape[2 + axis], dtypes.int64)), place)
    return flat  # type: ignore[no-any-return]


# ---- col2im ------------------------------------------------------------------------------------

@aten("col2im")
def col2im(c: Context, self: Tracer, output_size: Any, kernel_size: Any, dilation: Any,
           padding: Any, stride: Any) -> Any:
    """The windows' elements put back and summed: one interior padding per place in the window."""
    size, window, spread, pad, step = (pairs(v, 2) for v in (
        output_size, kernel_size, dilation, padding, stride))
    x = self if self.ndim == 3 else c.reshape(self, (1, *self.shape))
    batch, channels = x.shape[0], x.shape[1] // (window[0] * window[1])
    blocks = [(size[i] + 2 * pad[i] - spread[i] * (window[i] - 1) - 1) // step[i] + 1
              for i in (0, 1)]
    x = c.reshape(x, (batch, channels, *window, *blocks))
    parts = []
    for k in product(range(window[0]), range(window[1])):
        part = c.reshape(c.window(c.window(x, 2, k[0], k[0] + 1), 3, k[1], k[1] + 1),
                         (batch, channels, *blocks))
        lo = [k[i] * spread[i] - pad[i] for i in (0, 1)]  # negative edges crop the padding away
        hi = [size[i] - lo[i] - ((blocks[i] - 1) * step[i] + 1) for i in (0, 1)]
        parts.append(o.pad(part, lo=(0, 0, *lo), hi=(0, 0, *hi),
                           interior=(0, 0, step[0] - 1, step[1] - 1)))
    return c.reshape(reduce(o.add, parts), c.out.shape)


# ---- grid sampling -----------------------------------------------------------------------------

@aten("grid_sampler_2d", "grid_sampler")
def grid_sampler_2d(c: Context, input: Tracer, grid: Tracer, interpolation_mode: int,
                    padding_mode: int, align_corners: bool) -> Any:
    """x [N, C, H, W] read at grid [N, h, w, 2] (x, then y, in −1..1)."""
    if interpolation_mode == 2 or input.ndim != 4:
        raise Missing("grid sampling that is cubic, or not of images")
    spots = []
    for axis in (1, 0):  # y, x
        g = c.reshape(c.window(grid, 3, axis, axis + 1), grid.shape[:3])
        size = c.number(input.shape[3 - axis], grid.dtype)
        spots.append(_bounded(_pixel(g, size, align_corners), size, padding_mode, align_corners))
    if interpolation_mode == 1:
        return _read(c, input, *(o.round(s) for s in spots))
    return _bilinear(c, input, *spots)


def _pixel(g: Any, size: Any, align_corners: bool) -> Any:
    """From −1..1 to pixels: over the centres of the outer ones, or over their edges."""
    if align_corners:
        return o.mul(o.mul(o.add(g, 1.0), 0.5), _minus(size, 1.0))
    return o.mul(_minus(o.mul(o.add(g, 1.0), size), 1.0), 0.5)


def _minus(a: Any, b: float) -> Any:
    return a - b if isinstance(a, float) else o.sub(a, b)


def _bounded(spot: Any, size: Any, mode: int, align_corners: bool) -> Any:
    """0 zeros: as it is; 1 border: clamped; 2 reflection: folded back, then clamped."""
    last = _minus(size, 1.0)
    if mode == 2:
        low = 0.0 if align_corners else -0.5
        span = last if align_corners else size
        far = o.abs(o.sub(spot, low))
        safe = (span or 1.0) if isinstance(span, float) else o.max(span, 1.0)
        rest, turns = o.mod(far, safe), o.floor(o.div(far, safe))
        even = o.eq(o.mod(turns, 2.0), 0.0)
        spot = o.select(even, o.add(rest, low), o.sub(_minus(span, -low), rest))
    return o.clamp(spot, 0.0, last) if mode else spot


def _read(c: Context, x: Tracer, y: Any, xx: Any) -> Any:
    """x [N, C, H, W] at whole positions [N, h, w]; 0 outside."""
    inside: Any = None
    index = []
    for spot, size in ((y, x.shape[2]), (xx, x.shape[3])):
        last = c.number(size - 1, spot.dtype)
        hit = o.and_(o.ge(spot, 0.0), o.le(spot, last))
        inside = hit if inside is None else o.and_(inside, hit)
        whole = c.cast(o.clamp(spot, 0.0, last), dtypes.int64)
        index.append(c.reshape(whole, (*whole.shape, 1)))
    picked = o.gather(c.transpose(x, [0, 2, 3, 1]), o.concat(*index, axis=3), axes=(1, 2), batch=1)
    picked = o.select(c.reshape(inside, (*inside.shape, 1)), picked, c.literal(0, x.dtype))
    return c.transpose(picked, [0, 3, 1, 2])


def _bilinear(c: Context, x: Tracer, y: Any, xx: Any) -> Any:
    top, left = o.floor(y), o.floor(xx)
    low, right = o.sub(y, top), o.sub(xx, left)
    total = None
    for dy, wy in ((0.0, o.sub(1.0, low)), (1.0, low)):
        for dx, wx in ((0.0, o.sub(1.0, right)), (1.0, right)):
            weight = o.mul(wy, wx)
            weight = c.reshape(weight, (weight.shape[0], 1, *weight.shape[1:]))
            part = o.mul(_read(c, x, o.add(top, dy), o.add(left, dx)), weight)
            total = part if total is None else o.add(total, part)
    return total


# ---- embedding bags ----------------------------------------------------------------------------

@aten("_embedding_bag", "_embedding_bag_forward_only")
def embedding_bag(c: Context, weight: Tracer, indices: Tracer, offsets: Tracer,
                  scale_grad_by_freq: bool = False, mode: int = 0, sparse: bool = False,
                  per_sample_weights: Tracer | None = None, include_last_offset: bool = False,
                  padding_idx: int = -1) -> Any:
    """Sum (0), mean (1) or max (2) of the rows of each bag; an index's bag is found by counting."""
    if any(c.used(i) for i in range(1, len(c.outs))) or padding_idx >= 0:
        raise Missing("an embedding bag with padding, or with what it keeps for its gradient")
    bags, count = c.out.shape[0], indices.shape[0]
    starts = c.reshape(c.window(c.cast(offsets, dtypes.int64), 0, 0, bags), (1, bags))
    begun = c.cast(o.ge(c.iota((count, 1), 0), starts), dtypes.int64)
    bag = o.sub(o.reduce_sum(begun, axes=(1,)), 1)
    rows = o.embedding(weight, indices)
    if per_sample_weights is not None:
        rows = o.mul(rows, c.reshape(per_sample_weights, (count, 1)))
    start = float("-inf") if mode == 2 else 0.0
    total = o.scatter(c.full(c.out.shape, start, c.out.dtype), bag, rows, axes=(0,),
                      kind="max" if mode == 2 else "add")
    if mode == 0:
        return total, None, None, None
    number = o.scatter(c.full((bags, 1), 0.0, c.out.dtype), bag,
                       c.full((count, 1), 1.0, c.out.dtype), axes=(0,), kind="add")
    if mode == 1:
        return o.div(total, o.max(number, 1.0)), None, None, None
    return o.select(o.eq(number, 0.0), 0.0, total), None, None, None
