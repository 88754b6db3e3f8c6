"""Convolution over volumes by the kernels of images: the taps in depth become channels.

y[d] = Σₖ x[d·s + k·e] ∗ w[k], with ∗ over height and width. Without groups the slices that a depth
reads become its channels, k after k, and the sum is one convolution; with groups it remains a sum.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any

from graphtool import ops as o
from graphtool.ir.trace import Tracer
from graphtool.passes.select.goal import Goal, if_finite
from graphtool.passes.select.visible_taps import visible
from graphtool.symbolic import Dim

Convolve = Callable[[Any, Tracer, Tracer, tuple[Dim, ...]], Any]


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
