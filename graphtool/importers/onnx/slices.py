"""Cutting and padding: Slice, Split, Pad, CenterCropPad, and the block rearrangements."""

from __future__ import annotations

from typing import Any

import numpy as np

from graphtool.importers.onnx.registry import Refused, onnx_op
from graphtool.importers.onnx.values import (
    array_of,
    axes_of,
    axis_of,
    dims,
    ints,
    number,
    python_number,
    reshape,
    take,
    tensor,
    transpose,
)
from graphtool.ir.op import ops as o
from graphtool.symbolic import Dim, bounds, floordiv, known, maximum, minimum
from graphtool.weights import Array

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
