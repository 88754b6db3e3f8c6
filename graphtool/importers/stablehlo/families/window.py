"""Convolutions, reductions over windows, and the gradients of extremes of windows."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from graphtool.importers.stablehlo.families.composite import TARGETS
from graphtool.importers.stablehlo.families.elementwise import cast
from graphtool.importers.stablehlo.families.index import fixed
from graphtool.importers.stablehlo.families.movement import ints, padded
from graphtool.importers.stablehlo.families.reduce import kind_of, simple_body
from graphtool.importers.stablehlo.families.scatter import scatter
from graphtool.importers.stablehlo.kit import Array, Context, Dense, Refused, Region, o, stablehlo
from graphtool.ops.indexing import dilate, out_dim
from graphtool.ops.reduce import identity

Pairs = tuple[tuple[int, int], ...]
TAPS = 4096  # of a window, if its body has to be applied tap by tap


def pairs(x: Any, rank: int) -> Pairs:
    """Padding as `[[lo, hi], …]` or `dense<…>`; none is 0 on every side."""
    if x is None:
        return ((0, 0),) * rank
    rows = x.elements if isinstance(x, Dense) else x
    if isinstance(rows, list):
        return tuple((int(lo), int(hi)) for lo, hi in rows)
    return ((int(rows), int(rows)),) * rank


# ---- convolution -------------------------------------------------------------------------------

@stablehlo("convolution")
def convolution(ctx: Context, x: Any, w: Any, *, dim_numbers: Any, feature_group_count: int = 1,
                batch_group_count: int = 1, window: Any = None, window_strides: Any = None,
                padding: Any = None, lhs_dilation: Any = None, rhs_dilation: Any = None,
                window_reversal: Any = None) -> Any:
    """A `conv` with its axes in our order: batch, channels, space; output, input, window."""
    shape = window or {}
    n = len(x.shape) - 2
    if not n:
        return _without_window(ctx, x, w, dim_numbers, int(feature_group_count),
                               int(batch_group_count))
    left, right, out = ([str(d) for d in part] for part in dim_numbers)
    space = [str(i) for i in range(n)]
    front, back = ["b", "f", *space], ["b", *space, "f"]
    filters = [right.index(d) for d in ("o", "i", *space)]
    last = left == out == back and filters == sorted(filters)  # as we write it
    order = back if last else front
    a = x.transpose([left.index(d) for d in order])
    k = w.transpose(filters)
    turned = shape.get("reverse", window_reversal)
    flipped = tuple(i + 2 for i, flag in enumerate(turned or ()) if flag and flag != "false")
    if flipped:
        k = o.reverse(k, axes=flipped)
    wide = ctx.dtype
    if a.dtype is not k.dtype or (wide.is_float and wide is not a.dtype):
        a, k = cast(a, wide), cast(k, wide)
    edges = shape.get("pad", padding)
    base = _given(shape.get("lhs_dilate", lhs_dilation))
    dilation = _given(shape.get("rhs_dilate", rhs_dilation))
    if _are_empty(a.shape[1:-1] if last else a.shape[2:], k.shape[2:], pairs(edges, n),
                  each(base, n), each(dilation, n)):
        return _nothing(ctx)[0]
    y = o.conv(a, k, strides=_given(shape.get("stride", window_strides)),
               padding=None if edges is None else pairs(edges, n), lhs_dilation=base,
               rhs_dilation=dilation, groups=int(feature_group_count),
               batch_groups=int(batch_group_count), channels_last=last,
               dtype=None if wide is a.dtype else wide)
    return y.transpose([order.index(d) for d in out])


def _given(x: Any) -> tuple[int, ...] | None:
    return None if x is None else ints(x)


def _without_window(ctx: Context, x: Any, w: Any, dim_numbers: Any, groups: int, batches: int
                    ) -> Any:
    """A convolution without axes of space: one with an axis of size 1, which is left out again."""
    x, w = (v.unsqueeze() for v in (x, w))
    numbers = tuple([*part, "0"] for part in dim_numbers)
    y = convolution(ctx, x, w, dim_numbers=numbers, feature_group_count=groups,
                    batch_group_count=batches)
    return y.reshape(y.shape[:-1])


def _are_empty(shape: Sequence[Any], window: Sequence[Any], padding: Pairs,
               base_dilation: Sequence[int], window_dilation: Sequence[int]) -> bool:
    """Whether there is no window, as it is longer than the padded elements along some axis."""
    return any(all(isinstance(v, int) for v in (d, k, lo, hi)) and dilate(d, b) + lo + hi < dilate(
        k, r) for d, k, (lo, hi), b, r in zip(shape, window, padding, base_dilation,
                                             window_dilation, strict=True))


def _nothing(ctx: Context) -> list[Any]:
    """Results without elements."""
    return [ctx.builder.constant(np.zeros(t.shape, t.dtype.numpy))
            for t in map(ctx.result, range(len(ctx.op.signature.results)))]


def each(x: Any, rank: int) -> tuple[int, ...]:
    """A number for each dimension; 1 unless given."""
    return (1,) * rank if x is None else ints(x)


# ---- reductions over windows -------------------------------------------------------------------

@stablehlo("reduce_window")
def reduce_window(ctx: Context, *xs: Any, window_dimensions: Any, window_strides: Any = None,
                  padding: Any = None, base_dilations: Any = None,
                  window_dilations: Any = None) -> Any:
    """The body over each window: one op for the usual bodies, else tap by tap."""
    count = len(xs) // 2
    values, starts = xs[:count], xs[count:]
    n = len(values[0].shape)
    how: dict[str, Any] = {"window": ints(window_dimensions), "strides": each(window_strides, n),
           "padding": pairs(padding, n), "base_dilation": each(base_dilations, n),
           "window_dilation": each(window_dilations, n)}
    if _are_empty(values[0].shape, how["window"], how["padding"], how["base_dilation"],
                  how["window_dilation"]):
        return _nothing(ctx)
    kind = kind_of(ctx.op.regions[0], values[0]) if count == 1 else ""
    first = starts[0].literal
    if kind in ("sum", "prod", "max", "min") and first == identity(kind, values[0].dtype):
        return _running(kind, values[0], **how) or o.reduce_window(
            values[0], kind=kind, window=how["window"], strides=_given(window_strides),
            padding=None if padding is None else how["padding"],
            base_dilation=_given(base_dilations), window_dilation=_given(window_dilations))
    return _by_taps(ctx, values, starts, **how)


def _running(kind: str, x: Array, *, window: Any, strides: Any, padding: Pairs,
             base_dilation: Any, window_dilation: Any) -> Any:
    """JAX's cumulative functions are windows over all that came before, or comes behind."""
    shape = x.shape
    long = [i for i, k in enumerate(window) if k != 1]
    plain = all(v == 1 for v in (*strides, *base_dilation, *window_dilation))
    if len(long) != 1 or not plain or any(p != (0, 0) for i, p in enumerate(padding)
                                          if i != long[0]):
        return None
    axis = long[0]
    n = shape[axis]
    if window[axis] != n or padding[axis] not in ((n - 1, 0), (0, n - 1)):
        return None
    return o.cumulative(x, kind=kind, axis=axis, reverse=padding[axis][0] == 0)


def _by_taps(ctx: Context, values: Sequence[Any], starts: Sequence[Any], *, window: Any,
             strides: Any, padding: Pairs, base_dilation: Any, window_dilation: Any) -> list[Any]:
    """The body applied to the first values and tap after tap of the window."""
    if int(np.prod(window)) > TAPS:
        raise Refused(f"windows of more than {TAPS} elements need one of the usual bodies")
    lo, hi = zip(*padding, strict=True) if padding else ((), ())
    wide = [padded(x, s, lo, hi, [d - 1 for d in base_dilation])
            for x, s in zip(values, starts, strict=True)]
    shape = tuple(out_dim(d, k, s, lo, hi, b, r) for d, k, s, (lo, hi), b, r in zip(
        values[0].shape, window, strides, padding, base_dilation, window_dilation, strict=True))
    total = [s.broadcast(shape) for s in starts]
    for tap in itertools.product(*map(range, window)):
        at = [i * r for i, r in zip(tap, window_dilation, strict=True)]
        limit = [a + (n - 1) * s + 1 for a, n, s in zip(at, shape, strides, strict=True)]
        inside = _inside(at, shape, values[0].shape, strides, padding, base_dilation)
        if inside is None or inside.any():
            combined = ctx.region(0, [*total, *(x.slice(at, limit, strides) for x in wide)],
                                  vector=True)
            total = combined if inside is None or inside.all() else [
                o.select(ctx.builder.constant(inside), y, x)
                for x, y in zip(total, combined, strict=True)]
    return total


def _inside(at: Sequence[int], shape: Any, given: Any, strides: Any, padding: Pairs,
            base_dilation: Any) -> Any:
    """Where a tap is on an element, in a shape that broadcasts to the result; None if a size is
    unknown. What lies between and around the elements is left out: a body may give NaN for two
    values to start with, as the logarithm of a sum of complex powers does."""
    if not all(isinstance(d, int) for d in (*shape, *given)):
        return None
    inside: Any = np.ones((1,) * len(shape), bool)
    for axis, (n, d) in enumerate(zip(shape, given, strict=True)):
        place = np.arange(n) * strides[axis] + at[axis] - padding[axis][0]
        one = (place % base_dilation[axis] == 0) & (place >= 0) & (
            place < d * base_dilation[axis])
        if not one.all():
            inside = inside & one.reshape([n if a == axis else 1 for a in range(len(shape))])
    return inside


def dynamic_reduce_window(ctx: Context, x: Array, start: Array, *sizes: Array) -> Array:
    """The call that JAX writes for a reduction over windows of open sizes."""
    (callee,) = ctx.op.attrs["called_computations"]
    function = ctx.driver.function(callee)
    kind = kind_of(Region(function.arguments, function.body or ()), x)
    how: dict[str, Any] = {name: v.sizes(f"the {name}") for name, v in zip(
        ("window", "strides", "base_dilation", "window_dilation", "padding"), sizes, strict=True)}
    lo_hi = how["padding"]
    how["padding"] = tuple(zip(lo_hi[::2], lo_hi[1::2], strict=True))
    if kind not in ("sum", "prod", "max", "min") or start.literal != identity(kind, x.dtype):
        raise Refused("windows of open sizes need one of the usual bodies")
    running = _running(kind, x, **how)
    if running is None and not all(isinstance(k, int) for k in how["window"]):
        raise Refused("windows of open sizes are not supported, unless they are cumulative")
    return running or o.reduce_window(x, kind=kind, **how)  # type: ignore[no-any-return]


TARGETS["stablehlo.dynamic_reduce_window"] = dynamic_reduce_window


# ---- gradients of extremes ----------------------------------------------------------------------

@stablehlo("select_and_scatter")
def select_and_scatter(ctx: Context, x: Any, source: Any, start: Any, *, window_dimensions: Any,
                       window_strides: Any = None, padding: Any = None) -> Any:
    """Each element of the source is combined into the place that its window of x selects."""
    n = len(x.shape)
    how: dict[str, Any] = {"window": ints(window_dimensions), "strides": each(window_strides, n),
                           "padding": pairs(padding, n)}
    choose, put = ctx.op.regions
    kind = {"GE": "max", "LE": "min"}.get(_direction(choose), "")
    if not kind or simple_body(put) != "add":
        shape, out = (tuple(map(fixed, v.shape)) for v in (x, source))
        places = _selected(ctx, x, shape, out, **how)
        line = _scattered(ctx, places, math.prod(shape), math.prod(out), source, start)
        return line.reshape(shape)
    taps = o.extreme_tap(x, kind=kind, **how)
    y = o.unpool(source, taps, shape=x.shape, **how)
    return y if start.literal == 0 else y + start


def _direction(region: Any) -> str:
    """The comparison that is all of a body, in the order of its arguments."""
    if len(region.operations) != 2 or simple_body(region) != "compare":
        return ""
    compare = region.operations[0]
    if compare.operands != tuple(a.name for a in region.arguments):
        return ""
    return str(compare.attrs.get("comparison_direction"))


def _selected(ctx: Context, x: Any, shape: tuple[int, ...], out: tuple[int, ...], *,
              window: Sequence[int], strides: Sequence[int], padding: Pairs) -> Any:
    """For each window, the flat place in x of the element that the first region keeps beside all
    others, which it sees in order; -1 for a window of padding only."""
    if math.prod(window) > TAPS:
        raise Refused(f"windows of more than {TAPS} elements need one of the usual bodies")
    wide = x.pad([lo for lo, _ in padding], [hi for _, hi in padding])
    seen = np.zeros(out, bool)
    best: Any = None
    place: Any = ctx.builder.constant(np.full(out, -1, np.int64))
    for tap in itertools.product(*map(range, window)):
        limit = [t + (n - 1) * s + 1 for t, n, s in zip(tap, out, strides, strict=True)]
        value = wide.slice(tap, limit, strides)
        here, inside = _places(tap, out, shape, strides, padding)
        if best is None:
            best, taken = value, ctx.builder.constant(inside)
        else:
            (kept,) = ctx.region(0, [best, value], vector=True)
            taken = ~kept & inside | (inside & ~seen)
            best = o.select(taken, value, best)
        place = o.select(taken, here, place)
        seen |= inside
    return place


def _places(tap: Sequence[int], out: tuple[int, ...], shape: Sequence[int],
            strides: Sequence[int], padding: Pairs) -> tuple[Any, Any]:
    """The flat place in x that this tap of each window reads, and whether it is one."""
    place, inside = np.zeros(out, np.int64), np.ones(out, bool)
    for axis, (n, d) in enumerate(zip(out, shape, strict=True)):
        at = (np.arange(n) * strides[axis] + tap[axis] - padding[axis][0]).reshape(
            [n if a == axis else 1 for a in range(len(out))])
        place, inside = place * d + at, inside & (at >= 0) & (at < d)
    return place, inside


def _scattered(ctx: Context, places: Any, size: int, many: int, source: Any, start: Any) -> Any:
    """The source combined by the second region into a line of this size, which is `start`
    everywhere."""
    inner = replace(ctx, op=replace(ctx.op, regions=ctx.op.regions[1:]))
    (y,) = scatter(inner, start.broadcast((size,)), places.reshape((many, 1)),
                   source.reshape((many,)), inserted_window_dims=(0,),
                   scatter_dims_to_operand_dims=(0,), index_vector_dim=1)
    return y
