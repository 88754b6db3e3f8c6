"""Convolutions by the kernels of other ones: volumes, images of few channels, and windows that
mostly read padding.

A volume: y[d] = Σₖ x[d·s + k·e] ∗ w[k], with ∗ over height and width. Without groups the slices
that a depth reads become its channels, k after k, and the sum is one convolution; with groups it
remains a sum.

Few output channels: several pixels of a row, or several groups, are computed as one, to fill
vectors. With O channels, p pixels are p·O channels of one convolution of stride p·s over k + (p −
1)·s columns, where pixel q has the taps from q·s on. That is (k + (p − 1)·s) / p products for each
pixel instead of k. The result has the same order in memory, so it is only reshaped. Groups that
are joined have zero weights for each other's channels.

Taps that read only padding are removed: they add nothing if they are finite. With dilation, or
with images smaller than the window, these are most of the taps. Each output of an image of one
pixel sees one tap, so all of them are one product.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any

from graphtool import ops as o
from graphtool.ir.trace import Tracer
from graphtool.passes.select.goal import Goal, if_finite
from graphtool.symbolic import Dim

WORTH = 0.8  # the padded filter must need less than this part of the products
Pads = tuple[tuple[Any, Any], ...]
Convolve = Callable[[Any, Tracer, Tracer, tuple[Dim, ...]], Any]


def pixels(width: Any, channels: Any, taps: Any, stride: int, lanes: int) -> int:
    """How many adjacent pixels of a row share a vector: 1 if that saves too little, or the width
    is not known."""
    fit = [p for p in range(1, lanes // channels + 1) if width % p == 0]
    best = min(fit, key=lambda p: (taps + (p - 1) * stride) / p, default=1)
    return best if taps + (best - 1) * stride < WORTH * best * taps else 1


def filters(w: Tracer, count: int, stride: int) -> Any:
    """The taps [O,C,KH,KW] of each of so many pixels, as channels of one filter:
    [count·O,C,KH,·]."""
    return o.concat(*(o.pad(w, lo=(0, 0, 0, q * stride),
                            hi=(0, 0, 0, (count - 1 - q) * stride))
                      for q in range(count)), axis=0)


def together(groups: int, channels: Any, lanes: int) -> int:
    """The number of groups that fill a vector best; all groups together have so many output
    channels."""
    return max(n for n in range(1, groups + 1)
               if groups % n == 0 and (n == 1 or n * channels <= groups * lanes))


def diagonal(w: Tracer, groups: int, count: int) -> Any:
    """The filters of grouped channels, [O,C,KH,KW], when `count` groups are joined:
    [O,count·C,·]."""
    out, c, *window = w.shape
    if count == 1:
        return w
    apart = o.reshape(w, shape=(groups // count, count, out // groups, c, *window))
    rows = []
    for i in range(count):
        taps = o.slice(apart, start=(0, i, *(0,) * 4), strides=(1,) * 6,
                       limit=(groups // count, i + 1, *apart.shape[2:]))
        rows.append(o.pad(taps, lo=(0, 0, 0, i * c, 0, 0),
                          hi=(0, 0, 0, (count - 1 - i) * c, 0, 0)))
    return o.reshape(o.concat(*rows, axis=1), shape=(out, count * c, *window))


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


def volume(goal: Goal, x: Tracer, w: Tracer, a: Any, out: tuple[Dim, ...],
           convolve: Convolve) -> Any:
    """The convolution of x [N,D,H,W,C] with w [O,C/groups,KD,KH,KW], whose result has shape `out`.

    `convolve(attrs, x, w, shape)` makes one over images [N·D,H,W,C].
    """
    n, depth = out[:2]
    plain = {**a, **{k: a[k][1:] for k in ("strides", "padding", "lhs_dilation", "rhs_dilation")
                     if a[k]}}
    stride, dilation = (a["strides"] or (1,))[0], (a["rhs_dilation"] or (1,))[0]
    inside = _taps_inside(a, x.shape[1], depth, w.shape[2], stride, dilation)
    if inside[1] < w.shape[2]:
        inside = goal.take(x, if_finite(w, inside, "weights are not multiplied by the zeros of "
                                                   "padding in depth")) or (0, w.shape[2])
    first, count = inside
    if count < w.shape[2]:
        w = o.slice(w, start=(0, 0, first, 0, 0), strides=(1,) * 5,
                    limit=(*w.shape[:2], first + count, *w.shape[3:]))
    taps = _taps(_deep(x, a), range(first * dilation, (first + count) * dilation, dilation),
                 depth, stride)
    shape = (n * depth, *out[2:])

    def images(part: Tracer) -> Any:
        return o.reshape(part, shape=(n * depth, *part.shape[2:]))
    if a["groups"] == 1:
        flat = o.reshape(o.transpose(w, perm=(0, 2, 1, 3, 4)),
                         shape=(w.shape[0], w.shape[1] * w.shape[2], *w.shape[3:]))
        y = convolve(plain, images(taps[0] if len(taps) == 1 else o.concat(*taps, axis=4)),
                     flat, shape)
    else:
        y = reduce(o.add, (convolve(plain, images(t), _tap(w, k), shape)
                                for k, t in enumerate(taps)))
    return o.reshape(y, shape=out)


def _taps_inside(a: Any, size: Dim, depth: Dim, taps: Any, stride: int,
                 dilation: int) -> tuple[int, Any]:
    """The taps in depth that read more than padding; all of them if there are zeros between the
    slices."""
    if (a["lhs_dilation"] or (1,))[0] != 1:
        return 0, taps
    return visible(size, (a["padding"] or ((0, 0),))[0][0], depth, taps, stride, dilation)


def _deep(x: Tracer, a: Any) -> Tracer:
    """x with the padding in depth, and the zeros between its slices."""
    lo, hi = (a["padding"] or ((0, 0),))[0]
    gap = (a["lhs_dilation"] or (1,))[0] - 1
    if lo == hi == gap == 0:
        return x
    rest = (0,) * 3
    padded: Tracer = o.pad(x, lo=(0, lo, *rest), hi=(0, hi, *rest), interior=(0, gap, *rest))
    return padded


def _taps(x: Tracer, starts: range, depth: Dim, stride: int) -> list[Tracer]:
    """For each tap the slices of x that all depths of the result read, from where the tap
    starts.

    A slice may be empty, so its type says max(0, depth) for an open depth, which a convolution
    does not.
    """
    parts, shape = [], (x.shape[0], depth, *x.shape[2:])
    for first in starts:
        limit = first + (depth - 1) * stride + 1
        whole = first == 0 and stride == 1 and limit == x.shape[1]
        part = x if whole else o.slice(
            x, start=(0, first, 0, 0, 0), limit=(x.shape[0], limit, *x.shape[2:]),
            strides=(1, stride, 1, 1, 1))
        parts.append(part if part.shape == shape else o.assume(part, shape=shape))
    return parts


def _tap(w: Tracer, k: int) -> Any:
    m, c, _, *window = w.shape
    return o.reshape(o.slice(w, start=(0, 0, k, 0, 0), limit=(m, c, k + 1, *window),
                             strides=(1,) * 5), shape=(m, c, *window))
