"""Indexing by several tensors at once, or by a mask: one gather or one scatter of whole slices."""

from __future__ import annotations

from typing import Any

from graphtool import dtypes
from graphtool import ops as o
from graphtool.front import Array, Refused
from graphtool.importers.torch.driver.context import Context
from graphtool.importers.torch.driver.table import aten
from graphtool.importers.torch.families.index import back
from graphtool.importers.torch.families.sized import columns
from graphtool.ops.common import broadcast_shapes
from graphtool.symbolic import product


def _advanced(c: Context, x: Array, indices: tuple[Any, ...]) -> tuple[tuple[int, ...], Array,
                                                                       list[int]]:
    """(indexed axes, joint index [..., n], order of the result's axes). Our gather puts the index
    dims first; torch puts them at the first indexed axis if the indexed axes are neighbours."""
    indices = tuple(i for x in indices for i in (
        columns(c, x) if x is not None and x.dtype is dtypes.bool_ else (x,)))
    axes = tuple(a for a, i in enumerate(indices) if i is not None)
    shape = broadcast_shapes(*(indices[a].shape for a in axes))
    parts = [c.wrap(indices[a], x.shape[a]).broadcast(shape).unsqueeze() for a in axes]
    joint = o.concat(*parts, axis=len(shape))
    rest = [a for a in range(x.ndim) if a not in axes]
    lead, tail = range(len(shape)), range(len(shape), len(shape) + len(rest))
    first = axes[0] if axes[-1] - axes[0] == len(axes) - 1 else 0
    return axes, joint, [*tail[:first], *lead, *tail[first:]]


@aten("index", "_unsafe_index")
def index(c: Context, self: Array, indices: tuple[Any, ...]) -> Any:
    """x[i, :, j, …]: one gather at the joint index, then a transpose to torch's order."""
    axes, joint, order = _advanced(c, self, indices)
    return o.gather(self, joint, axes=axes).transpose(order)


@aten("index_put", "_unsafe_index_put")
def index_put(c: Context, self: Array, indices: tuple[Any, ...], values: Array,
              accumulate: bool = False) -> Any:
    """x[i, :, j, …] = values by one scatter (+= with `accumulate`); masks by select."""
    if any(i is not None and i.dtype is dtypes.bool_ for i in indices):
        return _masked_put(c, self, indices, values, accumulate)
    if self.dtype is dtypes.bool_ and accumulate:
        return index_put(c, self.cast(dtypes.int32), indices, values, True).cast(dtypes.bool_)
    axes, joint, order = _advanced(c, self, indices)
    rest = [self.shape[a] for a in range(self.ndim) if a not in axes]
    ours = (*joint.shape[:-1], *rest)
    updates = c.cast(values, self.dtype).broadcast(tuple(ours[i] for i in order))
    return o.scatter(self, joint, updates.transpose(back(order)), axes=axes,
                     kind="add" if accumulate else "set")


def _masked_put(c: Context, x: Array, indices: tuple[Any, ...], values: Array,
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
        new = values.reshape(values.shape[-len(rest):] if rest else ())
    elif axis:
        raise Refused("writing several rows under a mask is supported only if the mask covers "
                      "the first axes")
    else:
        last = o.max(c.number(values.shape[0], dtypes.int64) - 1, 0)
        new = values.at(o.min(_before(mask), last), 0)
    wide = mask.reshape((*mask.shape, *(1,) * len(rest)))
    if accumulate:
        new = x | new if x.dtype is dtypes.bool_ else x + new
    return o.select(wide, new, x)


def _before(mask: Array) -> Array:
    """The number of true places before each place."""
    flags = mask.flat().cast(dtypes.int64)
    counts: Array = o.cumulative(flags, kind="sum", axis=0, exclusive=True)
    return counts.reshape(mask.shape)


@aten("masked_scatter")
def masked_scatter(c: Context, self: Array, mask: Array, source: Array) -> Any:
    """The k-th true place takes the k-th element of the source: a gather by running sums."""
    shape = broadcast_shapes(self.shape, mask.shape)
    mask = mask.broadcast(shape)
    last = c.number(product(source.shape) - 1, dtypes.int64)
    picked = source.flat().at(o.min(_before(mask), last), 0)
    return o.select(mask, picked, self.broadcast(shape))
