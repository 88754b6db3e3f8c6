"""DFT and STFT by the op `fourier`, also of open lengths; windows and mel weights."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from graphtool import dtypes
from graphtool.front import Refused
from graphtool.importers.onnx.driver.claims import (
    agreed,
    agreed_entries,
    agreed_truth,
    declared_size,
)
from graphtool.importers.onnx.driver.reader import element_type
from graphtool.importers.onnx.driver.registry import onnx_op
from graphtool.importers.onnx.families.computed_axes import some
from graphtool.importers.onnx.families.shape import iota
from graphtool.importers.onnx.kit import array_of, axis_of, dim_tensor, dim_value, dims, ints, o
from graphtool.ops.spectrum import is_smooth
from graphtool.symbolic import Dim, floordiv, minimum

LONGEST = 4096  # of lines that may be multiplied by a table, which has n² entries


# ---- transforms --------------------------------------------------------------------------------

@onnx_op("DFT", since=17)
def dft_17(x: Any, length: Any = None, *, axis: int = 1, inverse: int = 0, onesided: int = 0,
           ctx: Any) -> Any:
    """The transform over a constant axis; see `dft`."""
    at = axis_of(axis, x.ndim)
    n = _length(x, at, length, bool(inverse), bool(onesided), ctx.room())
    return dft(x, at, n, bool(inverse), bool(onesided))


@onnx_op("DFT", since=20)
def dft_20(x: Any, length: Any = None, axis: Any = None, *, inverse: int = 0, onesided: int = 0,
           ctx: Any) -> Any:
    """The transform over an axis that is an input.

    If the run computes the axis, all axes that the result's shape allows are transformed, and
    `select` takes one.
    """
    if axis is None or array_of(axis) is not None:
        at = -2 if axis is None else ints(axis, "the axis")[0]
        return dft_17(x, length, axis=at, inverse=inverse, onesided=onesided, ctx=ctx)
    how, room = (bool(inverse), bool(onesided)), ctx.room()
    rows = {a: _length(x, a, length, *how, room) for a in range(x.ndim - 1)}
    shapes = {a: _shape(x, a, n, *how) for a, n in rows.items()}
    chosen = [a for a, s in shapes.items() if s == (room or shapes[0])]
    if not chosen or (room is None and len(chosen) < len(rows)):
        raise Refused("a transform over a computed axis is supported only if the shape that the "
                      "model declares determines the axis")
    axis = axis.reshape(())
    here = {a: o.eq(axis, a) | o.eq(axis, a - x.ndim) for a in chosen}
    agreed_truth(some(list(here.values())), "that the axis is one of those that are possible")
    y = dft(x, chosen[0], rows[chosen[0]], *how)
    for a in chosen[1:]:
        y = o.select(here[a], dft(x, a, rows[a], *how), y)
    return y


def _length(x: Any, axis: int, length: Any, inverse: bool, onesided: bool,
            room: tuple[int, ...] | None) -> Dim:
    """How many points are transformed."""
    if length is None:
        have: Dim = x.shape[axis]
        return (have - 1) * 2 if inverse and onesided else have
    if array_of(length) is None and room is not None and (inverse or not onesided):
        return agreed(length, room[axis], "the length")
    return dims(length, "the length", 1, None if room is None else 2 * room[axis])[0]


def _shape(x: Any, axis: int, n: Dim, inverse: bool, onesided: bool) -> tuple[Dim, ...]:
    """The shape of the result."""
    kept = floordiv(n, 2) + 1 if onesided and not inverse else n
    return (*x.shape[:axis], kept, *x.shape[axis + 1:-1], 1 if inverse and onesided else 2)


def dft(x: Any, axis: int, n: Dim, inverse: bool, onesided: bool) -> Any:
    """x […, n, …, 1 or 2] transformed along an axis by `fourier`, or by `fourier_real` back from
    half a spectrum.

    The last axis holds real and imaginary parts.
    """
    half = inverse and onesided
    if isinstance(n, int) and (n < 1 or (n > LONGEST and not is_smooth(n))):
        raise Refused(f"a transform of length {n} is not supported; the length must be from 1 to "
                      f"{LONGEST}, or have the factors 2, 3 and 5 only")
    if not isinstance(x.shape[-1], int):
        raise Refused("the last axis has an open size; it must hold 1 or 2 parts of each number")
    x = _fitted(x, axis, floordiv(n, 2) + 1 if half else n)
    order = [a for a in range(x.ndim) if a not in (axis, x.ndim - 1)]
    parts = [x.take(x.ndim - 1, k, k + 1).reshape(tuple(x.shape[:-1])) for k in range(x.shape[-1])]
    parts = [p.transpose((*order, axis)) for p in parts]
    if half:
        real, imaginary = parts if len(parts) > 1 else (*parts, o.broadcast(
            x.number(0), shape=parts[0].shape))
        out = [o.fourier_real(real, imaginary, size=n)]
    else:
        out = o.fourier(*parts, inverse=inverse, half=onesided)
    out = [y / x.number(n) for y in out] if inverse else out
    joined = o.concat(*(p.unsqueeze() for p in out), axis=out[0].ndim)
    perm = list(range(len(order)))
    perm.insert(axis, len(order))
    return joined.transpose((*perm, len(order) + 1))


def _fitted(x: Any, axis: int, rows: Dim) -> Any:
    """x cut to `rows` entries, or padded with zeros."""
    have = x.shape[axis]
    if have == rows:
        return x
    kept = minimum(have, rows)
    x = x if kept == have else x.take(axis, 0, kept)
    if kept == rows:
        return x
    hi = tuple(rows - kept if a == axis else 0 for a in range(x.ndim))
    return o.pad(x, lo=(0,) * x.ndim, hi=hi)


@onnx_op("STFT", since=17)
def stft(x: Any, frame_step: Any, window: Any = None, frame_length: Any = None, *,
         onesided: int = 1, ctx: Any) -> Any:
    """The transforms of overlapping frames: x [B, L, 1 or 2] → [B, frames, bins, 2].

    The frames are a `gather` from x.
    """
    room, signal = ctx.room(), x.shape[1]
    n: Dim = window.shape[0] if window is not None else signal
    if frame_length is not None and (window is None or array_of(frame_length) is not None):
        n = dims(frame_length, "the frame length", 1, signal)[0]
    if array_of(frame_step) is not None and isinstance(n, int) and isinstance(signal, int):
        step = ints(frame_step, "the frame step")[0]
        starts = np.arange((signal - n) // step + 1)[:, None] * step
        at = x.builder.constant((starts + np.arange(n)[None])[:, :, None])
    elif array_of(frame_step) is not None:
        step, rest = ints(frame_step, "the frame step")[0], signal - n
        x.builder.fits(rest)
        at = _positions(x, floordiv(rest, step) + 1, n, step)
    else:
        at = _frames(x, n, frame_step.cast(dtypes.int64).reshape(()), None
                     if room is None else room[1])
    frames = o.gather(x, at, axes=(1,)).transpose((2, 0, 1, 3))  # [B, frames, n, parts]
    if window is not None:
        frames = frames * window.reshape((1, 1, n, 1))
    return dft(frames, 2, n, False, bool(onesided))


def _frames(x: Any, n: Dim, step: Any, count: int | None) -> Any:
    """The positions of each frame, [frames, n, 1]."""
    rest = dim_tensor(x.shape[1], x.builder) - dim_value(n, x)
    frames = declared_size(o.max(rest / step + 1, 0), count, "the number of frames", 0, x.shape[1])
    return _positions(x, frames, n, step)


def _positions(x: Any, frames: Dim, n: Dim, step: Any) -> Any:
    return (iota(x, (frames, 1), 0) * step + iota(x, (1, n), 1)).reshape((frames, n, 1))


# ---- windows -----------------------------------------------------------------------------------

# the weights of 1, cos(2πi/N), cos(4πi/N)
_WINDOWS = {"HannWindow": (0.5, -0.5, 0.0), "HammingWindow": (25 / 46, -21 / 46, 0.0),
            "BlackmanWindow": (0.42, -0.5, 0.08)}


def _window(name: str) -> Any:
    def handler(size: Any, *, output_datatype: int = 1, periodic: int = 1, ctx: Any) -> Any:
        room = ctx.room() if array_of(size) is None else None
        n = agreed(size, room[0], "the size") if room is not None else dims(size, "the size")[0]
        whole = size.reshape(()).cast(dtypes.float64)
        angle = iota(size, (n,), 0, dtypes.float64) * (2 * math.pi) / (
            whole if periodic else whole - 1.0)
        one, first, second = _WINDOWS[name]
        y = o.cos(angle) * first + one
        y = y + o.cos(angle * 2.0) * second if second else y
        return y.cast(element_type(output_datatype))
    return handler


for _name in _WINDOWS:
    onnx_op(_name, since=17)(_window(_name))


def _declared(length: Any, bins: Any, room: tuple[int, ...]) -> tuple[Dim, Dim]:
    """The declared rows and columns, after a check of those inputs that the run computes."""
    spectrum = length.reshape((1,)).cast(dtypes.int64) / 2 + 1
    both = o.concat(spectrum, bins.reshape((1,)).cast(dtypes.int64), axis=0)
    rows, n = agreed_entries(both, room, "the size")
    return rows, n


@onnx_op("MelWeightMatrix", since=17)
def mel_weight_matrix(bins: Any, length: Any, rate: Any, low: Any, high: Any, *,
                      output_datatype: int = 1, ctx: Any) -> Any:
    """Triangular weights, evenly spaced on the mel scale 2595·log₁₀(1 + f/700):
    [length / 2 + 1, bins]."""
    room = ctx.room() if any(array_of(v) is None for v in (bins, length)) else None
    rows, n = (floordiv(dims(length, "the length")[0], 2) + 1,
               dims(bins, "the number of bins")[0]) if room is None else _declared(
                   length, bins, room)
    count, size, hertz, *edges = (v.reshape(()).cast(dtypes.float64)
                                  for v in (bins, length, rate, low, high))
    first, last = (o.log1p(f * (1 / 700)) * (2595 / math.log(10)) for f in edges)
    like = next((v for v in (bins, length, rate, low, high) if array_of(v) is None), bins)

    def corner(k: int) -> Any:
        """The row at which the triangles' low (0), top (1) or high (2) corners lie."""
        mel = (iota(like, (1, n), 1, dtypes.float64) + float(k)) * (
            (last - first) / (count + 2.0)) + first
        frequency = o.expm1(mel * (math.log(10) / 2595)) * 700.0
        return o.floor((size + 1.0) * frequency / hertz)
    line = iota(like, (rows, 1), 0, dtypes.float64)
    start, top, end = map(corner, range(3))
    up = o.select(o.eq(top, start), 1.0, (line - start) / o.max(top - start, 1.0))
    down = (end - line) / o.max(end - top, 1.0)
    y = o.select((line >= top) & (line < end), down,
                 o.select((line >= start) & (line <= top), up, 0.0))
    return y.cast(element_type(output_datatype))
