"""Indexing by data: dynamic slices, and `gather` in full."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from graphtool import dtypes
from graphtool import ops as o
from graphtool.importers.stablehlo.driver.context import Context
from graphtool.importers.stablehlo.driver.registry import Refused, stablehlo
from graphtool.importers.stablehlo.driver.sizes import objects
from graphtool.importers.stablehlo.driver.values import (
    Sizes,
    compact,
    dims_of,
    dtype_of,
    literal,
    shape_of,
)
from graphtool.importers.stablehlo.families.elementwise import cast
from graphtool.importers.stablehlo.families.movement import ints, reshaped, sliced, transposed
from graphtool.symbolic import Dim, maximum, minimum

# ---- dynamic slices ----------------------------------------------------------------------------


@stablehlo("dynamic_slice")
def dynamic_slice(ctx: Context, x: Any, *starts: Any, slice_sizes: Any) -> Any:
    """The window of these sizes from a computed start, which is clamped so that it fits."""
    sizes = ints(slice_sizes)
    if isinstance(x, np.ndarray) and literal(x) is not None:
        return np.broadcast_to(compact(x).reshape(()), sizes)
    fixed, shape = [literal(s) for s in starts], [d for d in shape_of(x) if isinstance(d, int)]
    if all(s is not None for s in fixed) and len(shape) == len(sizes):
        at = [min(max(int(s or 0), 0), d - n)
              for s, d, n in zip(fixed, shape, sizes, strict=True)]
        return sliced(ctx, x, at, [a + n for a, n in zip(at, sizes, strict=True)],
                      [1] * len(at))
    return o.dynamic_slice(ctx.tensor(x), *_starts(ctx, starts), sizes=sizes)


@stablehlo("dynamic_update_slice")
def dynamic_update_slice(ctx: Context, x: Any, update: Any, *starts: Any) -> Any:
    """x with the window from a computed start replaced; the start is clamped."""
    return o.dynamic_update_slice(ctx.tensor(x), ctx.tensor(update), *_starts(ctx, starts))


def _starts(ctx: Context, starts: Sequence[Any]) -> list[Any]:
    fixed = [literal(s) for s in starts]
    return [ctx.tensor(s) if f is None else int(f) for s, f in zip(starts, fixed, strict=True)]


# ---- gather ------------------------------------------------------------------------------------

@stablehlo("gather")
def gather(ctx: Context, x: Any, indices: Any, *, offset_dims: Any = (),
           collapsed_slice_dims: Any = (), operand_batching_dims: Any = (),
           start_indices_batching_dims: Any = (), start_index_map: Any = (),
           index_vector_dim: int = 0, slice_sizes: Any = ()) -> Any:
    """Windows of x from starts in the indices, which are clamped so that the windows fit."""
    return gathered(ctx, x, indices, Numbers(
        ints(offset_dims), ints(collapsed_slice_dims), ints(operand_batching_dims),
        ints(start_indices_batching_dims), ints(start_index_map), index_vector_dim,
        ints(slice_sizes)))


class Numbers(NamedTuple):
    """Which axes of a gather are what, under StableHLO's names, and the sizes of its windows."""

    offset_dims: tuple[int, ...]
    collapsed: tuple[int, ...]
    batching: tuple[int, ...]
    indices_batching: tuple[int, ...]
    start_index_map: tuple[int, ...]
    index_vector_dim: int
    sizes: tuple[Dim, ...]


def gathered(ctx: Context, x: Any, indices: Any, n: Numbers) -> Any:
    """`gather` at the places. An axis of which whole rows are taken stays an axis; of a longer
    window, each place gets an index of its own."""
    sizes, starts, where = n.sizes, n.start_index_map, n.batching
    shared = without_vector(n.indices_batching, n.index_vector_dim)
    rank, shape = len(shape_of(x)), shape_of(x)
    columns = with_vector_last(ctx, indices, n.index_vector_dim)
    lead = shape_of(columns)[:-1]
    if isinstance(columns, (np.ndarray, Sizes)) and not lead:
        return _window(ctx, x, objects(columns), n)
    taken = [d for d in starts if sizes[d] != shape[d]]  # of the others the start is 0
    spots = clamped(ctx, chosen(ctx, columns, [starts.index(d) for d in taken]),
                    [shape[d] - sizes[d] for d in taken])
    long = [d for d in taken if sizes[d] != 1]
    spots = windows(ctx, spots, taken, [(d, fixed(sizes[d])) for d in long])
    cut = [d for d in range(rank) if d not in starts and d not in where and sizes[d] != shape[d]]
    if cut:
        x = sliced(ctx, x, [0] * rank, [sizes[d] if d in cut else shape[d] for d in range(rank)],
                   [1] * rank)
    rest = [d for d in range(rank) if d not in taken and d not in where]
    # y has the axes: shared, the other axes of the indices, the long windows, the rest of x
    order = [*shared, *(i for i in range(len(lead)) if i not in shared)]
    have: list[tuple[str, int]] = [*(("i", i) for i in order), *(("x", d) for d in long),
                                   *(("x", d) for d in rest)]
    y = _taken(ctx, x, spots, order, where, taken)
    kept = [d for d in range(rank) if d not in n.collapsed and d not in where]
    ordinary = iter(range(len(lead)))
    offsets = iter(kept)
    want = [("x", next(offsets)) if i in n.offset_dims else ("i", next(ordinary))
            for i in range(len(lead) + len(kept))]
    dims = dict(zip(have, shape_of(y), strict=True))
    present = [a for a in want if a in dims]
    dropped = [a for a in have if a not in present]
    y = transposed(ctx, y, [have.index(a) for a in (*present, *dropped)])
    return reshaped(ctx, y, tuple(dims.get(a, 1) for a in want))


def _window(ctx: Context, x: Any, start: Any, n: Numbers) -> Any:
    """The one window at a known place, as a slice."""
    shape = shape_of(x)
    at: list[Dim] = [0] * len(shape)
    for d, i in zip(n.start_index_map, start.tolist(), strict=True):
        at[d] = maximum(i, 0)
    first = [minimum(a, d - k) for a, d, k in zip(at, shape, n.sizes, strict=True)]
    y = sliced(ctx, x, first, [a + k for a, k in zip(first, n.sizes, strict=True)],
               [1] * len(shape))
    return reshaped(ctx, y, tuple(k for d, k in enumerate(n.sizes) if d not in n.collapsed))


def fixed(d: Dim) -> int:
    """A size that has to be a number here."""
    if not isinstance(d, int):
        raise Refused("windows of an open size at computed places are not supported")
    return d


@stablehlo("dynamic_gather")
def dynamic_gather(ctx: Context, x: Any, indices: Any, sizes: Any, *, offset_dims: Any = (),
                   collapsed_slice_dims: Any = (), operand_batching_dims: Any = (),
                   start_indices_batching_dims: Any = (), start_index_map: Any = (),
                   index_vector_dim: int = 0) -> Any:
    """`gather` with computed sizes of windows."""
    return gathered(ctx, x, indices, Numbers(
        ints(offset_dims), ints(collapsed_slice_dims), ints(operand_batching_dims),
        ints(start_indices_batching_dims), ints(start_index_map), index_vector_dim,
        dims_of(sizes, "the size of a window")))


def _taken(ctx: Context, x: Any, spots: Any, order: Sequence[int], where: Sequence[int],
           taken: Sequence[int]) -> Any:
    """`gather` at full coordinates; axes that both operands share come first in both."""
    batch = len(where)
    rest = [d for d in range(len(shape_of(x))) if d not in where]
    moved = transposed(ctx, x, [*where, *rest])
    tail = list(range(len(order), len(shape_of(spots))))
    turned = transposed(ctx, spots, [*order, *tail])
    if not taken:
        shape = (*shape_of(turned)[:-1], *shape_of(moved)[batch:])
        middle = len(shape_of(turned)) - 1 - batch
        wide = reshaped(ctx, moved, (*shape_of(moved)[:batch], *[1] * middle,
                                     *shape_of(moved)[batch:]))
        return o.broadcast(ctx.tensor(wide), shape=shape)
    axes = tuple(batch + rest.index(d) for d in taken)
    a, b = ctx.ready(moved, turned)
    return o.gather(a, b, axes=axes, batch=batch)


def with_vector_last(ctx: Context, indices: Any, axis: int) -> Any:
    """The indices with the coordinates of one place in the last axis."""
    rank = len(shape_of(indices))
    if axis == rank:
        return reshaped(ctx, indices, (*shape_of(indices), 1))
    return transposed(ctx, indices, [*(i for i in range(rank) if i != axis), axis])


def without_vector(axes: Sequence[int], vector: int) -> tuple[int, ...]:
    """Axes of the indices, counted without the one that holds the coordinates."""
    return tuple(a - (a > vector) for a in axes)


def chosen(ctx: Context, columns: Any, kept: Sequence[int]) -> Any:
    """The columns of coordinates in this order."""
    count = shape_of(columns)[-1]
    if list(kept) == list(range(int(count) if isinstance(count, int) else -1)):
        return columns
    lead = shape_of(columns)[:-1]
    parts = [sliced(ctx, columns, (*[0] * len(lead), k), (*lead, k + 1), (1,) * (len(lead) + 1))
             for k in kept]
    if not parts:
        return np.zeros((*(d for d in lead if isinstance(d, int)), 0), np.int64)
    return parts[0] if len(parts) == 1 else o.concat(*ctx.ready(*parts), axis=len(lead))


def clamped(ctx: Context, columns: Any, highest: Sequence[Dim]) -> Any:
    """Coordinates of at least 0 and at most `highest`, one for each column."""
    if not highest:
        return columns
    if dtype_of(columns).kind == "uint" or dtype_of(columns).bits < 32:
        columns = cast(ctx, columns, dtypes.int64)
    row = dtype_of(columns)
    top = row_of(ctx, highest, row)
    if isinstance(columns, np.ndarray) and isinstance(top, np.ndarray):
        return np.clip(columns, 0, top).astype(row.numpy)
    zero = np.zeros((), row.numpy)
    return ctx.apply(o.min, ctx.apply(o.max, columns, zero), top)


def row_of(ctx: Context, dims: Sequence[Dim], row: Any) -> Any:
    """Sizes as an array of one row, or as numbers of the graph."""
    if all(isinstance(d, int) for d in dims):
        return np.array(dims, row.numpy)
    out = np.empty(len(dims), object)
    out[:] = dims
    return ctx.tensor(Sizes(out, row))


def windows(ctx: Context, spots: Any, axes: Sequence[int], long: Sequence[tuple[int, int]]) -> Any:
    """Coordinates of every place in windows of these lengths, an axis for each, before the
    last."""
    for axis, n in long:
        shape = shape_of(spots)
        row = dtype_of(spots)
        steps = np.zeros((n, len(axes)), row.numpy)
        steps[:, list(axes).index(axis)] = np.arange(n)
        wide = reshaped(ctx, spots, (*shape[:-1], 1, shape[-1]))
        spots = ctx.apply(o.add, wide, steps)
    return spots
