"""`select_and_scatter`: the gradient of the extreme of windows, and its relatives."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from graphtool import ops as o
from graphtool.importers.stablehlo.driver.context import Context
from graphtool.importers.stablehlo.driver.registry import Refused, stablehlo
from graphtool.importers.stablehlo.driver.values import dtype_of, literal, shape_of, spread
from graphtool.importers.stablehlo.families.index import fixed
from graphtool.importers.stablehlo.families.movement import ints, padded, reshaped, sliced
from graphtool.importers.stablehlo.families.reduce import simple_body
from graphtool.importers.stablehlo.families.scatter import scatter
from graphtool.importers.stablehlo.families.window import TAPS, Pairs, each, pairs


@stablehlo("select_and_scatter")
def select_and_scatter(ctx: Context, x: Any, source: Any, start: Any, *, window_dimensions: Any,
                       window_strides: Any = None, padding: Any = None) -> Any:
    """Each element of the source is combined into the place that its window of x selects."""
    n = len(shape_of(x))
    how: dict[str, Any] = {"window": ints(window_dimensions), "strides": each(window_strides, n),
                           "padding": pairs(padding, n)}
    choose, put = ctx.op.regions
    kind = {"GE": "max", "LE": "min"}.get(_direction(choose), "")
    if not kind or simple_body(put) != "add":
        shape, out = (tuple(map(fixed, shape_of(v))) for v in (x, source))
        places = _selected(ctx, x, shape, out, **how)
        return reshaped(ctx, _scattered(ctx, places, math.prod(shape), math.prod(out), source,
                                        start), shape)
    taps = o.extreme_tap(ctx.tensor(x), kind=kind, **how)
    y = o.unpool(ctx.tensor(source), taps, shape=shape_of(x), **how)
    return y if literal(start) == 0 else ctx.apply(o.add, y, start)


def _direction(region: Any) -> str:
    """The comparison that is all of a body, in the order of its arguments."""
    if len(region.operations) != 2 or simple_body(region) != "compare":
        return ""
    found = region.operations[0]
    if found.operands != tuple(a.name for a in region.arguments):
        return ""
    return str(found.attrs.get("comparison_direction"))


def _selected(ctx: Context, x: Any, shape: tuple[int, ...], out: tuple[int, ...], *,
              window: Sequence[int], strides: Sequence[int], padding: Pairs) -> Any:
    """For each window, the flat place in x of the element that the first region keeps beside all
    others, which it sees in order; -1 for a window of padding only."""
    if math.prod(window) > TAPS:
        raise Refused(f"windows of more than {TAPS} elements need one of the usual bodies")
    wide = padded(ctx, x, np.zeros((), dtype_of(x).numpy), [lo for lo, _ in padding],
                  [hi for _, hi in padding], [0] * len(shape))
    seen = np.zeros(out, bool)
    best: Any = None
    place = ctx.tensor(np.full(out, -1, np.int64))
    for tap in itertools.product(*map(range, window)):
        limit = [t + (n - 1) * s + 1 for t, n, s in zip(tap, out, strides, strict=True)]
        value = ctx.tensor(sliced(ctx, wide, tap, limit, strides))
        here, inside = _places(tap, out, shape, strides, padding)
        if best is None:
            best, taken = value, ctx.tensor(inside)
        else:
            (kept,) = ctx.region(0, [best, value], vector=True)
            taken = o.and_(ctx.tensor(inside), o.or_(ctx.tensor(~seen), o.not_(ctx.tensor(kept))))
            best = o.select(taken, value, best)
        place = o.select(taken, ctx.tensor(here), place)
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
    first = spread(start, (size,)) if isinstance(start, np.ndarray) else o.broadcast(
        ctx.tensor(start), shape=(size,))
    inner = replace(ctx, op=replace(ctx.op, regions=ctx.op.regions[1:]))
    (y,) = scatter(inner, first, reshaped(ctx, places, (many, 1)),
                   reshaped(ctx, source, (many,)), inserted_window_dims=(0,),
                   scatter_dims_to_operand_dims=(0,), index_vector_dim=1)
    return y
