"""Few output channels: neighbouring pixels of a row share a vector of the convolution's sums, and
small groups become one, with zeros for what they do not see of each other.

With O channels, p pixels are p·O channels of one convolution of stride p·s over k + (p − 1)·s
columns, where pixel q has the taps from q·s on. That is (k + (p − 1)·s) / p products a pixel
instead of k. The result lies in memory as before, so it is only reshaped.
"""

from __future__ import annotations

from typing import Any

from graphtool import ops as o
from graphtool.ir.trace import Tracer

WORTH = 0.8  # of the products: the padded filter must leave fewer than this


def pixels(width: Any, channels: Any, taps: Any, stride: int, lanes: int) -> int:
    """How many neighbours of a row of known width share a vector: 1 where that saves too little."""
    fit = [p for p in range(1, lanes // channels + 1) if width % p == 0]
    best = min(fit, key=lambda p: (taps + (p - 1) * stride) / p, default=1)
    return best if taps + (best - 1) * stride < WORTH * best * taps else 1


def filters(w: Tracer, count: int, stride: int) -> Any:
    """The taps [O,C,KH,KW] of each of so many pixels, side by side: [count·O,C,KH,·]."""
    return o.concat(*(o.pad(w, lo=(0, 0, 0, q * stride),
                            hi=(0, 0, 0, (count - 1 - q) * stride))
                      for q in range(count)), axis=0)


def neighbours(width: Any, channels: Any, lanes: int) -> int:
    """How many pixels of a row of known width a depthwise convolution of stride 1 takes for one,
    where a pixel's channels do not fill a vector: as fill theirs best.
    """
    fit = [p for p in range(1, width + 1) if width % p == 0 and p * channels >= lanes]
    full = {p: -(-p * channels // lanes) * lanes / (p * channels) for p in fit}
    return min(fit, key=lambda p: (full[p], p), default=1) if channels < lanes else 1


def repeated(w: Any, count: int) -> Any:
    """The filters [KH,KW,C] of so many neighbours as one pixel: [KH,KW,count·C]."""
    kh, kw, c = w.shape
    each = o.broadcast(o.reshape(w, shape=(kh, kw, 1, c)), shape=(kh, kw, count, c))
    return o.reshape(each, shape=(kh, kw, count * c))


def together(groups: int, channels: Any, lanes: int) -> int:
    """How many groups fill a vector best, with so many output channels in all of them."""
    return max(n for n in range(1, groups + 1)
               if groups % n == 0 and (n == 1 or n * channels <= groups * lanes))


def diagonal(w: Tracer, groups: int, count: int) -> Any:
    """The filters of grouped channels, [O,C,KH,KW], where `count` groups are one: [O,count·C,·]."""
    out, c, *window = w.shape
    if count == 1:
        return w
    apart = o.reshape(w, shape=(groups // count, count, out // groups, c, *window))
    rows = []
    for i in range(count):
        own = o.slice(apart, start=(0, i, *(0,) * 4), strides=(1,) * 6,
                      limit=(groups // count, i + 1, *apart.shape[2:]))
        rows.append(o.pad(own, lo=(0, 0, 0, i * c, 0, 0),
                          hi=(0, 0, 0, (count - 1 - i) * c, 0, 0)))
    return o.reshape(o.concat(*rows, axis=1), shape=(out, count * c, *window))
