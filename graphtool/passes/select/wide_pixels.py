"""Few output channels: several pixels of a row, or several groups, are computed as one, to fill
vectors.

With O channels, p pixels are p·O channels of one convolution of stride p·s over k + (p − 1)·s
columns, where pixel q has the taps from q·s on. That is (k + (p − 1)·s) / p products for each pixel
instead of k. The result has the same order in memory, so it is only reshaped. Groups that are
joined have zero weights for each other's channels.
"""

from __future__ import annotations

from typing import Any

from graphtool import ops as o
from graphtool.ir.trace import Tracer

WORTH = 0.8  # the padded filter must need less than this part of the products


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
        own = o.slice(apart, start=(0, i, *(0,) * 4), strides=(1,) * 6,
                      limit=(groups // count, i + 1, *apart.shape[2:]))
        rows.append(o.pad(own, lo=(0, 0, 0, i * c, 0, 0),
                          hi=(0, 0, 0, (count - 1 - i) * c, 0, 0)))
    return o.reshape(o.concat(*rows, axis=1), shape=(out, count * c, *window))
