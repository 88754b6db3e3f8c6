"""`scatter` in full: windows of updates combined into a tensor at computed places."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from graphtool import dtypes
from graphtool import ops as o
from graphtool.importers.stablehlo.driver.context import Context
from graphtool.importers.stablehlo.driver.registry import Refused, stablehlo
from graphtool.importers.stablehlo.driver.values import dtype_of, shape_of, spread
from graphtool.importers.stablehlo.families.elementwise import cast
from graphtool.importers.stablehlo.families.index import (
    chosen,
    fixed,
    row_of,
    windows,
    with_vector_last,
    without_vector,
)
from graphtool.importers.stablehlo.families.movement import ints, reshaped, sliced, transposed
from graphtool.importers.stablehlo.families.reduce import simple_body
from graphtool.ir.graph import TensorType
from graphtool.ir.trace import trace
from graphtool.ops.reduce import identity
from graphtool.symbolic import Dim, product

_BODIES = {"add": "add", "multiply": "mul", "minimum": "min", "maximum": "max"}
_LOGIC = {"add": "max", "or": "max", "maximum": "max", "and": "min", "multiply": "min",
          "minimum": "min"}
_NEUTRAL = {"add": "sum", "mul": "prod", "min": "min", "max": "max"}


@stablehlo("scatter")
def scatter(ctx: Context, *xs: Any, update_window_dims: Any = (), inserted_window_dims: Any = (),
            input_batching_dims: Any = (), scatter_indices_batching_dims: Any = (),
            scatter_dims_to_operand_dims: Any = (), index_vector_dim: int = 0) -> Any:
    """x with the updates combined into it where the indices say. A window that does not fit is
    left out: its updates become neutral, or go to a row that is cut off again."""
    count = len(xs) // 2
    x, indices = xs[0], xs[count]
    kind = ""
    if count == 1:
        kind, update = _kind_of(ctx, x, xs[2])
        xs = (x, indices, update)
    several = xs[count + 1:]
    starts, where = ints(scatter_dims_to_operand_dims), ints(input_batching_dims)
    shared = without_vector(ints(scatter_indices_batching_dims), index_vector_dim)
    rank, shape = len(shape_of(x)), shape_of(x)
    inserted = ints(inserted_window_dims)
    kept = [d for d in range(rank) if d not in inserted and d not in where]
    extents = {d: shape_of(several[0])[i] for d, i in zip(kept, ints(update_window_dims),
                                                       strict=True)}
    size = {d: extents.get(d, 1) for d in range(rank)}
    columns = with_vector_last(ctx, indices, index_vector_dim)
    lead = shape_of(columns)[:-1]
    if not kind and where:  # one place after the other: batch axes are places too
        columns, starts = _with_batch(ctx, columns, shared), (*starts, *where)
        where = shared = ()
    taken = [d for d in range(rank) if d not in where and (d in starts or size[d] != shape[d])]
    spots, fits = _places(ctx, columns, starts, taken, shape, size)
    long = [d for d in taken if size[d] != 1]
    spots = windows(ctx, spots, taken, [(d, fixed(size[d])) for d in long])
    order = [*shared, *(i for i in range(len(lead)) if i not in shared)]
    rest = [d for d in range(rank) if d not in taken and d not in where]
    # the updates with the axes: shared, the others of the indices, long windows, the rest of x
    across = [i for i in range(len(shape_of(several[0]))) if i not in ints(update_window_dims)]
    at = {d: ints(update_window_dims)[kept.index(d)] for d in kept}
    moved = [*(across[i] for i in order), *(at[d] for d in (*long, *rest) if d in at),
             *(at[d] for d in kept if d not in long and d not in rest)]
    dims = tuple([*(lead[i] for i in order), *(size[d] for d in (*long, *rest))])
    us = [reshaped(ctx, transposed(ctx, u, moved), dims) for u in several]
    batch = len(where)
    turned = transposed(ctx, spots, [*order, *range(len(order), len(shape_of(spots)))])
    valid = None if fits is None else reshaped(
        ctx, transposed(ctx, fits, order), (*(lead[i] for i in order), *[1] * len(long)))
    front = [*where, *(d for d in range(rank) if d not in where)]
    axes = [front.index(d) for d in taken]
    full = [transposed(ctx, v, front) for v in xs[:count]]
    made = [_scattered(ctx, full[0], turned, us[0], valid, kind, batch, axes)] if kind else (
        _one_by_one(ctx, [ctx.tensor(v) for v in full], ctx.tensor(turned),
                    [ctx.tensor(u) for u in us], valid, axes))
    return [transposed(ctx, y, [front.index(d) for d in range(rank)]) for y in made]


def _with_batch(ctx: Context, columns: Any, shared: Sequence[int]) -> Any:
    """The coordinates, and behind them those on the axes that both operands share."""
    lead = shape_of(columns)[:-1]
    row = dtype_of(columns)
    lines = [spread(np.arange(fixed(lead[i]), dtype=row.numpy).reshape(
        [-1 if k == i else 1 for k in range(len(lead))] + [1]), (*lead, 1)) for i in shared]
    return o.concat(*ctx.ready(columns, *lines), axis=len(lead))


def _places(ctx: Context, columns: Any, starts: Sequence[int], taken: Sequence[int],
            shape: Sequence[Dim], size: dict[int, Dim]) -> tuple[Any, Any]:
    """Coordinates on the axes `taken`, and which places' windows fit; None if all do."""
    lead = shape_of(columns)[:-1]
    spots = chosen(ctx, columns, [starts.index(d) for d in taken if d in starts])
    if dtype_of(spots).kind == "uint" or dtype_of(spots).bits < 32:
        spots = cast(ctx, spots, dtypes.int64)
    row = dtype_of(spots)
    inside = [d for d in taken if d in starts]
    if len(inside) != len(taken):  # an axis with a part of its length, from 0 on
        zero = np.zeros((*(d for d in lead if isinstance(d, int)), 1), row.numpy)
        parts, k = [], 0
        for d in taken:
            if d in starts:
                parts.append(sliced(ctx, spots, (*[0] * len(lead), k), (*lead, k + 1),
                                    (1,) * (len(lead) + 1)))
                k += 1
            else:
                parts.append(zero)
        whole = o.concat(*ctx.ready(*parts), axis=len(lead))
    else:
        whole = spots
    if not inside:
        return whole, None
    top = row_of(ctx, [shape[d] - size[d] for d in inside], row)
    if isinstance(spots, np.ndarray) and isinstance(top, np.ndarray):
        fine = ((spots >= 0) & (spots <= top)).all(-1)
        return whole, None if fine.all() else fine
    good = ctx.apply(o.and_, ctx.apply(o.ge, spots, np.zeros((), row.numpy)),
                     ctx.apply(o.le, spots, top))
    (full,) = ctx.ready(good)
    return whole, reshaped(ctx, o.reduce_and(full, axes=(len(lead),)), lead)


def _scattered(ctx: Context, x: Any, spots: Any, updates: Any, valid: Any, kind: str, batch: int,
               axes: Sequence[int]) -> Any:
    """`scatter` of the valid updates."""
    how: dict[str, Any] = {"axes": tuple(axes), "batch": batch, "kind": kind}
    full, u = ctx.tensor(x), ctx.tensor(updates)
    if not axes:  # one update as large as x, or several of them
        if product(u.shape) != product(full.shape):
            raise Refused("a scatter of several updates into a whole tensor is not supported")
        whole = ctx.tensor(reshaped(ctx, u, full.shape))
        return whole if kind == "set" else getattr(o, kind)(full, whole)
    if valid is None:
        return o.scatter(full, ctx.tensor(spots), u, **how)
    column = ctx.tensor(reshaped(ctx, valid, (*shape_of(valid), 1)))
    safe = o.select(column, ctx.tensor(spots), 0)
    if kind != "set":
        neutral = identity(_NEUTRAL[kind], dtype_of(u))
        wide = ctx.tensor(reshaped(ctx, valid, (*shape_of(valid), *[1] * (u.ndim - len(
            shape_of(valid))))))
        return o.scatter(full, safe, o.select(wide, u, neutral), **how)
    axis, n = axes[0], full.shape[axes[0]]
    lo = (0,) * full.ndim
    hi = tuple(int(i == axis) for i in range(full.ndim))
    more = o.pad(full, lo=lo, hi=hi)
    beyond = row_of(ctx, [n if i == 0 else 0 for i in range(len(axes))], dtype_of(spots))
    y = o.scatter(more, o.select(column, ctx.tensor(spots), ctx.tensor(beyond)), u, **how)
    return o.slice(y, start=lo, limit=full.shape, strides=(1,) * full.ndim)


def _one_by_one(ctx: Context, xs: Sequence[Any], spots: Any, updates: Sequence[Any], valid: Any,
                axes: Sequence[int]) -> list[Any]:
    """Any body: the places one after the other, each read, combined and written."""
    body = ctx.op.regions[0]
    own = {*(a.name for a in body.arguments), *(r for op in body.operations for r in op.results)}
    outside = [n for op in body.operations for n in op.operands if n not in own]
    if not all(isinstance(ctx.env[n], np.ndarray) for n in outside):
        raise Refused("a scatter with this body needs one that reads no computed value")
    lead = spots.shape[:-1]
    n, count = product(lead), len(xs)
    rows = [o.reshape(spots, shape=(n, spots.shape[-1])),
            *(o.reshape(u, shape=(n, *u.shape[len(lead):])) for u in updates)]
    if valid is not None:
        wide = o.broadcast(ctx.tensor(reshaped(ctx, valid, (*shape_of(valid), *[1] * (
            len(lead) - len(shape_of(valid)))))), shape=lead)
        rows.append(o.reshape(wide, shape=(n,)))

    def step(*given: Any) -> Any:
        held, (spot, *rest) = given[:count], given[count:]
        fits = rest[count] if valid is not None else None
        at = o.reshape(spot if fits is None else o.select(fits, spot, 0),
                       shape=(1, spot.shape[0]))
        old = [o.gather(h, at, axes=tuple(axes)) for h in held]
        new = [o.reshape(u, shape=v.shape) for u, v in zip(rest, old, strict=False)]
        ctx.driver.builder, outer = held[0].builder, ctx.driver.builder
        try:
            made = [ctx.tensor(m) for m in ctx.region(0, [*old, *new], vector=True)]
        finally:
            ctx.driver.builder = outer
        whole = [o.broadcast(m, shape=v.shape) for m, v in zip(made, old, strict=True)]
        kept = whole if fits is None else [o.select(fits, m, v)
                                           for m, v in zip(whole, old, strict=True)]
        out = [o.scatter(h, at, m, axes=tuple(axes)) for h, m in zip(held, kept, strict=True)]
        return tuple(out) if count > 1 else out[0]
    types = [*(x.type for x in xs), *(TensorType(r.dtype, r.shape[1:]) for r in rows)]
    made = o.scan(*xs, *rows, body=trace(step, types), carries=count, xs=len(rows), length=n)
    return list(made) if isinstance(made, tuple) else [made]


def _kind_of(ctx: Context, x: Any, updates: Any) -> tuple[str, Any]:
    """The kind of a scatter with this body, and the updates for it; "" for another body."""
    body = ctx.op.regions[0]
    name = simple_body(body)
    if dtype_of(x) is dtypes.bool_ and name in _LOGIC:
        return _LOGIC[name], updates
    if name in _BODIES:
        return _BODIES[name], updates
    old, new = (a.name for a in body.arguments)
    last = body.operations[-1]
    if last.operands == (new,):
        return "set", updates
    first = body.operations[0]
    if name == "subtract" and first.operands == (old, new):
        return "add", ctx.apply(o.neg, updates)
    if name == "divide" and first.operands == (old, new) and dtype_of(x).is_float:
        return "mul", ctx.apply(o.div, np.ones((), dtype_of(x).numpy), updates)
    return "", updates
