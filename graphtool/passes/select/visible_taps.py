"""Removes taps of a convolution that read only padding: they add nothing if they are finite.

With dilation, or with images smaller than the window, these are most of the taps.
"""

from __future__ import annotations

from typing import Any

from graphtool import ops as o
from graphtool.ir.trace import Tracer
from graphtool.symbolic import Dim

Pads = tuple[tuple[Any, Any], ...]


def visible(size: Dim, lo: Dim, out: Dim, taps: int, stride: int,
            dilation: int) -> tuple[int, int]:
    """The first tap along an axis that reads one of `size` elements after `lo` zeros, and the
    number of such taps."""
    if not (isinstance(size, int) and isinstance(lo, int) and isinstance(out, int)):
        return 0, taps
    seen = [k for k in range(taps)
            if any(0 <= i * stride + k * dilation - lo < size for i in range(out))]
    return (seen[0], seen[-1] + 1 - seen[0]) if seen else (0, taps)


def trimmed(x: Tracer, w: Tracer, padding: Pads, strides: Any,
            dilation: Any) -> tuple[Tracer, Tracer, Pads]:
    """Image [N,H,W,C], filters [O,C,KH,KW] and padding without the taps that read only padding."""
    start, limit = [0] * 4, list(w.shape)
    crop, end, left = [0] * 4, list(x.shape), list(padding)
    for axis, ((lo, hi), s, d) in enumerate(zip(padding, strides, dilation, strict=True)):
        size, taps = x.shape[1 + axis], w.shape[2 + axis]
        if not isinstance(taps, int) or not all(isinstance(n, int) for n in (size, lo, hi)):
            continue
        out = (size + lo + hi - (taps - 1) * d - 1) // s + 1
        first, count = visible(size, lo, out, taps, s, d)
        if count == taps:
            continue
        start[2 + axis], limit[2 + axis] = first, first + count
        lo = lo - first * d
        hi = (out - 1) * s + (count - 1) * d + 1 - size - lo
        crop[1 + axis], end[1 + axis] = max(0, -lo), size + min(0, hi)
        left[axis] = (max(0, lo), max(0, hi))
    if limit == list(w.shape) and not any(start):
        return x, w, padding
    w = o.slice(w, start=tuple(start), limit=tuple(limit), strides=(1,) * 4)
    if any(crop) or end != list(x.shape):
        x = o.slice(x, start=tuple(crop), limit=tuple(end), strides=(1,) * 4)
    return x, w, tuple(left)
