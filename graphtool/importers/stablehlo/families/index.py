"""Indexing by data: dynamic slices, and `gather` in full."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from graphtool.importers.stablehlo.families.elementwise import cast
from graphtool.importers.stablehlo.families.movement import ints
from graphtool.importers.stablehlo.kit import Array, Context, Refused, concat, dtypes, o, stablehlo
from graphtool.symbolic import Dim, maximum, minimum

# ---- dynamic slices ----------------------------------------------------------------------------


@stablehlo("dynamic_slice")
def dynamic_slice(ctx: Context, x: Array, *starts: Array, slice_sizes: Any) -> Any:
    """The window of these sizes from a computed start, which is clamped so that it fits."""
    sizes = ints(slice_sizes)
    if x.numbers is not None and x.literal is not None:
        return ctx.builder.number(x.literal, x.dtype).broadcast(sizes)
    fixed, shape = [s.literal for s in starts], [d for d in x.shape if isinstance(d, int)]
    if all(s is not None for s in fixed) and len(shape) == len(sizes):
        at = [min(max(int(s or 0), 0), d - n)
              for s, d, n in zip(fixed, shape, sizes, strict=True)]
        return x.slice(at, [a + n for a, n in zip(at, sizes, strict=True)])
    return o.dynamic_slice(x, *_starts(starts), sizes=sizes)


@stablehlo("dynamic_update_slice")
def dynamic_update_slice(ctx: Context, x: Array, update: Array, *starts: Array) -> Any:
    """x with the window from a computed start replaced; the start is clamped."""
    return o.dynamic_update_slice(x, update, *_starts(starts))


def _starts(starts: Sequence[Array]) -> list[Any]:
    return [s if s.literal is None else int(s.literal) for s in starts]


# ---- gather ------------------------------------------------------------------------------------

@stablehlo("gather")
def gather(ctx: Context, x: Array, indices: Array, *, offset_dims: Any = (),
           collapsed_slice_dims: Any = (), operand_batching_dims: Any = (),
           start_indices_batching_dims: Any = (), start_index_map: Any = (),
           index_vector_dim: int = 0, slice_sizes: Any = ()) -> Any:
    """Windows of x from starts in the indices, which are clamped so that the windows fit."""
    return gathered(x, indices, DimensionNumbers(
        ints(offset_dims), ints(collapsed_slice_dims), ints(operand_batching_dims),
        ints(start_indices_batching_dims), ints(start_index_map), index_vector_dim,
        ints(slice_sizes)))


class DimensionNumbers(NamedTuple):
    """Which axes of a gather are what, under StableHLO's names, and the sizes of its windows."""

    offset_dims: tuple[int, ...]
    collapsed: tuple[int, ...]
    batching: tuple[int, ...]
    indices_batching: tuple[int, ...]
    start_index_map: tuple[int, ...]
    index_vector_dim: int
    sizes: tuple[Dim, ...]


def gathered(x: Array, indices: Array, n: DimensionNumbers) -> Any:
    """`gather` at the places. An axis that is taken whole stays an axis; of a longer window, each
    place gets an index of its own."""
    sizes, starts, where = n.sizes, n.start_index_map, n.batching
    shared = without_vector(n.indices_batching, n.index_vector_dim)
    rank, shape = x.ndim, x.shape
    columns = with_vector_last(indices, n.index_vector_dim)
    lead = columns.shape[:-1]
    if columns.known is not None and not lead:
        return _window(x, columns.sizes("the indices"), n)
    taken = [d for d in starts if sizes[d] != shape[d]]  # of the others the start is 0
    spots = clamped(chosen(columns, [starts.index(d) for d in taken]),
                    [shape[d] - sizes[d] for d in taken])
    long = [d for d in taken if sizes[d] != 1]
    spots = windows(spots, taken, [(d, fixed(sizes[d])) for d in long])
    cut = [d for d in range(rank) if d not in starts and d not in where and sizes[d] != shape[d]]
    if cut:
        x = x.slice([0] * rank, [sizes[d] if d in cut else shape[d] for d in range(rank)])
    rest = [d for d in range(rank) if d not in taken and d not in where]
    # y has the axes: shared, the other axes of the indices, the long windows, the rest of x
    order = [*shared, *(i for i in range(len(lead)) if i not in shared)]
    have: list[tuple[str, int]] = [*(("i", i) for i in order), *(("x", d) for d in long),
                                   *(("x", d) for d in rest)]
    y = _taken(x, spots, order, where, taken)
    kept = [d for d in range(rank) if d not in n.collapsed and d not in where]
    ordinary = iter(range(len(lead)))
    offsets = iter(kept)
    want = [("x", next(offsets)) if i in n.offset_dims else ("i", next(ordinary))
            for i in range(len(lead) + len(kept))]
    dims = dict(zip(have, y.shape, strict=True))
    present = [a for a in want if a in dims]
    dropped = [a for a in have if a not in present]
    y = y.transpose([have.index(a) for a in (*present, *dropped)])
    return y.reshape([dims.get(a, 1) for a in want])


def _window(x: Array, start: Sequence[Dim], n: DimensionNumbers) -> Array:
    """The one window at a known place, as a slice."""
    shape = x.shape
    at: list[Dim] = [0] * len(shape)
    for d, i in zip(n.start_index_map, start, strict=True):
        at[d] = maximum(i, 0)
    first = [minimum(a, d - k) for a, d, k in zip(at, shape, n.sizes, strict=True)]
    y = x.slice(first, [a + k for a, k in zip(first, n.sizes, strict=True)])
    return y.reshape([k for d, k in enumerate(n.sizes) if d not in n.collapsed])


def fixed(d: Dim) -> int:
    """A size that has to be a number here."""
    if not isinstance(d, int):
        raise Refused("windows of an open size at computed places are not supported")
    return d


@stablehlo("dynamic_gather")
def dynamic_gather(ctx: Context, x: Array, indices: Array, sizes: Array, *, offset_dims: Any = (),
                   collapsed_slice_dims: Any = (), operand_batching_dims: Any = (),
                   start_indices_batching_dims: Any = (), start_index_map: Any = (),
                   index_vector_dim: int = 0) -> Any:
    """`gather` with computed sizes of windows."""
    return gathered(x, indices, DimensionNumbers(
        ints(offset_dims), ints(collapsed_slice_dims), ints(operand_batching_dims),
        ints(start_indices_batching_dims), ints(start_index_map), index_vector_dim,
        sizes.sizes("the size of a window")))


def _taken(x: Array, spots: Array, order: Sequence[int], where: Sequence[int],
           taken: Sequence[int]) -> Any:
    """`gather` at full coordinates; axes that both operands share come first in both."""
    batch = len(where)
    rest = [d for d in range(x.ndim) if d not in where]
    moved = x.transpose([*where, *rest])
    turned = spots.transpose([*order, *range(len(order), spots.ndim)])
    if not taken:
        ones = [1] * (turned.ndim - 1 - batch)
        wide = moved.reshape((*moved.shape[:batch], *ones, *moved.shape[batch:]))
        return wide.broadcast((*turned.shape[:-1], *moved.shape[batch:]))
    return o.gather(moved, turned, axes=tuple(batch + rest.index(d) for d in taken), batch=batch)


def with_vector_last(indices: Array, axis: int) -> Array:
    """The indices with the coordinates of one place in the last axis."""
    if axis == indices.ndim:
        return indices.unsqueeze()
    return indices.transpose([*(i for i in range(indices.ndim) if i != axis), axis])


def without_vector(axes: Sequence[int], vector: int) -> tuple[int, ...]:
    """Axes of the indices, counted without the axis of the coordinates."""
    return tuple(a - (a > vector) for a in axes)


def chosen(columns: Array, kept: Sequence[int]) -> Array:
    """The columns of coordinates in this order."""
    last, count = columns.ndim - 1, columns.shape[-1]
    if isinstance(count, int) and list(kept) == list(range(count)):
        return columns
    parts = [columns.take(last, k, k + 1) for k in kept]
    return concat(parts, last) if parts else columns.take(last, 0, 0)


def clamped(columns: Array, highest: Sequence[Dim]) -> Any:
    """Coordinates of at least 0 and at most `highest`, one for each column."""
    if not highest:
        return columns
    columns = wide(columns)
    return o.min(o.max(columns, 0), columns.builder.sizes(highest, columns.dtype))


def wide(columns: Array) -> Array:
    """Coordinates in a type with a sign that no size leaves."""
    narrow = columns.dtype.kind == "uint" or columns.dtype.bits < 32
    return cast(columns, dtypes.int64) if narrow else columns


def windows(spots: Array, axes: Sequence[int], long: Sequence[tuple[int, int]]) -> Array:
    """Coordinates of every place in windows of these lengths, an axis for each, before the
    last."""
    for axis, n in long:
        steps = np.zeros((n, len(axes)), spots.dtype.numpy)
        steps[:, list(axes).index(axis)] = np.arange(n)
        spots = spots.reshape((*spots.shape[:-1], 1, spots.shape[-1])) + steps
    return spots
