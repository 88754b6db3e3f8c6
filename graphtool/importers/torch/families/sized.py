"""Ops whose result size depends on the data: each defines a symbolic size by one of our nodes."""

from __future__ import annotations

from typing import Any

from graphtool import dtypes
from graphtool import ops as o
from graphtool.front import Refused
from graphtool.importers.torch.driver.context import Context, axis_of
from graphtool.importers.torch.driver.table import aten
from graphtool.ir.trace import Tracer
from graphtool.ops.common import broadcast_shapes
from graphtool.symbolic import product


def places(c: Context, mask: Tracer) -> Tracer:
    """i64[size, rank]: the indices where a tensor is not 0; one nonzero for each mask and size."""
    if 0 in mask.shape and all(isinstance(d, int) for d in c.out.shape):
        return o.nonzero(mask, size=0)  # type: ignore[no-any-return]
    size, known = c.open_size()
    if known is not None:
        if known[0] is not mask.value:
            raise Refused("its size depends on the data and is taken to be equal to that of "
                          "another result, which is not supported")
        return known[1]
    found: Tracer = o.nonzero(mask, size=size)
    c.sizes[str(size)] = mask.value, found
    return found


def columns(c: Context, mask: Tracer) -> list[Tracer]:
    """The indices of a mask's true places: one i64[size] for each axis."""
    found = places(c, mask)
    return [c.reshape(c.window(found, 1, i, i + 1), found.shape[:1]) for i in range(mask.ndim)]


@aten("nonzero")
def nonzero(c: Context, self: Tracer) -> Any:
    """i64[size, rank]: the indices where self is not 0."""
    return places(c, self)


@aten("masked_select")
def masked_select(c: Context, self: Tracer, mask: Tracer) -> Any:
    """gather of x at the true places of the mask, both broadcast; rank 1."""
    shape = broadcast_shapes(self.shape, mask.shape)
    x, flags = c.broadcast(self, shape), c.broadcast(mask, shape)
    if not shape:
        x, flags = c.reshape(x, (1,)), c.reshape(flags, (1,))
    return o.gather(x, places(c, flags), axes=tuple(range(x.ndim)))


@aten("_local_scalar_dense", "item")
def local_scalar(c: Context, self: Tracer) -> Any:
    """A number read from a tensor: a new symbolic size if torch uses it as one, else rank 0."""
    x = c.reshape(self, ())
    if c.number_wanted is None:
        return x if x.dtype is dtypes.bool_ else c.cast(x, dtypes.float64)
    symbol, most = c.number_wanted
    o.size(c.cast(x, dtypes.int64), size=symbol, most=most)
    return symbol


# ---- the different values ----------------------------------------------------------------------

def _runs(c: Context, rows: Tracer) -> tuple[Tracer, Tracer, Tracer]:
    """(first row of each run of equal rows, i64[n] run of each row, i64 length of each run)."""
    n, axis = rows.shape[0], rows.ndim - 1
    if 0 in rows.shape:
        raise Refused("the unique values of an empty tensor are not supported")
    new = o.ne(c.window(rows, 0, 1, n), c.window(rows, 0, 0, n - 1))
    if axis:
        new = c.reshape(o.reduce_or(new, axes=(1,)), new.shape[:1])
    flags = o.concat(c.full((1,), True, dtypes.bool_), new, axis=0)
    at = places(c, flags)
    values = o.gather(rows, at, axes=(0,))
    number = o.sub(o.cumulative(c.cast(flags, dtypes.int64), kind="sum", axis=0), 1)
    zeros = c.full(values.shape[:1], 0, dtypes.int64)
    counts = o.scatter(zeros, c.reshape(number, (n, 1)), c.full((n,), 1, dtypes.int64),
                       axes=(0,), kind="add")
    return values, number, counts


@aten("_unique2", "_unique")
def unique(c: Context, self: Tracer, sorted: bool = True, return_inverse: bool = False,
           return_counts: bool = False) -> Any:
    """(sorted different values, index of each element's value, counts), by a sort."""
    n = product(self.shape)
    line, order = o.sort(c.reshape(self, (n,)), axis=0)
    values, number, counts = _runs(c, line)
    inverse = None
    if c.used(1):
        zeros = c.full((n,), 0, dtypes.int64)
        back = o.scatter(zeros, c.reshape(order, (n, 1)), number, axes=(0,))
        inverse = c.reshape(back, self.shape)
    return values, inverse, counts if c.used(2) else None


@aten("unique_consecutive")
def unique_consecutive(c: Context, self: Tracer, return_inverse: bool = False,
                       return_counts: bool = False, dim: int | None = None) -> Any:
    """(first of each run of equal neighbours, run of each element, run lengths)."""
    if dim is None or self.ndim < 2:
        values, number, counts = _runs(c, c.reshape(self, (product(self.shape),)))
        number = c.reshape(number, self.shape)
    else:
        axis = axis_of(dim, self.ndim)
        perm = [axis, *(i for i in range(self.ndim) if i != axis)]
        front = c.transpose(self, perm)
        rest = front.shape[1:]
        values, number, counts = _runs(c, c.reshape(front, (front.shape[0], product(rest))))
        values = c.transpose(c.reshape(values, (values.shape[0], *rest)),
                             [perm.index(i) for i in range(self.ndim)])
    return values, number if c.used(1) else None, counts if c.used(2) else None


@aten("unique_dim")
def unique_dim(c: Context, self: Tracer, dim: int, sorted: bool = True,
               return_inverse: bool = False, return_counts: bool = False) -> Any:
    """(different slices in order, row of each slice, counts), by comparing every pair of slices.

    A slice's row is the number of different slices before it. NaN comes last, equal to nothing."""
    axis = axis_of(dim, self.ndim)
    n, rest = self.shape[axis], tuple(d for i, d in enumerate(self.shape) if i != axis)
    if not self.ndim or n == 0 or 0 in rest:
        raise Refused("the unique slices of an empty tensor or of a scalar are not supported")
    perm = [axis, *(i for i in range(self.ndim) if i != axis)]
    rows = c.reshape(c.transpose(self, perm), (n, product(rest)))
    before, same = _compared(c, rows)
    earlier = o.lt(c.iota((n, n), 0), c.iota((n, n), 1))
    again = o.reduce_or(o.and_(same, earlier), axes=(0,))
    first = c.reshape(c.cast(o.not_(again), dtypes.int64), (n, 1))
    row = c.reshape(o.reduce_sum(o.mul(c.cast(before, dtypes.int64), first), axes=(0,)), (n, 1))
    size, known = c.open_size()
    if known is not None:
        raise Refused("its size depends on the data and is taken to be equal to that of "
                      "another result, which is not supported")
    o.size(c.reshape(o.reduce_sum(first, axes=(0,)), ()), size=size, most=n)
    values = o.scatter(c.full((size, rows.shape[1]), 0, self.dtype), row, rows, axes=(0,))
    back = [perm.index(i) for i in range(self.ndim)]
    values = c.transpose(c.reshape(values, (size, *rest)), back)
    counts = o.scatter(c.full((size,), 0, dtypes.int64), row, c.full((n,), 1, dtypes.int64),
                       axes=(0,), kind="add") if c.used(2) else None
    return values, c.reshape(row, (n,)) if c.used(1) else None, counts


def _compared(c: Context, rows: Tracer) -> tuple[Tracer, Tracer]:
    """(bool[i, j]: row i comes before row j, bool[i, j]: they are equal)."""
    n, m = rows.shape
    rows = c.cast(rows, dtypes.int32) if rows.dtype is dtypes.bool_ else rows
    differ = c.cast(o.ne(c.reshape(rows, (n, 1, m)), c.reshape(rows, (1, n, m))), dtypes.int32)
    place = o.arg_reduce(differ, kind="max", axis=2)
    same = o.eq(c.reshape(o.reduce_max(differ, axes=(2,)), (n, n)), 0)
    place = c.reshape(place, (n, n, 1))
    a, b = (c.reshape(o.gather(rows, o.concat(c.iota((n, n, 1), i), c.cast(place, dtypes.int64),
                                              axis=2), axes=(0, 1)), (n, n)) for i in (0, 1))
    less = o.lt(a, b)
    if rows.dtype.is_float:
        earlier = o.lt(c.iota((n, n), 0), c.iota((n, n), 1))
        last = o.is_nan(b)
        less = o.or_(less, o.and_(last, o.or_(o.not_(o.is_nan(a)), earlier)))
    return o.and_(less, o.not_(same)), same


@aten("nonzero_static")
def nonzero_static(c: Context, self: Tracer, *, size: Any, fill_value: int = -1) -> Any:
    """i64[size, rank]: the first `size` indices where self is not 0, then rows of `fill_value`.
    A scatter writes index k to row k; surplus indices go to an extra row, which is cut off."""
    count = product(self.shape)
    if not self.ndim or 0 in c.out.shape or count == 0:
        return c.full(c.out.shape, fill_value, dtypes.int64)
    hit = c.reshape(c.cast(self, dtypes.bool_), (count,))
    rank = o.cumulative(c.cast(hit, dtypes.int64), kind="sum", axis=0, exclusive=True)
    beyond = c.number(size, dtypes.int64)
    row = o.select(o.and_(hit, o.lt(rank, beyond)), rank, beyond)
    flat = o.scatter(c.full((size + 1,), -1, dtypes.int64), c.reshape(row, (count, 1)),
                     c.iota((count,), 0), axes=(0,))
    flat = c.reshape(c.window(flat, 0, 0, size), (size, 1))
    columns: list[Any] = []
    step: Any = 1
    for d in reversed(self.shape):
        at = o.div(flat, c.number(step, dtypes.int64))
        columns.append(o.mod(at, c.number(d, dtypes.int64)))
        step = step * d
    found = columns[0] if len(columns) == 1 else o.concat(*reversed(columns), axis=1)
    return o.select(o.lt(flat, 0), fill_value, found)
