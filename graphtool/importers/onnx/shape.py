"""Shapes and movement: Reshape, Transpose, Expand, Tile, Concat, Range and their kin."""

from __future__ import annotations

from typing import Any

import numpy as np

from graphtool import dtypes
from graphtool.importers.onnx.dimensions import has_symbols
from graphtool.importers.onnx.reader import element_type
from graphtool.importers.onnx.registry import Refused, onnx_op
from graphtool.importers.onnx.values import (
    array_of,
    axes_of,
    axis_of,
    cast,
    dims,
    dtype_of,
    ints,
    one,
    reshape,
    tensor,
    transpose,
)
from graphtool.ir.op import ops as o
from graphtool.ir.trace import Tracer
from graphtool.ops.common import broadcast_shapes
from graphtool.symbolic import (
    Dim,
    exact_quotient,
    floordiv,
    known,
    maximum,
    product,
)
from graphtool.weights import Array


def dim_array(values: Any) -> Array:
    """Dimensions as a vector of objects; the driver makes it int64 where it can."""
    out = np.empty(len(values), object)
    out[:] = values
    return out


# ---- asking for sizes --------------------------------------------------------------------------

@onnx_op("Shape")
def shape_of(x: Any, *, start: int = 0, end: int | None = None) -> Any:
    return dim_array(tuple(x.shape)[start:end])


@onnx_op("Size")
def size_of(x: Any) -> Any:
    return dim_array([product(x.shape)]).reshape(())


# ---- reshape and its kin -----------------------------------------------------------------------

@onnx_op("Reshape")
def reshape_op(x: Any, shape: Any, *, allowzero: int = 0, ctx: Any) -> Any:
    if array_of(shape) is None:
        return reshape(x, ctx.declared("the shape"))
    wanted = list(dims(shape, "the shape"))
    for i, d in enumerate(wanted):
        if isinstance(d, int) and d == 0 and not allowzero:
            wanted[i] = x.shape[i]
    open_axes = [i for i, d in enumerate(wanted) if isinstance(d, int) and d == -1]
    if open_axes:
        wanted[open_axes[0]] = 1
        wanted[open_axes[0]] = _quotient(product(x.shape), product(wanted))
    return reshape(x, tuple(wanted))


def _quotient(total: Dim, rest: Dim) -> Dim:
    if isinstance(rest, int) and rest == 0:
        return 0
    exact = exact_quotient(total, rest)
    return floordiv(total, rest) if exact is None else exact


@onnx_op("Flatten")
def flatten(x: Any, *, axis: int = 1) -> Any:
    at = axis if 0 <= axis <= x.ndim else axis % max(x.ndim, 1)
    return reshape(x, (product(x.shape[:at]), product(x.shape[at:])))


@onnx_op("Squeeze")
def squeeze(x: Any, at: Any = None, *, axes: Any = None) -> Any:
    if at is not None:
        axes = ints(at, "the axes")
    if axes is None:
        gone = tuple(i for i, d in enumerate(x.shape) if d == 1)
    else:
        gone = axes_of(axes, x.ndim)
        if any(known(x.shape[a], "==", 1) is False for a in gone):
            raise ValueError(f"a dimension of {tuple(x.shape)} at {gone} is not 1")
    return reshape(x, tuple(d for i, d in enumerate(x.shape) if i not in gone))


@onnx_op("Unsqueeze")
def unsqueeze(x: Any, at: Any = None, *, axes: Any = None) -> Any:
    axes = ints(at, "the axes") if at is not None else axes
    new = axes_of(axes, x.ndim + len(axes))
    if len(set(new)) != len(new):
        raise ValueError(f"axes {axes} repeat")
    rest = iter(x.shape)
    return reshape(x, tuple(1 if i in new else next(rest) for i in range(x.ndim + len(new))))


@onnx_op("Transpose")
def transpose_op(x: Any, *, perm: Any = None) -> Any:
    return transpose(x, perm if perm is not None else tuple(reversed(range(x.ndim))))


@onnx_op("Expand")
def expand(x: Any, shape: Any, *, ctx: Any) -> Any:
    if array_of(shape) is None:
        return o.broadcast(x, shape=ctx.declared("the shape"))
    wanted = broadcast_shapes(tuple(x.shape), dims(shape, "the shape"))
    return x if tuple(x.shape) == wanted else o.broadcast(x, shape=wanted)


@onnx_op("Tile")
def tile(x: Any, repeats: Any) -> Any:
    """Each axis gains one of the repeats before it, is broadcast, and merged."""
    times = dims(repeats, "the repeats")
    return tiled(x, times)


def tiled(x: Any, times: tuple[Dim, ...]) -> Any:
    if len(times) != x.ndim:
        raise ValueError(f"{len(times)} repeats for rank {x.ndim}")
    apart = tuple(v for d in x.shape for v in (1, d))
    spread = tuple(v for n, d in zip(times, x.shape, strict=True) for v in (n, d))
    if apart == spread:
        return x
    out = o.broadcast(reshape(x, apart), shape=spread)
    return reshape(out, tuple(n * d for n, d in zip(times, x.shape, strict=True)))


@onnx_op("Concat")
def concat(*xs: Any, axis: int) -> Any:
    return o.concat(*xs, axis=axis_of(axis, xs[0].ndim)) if len(xs) > 1 else xs[0]


# ---- making ------------------------------------------------------------------------------------

@onnx_op("Constant")
def constant(*, value: Any = None, sparse_value: Any = None, value_float: float | None = None,
             value_floats: Any = None, value_int: int | None = None, value_ints: Any = None,
             value_string: Any = None, value_strings: Any = None) -> Any:
    if value_string is not None or value_strings is not None:
        raise Refused("strings are not numbers")
    for given, kind in ((value_float, np.float32), (value_floats, np.float32),
                        (value_int, np.int64), (value_ints, np.int64)):
        if given is not None:
            return np.asarray(given, kind)
    return sparse_value if value is None else value


@onnx_op("ConstantOfShape")
def constant_of_shape(shape: Any, *, value: Any = None, ctx: Any) -> Any:
    fill = np.zeros((), np.float32) if value is None else np.asarray(value).reshape(())
    wanted: Any = ctx.declared("the shape") if array_of(shape) is None else dims(
        shape, "the shape")
    if isinstance(shape, Tracer):
        return o.broadcast(tensor(fill, shape), shape=wanted)
    return np.broadcast_to(fill, wanted)


@onnx_op("Range")
def range_op(start: Any, limit: Any, delta: Any, *, stash_type: int = 1) -> Any:
    count: Dim
    given: list[Any] = [dims(x, "a bound of Range")[0] if dtype_of(x).is_integer
                        else one(x, "a bound of Range") for x in (start, limit, delta)]
    first, last, step = given
    row = dtype_of(start)
    if not any(has_symbols(v) for v in (first, last, step)):
        count = max(int(np.ceil((last - first) / step)), 0)
        if not isinstance(start, Tracer):
            return (first + np.arange(count) * step).astype(row.numpy)
    elif not isinstance(step, int) or step <= 0:
        raise Refused("Range with a symbolic bound and a step that is not positive")
    else:
        count = maximum(floordiv(last - first + step - 1, step), 0)
    line = iota(start, (count,), 0, row)
    line = line if step == 1 else o.mul(line, step)
    if isinstance(first, (int, float)):
        return line if first == 0 else o.add(line, first)
    return o.add(line, start)


@onnx_op("EyeLike")
def eye_like(x: Any, *, dtype: int | None = None, k: int = 0) -> Any:
    row = dtype_of(x) if dtype is None else element_type(dtype)
    return cast(diagonal_mask(x, k), row)


def diagonal_mask(x: Any, k: int) -> Any:
    """bool, of the last two axes' shape: column − row == k."""
    return o.eq(o.sub(*row_and_column(x)), -k)


def row_and_column(x: Any) -> tuple[Any, Any]:
    """Row and column numbers of the last two axes, [n, 1] and [1, m]."""
    n, m = x.shape[-2:]
    return iota(x, (n, 1), 0), iota(x, (1, m), 1)


def iota(like: Any, shape: tuple[Dim, ...], axis: int, row: Any = dtypes.int64) -> Any:
    """0, 1, 2, … along an axis, in the mode of `like`."""
    attrs = {"shape": tuple(shape), "axis": axis, "dtype": row}
    return like.builder.emit(o.iota, (), attrs) if isinstance(like, Tracer) else o.iota(**attrs)


@onnx_op("Trilu")
def trilu(x: Any, k: Any = None, *, upper: int = 1) -> Any:
    shift: Any = 0 if k is None else k if array_of(k) is None else one(k, "k")
    row, column = row_and_column(x)
    offset = o.sub(column, row)
    keep = o.ge(offset, shift) if upper else o.le(offset, shift)
    zero = False if dtype_of(x) is dtypes.bool_ else 0.0 if dtype_of(x).is_float else 0
    return o.select(keep, x, zero)
