"""Calls whose results are as large as the data say: each defines a symbol by one of our nodes."""

from __future__ import annotations

from typing import Any

from graphtool import dtypes
from graphtool import ops as o
from graphtool.importers.torch.context import Context, Missing, axis_of
from graphtool.importers.torch.table import aten
from graphtool.ir.trace import Tracer
from graphtool.ops.common import broadcast_shapes
from graphtool.symbolic import product


def places(c: Context, mask: Tracer) -> Tracer:
    """Where a tensor is not zero, i64[size, rank]; a size that torch knows twice is found once."""
    if 0 in mask.shape and all(isinstance(d, int) for d in c.out.shape):
        return o.nonzero(mask, size=0)  # type: ignore[no-any-return]
    size, known = c.open_size()
    if known is not None:
        if known[0] is not mask.value:
            raise Missing("a size that depends on the data, equal to that of another result")
        return known[1]
    found: Tracer = o.nonzero(mask, size=size)
    c.sizes[str(size)] = mask.value, found
    return found


def columns(c: Context, mask: Tracer) -> list[Tracer]:
    """A mask as an index of integers for each of its axes."""
    found = places(c, mask)
    return [c.reshape(c.window(found, 1, i, i + 1), found.shape[:1]) for i in range(mask.ndim)]


@aten("nonzero")
def nonzero(c: Context, self: Tracer) -> Any:
    return places(c, self)


@aten("masked_select")
def masked_select(c: Context, self: Tracer, mask: Tracer) -> Any:
    shape = broadcast_shapes(self.shape, mask.shape)
    x, flags = c.broadcast(self, shape), c.broadcast(mask, shape)
    if not shape:
        x, flags = c.reshape(x, (1,)), c.reshape(flags, (1,))
    return o.gather(x, places(c, flags), axes=tuple(range(x.ndim)))


@aten("_local_scalar_dense", "item")
def local_scalar(c: Context, self: Tracer) -> Any:
    """A number read out of a tensor: a size by its symbol, else the tensor of rank 0 itself."""
    x = c.reshape(self, ())
    if c.number_wanted is None:
        return x if x.dtype is dtypes.bool_ else c.cast(x, dtypes.float64)
    symbol, most = c.number_wanted
    o.size(c.cast(x, dtypes.int64), size=symbol, most=most)
    return symbol


# ---- the different values ----------------------------------------------------------------------

def _runs(c: Context, line: Tracer) -> tuple[Tracer, Tracer, Tracer]:
    """(values, the number of its run for each element, the runs' lengths) of equal neighbours."""
    n = line.shape[0]
    if n == 0:
        raise Missing("the different values of nothing")
    new = o.ne(c.window(line, 0, 1, n), c.window(line, 0, 0, n - 1))
    flags = o.concat(c.full((1,), True, dtypes.bool_), new, axis=0)
    at = places(c, flags)
    values = o.gather(line, at, axes=(0,))
    number = o.sub(o.cumulative(c.cast(flags, dtypes.int64), kind="sum", axis=0), 1)
    zeros = c.full(values.shape, 0, dtypes.int64)
    counts = o.scatter(zeros, c.reshape(number, (n, 1)), c.full((n,), 1, dtypes.int64),
                       axes=(0,), kind="add")
    return values, number, counts


@aten("_unique2", "_unique")
def unique(c: Context, self: Tracer, sorted: bool = True, return_inverse: bool = False,
           return_counts: bool = False) -> Any:
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
    if dim is not None and (self.ndim != 1 or axis_of(dim, 1)):
        raise Missing("runs of equal slices; equal elements can be found")
    values, number, counts = _runs(c, c.reshape(self, (product(self.shape),)))
    return values, c.reshape(number, self.shape) if c.used(1) else None, (
        counts if c.used(2) else None)


@aten("unique_dim")
def unique_dim(c: Context, *_: Any, **__: Any) -> Any:
    raise Missing("the different slices of a tensor; different elements can be found")


@aten("nonzero_static")
def nonzero_static(c: Context, self: Tracer, *, size: Any, fill_value: int = -1) -> Any:
    """The first `size` places where self is not zero, filled up behind the last: each is written
    to the row that its rank among them says, and what is too much to a row behind all."""
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
