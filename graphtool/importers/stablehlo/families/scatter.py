"""`scatter` in full: windows of updates combined into a tensor at computed places."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from graphtool.front.regions import union
from graphtool.importers.stablehlo.families.index import (
    chosen,
    fixed,
    wide,
    windows,
    with_vector_last,
    without_vector,
)
from graphtool.importers.stablehlo.families.movement import ints
from graphtool.importers.stablehlo.families.reduce import simple_body
from graphtool.importers.stablehlo.kit import Array, Context, Refused, concat, dtypes, o, stablehlo
from graphtool.ir.graph import TensorType
from graphtool.ir.replay import inline
from graphtool.ir.trace import trace
from graphtool.ops.reduce import identity
from graphtool.symbolic import Dim, product

_BODIES = {"add": "add", "multiply": "mul", "minimum": "min", "maximum": "max"}
_LOGIC = {"add": "max", "or": "max", "maximum": "max", "and": "min", "multiply": "min",
          "minimum": "min"}
_NEUTRAL = {"add": "sum", "mul": "prod", "min": "min", "max": "max"}


@stablehlo("scatter")
def scatter(ctx: Context, *xs: Array, update_window_dims: Any = (), inserted_window_dims: Any = (),
            input_batching_dims: Any = (), scatter_indices_batching_dims: Any = (),
            scatter_dims_to_operand_dims: Any = (), index_vector_dim: int = 0) -> list[Array]:
    """x with the updates combined into it where the indices say. A window that does not fit is
    left out: its updates become neutral, or go to a row that is cut off again."""
    count = len(xs) // 2
    x, indices = xs[0], xs[count]
    kind = ""
    if count == 1:
        kind, update = _kind_of(ctx, x, xs[2])
        xs = x, indices, update
    several = xs[count + 1:]
    starts, where = ints(scatter_dims_to_operand_dims), ints(input_batching_dims)
    shared = without_vector(ints(scatter_indices_batching_dims), index_vector_dim)
    rank, shape = x.ndim, x.shape
    inserted = ints(inserted_window_dims)
    kept = [d for d in range(rank) if d not in inserted and d not in where]
    extents = {d: several[0].shape[i] for d, i in zip(kept, ints(update_window_dims), strict=True)}
    size = {d: extents.get(d, 1) for d in range(rank)}
    columns = with_vector_last(indices, index_vector_dim)
    lead = columns.shape[:-1]
    if not kind and where:  # one place after the other: batch axes are places too
        columns, starts = _with_batch(columns, shared), (*starts, *where)
        where = shared = ()
    taken = [d for d in range(rank) if d not in where and (d in starts or size[d] != shape[d])]
    spots, fits = _places(columns, starts, taken, shape, size)
    long = [d for d in taken if size[d] != 1]
    spots = windows(spots, taken, [(d, fixed(size[d])) for d in long])
    order = [*shared, *(i for i in range(len(lead)) if i not in shared)]
    rest = [d for d in range(rank) if d not in taken and d not in where]
    # the updates with the axes: shared, the others of the indices, long windows, the rest of x
    across = [i for i in range(several[0].ndim) if i not in ints(update_window_dims)]
    at = {d: ints(update_window_dims)[kept.index(d)] for d in kept}
    moved = [*(across[i] for i in order), *(at[d] for d in (*long, *rest) if d in at),
             *(at[d] for d in kept if d not in long and d not in rest)]
    dims = tuple([*(lead[i] for i in order), *(size[d] for d in (*long, *rest))])
    us = [u.transpose(moved).reshape(dims) for u in several]
    batch = len(where)
    turned = spots.transpose([*order, *range(len(order), spots.ndim)])
    valid = None if fits is None else fits.transpose(order).reshape(
        (*(lead[i] for i in order), *[1] * len(long)))
    front = [*where, *(d for d in range(rank) if d not in where)]
    axes = [front.index(d) for d in taken]
    full = [v.transpose(front) for v in xs[:count]]
    outputs = [_scattered(full[0], turned, us[0], valid, kind, batch, axes)] if kind else (
        _one_by_one(ctx, full, turned, us, valid, axes))
    return [y.transpose([front.index(d) for d in range(rank)]) for y in outputs]


def _with_batch(columns: Array, shared: Sequence[int]) -> Array:
    """The coordinates, and behind them those on the axes that both operands share."""
    *lead, _ = columns.shape
    lines = []
    for i in shared:
        line = columns.builder.constant(np.arange(fixed(lead[i])).astype(columns.dtype.numpy))
        shape = [d if k == i else 1 for k, d in enumerate(lead)]
        lines.append(line.reshape((*shape, 1)).broadcast((*lead, 1)))
    return concat((columns, *lines), len(lead))


def _places(columns: Array, starts: Sequence[int], taken: Sequence[int], shape: Sequence[Dim],
            size: dict[int, Dim]) -> tuple[Array, Array | None]:
    """Coordinates on the axes `taken`, and which places' windows fit; None if all do."""
    last = columns.ndim - 1
    inside = [d for d in taken if d in starts]
    spots = whole = wide(chosen(columns, [starts.index(d) for d in inside]))
    if len(inside) != len(taken):  # an axis with a part of its length, from 0 on
        zero = spots.number(0).broadcast((*columns.shape[:-1], 1))
        whole = concat([zero if d not in starts else spots.take(last, k, k + 1) for d, k in (
            (d, sum(t in starts for t in taken[:i])) for i, d in enumerate(taken))], last)
    if not inside:
        return whole, None
    top = spots.builder.sizes([shape[d] - size[d] for d in inside], spots.dtype)
    fits = ((spots >= 0) & (spots <= top)).reduce("and", (last,))
    return whole, None if fits.numbers is not None and fits.numbers.all() else fits


def _scattered(x: Array, spots: Array, updates: Array, valid: Array | None, kind: str, batch: int,
               axes: Sequence[int]) -> Any:
    """`scatter` of the valid updates."""
    how: dict[str, Any] = {"axes": tuple(axes), "batch": batch, "kind": kind}
    if not axes:  # one update as large as x, or several of them
        if product(updates.shape) != product(x.shape):
            raise Refused("a scatter of several updates into a whole tensor is not supported")
        whole = updates.reshape(x.shape)
        return whole if kind == "set" else getattr(o, kind)(x, whole)
    if valid is None:
        return o.scatter(x, spots, updates, **how)
    column = valid.unsqueeze()
    if kind != "set":
        neutral = identity(_NEUTRAL[kind], updates.dtype)
        shown = valid.reshape((*valid.shape, *[1] * (updates.ndim - valid.ndim)))
        return o.scatter(x, o.select(column, spots, 0), o.select(shown, updates, neutral), **how)
    lo, hi = (0,) * x.ndim, [int(i == axes[0]) for i in range(x.ndim)]
    beyond = spots.builder.sizes([x.shape[axes[0]], *[0] * (len(axes) - 1)], spots.dtype)
    y = o.scatter(x.pad(lo, hi), o.select(column, spots, beyond), updates, **how)
    return y.slice(lo, x.shape)


def _one_by_one(ctx: Context, xs: Sequence[Array], spots: Array, updates: Sequence[Array],
                valid: Array | None, axes: Sequence[int]) -> list[Array]:
    """Any body: the places one after the other, each read, combined and written."""
    lead, count = spots.shape[:-1], len(xs)
    n = product(lead)
    rows = [spots.reshape((n, spots.shape[-1])), *(u.reshape((n, *u.shape[len(lead):]))
                                                   for u in updates)]
    if valid is not None:
        valid = valid.reshape((*valid.shape, *[1] * (len(lead) - valid.ndim)))
        rows.append(valid.broadcast(lead).reshape((n,)))
    window = [TensorType(x.dtype, (1, *(d for i, d in enumerate(x.shape) if i not in axes)))
              for x in xs]
    region = ctx.driver.closed(ctx.op.regions[0], [*window, *window], ctx.env, True)
    outer = union(region)
    body = region.graph(outer)

    def step(*given: Any) -> Any:
        held, (spot, *rest) = given[:count], given[count:]
        new, fixed = rest[:count], rest[len(rows) - 1:]
        fits = rest[count] if valid is not None else None
        at = (spot if fits is None else o.select(fits, spot, 0)).reshape((1, *spot.shape))
        old = [o.gather(h, at, axes=tuple(axes)) for h in held]
        combined = inline(spot.builder, body, [*old, *(u.reshape(v.shape) for u, v in zip(
            new, old, strict=True)), *fixed])
        out = []
        for h, was, m in zip(held, old, combined, strict=True):
            m = o.broadcast(m, shape=was.shape)
            out.append(o.scatter(h, at, m if fits is None else o.select(fits, m, was),
                                 axes=tuple(axes)))
        return tuple(out)
    types = [*(x.type for x in xs), *(TensorType(r.dtype, r.shape[1:]) for r in rows),
             *(v.type for v in outer)]
    combined = o.scan(*xs, *rows, *map(ctx.builder.traced, outer), body=trace(step, types),
                      carries=count, xs=len(rows), length=n)
    return list(combined) if isinstance(combined, tuple) else [combined]


def _kind_of(ctx: Context, x: Array, updates: Array) -> tuple[str, Array]:
    """The kind of a scatter with this body, and the updates for it; "" for another body."""
    body = ctx.op.regions[0]
    name = simple_body(body)
    if x.dtype is dtypes.bool_ and name in _LOGIC:
        return _LOGIC[name], updates
    if name in _BODIES:
        return _BODIES[name], updates
    old, new = (a.name for a in body.arguments)
    if body.operations[-1].operands == (new,):
        return "set", updates
    if body.operations[0].operands == (old, new) and name == "subtract":
        return "add", -updates
    if body.operations[0].operands == (old, new) and name == "divide" and x.dtype.is_float:
        return "mul", 1 / updates
    return "", updates
