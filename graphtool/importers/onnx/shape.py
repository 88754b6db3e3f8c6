"""Shapes and movement: Reshape, Transpose, Slice, Pad, Concat, Split, Tile and their kin."""

from __future__ import annotations

from typing import Any

import numpy as np

from graphtool import dtypes
from graphtool.importers.onnx.dimensions import has_symbols
from graphtool.importers.onnx.reader import element_type
from graphtool.importers.onnx.registry import Refused, onnx_op
from graphtool.importers.onnx.values import (
    Known,
    array_of,
    axes_of,
    axis_of,
    cast,
    dims,
    dtype_of,
    ints,
    number,
    one,
    python_number,
    reshape,
    take,
    tensor,
    transpose,
)
from graphtool.ir.op import ops as o
from graphtool.ir.trace import Tracer
from graphtool.ops.common import broadcast_shapes
from graphtool.symbolic import (
    Dim,
    bounds,
    exact_quotient,
    floordiv,
    known,
    maximum,
    minimum,
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


# ---- slices ------------------------------------------------------------------------------------

@onnx_op("Slice")
def slice_1(x: Any, *, starts: Any, ends: Any, axes: Any = None) -> Any:
    return sliced(x, starts, ends, axes if axes is not None else range(len(starts)),
                  (1,) * len(starts))


@onnx_op("Slice", since=10)
def slice_op(x: Any, starts: Any, ends: Any, axes: Any = None, steps: Any = None) -> Any:
    first, last = dims(starts, "the starts"), dims(ends, "the ends")
    at = range(len(first)) if axes is None else ints(axes, "the axes")
    step = (1,) * len(first) if steps is None else ints(steps, "the steps")
    return sliced(x, first, last, at, step)


def sliced(x: Any, starts: Any, ends: Any, axes: Any, steps: Any) -> Any:
    """NumPy's slicing with clamping; a negative step reverses first."""
    rank = x.ndim
    start: list[Dim] = [0] * rank
    limit: list[Dim] = list(x.shape)
    stride = [1] * rank
    flipped = []
    for a, b, axis, step in zip(starts, ends, axes_of(axes, rank), steps, strict=True):
        d = x.shape[axis]
        if step < 0:  # x[a:b:-s] is flip(x)[d-1-a : d-1-b : s]
            flipped.append(axis)
            low, high = _clamped(a, d, -1), _clamped(b, d, -1)
            a, b = d - 1 - low, d - 1 - high
        else:
            a, b = _clamped(a, d, 0), _clamped(b, d, 0)
        start[axis], limit[axis], stride[axis] = a, maximum(a, b), abs(step)
    x = o.reverse(x, axes=tuple(flipped)) if flipped else x
    if all(v == 0 for v in start) and limit == list(x.shape) and all(s == 1 for s in stride):
        return x
    return o.slice(x, start=tuple(start), limit=tuple(limit), strides=tuple(stride))


def _clamped(i: Dim, d: Dim, least: int) -> Dim:
    """A slice bound brought into [least, d] (for negative steps [-1, d-1])."""
    most = d if least == 0 else d - 1
    if isinstance(i, int) and i >= 1 << 30:
        return most
    if isinstance(i, int) and i <= -(1 << 30):
        return least
    if known(i, "<", 0) is True or (isinstance(i, int) and i < 0):
        i = i + d
    elif bounds(i)[0] is None or (bounds(i)[0] or 0) < 0:
        raise Refused("a slice bound of unknown sign")
    return maximum(minimum(i, most), least)


@onnx_op("Split")
def split_2(x: Any, sizes: Any = None, *, axis: int = 0, split: Any = None, ctx: Any) -> Any:
    given = split if split is not None else (
        None if sizes is None else dims(sizes, "the split sizes"))
    return parts(x, axis_of(axis, x.ndim), given, ctx.outputs)


@onnx_op("Split", since=18)
def split_op(x: Any, sizes: Any = None, *, axis: int = 0, num_outputs: int | None = None,
             ctx: Any) -> Any:
    given = None if sizes is None else dims(sizes, "the split sizes")
    return parts(x, axis_of(axis, x.ndim), given, num_outputs or ctx.outputs)


def parts(x: Any, axis: int, sizes: Any, count: int) -> list[Any]:
    """x cut along an axis into the given sizes, or evenly with a smaller last one."""
    d = x.shape[axis]
    if sizes is None:
        each = floordiv(d + count - 1, count)
        sizes = [each] * (count - 1) + [d - each * (count - 1)]
    out, at = [], 0
    for n in sizes:
        out.append(take(x, axis, at, at + n))
        at = at + n
    if known(at, "==", d) is False:
        raise ValueError(f"the sizes {tuple(sizes)} do not add up to {d}")
    return out


# ---- pad ---------------------------------------------------------------------------------------

@onnx_op("Pad", since=2)
def pad_2(x: Any, *, pads: Any, mode: str = "constant", value: float = 0.0) -> Any:
    return padded(x, pads, mode, value)


@onnx_op("Pad", since=11)
def pad(x: Any, pads: Any, value: Any = None, axes: Any = None, *, mode: str = "constant") -> Any:
    amounts = dims(pads, "the pads")
    if axes is not None:
        at = axes_of(ints(axes, "the axes"), x.ndim)
        full: list[Dim] = [0] * (2 * x.ndim)
        for k, a in enumerate(at):
            full[a], full[a + x.ndim] = amounts[k], amounts[k + len(at)]
        amounts = tuple(full)
    return padded(x, amounts, mode, value)


def padded(x: Any, pads: Any, mode: str, value: Any) -> Any:
    n = x.ndim
    lo, hi = tuple(pads[:n]), tuple(pads[n:])
    if len(hi) != n:
        raise ValueError(f"{len(pads)} pads for rank {n}")
    match mode:
        case "constant":
            return _constant_pad(x, lo, hi, value)
        case "edge" | "reflect" | "wrap":
            for axis in range(n):
                x = _line_pad(x, axis, lo[axis], hi[axis], mode)
            return x
    raise Refused(f"the mode {mode!r}")


def _constant_pad(x: Any, lo: Any, hi: Any, value: Any) -> Any:
    array = array_of(value) if not isinstance(value, float) else np.asarray(value)
    if value is None or array is not None:
        fill = 0.0 if array is None or not array.size else float(python_number(array))
        return o.pad(x, lo=lo, hi=hi, value=fill)
    inside = o.broadcast(reshape(number(True, o.eq(x, x)), ()), shape=tuple(x.shape))
    return o.select(o.pad(inside, lo=lo, hi=hi), o.pad(x, lo=lo, hi=hi), reshape(value, ()))


def _line_pad(x: Any, axis: int, lo: Any, hi: Any, mode: str) -> Any:
    """One axis padded by reading it at folded positions."""
    d = x.shape[axis]
    if (lo, hi) == (0, 0):
        return x
    if not all(isinstance(v, int) for v in (lo, hi, d)):
        raise Refused(f"{mode} padding of a symbolic size")
    i = np.arange(-lo, d + hi)
    if mode == "edge":
        i = np.clip(i, 0, d - 1)
    elif mode == "wrap":
        i = i % d
    else:
        period = max(2 * (d - 1), 1)
        i = i % period
        i = np.where(i >= d, period - i, i) if d > 1 else i * 0
    return read_axis(x, axis, i)


def read_axis(x: Any, axis: int, i: Array) -> Any:
    """x at known positions along one axis."""
    rest = [a for a in range(x.ndim) if a != axis]
    y = o.gather(x, tensor(i.astype(np.int64)[:, None], x), axes=(axis,))
    back = [1 + rest.index(a) if a != axis else 0 for a in range(x.ndim)]
    return transpose(y, back)


@onnx_op("CenterCropPad")
def center_crop_pad(x: Any, shape: Any, *, axes: Any = None) -> Any:
    wanted = dims(shape, "the shape")
    at = range(x.ndim) if axes is None else axes_of(axes, x.ndim)
    lo: list[Dim] = [0] * x.ndim
    hi: list[Dim] = [0] * x.ndim
    for a, want in zip(at, wanted, strict=True):
        gap = want - x.shape[a]
        lo[a] = -floordiv(-gap, 2) if known(gap, "<", 0) is True else floordiv(gap, 2)
        hi[a] = gap - lo[a]
    return o.pad(x, lo=tuple(lo), hi=tuple(hi))


# ---- blocks ------------------------------------------------------------------------------------

@onnx_op("DepthToSpace")
def depth_to_space(x: Any, *, blocksize: int, mode: str = "DCR") -> Any:
    n, c, h, w = x.shape
    b = blocksize
    inner = floordiv(c, b * b)
    if mode == "DCR":
        y = transpose(reshape(x, (n, b, b, inner, h, w)), (0, 3, 4, 1, 5, 2))
    else:
        y = transpose(reshape(x, (n, inner, b, b, h, w)), (0, 1, 4, 2, 5, 3))
    return reshape(y, (n, inner, h * b, w * b))


@onnx_op("SpaceToDepth")
def space_to_depth(x: Any, *, blocksize: int, mode: str = "DCR") -> Any:
    n, c, h, w = x.shape
    b = blocksize
    y = reshape(x, (n, c, floordiv(h, b), b, floordiv(w, b), b))
    perm = (0, 3, 5, 1, 2, 4) if mode == "DCR" else (0, 1, 3, 5, 2, 4)
    return reshape(transpose(y, perm), (n, c * b * b, floordiv(h, b), floordiv(w, b)))


def is_known(x: Any) -> bool:
    return isinstance(x, (Known, np.ndarray))
