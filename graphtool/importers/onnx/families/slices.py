"""Cutting and padding: Slice, Split, Pad, CenterCropPad, and block rearrangements."""

from __future__ import annotations

from typing import Any

import numpy as np

from graphtool.importers.onnx.driver.registry import onnx_op
from graphtool.importers.onnx.driver.values import (
    array_of,
    axes_of,
    axis_of,
    count_of,
    dim_value,
    dims,
    ints,
    python_number,
)
from graphtool.importers.onnx.families.computed_axes import per_axis
from graphtool.importers.onnx.families.shape import iota
from graphtool.importers.onnx.kit import Refused, agreed_entries, bind, dtypes, known_element, o
from graphtool.symbolic import Dim, bounds, floordiv, known, maximum, minimum

# ---- slices ------------------------------------------------------------------------------------

@onnx_op("Slice")
def slice_1(x: Any, *, starts: Any, ends: Any, axes: Any = None) -> Any:
    """`slice` between constant bounds; see `sliced`."""
    return sliced(x, starts, ends, axes if axes is not None else range(len(starts)),
                  (1,) * len(starts))


@onnx_op("Slice", since=10)
def slice_op(x: Any, starts: Any, ends: Any, axes: Any = None, steps: Any = None) -> Any:
    """`slice`, after `reverse` for negative steps.

    A bound that the run computes gives a symbolic size; a computed step gives a `gather`.
    """
    if axes is not None and array_of(axes) is None:
        return _slice_by_axes(x, starts, ends, axes, steps)
    count = count_of(starts)
    at = tuple(range(count)) if axes is None else axes_of(ints(axes, "the axes"), x.ndim)
    if all(s is None or array_of(s) is not None for s in (starts, ends, steps)):
        step = (1,) * count if steps is None else ints(steps, "the steps")
        return sliced(x, dims(starts, "the starts"), dims(ends, "the ends"), at, step)
    for k, axis in enumerate(at):
        numbers = [1 if v is None else _number_at(v, k) for v in (starts, ends, steps)]
        if isinstance(numbers[2], int) and all(
                isinstance(v, int) or _sign_known(v) for v in numbers):
            x = sliced(x, numbers[:1], numbers[1:2], (axis,), numbers[2:])
        else:
            start, end, step = (_scalar_at(v, k, x) for v in (starts, ends, steps))
            x = _computed_slice(x, axis, (start, end), step, numbers[2])
    return x


def _slice_by_axes(x: Any, starts: Any, ends: Any, axes: Any, steps: Any) -> Any:
    """x cut along all axes if the run computes the axes; most of them keep their whole range."""
    zero = x.builder.constant(np.zeros((), np.int64))
    first = per_axis(axes, x.ndim, starts, lambda a: zero)
    last = per_axis(axes, x.ndim, ends, lambda a: zero + dim_value(x.shape[a], x))
    one = zero.number(1)
    by = [one] * x.ndim if steps is None else per_axis(axes, x.ndim, steps, lambda a: one)
    for a in range(x.ndim):
        x = _computed_slice(x, a, (first[a], last[a]), by[a], 1 if steps is None else None)
    return x


def _sign_known(d: Any) -> bool:
    return d is not None and (known(d, "<", 0) is not None)


def _number_at(v: Any, k: int) -> Any:
    """Entry k if shape arithmetic determines it, else None."""
    return known_element(v, k)


def _scalar_at(v: Any, k: int, x: Any) -> Any:
    """Entry k as an int64 scalar."""
    if v is None:
        return x.builder.constant(np.zeros((), np.int64)).number(1)
    return v.take(0, k, k + 1).cast(dtypes.int64).reshape(())


def _computed_slice(x: Any, axis: int, ends: tuple[Any, Any], step: Any, by: Any) -> Any:
    """x between two bounds that the run computes: a `slice` if the step is positive and constant,
    else a `gather`."""
    d = x.shape[axis]
    n = dim_value(d, x)
    up = step > 0
    low = o.select(up, 0, step.number(-1))
    high = low + n
    a, b = (o.select(i < 0, i + n, i) for i in ends)
    a, b = o.max(o.min(a, high), 0), o.max(o.min(b, high), low)
    gap = b - a
    more = o.ne(o.rem(gap, step), 0) & o.eq(gap > 0, up)
    count = bind(o.max(gap / step + more.cast(dtypes.int64), 0), 0, d)
    if isinstance(by, int) and by > 0:
        first = bind(a, 0, d)
        return x.take(axis, first, minimum(first + count * by, d), by) if by > 1 else x.take(axis,
            first, first + count)
    return read_axis(x, axis, iota(x, (count,), 0) * step + a)


def sliced(x: Any, starts: Any, ends: Any, axes: Any, steps: Any) -> Any:
    """NumPy's slicing with clamped bounds, as `slice`; a negative step adds a `reverse`."""
    rank = x.ndim
    start: list[Dim] = [0] * rank
    limit: list[Dim] = list(x.shape)
    stride = [1] * rank
    flipped = []
    if len(set(axes_of(axes, rank))) != len(starts):
        raise ValueError(f"{len(starts)} starts are given for the axes {tuple(axes)}")
    for a, b, axis, step in zip(starts, ends, axes_of(axes, rank), steps, strict=True):
        d = x.shape[axis]
        if step < 0:  # x[a:b:-s] is flip(x)[d-1-a : d-1-b : s]
            flipped.append(axis)
            low, high = _clamped(a, d, -1), _clamped(b, d, -1)
            low = maximum(low, 0)
            a, b = maximum(d - 1 - low, 0), d - 1 - high  # of no elements there is no last one
        else:
            a, b = _clamped(a, d, 0), _clamped(b, d, 0)
        start[axis], limit[axis], stride[axis] = a, maximum(a, b), abs(step)
    x = o.reverse(x, axes=tuple(flipped)) if flipped else x
    if all(v == 0 for v in start) and limit == list(x.shape) and all(s == 1 for s in stride):
        return x
    return o.slice(x, start=tuple(start), limit=tuple(limit), strides=tuple(stride))


def _clamped(i: Dim, d: Dim, least: int) -> Dim:
    """A slice bound clamped to [least, d]; for negative steps to [−1, d − 1]."""
    most = d if least == 0 else d - 1
    if isinstance(i, int) and i >= 1 << 30:
        return most
    if isinstance(i, int) and i <= -(1 << 30):
        return least
    if known(i, "<", 0) is True or (isinstance(i, int) and i < 0):
        i = i + d
    elif bounds(i)[0] is None or (bounds(i)[0] or 0) < 0:
        raise Refused("a slice bound that may be negative or positive is not supported; bound "
                      "its size with --dynamic NAME=LO..HI")
    return maximum(minimum(i, most), least)


@onnx_op("Split")
def split_2(x: Any, sizes: Any = None, *, axis: int = 0, split: Any = None, ctx: Any) -> Any:
    """x cut into as many slices as the node has outputs."""
    given = split if split is not None else _split_sizes(x, sizes, axis, ctx)
    d = x.shape[axis_of(axis, x.ndim)]
    if given is None and isinstance(d, int) and d % ctx.outputs:
        raise ValueError(f"an axis of size {d} cannot be cut into {ctx.outputs} equal parts")
    return parts(x, axis_of(axis, x.ndim), given, ctx.outputs)


@onnx_op("Split", since=18)
def split_op(x: Any, sizes: Any = None, *, axis: int = 0, num_outputs: int | None = None,
             ctx: Any) -> Any:
    """x cut into `num_outputs` slices; the last may be smaller."""
    if sizes is not None and num_outputs is not None:
        raise ValueError("both the sizes and num_outputs are given")
    given = _split_sizes(x, sizes, axis, ctx)
    return parts(x, axis_of(axis, x.ndim), given, num_outputs or ctx.outputs)


def _split_sizes(x: Any, sizes: Any, axis: int, ctx: Any) -> Any:
    """The given sizes; if the run computes them, the declared sizes."""
    if sizes is None:
        return None
    at = axis_of(axis, x.ndim)
    rooms = [ctx.room(i) for i in range(ctx.outputs)]
    if array_of(sizes) is None and all(r is not None for r in rooms):
        return agreed_entries(sizes, [r[at] for r in rooms if r is not None], "the split sizes")
    return dims(sizes, "the split sizes", 0, x.shape[at])


def parts(x: Any, axis: int, sizes: Any, count: int) -> list[Any]:
    """x cut along an axis into the given sizes, or evenly with a smaller last part.

    Raises ValueError if the sizes do not add up.
    """
    d = x.shape[axis]
    if sizes is None:
        each = floordiv(d + count - 1, count)
        sizes = [each] * (count - 1) + [d - each * (count - 1)]
    out, at = [], 0
    for n in sizes:
        out.append(x.take(axis, at, at + n))
        at = at + n
    if known(at, "==", d) is False:
        raise ValueError(f"the sizes {tuple(sizes)} do not add up to {d}")
    return out


# ---- pad ---------------------------------------------------------------------------------------

@onnx_op("Pad", since=2)
def pad_2(x: Any, *, pads: Any, mode: str = "constant", value: float = 0.0) -> Any:
    """x padded by constant amounts; see `padded`."""
    return padded(x, pads, mode, value)


@onnx_op("Pad", since=11)
def pad(x: Any, pads: Any, value: Any = None, axes: Any = None, *, mode: str = "constant",
        ctx: Any) -> Any:
    """x padded by amounts that are inputs, for all axes or the given ones; see `padded`."""
    if axes is not None and array_of(axes) is None:
        pads, axes = _pads_by_axes(x, pads, axes), None
    at = tuple(range(x.ndim)) if axes is None else axes_of(ints(axes, "the axes"), x.ndim)
    amounts = dims(pads, "the pads", 0, [ctx.most(a) for a in (*at, *at)])
    if axes is not None:
        full: list[Dim] = [0] * (2 * x.ndim)
        for k, a in enumerate(at):
            full[a], full[a + x.ndim] = amounts[k], amounts[k + len(at)]
        amounts = tuple(full)
    return padded(x, amounts, mode, value)


def _pads_by_axes(x: Any, pads: Any, axes: Any) -> Any:
    """The padding of all axes if the run computes which axes are padded."""
    zero, n = x.builder.constant(np.zeros((), np.int64)), count_of(axes)
    ends = [per_axis(axes, x.ndim, pads.take(0, k, k + n), lambda a: zero) for k in (0, n)]
    return o.concat(*(v.reshape((1,)) for side in ends for v in side), axis=0)


def padded(x: Any, pads: Any, mode: str, value: Any) -> Any:
    """`pad` with a constant value; for the modes edge, reflect and wrap a `gather` for each axis.

    `pads` holds the amounts before all axes, then those behind them.
    """
    n = x.ndim
    lo, hi = tuple(pads[:n]), tuple(pads[n:])
    if len(hi) != n:
        raise ValueError(f"rank {n} needs {2 * n} pads, {len(pads)} are given")
    match mode:
        case "constant":
            return _constant_pad(x, lo, hi, value)
        case "edge" | "reflect" | "wrap":
            for axis in range(n):
                x = _line_pad(x, axis, lo[axis], hi[axis], mode)
            return x
    raise Refused(f"the mode {mode!r} is not supported")


def _constant_pad(x: Any, lo: Any, hi: Any, value: Any) -> Any:
    array = array_of(value) if not isinstance(value, float) else np.asarray(value)
    if value is None or array is not None:
        fill = 0.0 if array is None or not array.size else float(python_number(array))
        return o.pad(x, lo=lo, hi=hi, value=fill)
    inside = o.broadcast(o.eq(x, x).number(True).reshape(()), shape=tuple(x.shape))
    return o.select(o.pad(inside, lo=lo, hi=hi), o.pad(x, lo=lo, hi=hi), value.reshape(()))


def _line_pad(x: Any, axis: int, lo: Any, hi: Any, mode: str) -> Any:
    """x padded along one axis, by reading it at clamped, mirrored or wrapped positions."""
    d = x.shape[axis]
    if (lo, hi) == (0, 0):
        return x
    if not all(isinstance(v, int) for v in (lo, hi, d)):
        return _open_line_pad(x, axis, lo, hi, mode)
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


def _open_line_pad(x: Any, axis: int, lo: Dim, hi: Dim, mode: str) -> Any:
    """The same for symbolic sizes: the run computes the positions."""
    d = x.shape[axis]
    n = dim_value(d, x)
    i = iota(x, (lo + d + hi,), 0) - dim_value(lo, x)
    if mode == "edge":
        return read_axis(x, axis, o.max(o.min(i, dim_value(d - 1, x)), 0))
    if mode == "wrap":
        return read_axis(x, axis, o.mod(i, n))
    period = dim_value(maximum(2 * d - 2, 1), x)
    i = o.mod(i, period)
    return read_axis(x, axis, o.select(i >= n, period - i, i))


def read_axis(x: Any, axis: int, i: Any) -> Any:
    """x at positions along one axis, constant or computed, as a `gather`."""
    rest = [a for a in range(x.ndim) if a != axis]
    at = x.builder.constant(i.astype(np.int64)[:, None]) if isinstance(i,
        np.ndarray) else i.unsqueeze()
    y = o.gather(x, at, axes=(axis,))
    back = [1 + rest.index(a) if a != axis else 0 for a in range(x.ndim)]
    return y.transpose(back)


@onnx_op("CenterCropPad")
def center_crop_pad(x: Any, shape: Any, *, axes: Any = None, ctx: Any) -> Any:
    """x cropped or padded equally on both sides to the given sizes, as one `pad`."""
    room = ctx.room() if array_of(shape) is None else None
    if room is not None:
        axes = axes or tuple(range(x.ndim))
        wanted: tuple[Dim, ...] = agreed_entries(shape, [room[a] for a in axes], "the shape")
    else:
        wanted = dims(shape, "the shape")
    at = range(x.ndim) if axes is None else axes_of(axes, x.ndim)
    lo: list[Dim] = [0] * x.ndim
    hi: list[Dim] = [0] * x.ndim
    for a, want in zip(at, wanted, strict=True):
        gap = want - x.shape[a]  # half of it goes to the front, cut off towards 0
        lo[a] = floordiv(maximum(gap, 0), 2) - floordiv(maximum(-gap, 0), 2)
        hi[a] = gap - lo[a]
    return o.pad(x, lo=tuple(lo), hi=tuple(hi))


# ---- blocks ------------------------------------------------------------------------------------

@onnx_op("DepthToSpace")
def depth_to_space(x: Any, *, blocksize: int, mode: str = "DCR") -> Any:
    """Channels moved into blocks of pixels, as `reshape`, `transpose`, `reshape`."""
    n, c, h, w = x.shape
    b = blocksize
    inner = floordiv(c, b * b)
    if mode == "DCR":
        y = x.reshape((n, b, b, inner, h, w)).transpose((0, 3, 4, 1, 5, 2))
    else:
        y = x.reshape((n, inner, b, b, h, w)).transpose((0, 1, 4, 2, 5, 3))
    return y.reshape((n, inner, h * b, w * b))


@onnx_op("SpaceToDepth")
def space_to_depth(x: Any, *, blocksize: int, mode: str = "DCR") -> Any:
    """Blocks of pixels moved into channels, as `reshape`, `transpose`, `reshape`."""
    n, c, h, w = x.shape
    b = blocksize
    y = x.reshape((n, c, floordiv(h, b), b, floordiv(w, b), b))
    perm = (0, 3, 5, 1, 2, 4) if mode == "DCR" else (0, 1, 3, 5, 2, 4)
    return y.transpose(perm).reshape((n, c * b * b, floordiv(h, b), floordiv(w, b)))
