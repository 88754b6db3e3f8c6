"""Removes taps of a convolution that read only padding: they add nothing if they are finite.

With dilation, or with images smaller than the window, these are most of the taps. Each output of
an image of one pixel sees one tap, so all of them are one product.
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
            dilation: Any) -> tuple[Tracer, Tracer, Pads] | None:
    """Image [N,H,W,C], filters [O,C,KH,KW] and padding without the taps that read only padding;
    None if there are none."""
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
        return None
    w = o.slice(w, start=tuple(start), limit=tuple(limit), strides=(1,) * 4)
    if any(crop) or end != list(x.shape):
        x = o.slice(x, start=tuple(crop), limit=tuple(end), strides=(1,) * 4)
    return x, w, tuple(left)


def of_one_pixel(x: Tracer, w: Any, a: Any) -> bool:
    """Whether each output is computed from an image of one pixel and one tap: most of its
    padding is zeros."""
    padding = a["padding"] or ((0, 0), (0, 0))
    return (x.shape[1:3] == (1, 1) and a["groups"] == 1 and w.shape[2:] != (1, 1)
            and all(d == 1 for d in (*(a["strides"] or ()), *(a["rhs_dilation"] or ())))
            and all(0 <= p < k for k, pair in zip(w.shape[2:], padding, strict=True)
                    for p in pair))


def rows_of_one_pixel(w: Any, padding: Any) -> tuple[Any, list[int]]:
    """The taps that the outputs of an image of one pixel see, [C, outputs·O], and the height and
    width of the outputs: y[i, j] = x · w[lo - i, lo - j]."""
    m, c, *window = w.shape
    out = [2 + lo + hi - k for k, (lo, hi) in zip(window, padding, strict=True)]
    first = [lo - n + 1 for n, (lo, _) in zip(out, padding, strict=True)]
    taps = o.slice(w, start=(0, 0, *first), strides=(1,) * 4,
                   limit=(m, c, *(f + n for f, n in zip(first, out, strict=True))))
    flat = o.transpose(o.reverse(taps, axes=(2, 3)), perm=(1, 2, 3, 0))
    return o.reshape(flat, shape=(c, out[0] * out[1] * m)), out
