"""Indexing by data: Gather and Scatter, OneHot, ReverseSequence, TensorScatter, Compress.

ONNX counts negative indices from the end; our `gather` takes indices from 0 on.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from graphtool import dtypes
from graphtool.front import Refused
from graphtool.importers.onnx.driver.claims import agreed
from graphtool.importers.onnx.driver.computed import fresh
from graphtool.importers.onnx.driver.registry import onnx_op
from graphtool.importers.onnx.families.shape import dim_array, iota
from graphtool.importers.onnx.kit import array_of, axis_of, dim_tensor, dim_value, dims, ints, o
from graphtool.importers.wrapping import from_end
from graphtool.symbolic import Dim, minimum, product


def wrapped(i: Any, size: Dim) -> Any:
    """Indices with negative ones counted from the end; constants are converted at import.

    Raises ValueError for a constant that is out of range."""
    array = array_of(i)
    if array is not None and array.dtype != object and isinstance(size, int):
        if array.size and not -size <= array.min() <= array.max() < size:
            bad = array.min() if array.min() < -size else array.max()
            raise ValueError(f"index {bad} is out of range for an axis of size {size}")
        return i.builder.constant(from_end(array.astype(np.int64), size))
    i = i if i.dtype.kind == "int" and i.dtype.bits >= 32 else i.cast(dtypes.int64)
    if isinstance(size, int):
        return from_end(i, size)
    return from_end(i, dim_tensor(size, i.builder).cast(i.dtype))


# ---- gather ------------------------------------------------------------------------------------

@onnx_op("Gather")
def gather(x: Any, indices: Any, *, axis: int = 0) -> Any:
    """y[a, i, b] = x[a, indices[i], b], as `gather`; the rows of a float matrix as `embedding`."""
    axis = axis_of(axis, x.ndim)
    i = wrapped(indices, x.shape[axis])
    if axis == 0 and x.ndim == 2 and x.dtype.is_float and array_of(indices) is None:
        return o.embedding(x, i)
    return x.at(i, axis)


def per_element(i: Any, axis: int) -> tuple[Any, tuple[int, ...]]:
    """Full coordinates [*i.shape, rank] and their axes.

    The indices i apply to one axis; on all other axes each element keeps its own position.
    """
    columns = []
    for a in range(i.ndim):
        if a == axis:
            columns.append(i.unsqueeze())
        else:
            shape = tuple(d if k == a else 1 for k, d in enumerate(i.shape))
            line = o.broadcast(iota(i, shape, a, i.dtype), shape=tuple(i.shape))
            columns.append(line.reshape((*i.shape, 1)))
    joined = o.concat(*columns, axis=i.ndim) if len(columns) > 1 else columns[0]
    return joined, tuple(range(i.ndim))


def _alike(x: Any, i: Any, axis: int) -> bool:
    """Whether the indices of one axis cover all other axes of x."""
    return all(a == b for k, (a, b) in enumerate(zip(x.shape, i.shape, strict=True)) if k != axis)


@onnx_op("GatherElements")
def gather_elements(x: Any, indices: Any, *, axis: int = 0) -> Any:
    """y[…, p, …] = x[…, indices[…, p, …], …], as a batched `gather`; where other axes of x are
    longer, as one with full coordinates."""
    axis = axis_of(axis, x.ndim)
    i = wrapped(indices, x.shape[axis])
    if _alike(x, i, axis):
        last = x.ndim - 1
        x, i = x.moveaxis(axis, last), i.moveaxis(axis, last)
        return o.gather(x, i.unsqueeze(), axes=(last,), batch=last).moveaxis(last, axis)
    coordinates, axes = per_element(i, axis)
    return o.gather(x, coordinates, axes=axes)


@onnx_op("GatherND")
def gather_nd(x: Any, indices: Any, *, batch_dims: int = 0) -> Any:
    """`gather` by coordinates in the last axis of the indices."""
    i, axes = nd_indices(x, indices, batch_dims)
    return o.gather(x, i, axes=axes, batch=batch_dims)


def nd_indices(x: Any, indices: Any, batch: int) -> tuple[Any, tuple[int, ...]]:
    """Coordinates with negative ones counted from the end, and the axes they refer to."""
    count = ints(dim_array([indices.shape[-1]]), "the last dim of the indices")[0]
    axes = tuple(range(batch, batch + count))
    sizes = tuple(x.shape[a] for a in axes)
    array = array_of(indices)
    if all(isinstance(d, int) for d in sizes):
        extent = np.asarray(sizes, np.int64)
        if array is not None and array.dtype != object:
            return indices.builder.constant(from_end(array.astype(np.int64), extent)), axes
        i = indices.cast(dtypes.int64)
        return from_end(i, i.builder.constant(extent)), axes
    last = indices.ndim - 1
    columns = [wrapped(indices.take(last, k, k + 1), d) for k, d in enumerate(sizes)]
    return o.concat(*columns, axis=last), axes


# ---- scatter -----------------------------------------------------------------------------------

_KINDS = {"none": "set", "add": "add", "mul": "mul", "min": "min", "max": "max"}


@onnx_op("ScatterElements", "Scatter")
def scatter_elements(x: Any, indices: Any, updates: Any, *, axis: int = 0,
                     reduction: str = "none") -> Any:
    """x with the updates written or reduced at `indices` along one axis, as a batched `scatter`;
    where other axes of x are longer, as one with full coordinates."""
    axis = axis_of(axis, x.ndim)
    i = wrapped(indices, x.shape[axis])
    if _alike(x, i, axis):
        last = x.ndim - 1
        x, i, updates = (v.moveaxis(axis, last) for v in (x, i, updates))
        y = o.scatter(x, i.unsqueeze(), updates, axes=(last,), batch=last,
                      kind=_KINDS[reduction])
        return y.moveaxis(last, axis)
    coordinates, axes = per_element(i, axis)
    return o.scatter(x, coordinates, updates, axes=axes, kind=_KINDS[reduction])


@onnx_op("ScatterND")
def scatter_nd(x: Any, indices: Any, updates: Any, *, reduction: str = "none") -> Any:
    """`scatter` by coordinates in the last axis of the indices."""
    i, axes = nd_indices(x, indices, 0)
    return o.scatter(x, i, updates, axes=axes, kind=_KINDS[reduction])


@onnx_op("TensorScatter")
def tensor_scatter(past: Any, update: Any, start: Any = None, *, axis: int = -2,
                   mode: str = "linear") -> Any:
    """The cache with the update written into each row from that row's start, as `scatter`."""
    axis = axis_of(axis, past.ndim)
    shape = tuple(update.shape)
    line = iota(update, tuple(d if k == axis else 1 for k, d in enumerate(shape)), axis)
    at = line if start is None else line + start.cast(dtypes.int64).reshape((shape[0], *[1] *
            (past.ndim - 1)))
    if mode == "circular":
        if not isinstance(past.shape[axis], int):
            raise Refused("a circular cache of symbolic size is not supported; fix that size "
                          "with --dynamic NAME=SIZE")
        at = o.mod(at, past.shape[axis])
    coordinates, axes = per_element(o.broadcast(at, shape=shape), axis)
    return o.scatter(past, coordinates, update, axes=axes)


# ---- one-hot and sequences ---------------------------------------------------------------------

@onnx_op("OneHot")
def one_hot(indices: Any, depth: Any, values: Any, *, axis: int = -1, ctx: Any) -> Any:
    """A comparison with 0…depth − 1 and a `select` of the two values.

    An index outside [−depth, depth) gives only the off value.
    """
    rank = indices.ndim + 1
    axis = axis_of(axis, rank)
    most = ctx.most(axis)
    if array_of(depth) is not None:
        n: Dim = dims(depth, "the depth")[0]
    else:
        n = agreed(depth, most,
                   "the depth") if most is not None else dims(depth.cast(dtypes.int64),
            "the depth")[0]
    if isinstance(n, int) and n < 0:
        raise ValueError(f"the depth must be 0 or more, but is {n}")
    i = indices.cast(dtypes.int64)
    i = o.select(i < 0, i + dim_value(n, values), i)
    shape = (*i.shape[:axis], 1, *i.shape[axis:])
    line = iota(i, tuple(n if k == axis else 1 for k in range(rank)), axis)
    off, on = values.take(0, 0, 1), values.take(0, 1, 2)
    return o.select(o.eq(i.reshape(shape), line), on.reshape((1,) * rank), off.reshape((1,) * rank))


@onnx_op("ReverseSequence")
def reverse_sequence(x: Any, lengths: Any, *, batch_axis: int = 1, time_axis: int = 0) -> Any:
    """A `gather` in which position t of row b reads length[b] − 1 − t if t is below that length.

    A negative length makes an index that is out of range, as a length that is too great does.
    """
    shape = tuple(x.shape)
    if {batch_axis, time_axis} == {0, 1}:
        shape = shape[:2]  # the axes behind are moved as they are
    t = iota(x, tuple(d if k == time_axis else 1 for k, d in enumerate(shape)), time_axis)
    n = lengths.cast(dtypes.int64).reshape(tuple(d if k == batch_axis else 1 for k,
                                                 d in enumerate(shape)))
    at = o.select(t < n, n - 1 - t, o.select(n < 0, -1, t))
    coordinates, axes = per_element(o.broadcast(at, shape=shape), time_axis)
    return o.gather(x, coordinates, axes=axes)


@onnx_op("Compress")
def compress(x: Any, condition: Any, *, axis: int | None = None) -> Any:
    """The entries that the condition keeps, as a `gather`.

    If the run computes the condition, `nonzero` gives their positions and the size is symbolic.
    """
    mask = array_of(condition)
    if axis is None:
        x = x.reshape((product(x.shape),))
    at = axis_of(axis or 0, x.ndim)
    if mask is not None:
        kept: Any = x.builder.constant(np.flatnonzero(mask)[:, None])
    else:
        short = minimum(condition.shape[0], x.shape[at])
        condition = condition if condition.shape[0] == short else condition.take(0, 0, short)
        kept = o.nonzero(condition, size=fresh(condition, short))
    y = o.gather(x, kept, axes=(at,))
    return y.transpose((*range(1, at + 1), 0, *range(at + 1, x.ndim)))
