"""DFT and STFT as products with tables of cosines and sines; mel weights. Lengths must be known.

The tables cost n² entries: fine for the frames that models use, not meant for long transforms.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from graphtool.importers.onnx.reader import element_type
from graphtool.importers.onnx.registry import Refused, onnx_op
from graphtool.importers.onnx.values import (
    axis_of,
    dtype_of,
    ints,
    one,
    reshape,
    take,
    tensor,
    transpose,
)
from graphtool.ir.op import ops as o

LONGEST = 4096


@onnx_op("DFT", since=17)
def dft_17(x: Any, length: Any = None, *, axis: int = 1, inverse: int = 0,
           onesided: int = 0) -> Any:
    return dft(x, axis_of(axis, x.ndim), length, bool(inverse), bool(onesided))


@onnx_op("DFT", since=20)
def dft_20(x: Any, length: Any = None, axis: Any = None, *, inverse: int = 0,
           onesided: int = 0) -> Any:
    at = -2 if axis is None else ints(axis, "the axis")[0]
    return dft(x, axis_of(at, x.ndim), length, bool(inverse), bool(onesided))


def dft(x: Any, axis: int, length: Any, inverse: bool, onesided: bool) -> Any:
    """x […, n, …, 1 or 2] along an axis; the last axis holds real and imaginary parts."""
    have = x.shape[axis]
    half = inverse and onesided
    if length is not None:
        n = ints(length, "the length")[0]
    elif isinstance(have, int):
        n = (have - 1) * 2 if half else have
    else:
        raise Refused("a transform of symbolic length")
    if not 0 < n <= LONGEST:
        raise Refused(f"a transform of length {n}")
    rows = n // 2 + 1 if half else n
    x = _fitted(x, axis, rows)
    order = [a for a in range(x.ndim) if a not in (axis, x.ndim - 1)]
    parts = [reshape(take(x, x.ndim - 1, k, k + 1), tuple(x.shape[:-1]))
             for k in range(x.shape[-1])]
    parts = [transpose(p, (*order, axis)) for p in parts]
    real, imaginary = _transformed(parts, n, inverse, onesided)
    out = [real] if half else [real, imaginary]
    joined = o.concat(*(reshape(p, (*p.shape, 1)) for p in out), axis=real.ndim)
    perm = list(range(len(order)))
    perm.insert(axis, len(order))
    return transpose(joined, (*perm, len(order) + 1))


def _fitted(x: Any, axis: int, rows: int) -> Any:
    """Cut, or filled with zeros, to `rows` entries."""
    have = x.shape[axis]
    if have == rows:
        return x
    hi = tuple(rows - have if a == axis else 0 for a in range(x.ndim))
    return o.pad(x, lo=(0,) * x.ndim, hi=hi)


def _transformed(parts: list[Any], n: int, inverse: bool, onesided: bool) -> tuple[Any, Any]:
    half = inverse and onesided
    k, t = np.arange(n // 2 + 1), np.arange(n)
    if half:  # a spectrum's other half is the conjugate of this one
        angle = 2 * np.pi * np.outer(k, t) / n
        weight = np.where((k == 0) | (2 * k == n), 1.0, 2.0)[:, None] / n
        cos, sin = weight * np.cos(angle), weight * np.sin(angle)
    else:
        angle = 2 * np.pi * (np.outer(t, k if onesided else t) % n) / n
        scale = 1 / n if inverse else 1.0
        cos, sin = scale * np.cos(angle), scale * np.sin(angle) * (1 if inverse else -1)
    flat = [p if p.ndim > 1 else reshape(p, (1, *p.shape)) for p in parts]
    kind = dtype_of(parts[0]).numpy
    cosines, sines = tensor(cos.astype(kind), parts[0]), tensor(sin.astype(kind), parts[0])
    real, imaginary = o.matmul(flat[0], cosines), o.matmul(flat[0], sines)
    if len(flat) > 1:
        real = real - o.matmul(flat[1], sines)
        imaginary = imaginary + o.matmul(flat[1], cosines)
    if parts[0].ndim == 1:
        real, imaginary = (reshape(v, tuple(v.shape[1:])) for v in (real, imaginary))
    return real, imaginary


@onnx_op("STFT", since=17)
def stft(x: Any, frame_step: Any, window: Any = None, frame_length: Any = None, *,
         onesided: int = 1) -> Any:
    """signal [B, L, 1 or 2] → [B, frames, bins, 2]"""
    step = ints(frame_step, "the frame step")[0]
    n = ints(frame_length, "the frame length")[0] if frame_length is not None else window.shape[0]
    if not isinstance(x.shape[1], int) or not isinstance(n, int):
        raise Refused("frames of a symbolic length")
    count = (x.shape[1] - n) // step + 1
    at = (np.arange(count)[:, None] * step + np.arange(n)[None]).reshape(-1, 1)
    frames = o.gather(x, tensor(at, x), axes=(1,))  # [count·n, B, parts]
    frames = transpose(reshape(frames, (count, n, x.shape[0], x.shape[2])), (2, 0, 1, 3))
    if window is not None:
        frames = frames * reshape(window, (1, 1, n, 1))
    return dft(frames, 2, None, False, bool(onesided))


@onnx_op("MelWeightMatrix", since=17)
def mel_weight_matrix(bins: Any, length: Any, rate: Any, low: Any, high: Any, *,
                      output_datatype: int = 1) -> Any:
    """Triangles evenly spaced on the mel scale, 2595·log₁₀(1 + f/700)."""
    n, size, hertz = (int(one(v, "a parameter of the mel matrix")) for v in (bins, length, rate))
    edges = [2595 * np.log10(1 + float(one(f, "an edge frequency")) / 700) for f in (low, high)]
    mel = np.arange(n + 2) * (edges[1] - edges[0]) / (n + 2) + edges[0]
    corner = ((size + 1) * (700 * (10 ** (mel / 2595) - 1)) // hertz).astype(np.int64)
    out = np.zeros((size // 2 + 1, n))
    for i in range(n):
        low_at, top, high_at = (int(c) for c in corner[i:i + 3])
        if top == low_at:
            out[top, i] = 1
        else:
            line = np.arange(low_at, top + 1)
            out[line, i] = (line - low_at) / (top - low_at)
        if high_at > top:
            line = np.arange(top, high_at)
            out[line, i] = (high_at - line) / (high_at - top)
    return out.astype(element_type(output_datatype).numpy)
