"""Indexing by data: gather, scatter, and the dynamic slices. Indices are never negative.

An index out of range is an error, in the evaluator and in compiled code. The latter finds it by a
kernel of its own (lower/index_checks.py); reads and writes clamp indices into range meanwhile.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from graphtool import dtypes
from graphtool import ops as o
from graphtool.errors import InputError
from graphtool.ir.facets import Align, Axes, Indexing, Lowering, Precision, Trait, Weighing
from graphtool.ir.graph import TensorType
from graphtool.ir.op import Op, register
from graphtool.loops.pull import Names, Pull, apply, inside
from graphtool.ops.common import (
    Array,
    check_axis,
    equal_dims,
    equal_types,
    filled,
    iota_like,
    need,
    took,
)
from graphtool.ops.costs import taken
from graphtool.symbolic import Dim, known, maximum, minimum, product, text

_AXES = Axes(Align.NONE, names=("axes",), batch="batch")

# ---- gather: y[b, i, rest] = x[b, indices[b, i], rest] -----------------------------------------


def _gather_infer(x: TensorType, indices: TensorType, *, axes: tuple[int, ...],
                  batch: int = 0) -> TensorType:
    _check(x, indices, axes, batch)
    rest = tuple(d for a, d in enumerate(x.shape) if a >= batch and a not in axes)
    return TensorType(x.dtype, (*indices.shape[:-1], *rest))


def _check(x: TensorType, indices: TensorType, axes: tuple[int, ...], batch: int) -> None:
    need(indices.dtype.is_integer, "indices must be integers")
    need(indices.rank >= batch + 1 and indices.shape[-1] == len(axes),
         f"the last dimension of the indices must be the number of axes, {len(axes)}")
    need(all(check_axis(a, x.rank) == a >= batch for a in axes) and len(set(axes)) == len(axes),
         f"axes {axes} must be distinct, counted from the front, and not batch axes")
    equal_dims(x.shape[:batch], indices.shape[:batch],
               "the batch dimensions of x and the indices differ")


def _read_sizes(x: TensorType, indices: TensorType, *, axes: tuple[int, ...], batch: int = 0
                ) -> tuple[Dim, ...]:
    """The sizes of the indexed axes, if there surely is an index."""
    some = known(product(indices.shape), "<=", 0) is False
    return tuple(x.shape[a] for a in axes) if some else ()


def _split_index(x: Array, indices: Array, axes: tuple[int, ...], batch: int) -> tuple[Any, ...]:
    """numpy index arrays for all axes of x, broadcast over the batch, gathered and remaining
    axes."""
    rest = [a for a in range(batch, x.ndim) if a not in axes]
    lead = indices.shape[:-1]
    rank = len(lead) + len(rest)
    out: list[Any] = [None] * x.ndim
    for b in range(batch):
        out[b] = np.arange(x.shape[b]).reshape([-1 if i == b else 1 for i in range(rank)])
    for k, a in enumerate(axes):
        out[a] = indices[..., k].reshape((*lead, *[1] * len(rest)))
    for k, a in enumerate(rest):
        out[a] = np.arange(x.shape[a]).reshape(
            [-1 if i == len(lead) + k else 1 for i in range(rank)])
    return tuple(out)


def _check_range(x: Array, indices: Array, axes: tuple[int, ...]) -> None:
    for k, a in enumerate(axes):
        column = indices[..., k]
        if column.size and (column.min() < 0 or column.max() >= x.shape[a]):
            bad = int(column.min() if column.min() < 0 else column.max())
            raise InputError("GT0501", f"index {bad} is out of range for axis {a} of size "
                                       f"{x.shape[a]}")


def _gather_eval(x: Array, indices: Array, *, axes: Any, batch: int) -> Array:
    _check_range(x, indices, axes)
    if len(axes) == 1 and batch == 0 and axes[0] == 0:
        return np.asarray(x[indices[..., 0]])
    return np.asarray(x[_split_index(x, indices, axes, batch)])


def _gather_lower(k: Names, x: Pull, indices: Pull, *, axes: Any, batch: int) -> Pull:
    lead = len(indices.shape) - 1
    rest = [a for a in range(batch, len(x.shape)) if a not in axes]
    shape = (*indices.shape[:-1], *(x.shape[a] for a in rest))
    seen: dict[Any, Dim] = {}

    def read(idx: Any, j: int, extent: Dim) -> Dim:
        key = (*idx[:lead], j)
        if key not in seen:
            seen[key] = k.index(indices.at(key), extent)
        return seen[key]

    def at(idx: Any) -> Any:
        full: list[Any] = [None] * len(x.shape)
        full[:batch] = idx[:batch]
        for j, a in enumerate(axes):
            full[a] = read(idx, j, x.shape[a])
        for j, a in enumerate(rest):
            full[a] = idx[lead + j]
        return x.at(tuple(full))
    return Pull(x.dtype, shape, at)


def _gather_vjp(g: Any, _y: Any, x: Any, indices: Any, *, axes: Any, batch: int) -> tuple[Any, ...]:
    alone = axes == (x.ndim - 1,) and batch == x.ndim - 1 and indices.ndim == x.ndim
    # one element of each row: a select is faster than a scatter
    if alone and indices.dtype.bits >= 32:
        places = x.builder.emit(o.iota, (), {"shape": (x.shape[-1],), "axis": 0,
                                                  "dtype": indices.dtype})
        return o.select(o.eq(places, indices),
                        o.reshape(g, shape=indices.shape), 0.0), None
    zeros = filled(x, 0.0, x.shape)
    return o.scatter(zeros, indices, g, axes=axes, batch=batch, kind="add"), None


register(Op("gather", _gather_infer, _gather_eval, _gather_vjp, _gather_lower, category="data",
            traits=Trait.NEST, precision=Precision.FOLLOW, traffic=taken,
            indexing=Indexing("axes", draws=True), axes=_AXES, filled=_read_sizes,
            weighing=Weighing("table", data=1, weight=0, only={"axes": (0,), "batch": 0}),
            doc="y[b, i, rest] = x[b, indices[b, i, :] on `axes`, rest]; the last axis of the "
                "indices has one entry for each of `axes`, the first `batch` axes are shared"))

# ---- scatter: x with updates written where gather would read -----------------------------------


def _scatter_infer(x: TensorType, indices: TensorType, updates: TensorType, *,
                   axes: tuple[int, ...], batch: int = 0, kind: str = "set") -> TensorType:
    need(kind in ("set", "add", "mul", "min", "max"), f"unknown kind {kind!r}")
    want = _gather_infer(x, indices, axes=axes, batch=batch)
    equal_types(updates, want, f"the updates are {updates}, expected {want}")
    return x


def _scatter_eval(x: Array, indices: Array, updates: Array, *, axes: Any, batch: int,
                  kind: str) -> Array:
    _check_range(x, indices, axes)
    out = np.array(x)
    index = tuple(np.broadcast_to(i, updates.shape)
                  for i in _split_index(x, indices, axes, batch))
    if kind == "set":
        out[index] = updates
    else:
        ufunc = {"add": np.add, "mul": np.multiply, "min": np.minimum, "max": np.maximum}[kind]
        ufunc.at(out, index, updates)
    return out


def _scatter_vjp(g: Any, y: Any, x: Any, indices: Any, updates: Any, *,
                 axes: tuple[int, ...], batch: int, kind: str) -> tuple[Any, ...]:
    """The gradients of each kind. If several updates are set at one position, only the last has
    a gradient; equal extremes share it in equal parts."""
    where: dict[str, Any] = {"axes": axes, "batch": batch}
    at = o.gather(g, indices, **where)
    match kind:
        case "add":
            return g, None, at
        case "set":
            zeros = filled(x, 0.0, updates.shape)
            return (o.scatter(g, indices, zeros, kind="set", **where), None,
                    o.select(_winners(x, indices, updates, where), at, 0.0))
        case "mul":
            factor = o.scatter(filled(x, 1.0, x.shape), indices, updates, kind="mul", **where)
            return g * factor, None, at * _other_factors(x, indices, updates, where)
    from_x = o.cast(took(x, y), dtype=x.dtype)
    from_u = o.cast(took(updates, o.gather(y, indices, **where)), dtype=x.dtype)
    shared = g / o.scatter(from_x, indices, from_u, kind="add", **where)
    return shared * from_x, None, o.gather(shared, indices, **where) * from_u


def _winners(x: Any, indices: Any, updates: Any, where: dict[str, Any]) -> Any:
    """Which updates remain in the result: scatter their numbers and see which ones are there
    afterwards."""
    number = o.reshape(iota_like(x, (product(updates.shape),), 0), shape=updates.shape)
    left = o.scatter(filled(x, -1, x.shape, dtypes.int64), indices, number, kind="set", **where)
    return o.eq(o.gather(left, indices, **where), number)


def _other_factors(x: Any, indices: Any, updates: Any, where: dict[str, Any]) -> Any:
    """x times all other updates at the same position; exact where factors are 0, too."""
    zero = o.eq(updates, 0.0)
    safe = o.select(zero, 1.0, updates)
    zeros = o.gather(o.scatter(filled(x, 0.0, x.shape), indices, o.cast(zero, dtype=x.dtype),
                               kind="add", **where), indices, **where)
    rest = o.gather(o.scatter(x, indices, safe, kind="mul", **where), indices, **where) / safe
    return o.select(o.eq(zeros, o.cast(zero, dtype=x.dtype)), rest, 0.0)


register(Op("scatter", _scatter_infer, _scatter_eval, _scatter_vjp, category="data",
            lowering=Lowering.STATEMENTS, indexing=Indexing("axes"), axes=_AXES,
            doc="x with the updates set, added, multiplied, or combined by minimum or maximum, at "
                "the positions that `gather` would read; if several are set at one position, the "
                "last one stays"))

# ---- dynamic slices ----------------------------------------------------------------------------


def _dynamic_slice_infer(x: TensorType, *start: TensorType,
                         sizes: tuple[Dim, ...]) -> TensorType:
    need(len(start) == len(sizes) == x.rank, "sizes and starts need one entry per axis")
    for s in start:
        need(isinstance(s, int) or (s.rank == 0 and s.dtype.is_integer),
             "each start must be an integer scalar")
    for n, d in zip(sizes, x.shape, strict=True):
        need(known(n, "<=", d) is not False, f"size {text(n)} is larger than the axis, {text(d)}")
    return TensorType(x.dtype, sizes)


def _clamped(start: Any, sizes: Any, shape: Any) -> list[int]:
    return [int(min(max(int(s), 0), d - n)) for s, n, d in zip(start, sizes, shape, strict=True)]


def _dynamic_slice_eval(x: Array, *start: Any, sizes: Any) -> Array:
    at = _clamped(start, sizes, x.shape)
    return x[tuple(slice(a, a + n) for a, n in zip(at, sizes, strict=True))]


def _starts(k: Names, start: Any, sizes: Any, shape: Any) -> list[Dim]:
    return [s if isinstance(s, int) else k.index(s.at(()), d - n + 1)
            for s, n, d in zip(start, sizes, shape, strict=True)]


def _dynamic_slice_lower(k: Names, x: Pull, *start: Any, sizes: Any) -> Pull:
    starts = _starts(k, start, sizes, x.shape)
    return Pull(x.dtype, sizes, lambda idx: x.at(tuple(
        s + i for s, i in zip(starts, idx, strict=True))))


def _dynamic_slice_vjp(g: Any, _y: Any, x: Any, *start: Any, sizes: Any) -> tuple[Any, ...]:
    return (o.dynamic_update_slice(filled(x, 0.0, x.shape), g, *start),
            *[None] * len(start))


register(Op("dynamic_slice", _dynamic_slice_infer, _dynamic_slice_eval, _dynamic_slice_vjp,
            _dynamic_slice_lower, category="shape", traits=Trait.NEST,
            precision=Precision.FOLLOW, traffic=taken,
            doc="the window of shape `sizes` that begins at a computed start in x; the start is "
                "clamped, so that the window fits"))


def _update_infer(x: TensorType, update: TensorType, *start: TensorType) -> TensorType:
    need(x.dtype is update.dtype and x.rank == update.rank == len(start),
         f"the update {update} does not fit in {x}")
    return x


def _update_eval(x: Array, update: Array, *start: Any) -> Array:
    out = np.array(x)
    at = _clamped(start, update.shape, x.shape)
    out[tuple(slice(a, a + n) for a, n in zip(at, update.shape, strict=True))] = update
    return out


def _update_lower(k: Names, x: Pull, update: Pull, *start: Any) -> Pull:
    starts = _starts(k, start, update.shape, x.shape)

    def at(idx: Any) -> Any:
        checks = [(i - s, n) for s, i, n in zip(starts, idx, update.shape, strict=True)]
        safe = tuple(maximum(minimum(i, n - 1), 0) for i, n in checks)
        cond = inside(checks)
        new = update.at(safe)
        return new if cond is None else apply("select", cond, new, x.at(idx), dtype=x.dtype)
    return Pull(x.dtype, x.shape, at)


def _update_vjp(g: Any, _y: Any, x: Any, update: Any, *start: Any) -> tuple[Any, ...]:
    hole = o.dynamic_update_slice(g, filled(g, 0.0, update.shape), *start)
    return (hole, o.dynamic_slice(g, *start, sizes=update.shape), *[None] * len(start))


register(Op("dynamic_update_slice", _update_infer, _update_eval, _update_vjp, _update_lower,
            category="data", traits=Trait.NEST, precision=Precision.FOLLOW,
            doc="x with the window at a computed start replaced; the start is clamped, so that "
                "the window fits"))

