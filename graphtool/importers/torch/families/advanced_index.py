"""Indexing by several tensors at once, or by a mask: one gather or one scatter of whole slices."""

from __future__ import annotations

from typing import Any

from graphtool import dtypes
from graphtool import ops as o
from graphtool.front import Refused
from graphtool.importers.torch.driver.context import Context
from graphtool.importers.torch.driver.table import aten
from graphtool.importers.torch.families.index import back
from graphtool.importers.torch.families.sized import columns
from graphtool.ir.trace import Tracer
from graphtool.ops.common import broadcast_shapes
from graphtool.symbolic import Dim, product


def _advanced(c: Context, x: Tracer, indices: tuple[Any, ...]) -> tuple[tuple[int, ...], Tracer,
                                                                       list[int]]:
    """(indexed axes, joint index [..., n], order of the result's axes). Our gather puts the index
    dims first; torch puts them at the first indexed axis if the indexed axes are neighbours."""
    indices = tuple(i for x in indices for i in (
        columns(c, x) if x is not None and x.dtype is dtypes.bool_ else (x,)))
    axes = tuple(a for a, i in enumerate(indices) if i is not None)
    shape = broadcast_shapes(*(indices[a].shape for a in axes))
    parts = [c.reshape(c.broadcast(c.wrap(indices[a], x.shape[a]), shape), (*shape, 1))
             for a in axes]
    joint = parts[0] if len(parts) == 1 else o.concat(*parts, axis=len(shape))
    rest = [a for a in range(x.ndim) if a not in axes]
    lead = list(range(len(shape)))
    tail = list(range(len(shape), len(shape) + len(rest)))
    first = axes[0] if axes[-1] - axes[0] == len(axes) - 1 else 0
    return axes, joint, [*tail[:first], *lead, *tail[first:]]


@aten("index", "_unsafe_index")
def index(c: Context, self: Tracer, indices: tuple[Any, ...]) -> Any:
    """x[i, :, j, …]: one gather at the joint index, then a transpose to torch's order."""
    axes, joint, order = _advanced(c, self, indices)
    return c.transpose(o.gather(self, joint, axes=axes), order)


@aten("index_put", "_unsafe_index_put")
def index_put(c: Context, self: Tracer, indices: tuple[Any, ...], values: Tracer,
              accumulate: bool = False) -> Any:
    """x[i, :, j, …] = values by one scatter (+= with `accumulate`); masks by select."""
    if any(i is not None and i.dtype is dtypes.bool_ for i in indices):
        return _masked_put(c, self, indices, values, accumulate)
    if self.dtype is dtypes.bool_ and accumulate:
        whole = index_put(c, c.cast(self, dtypes.int32), indices, values, True)
        return c.cast(whole, dtypes.bool_)
    axes, joint, order = _advanced(c, self, indices)
    rest = [self.shape[a] for a in range(self.ndim) if a not in axes]
    ours = (*joint.shape[:-1], *rest)
    updates = c.broadcast(c.cast(values, self.dtype), tuple(ours[i] for i in order))
    return o.scatter(self, joint, c.transpose(updates, back(order)), axes=axes,
                     kind="add" if accumulate else "set")


def _masked_put(c: Context, x: Tracer, indices: tuple[Any, ...], values: Tracer,
                accumulate: bool) -> Any:
    """Writes under one mask: one value everywhere, or row k of the values at true place k."""
    masks = [(a, i) for a, i in enumerate(indices) if i is not None]
    if len(masks) != 1:
        raise Refused("writing under a mask and at another index in one assignment is not "
                      "supported; use the mask alone")
    axis, mask = masks[0]
    rest = x.shape[axis + mask.ndim:]
    values = c.cast(values, x.dtype)
    if values.ndim <= len(rest) or values.shape[-len(rest) - 1] == 1:
        new = c.reshape(values, values.shape[-len(rest):] if rest else ())
    elif axis:
        raise Refused("writing several rows under a mask is supported only if the mask covers "
                      "the first axes")
    else:
        rank = _rank(c, mask, values.shape[0])
        new = o.gather(values, c.reshape(rank, (*rank.shape, 1)), axes=(0,))
    wide = c.reshape(mask, (*mask.shape, *(1,) * len(rest)))
    if accumulate:
        new = o.or_(x, new) if x.dtype is dtypes.bool_ else o.add(x, new)
    return o.select(wide, new, x)


def _rank(c: Context, mask: Tracer, count: Dim) -> Any:
    """The number of true places before each place, at most count − 1."""
    flags = c.reshape(mask, (product(mask.shape),))
    before = o.cumulative(c.cast(flags, dtypes.int64), kind="sum", axis=0, exclusive=True)
    last = max(count - 1, 0) if isinstance(count, int) else o.max(
        o.sub(c.number(count, dtypes.int64), 1), 0)
    return c.reshape(o.min(before, last), mask.shape)


@aten("masked_scatter")
def masked_scatter(c: Context, self: Tracer, mask: Tracer, source: Tracer) -> Any:
    """The k-th true place takes the k-th element of the source: a gather by running sums."""
    shape = broadcast_shapes(self.shape, mask.shape)
    flags = c.reshape(c.broadcast(mask, shape), (product(shape),))
    rank = o.cumulative(c.cast(flags, dtypes.int64), kind="sum", axis=0)
    last = c.number(product(source.shape) - 1, dtypes.int64)
    at = o.min(o.max(o.sub(rank, 1), 0), last)
    picked = o.gather(c.reshape(source, (product(source.shape),)),
                      c.reshape(at, (*at.shape, 1)), axes=(0,))
    return o.select(c.reshape(flags, shape), c.reshape(picked, shape), c.broadcast(self, shape))
