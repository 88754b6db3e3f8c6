"""Shapes and movement: Reshape, Transpose, Expand, Tile, Concat, Range and related operators."""

from __future__ import annotations

from typing import Any

import numpy as np

from graphtool import dtypes
from graphtool import ops as o
from graphtool.importers.onnx.driver.computed import bind, entry, fresh
from graphtool.importers.onnx.driver.dimensions import has_symbols
from graphtool.importers.onnx.driver.reader import element_type
from graphtool.importers.onnx.driver.registry import Refused, onnx_op
from graphtool.importers.onnx.driver.values import (
    Known,
    array_of,
    axes_of,
    axis_of,
    cast,
    count_of,
    dim_tensor,
    dims,
    dtype_of,
    ints,
    known_entry,
    one,
    reshape,
    tensor,
    transpose,
)
from graphtool.io.weights import Array
from graphtool.ir.trace import Tracer
from graphtool.ops.common import broadcast_shapes
from graphtool.symbolic import (
    Dim,
    bounds,
    exact_quotient,
    floordiv,
    known,
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


# ---- reshape and its kin -----------------------------------------------------------------------

@onnx_op("Reshape")
def reshape_op(x: Any, shape: Any, *, allowzero: int = 0, ctx: Any) -> Any:
    """`reshape`; 0 is x's own size on that axis, −1 is what the other sizes leave."""
    need_vector(shape, "the shape")
    if array_of(shape) is None:
        room = ctx.room()
        return reshape(x, room if room is not None else _computed_shape(x, shape, allowzero))
    wanted = list(dims(shape, "the shape"))
    for i, d in enumerate(wanted):
        if isinstance(d, int) and d == 0 and not allowzero:
            wanted[i] = x.shape[i]
    open_axes = [i for i, d in enumerate(wanted) if isinstance(d, int) and d == -1]
    if len(open_axes) > 1:
        raise ValueError(f"{len(open_axes)} entries of the shape are -1, one at most is allowed")
    if open_axes:
        wanted[open_axes[0]] = 1
        have, rest = product(x.shape), product(wanted)
        wanted[open_axes[0]] = _quotient(have, rest)
        if bounds(rest)[0] != 0:  # an empty tensor has any sizes
            x.builder.require(have, rest * wanted[open_axes[0]])
    return reshape(x, tuple(wanted))


def _computed_shape(x: Any, shape: Any, allowzero: int) -> tuple[Dim, ...]:
    """A shape that the run computes; its last unknown entry follows from the number of elements.

    0 stands for x's own size there, −1 for the rest; both may appear only at run time.
    """
    count, total = count_of(shape), product(x.shape)
    out: list[Dim | None] = [known_entry(shape, i) for i in range(count)]
    for i, d in enumerate(out):
        if d == 0 and not allowzero:
            out[i] = x.shape[i]
    open_axes = [i for i, d in enumerate(out) if isinstance(d, int) and d == -1] or [
        i for i, d in enumerate(out) if d is None]
    filled = _filled(x, cast(shape, dtypes.int64), count, total, allowzero)
    rest: Dim = 1
    for i, d in enumerate(out):
        if i not in open_axes[-1:]:
            size = entry(filled, i, 0, total) if d is None else d
            out[i], rest = size, rest * size
    for i in open_axes[-1:]:
        out[i] = floordiv(total, maximum(rest, 1))
    return tuple(d for d in out if d is not None)


def _filled(x: Any, shape: Any, count: int, total: Dim, allowzero: int) -> Any:
    """The vector of sizes, with 0 and −1 replaced by the sizes that they stand for."""
    if not allowzero:
        own = Known(dim_array([*x.shape[:count], *[0] * (count - x.ndim)]), x.builder)
        shape = o.select(o.eq(shape, 0), own, shape)
    rest = o.eq(shape, -1)
    others = o.reduce_prod(o.select(rest, 1, shape), axes=(0,))
    left = o.div(reshape(dim_tensor(total, x.builder), (1,)), o.max(others, 1))
    return o.select(rest, left, shape)


def _quotient(total: Dim, rest: Dim) -> Dim:
    if isinstance(rest, int) and rest == 0:
        return 0
    exact = exact_quotient(total, rest)
    return floordiv(total, rest) if exact is None else exact


@onnx_op("Flatten")
def flatten(x: Any, *, axis: int = 1) -> Any:
    """x as a matrix, as `reshape`: the axes before `axis`, and the axes from there on."""
    if not -x.ndim <= axis <= x.ndim:
        raise ValueError(f"axis {axis} is out of range for rank {x.ndim}")
    at = axis if axis >= 0 else axis + x.ndim
    return reshape(x, (product(x.shape[:at]), product(x.shape[at:])))


@onnx_op("Squeeze")
def squeeze(x: Any, at: Any = None, *, axes: Any = None, ctx: Any) -> Any:
    """`reshape` without the given axes, or without all axes of size 1."""
    room = ctx.room()
    if at is not None and array_of(at) is None and room is not None:
        return reshape(x, room)
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
def unsqueeze(x: Any, at: Any = None, *, axes: Any = None, ctx: Any) -> Any:
    """`reshape` with axes of size 1 at the given places."""
    room = ctx.room()
    if at is not None and array_of(at) is None and room is not None:
        return reshape(x, room)
    axes = ints(at, "the axes") if at is not None else axes
    new = axes_of(axes, x.ndim + len(axes))
    if len(set(new)) != len(new):
        raise ValueError(f"axes {axes} repeat")
    rest = iter(x.shape)
    return reshape(x, tuple(1 if i in new else next(rest) for i in range(x.ndim + len(new))))


@onnx_op("Transpose")
def transpose_op(x: Any, *, perm: Any = None) -> Any:
    """`transpose`; without a permutation the axes are reversed."""
    return transpose(x, perm if perm is not None else tuple(reversed(range(x.ndim))))


@onnx_op("Expand")
def expand(x: Any, shape: Any, *, ctx: Any) -> Any:
    """`broadcast` to the common shape of x and `shape`."""
    need_vector(shape, "the shape")
    if array_of(shape) is None:
        room = ctx.room()
        return o.broadcast(x, shape=room if room is not None else _spread_shape(x, shape))
    wanted = broadcast_shapes(tuple(x.shape), dims(shape, "the shape"))
    return x if tuple(x.shape) == wanted else o.broadcast(x, shape=wanted)


def _spread_shape(x: Any, shape: Any) -> tuple[Dim, ...]:
    """x's shape broadcast to a computed one: where x has size 1, the size is symbolic."""
    count = count_of(shape)
    own = (1,) * (count - x.ndim) + tuple(x.shape)
    out = list(own)
    for i in range(count):
        at = i + len(own) - count
        d = known_entry(shape, i)
        if d is not None:
            (out[at],) = broadcast_shapes((own[at],), (d,))
        elif own[at] == 1:
            out[at] = entry(shape, i)
        elif not isinstance(own[at], int):
            raise Refused(f"the size {own[at]} broadcast to one that is computed")
    return tuple(out)


@onnx_op("Tile")
def tile(x: Any, repeats: Any, *, ctx: Any) -> Any:
    """x repeated along each axis, as `reshape`, `broadcast`, `reshape`."""
    room = ctx.room()
    if array_of(repeats) is None and room is not None and 0 not in x.shape:
        return tiled(x, tuple(floordiv(n, d) for n, d in zip(room, x.shape, strict=True)))
    return tiled(x, dims(repeats, "the repeats"))


def tiled(x: Any, times: tuple[Dim, ...]) -> Any:
    """The same for repeats that are dimensions. Raises ValueError if their number is not x's
    rank."""
    if len(times) != x.ndim or any(isinstance(n, int) and n < 0 for n in times):
        raise ValueError(f"the repeats {times} for rank {x.ndim}")
    apart = tuple(v for d in x.shape for v in (1, d))
    spread = tuple(v for n, d in zip(times, x.shape, strict=True) for v in (n, d))
    if apart == spread:
        return x
    out = o.broadcast(reshape(x, apart), shape=spread)
    return reshape(out, tuple(n * d for n, d in zip(times, x.shape, strict=True)))


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
    wanted: Any = room if room is not None else dims(shape, "the shape")
    if isinstance(shape, Tracer):
        return o.broadcast(tensor(fill, shape), shape=wanted)
    return np.broadcast_to(fill, wanted)


@onnx_op("Range")
def range_op(start: Any, limit: Any, delta: Any, *, stash_type: int = 1, ctx: Any) -> Any:
    """start, start + delta, … below limit: a constant, or `iota` scaled and shifted.

    Its size is symbolic if the bounds are.
    """
    count: Dim
    if any(array_of(x) is None and not _settled(x) for x in (start, limit, delta)):
        return _counted(start, limit, delta, ctx)
    given: list[Any] = [dims(x, "a bound of Range", None)[0] if dtype_of(x).is_integer
                        else one(x, "a bound of Range") for x in (start, limit, delta)]
    first, last, step = given
    row = dtype_of(start)
    if not any(has_symbols(v) for v in (first, last, step)):
        count = max(int(np.ceil((last - first) / step)), 0)
        if not isinstance(start, Tracer):
            return (first + np.arange(count) * step).astype(row.numpy)
    elif not isinstance(step, int) or step == 0:
        raise Refused("Range with a symbolic bound and a step that is symbolic or 0")
    else:
        far, by = (last - first, step) if step > 0 else (first - last, -step)
        count = maximum(floordiv(far + by - 1, by), 0)
    line = iota(start, (count,), 0, row)
    line = line if step == 1 else o.mul(line, step)
    if isinstance(first, (int, float)):
        return line if first == 0 else o.add(line, first)
    return o.add(line, start)


def _settled(x: Any) -> bool:
    return dtype_of(x).is_integer and known_entry(x, 0) is not None


def _counted(start: Any, limit: Any, delta: Any, ctx: Any) -> Any:
    """start, start + delta, … below limit, if the run computes their number."""
    row = dtype_of(start)
    start, limit, delta = (reshape(x, ()) for x in (start, limit, delta))
    if row.is_float:
        wide = [cast(x, dtypes.float64) for x in (start, limit, delta)]
        count = cast(o.ceil(o.div(o.sub(wide[1], wide[0]), wide[2])), dtypes.int64)
    else:
        gap, step = (cast(x, dtypes.int64) for x in (o.sub(limit, start), delta))
        more = o.and_(o.ne(o.rem(gap, step), 0), o.eq(o.gt(gap, 0), o.gt(step, 0)))
        count = o.add(o.div(gap, step), cast(more, dtypes.int64))
    n = bind(o.max(count, 0), 0, ctx.most(0))
    return o.add(o.mul(iota(start, (n,), 0, row), delta), start)


@onnx_op("NonZero")
def non_zero(x: Any, *, ctx: Any) -> Any:
    """One column for each element that is not zero, by `nonzero`; their number is symbolic."""
    if not isinstance(x, Tracer):
        return np.stack(np.nonzero(x)).astype(np.int64) if x.ndim else np.zeros(
            (0, int(bool(x))), np.int64)
    return transpose(o.nonzero(x, size=fresh(x, product(x.shape))), (1, 0))


@onnx_op("EyeLike")
def eye_like(x: Any, *, dtype: int | None = None, k: int = 0) -> Any:
    """1 on the k-th diagonal and else 0, in x's shape: `iota`, `eq`, `cast`."""
    row = dtype_of(x) if dtype is None else element_type(dtype)
    return cast(diagonal_mask(x, k), row)


def diagonal_mask(x: Any, k: int) -> Any:
    """Whether column − row equals k, as bool in the shape of the last two axes."""
    return o.eq(o.sub(*row_and_column(x)), -k)


def row_and_column(x: Any) -> tuple[Any, Any]:
    """Row and column numbers of the last two axes, [n, 1] and [1, m]."""
    n, m = x.shape[-2:]
    return iota(x, (n, 1), 0), iota(x, (1, m), 1)


def iota(like: Any, shape: tuple[Dim, ...], axis: int, row: Any = dtypes.int64) -> Any:
    """0, 1, 2, … along an axis: a Tracer if `like` is one, else an array."""
    attrs = {"shape": tuple(shape), "axis": axis, "dtype": row}
    return like.builder.emit(o.iota, (), attrs) if isinstance(like, Tracer) else o.iota(**attrs)


@onnx_op("Trilu")
def trilu(x: Any, k: Any = None, *, upper: int = 1) -> Any:
    """x above or below the k-th diagonal, else 0: a `select` by row and column numbers."""
    shift: Any = 0 if k is None else k if array_of(k) is None else one(k, "k")
    row, column = row_and_column(x)
    offset = o.sub(column, row)
    keep = o.ge(offset, shift) if upper else o.le(offset, shift)
    zero = False if dtype_of(x) is dtypes.bool_ else 0.0 if dtype_of(x).is_float else 0
    return o.select(keep, x, zero)
