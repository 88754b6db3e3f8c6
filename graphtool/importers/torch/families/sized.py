"""Ops whose result size depends on the data: each defines a symbolic size by one of our nodes."""

from __future__ import annotations

from typing import Any

from graphtool.importers.torch.kit import Array, Context, Refused, aten, broadcast_shapes, dtypes, o
from graphtool.symbolic import Dim, product


def places(c: Context, mask: Array) -> Array:
    """i64[size, rank]: the indices where a tensor is not 0; one nonzero for each mask and size."""
    if 0 in mask.shape and all(isinstance(d, int) for d in c.out.shape):
        return o.nonzero(mask, size=0)  # type: ignore[no-any-return]
    size, rows = c.open_size(mask.value)
    if rows is None:
        rows = o.nonzero(mask, size=size)
        c.counted[str(size)] = mask.value, rows
    return rows


def columns(c: Context, mask: Array) -> list[Array]:
    """The indices of a mask's true places: one i64[size] for each axis."""
    rows = places(c, mask)
    return [rows.entry(1, i) for i in range(mask.ndim)]


@aten("nonzero")
def nonzero(c: Context, self: Array) -> Any:
    """i64[size, rank]: the indices where self is not 0."""
    return places(c, self)


@aten("masked_select")
def masked_select(c: Context, self: Array, mask: Array) -> Any:
    """gather of x at the true places of the mask, both broadcast; rank 1."""
    shape = broadcast_shapes(self.shape, mask.shape)
    x, flags = self.broadcast(shape), mask.broadcast(shape)
    if not shape:
        x, flags = x.flat(), flags.flat()
    return o.gather(x, places(c, flags), axes=tuple(range(x.ndim)))


@aten("_local_scalar_dense", "item")
def local_scalar(c: Context, self: Array) -> Any:
    """A number read from a tensor: a new symbolic size if torch uses it as one, else rank 0."""
    x = self.reshape(())
    if c.number_wanted is None:
        return x if x.dtype is dtypes.bool_ else x.cast(dtypes.float64)
    symbol, most = c.number_wanted
    o.size(x.cast(dtypes.int64), size=symbol, most=most)
    return symbol


# ---- the different values ----------------------------------------------------------------------

def _runs(c: Context, rows: Array) -> tuple[Array, Array, Array]:
    """(first row of each run of equal rows, i64[n] run of each row, i64 length of each run)."""
    n, axis = rows.shape[0], rows.ndim - 1
    if 0 in rows.shape:
        raise Refused("the unique values of an empty tensor are not supported")
    new = o.ne(rows.take(0, 1, n), rows.take(0, 0, n - 1))
    if axis:
        new = new.reduce("or", (1,))
    flags = o.concat(c.full((1,), True, dtypes.bool_), new, axis=0)
    values = o.gather(rows, places(c, flags), axes=(0,))
    number = o.cumulative(flags.cast(dtypes.int64), kind="sum", axis=0) - 1
    return values, number, _occurrences(c, number, values.shape[0])


def _occurrences(c: Context, numbers: Array, size: Dim) -> Array:
    """i64[size]: how often each number occurs."""
    return o.scatter(c.full((size,), 0, dtypes.int64),  # type: ignore[no-any-return]
                     numbers.unsqueeze(), c.full(numbers.shape, 1, dtypes.int64), axes=(0,),
                     kind="add")


@aten("_unique2", "_unique")
def unique(c: Context, self: Array, sorted: bool = True, return_inverse: bool = False,
           return_counts: bool = False) -> Any:
    """(sorted different values, index of each element's value, counts), by a sort."""
    line, order = o.sort(self.flat(), axis=0)
    values, number, counts = _runs(c, line)
    zeros = c.full(line.shape, 0, dtypes.int64)
    inverse = o.scatter(zeros, order.unsqueeze(), number, axes=(0,)).reshape(self.shape)
    return values, inverse, counts


@aten("unique_consecutive")
def unique_consecutive(c: Context, self: Array, return_inverse: bool = False,
                       return_counts: bool = False, dim: int | None = None) -> Any:
    """(first of each run of equal neighbours, run of each element, run lengths)."""
    if dim is None or self.ndim < 2:
        values, number, counts = _runs(c, self.flat())
        return values, number.reshape(self.shape), counts
    front = self.moveaxis(dim, 0)
    rest = front.shape[1:]
    values, number, counts = _runs(c, front.reshape((front.shape[0], product(rest))))
    return values.reshape((values.shape[0], *rest)).moveaxis(0, dim), number, counts


@aten("unique_dim")
def unique_dim(c: Context, self: Array, dim: int, sorted: bool = True,
               return_inverse: bool = False, return_counts: bool = False) -> Any:
    """(different slices in order, row of each slice, counts), by comparing every pair of slices.

    A slice's row is the number of different slices before it. NaN comes last, equal to nothing."""
    if not self.ndim or 0 in self.shape:
        raise Refused("the unique slices of an empty tensor or of a scalar are not supported")
    front = self.moveaxis(dim, 0)
    n, *rest = front.shape
    rows = front.reshape((n, product(rest)))
    before, same = _compared(c, rows)
    earlier = c.iota((n, n), 0) < c.iota((n, n), 1)
    again = o.reduce_or(same & earlier, axes=(0,))
    first = (~again).cast(dtypes.int64).reshape((n, 1))
    row = (before.cast(dtypes.int64) * first).reduce("sum", (0,))
    size = c.size_of(first.reduce("sum", (0,)), n)
    values = o.scatter(c.full((size, rows.shape[1]), 0, self.dtype), row.unsqueeze(), rows,
                       axes=(0,))
    return values.reshape((size, *rest)).moveaxis(0, dim), row, _occurrences(c, row, size)


def _compared(c: Context, rows: Array) -> tuple[Array, Array]:
    """(bool[i, j]: row i comes before row j, bool[i, j]: they are equal)."""
    n, m = rows.shape
    rows = rows.cast(dtypes.int32) if rows.dtype is dtypes.bool_ else rows
    differ = o.ne(rows.reshape((n, 1, m)), rows.reshape((1, n, m))).cast(dtypes.int32)
    place = o.arg_reduce(differ, kind="max", axis=2)
    same = o.eq(differ.reduce("max", (2,)), 0)
    place = place.reshape((n, n, 1)).cast(dtypes.int64)
    a, b = (o.gather(rows, o.concat(c.iota((n, n, 1), i), place, axis=2), axes=(0, 1))
            for i in (0, 1))
    less = a < b
    if rows.dtype.is_float:
        earlier = c.iota((n, n), 0) < c.iota((n, n), 1)
        last = o.is_nan(b)
        less = less | last & (~o.is_nan(a) | earlier)
    return less & ~same, same


@aten("nonzero_static")
def nonzero_static(c: Context, self: Array, *, size: Any, fill_value: int = -1) -> Any:
    """i64[size, rank]: the first `size` indices where self is not 0, then rows of `fill_value`.
    A scatter writes index k to row k; surplus indices go to an extra row, which is cut off."""
    count = product(self.shape)
    if not self.ndim or 0 in c.out.shape or count == 0:
        return c.full(c.out.shape, fill_value, dtypes.int64)
    hit = self.cast(dtypes.bool_).flat()
    rank = o.cumulative(hit.cast(dtypes.int64), kind="sum", axis=0, exclusive=True)
    beyond = c.number(size, dtypes.int64)
    row = o.select(hit & (rank < beyond), rank, beyond)
    flat = o.scatter(c.full((size + 1,), -1, dtypes.int64), row.unsqueeze(), c.iota((count,), 0),
                     axes=(0,)).take(0, 0, size).unsqueeze()
    columns: list[Any] = []
    step: Any = 1
    for d in reversed(self.shape):
        at = flat / c.number(step, dtypes.int64)
        columns.append(o.mod(at, c.number(d, dtypes.int64)))
        step = step * d
    return o.select(flat < 0, fill_value, o.concat(*reversed(columns), axis=1))
