"""Shapes, constants, movement: Shape, Transpose, Concat, Constant, Range and their kin."""

from __future__ import annotations

from typing import Any

import numpy as np

from graphtool.importers.onnx.driver.computed import bind, fresh, known_element
from graphtool.importers.onnx.driver.values import (
    array_of,
    axis_of,
    dims,
    one,
)
from graphtool.importers.onnx.kit import Refused, agreed_entries, dtypes, element_type, o, onnx_op
from graphtool.io.weights import Array
from graphtool.ir.trace import like as beside
from graphtool.symbolic import (
    Dim,
    Poly,
    floordiv,
    maximum,
    product,
)


def dim_array(values: Any) -> Array:
    """Dimensions as a vector of objects; the driver converts it to int64 if it can."""
    out = np.empty(len(values), object)
    out[:] = values
    return out


def need_vector(x: Any, what: str) -> None:
    """Check that an input is a vector. Raises ValueError."""
    if x.ndim != 1:
        raise ValueError(f"{what} must be a vector, its rank is {x.ndim}")


# ---- asking for sizes --------------------------------------------------------------------------

@onnx_op("Shape")
def shape_of(x: Any, *, start: int = 0, end: int | None = None) -> Any:
    """The dimensions of x from `start` to `end`, as a constant vector."""
    return dim_array(tuple(x.shape)[start:end])


@onnx_op("Size")
def size_of(x: Any) -> Any:
    """The number of elements of x, as a constant."""
    return dim_array([product(x.shape)]).reshape(())


# ---- movement ----------------------------------------------------------------------------------

@onnx_op("Transpose")
def transpose_op(x: Any, *, perm: Any = None) -> Any:
    """`transpose`; without a permutation the axes are reversed."""
    return x.transpose(perm if perm is not None else tuple(reversed(range(x.ndim))))


@onnx_op("Concat")
def concat(*xs: Any, axis: int) -> Any:
    """`concat` along an axis; one input stays as it is."""
    return o.concat(*xs, axis=axis_of(axis, xs[0].ndim)) if len(xs) > 1 else xs[0]


# ---- making ------------------------------------------------------------------------------------

@onnx_op("Constant")
def constant(*, value: Any = None, sparse_value: Any = None, value_float: float | None = None,
             value_floats: Any = None, value_int: int | None = None, value_ints: Any = None,
             value_string: Any = None, value_strings: Any = None) -> Any:
    """The value of the one attribute that is given, as a constant."""
    several = (value, sparse_value, value_float, value_floats, value_int, value_ints, value_string,
               value_strings)
    if sum(v is not None for v in several) != 1:
        raise ValueError("a Constant has exactly one value")
    text = value_strings if value_string is None else value_string
    if text is not None:
        return np.asarray(text, dtypes.string.numpy)
    for given, kind in ((value_float, np.float32), (value_floats, np.float32),
                        (value_int, np.int64), (value_ints, np.int64)):
        if given is not None:
            return np.asarray(given, kind)
    return sparse_value if value is None else value


@onnx_op("ConstantOfShape")
def constant_of_shape(shape: Any, *, value: Any = None, ctx: Any) -> Any:
    """A constant of one element as a `broadcast` to the shape."""
    need_vector(shape, "the shape")
    fill = np.zeros((), np.float32) if value is None else np.asarray(value).reshape(())
    room = ctx.room() if array_of(shape) is None else None
    wanted: Any = agreed_entries(shape, room, "the shape") if room is not None else dims(
        shape, "the shape")
    return shape.builder.constant(fill).broadcast(wanted)


@onnx_op("Range")
def range_op(start: Any, limit: Any, delta: Any, *, stash_type: int = 1, ctx: Any) -> Any:
    """start, start + delta, … below limit: a constant, or `iota` scaled and shifted.

    Its size is symbolic if the bounds are.
    """
    count: Dim
    if any(array_of(x) is None and not _settled(x) for x in (start, limit, delta)):
        return _counted(start, limit, delta, ctx)
    first, last, step = given = [_bound(x) for x in (start, limit, delta)]
    row = start.dtype
    if not any(isinstance(v, Poly) for v in given):
        count = max(int(np.ceil((last - first) / step)), 0)
    elif not isinstance(step, int) or step == 0:
        raise Refused("Range with a symbolic bound needs a step that is a constant integer other "
                      "than 0")
    else:
        far, by = (last - first, step) if step > 0 else (first - last, -step)
        count = maximum(floordiv(far + by - 1, by), 0)
    line = iota(start, (count,), 0, row)
    line = line if step == 1 else line * step
    if isinstance(first, (int, float)):
        return line if first == 0 else line + first
    return line + start


def _bound(x: Any) -> Any:
    """A bound of Range: a size of the inputs, also as a float, or a number; a whole one as int."""
    array = array_of(x)
    if x.dtype.is_integer or (array is not None and array.dtype == object):
        return dims(x, "a bound of Range", None)[0]
    number = one(x, "a bound of Range")
    return int(number) if number.is_integer() else number


def _settled(x: Any) -> bool:
    return x.dtype.is_integer and known_element(x, 0) is not None


def _counted(start: Any, limit: Any, delta: Any, ctx: Any) -> Any:
    """start, start + delta, … below limit, if the run computes their number."""
    row = start.dtype
    start, limit, delta = (x.reshape(()) for x in (start, limit, delta))
    if row.is_float:
        wide = [x.cast(dtypes.float64) for x in (start, limit, delta)]
        count = o.ceil((wide[1] - wide[0]) / wide[2]).cast(dtypes.int64)
    else:
        gap, step = (x.cast(dtypes.int64) for x in (limit - start, delta))
        more = o.ne(o.rem(gap, step), 0) & o.eq(gap > 0, step > 0)
        count = gap / step + more.cast(dtypes.int64)
    n = bind(o.max(count, 0), 0, ctx.most(0))
    return iota(start, (n,), 0, row) * delta + start


@onnx_op("NonZero")
def non_zero(x: Any, *, ctx: Any) -> Any:
    """One column for each element that is not zero, by `nonzero`; their number is symbolic."""
    if x.numbers is not None and x.ndim:
        return np.stack(np.nonzero(x.numbers)).astype(np.int64)
    return o.nonzero(x, size=fresh(x, product(x.shape))).transpose((1, 0))


@onnx_op("EyeLike")
def eye_like(x: Any, *, dtype: int | None = None, k: int = 0) -> Any:
    """1 on the k-th diagonal and else 0, in x's shape: `iota`, `eq`, `cast`."""
    row = x.dtype if dtype is None else element_type(dtype)
    return diagonal_mask(x, k).cast(row)


def diagonal_mask(x: Any, k: int) -> Any:
    """Whether column − row equals k, as bool in the shape of the last two axes."""
    return o.eq(o.sub(*row_and_column(x)), -k)


def row_and_column(x: Any) -> tuple[Any, Any]:
    """Row and column numbers of the last two axes, [n, 1] and [1, m]."""
    n, m = x.shape[-2:]
    return iota(x, (n, 1), 0), iota(x, (1, m), 1)


def iota(like: Any, shape: tuple[Dim, ...], axis: int, row: Any = dtypes.int64) -> Any:
    """0, 1, 2, … along an axis, known if `like` is."""
    return beside(like, o.iota, shape=tuple(shape), axis=axis, dtype=row)


@onnx_op("Trilu")
def trilu(x: Any, k: Any = None, *, upper: int = 1) -> Any:
    """x above or below the k-th diagonal, else 0: a `select` by row and column numbers."""
    shift: Any = 0 if k is None else k if array_of(k) is None else one(k, "k")
    row, column = row_and_column(x)
    offset = column - row
    keep = offset >= shift if upper else offset <= shift
    zero = False if x.dtype is dtypes.bool_ else 0.0 if x.dtype.is_float else 0
    return o.select(keep, x, zero)
