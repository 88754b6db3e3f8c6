"""Pooling over the spatial axes of x [N, C, …] (or […, C] with channels_last), by reduce_window.

Windows, strides, dilations and pairs of padding have one entry for each spatial axis; uneven
padding expresses ceil_mode. Padding never counts for a maximum; for an average `count_include_pad`
says whether it does.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from graphtool import ops as o
from graphtool.ir.facets import Precision, Trait
from graphtool.ir.graph import TensorType
from graphtool.ops.common import composite, filled, need
from graphtool.ops.geometry import Pairs, out_dim
from graphtool.ops.normalise import root

Ints = tuple[int, ...] | None


def _spatial(rank: int, channels_last: bool) -> tuple[int, ...]:
    return tuple(range(1, rank - 1)) if channels_last else tuple(range(2, rank))


def _pool_types(x: TensorType, *, window: tuple[int, ...], strides: Ints = None,
                padding: Pairs | None = None, dilation: Ints = None, channels_last: bool = False,
                **_: Any) -> TensorType:
    n = x.rank - 2
    need(n >= 1, f"x {x} needs a batch, a channel and a spatial axis")
    for given in (window, strides, padding, dilation):
        need(given is None or len(given) == n,
             f"window, strides, padding and dilation need {n} entries each, one per spatial axis")
    shape = list(x.shape)
    for i, a in enumerate(_spatial(x.rank, channels_last)):
        lo, hi = padding[i] if padding else (0, 0)
        shape[a] = out_dim(shape[a], window[i], strides[i] if strides else 1, lo, hi, 1,
                           dilation[i] if dilation else 1)
    need(all(not isinstance(d, int) or d >= 0 for d in shape),
         f"the window is larger than the padded x {x}")
    return TensorType(x.dtype, tuple(shape))


def _all_axes(rank: int, channels_last: bool, window: Any, strides: Any, padding: Any,
              dilation: Any) -> dict[str, Any]:
    """The attributes of reduce_window for all axes: batch and channels get entries that change
    nothing."""
    def spread(values: Any, neutral: Any) -> Any:
        if values is None:
            return None
        return (neutral, *values, neutral) if channels_last else (neutral, neutral, *values)
    return {"window": spread(window, 1), "strides": spread(strides, 1),
            "padding": spread(padding, (0, 0)), "window_dilation": spread(dilation, 1)}


@composite(types=_pool_types, precision=Precision.FOLLOW, traits=Trait.LARGEST)
def max_pool(x: Any, *, window: tuple[int, ...], strides: Ints = None,
             padding: Pairs | None = None, dilation: Ints = None,
             channels_last: bool = False) -> Any:
    """The greatest element of each window; NaN if one element is NaN."""
    return o.reduce_window(x, kind="max", **_all_axes(x.ndim, channels_last, window, strides,
                                                      padding, dilation))


@composite(types=_pool_types)
def avg_pool(x: Any, *, window: tuple[int, ...], strides: Ints = None,
             padding: Pairs | None = None, count_include_pad: bool = False, dilation: Ints = None,
             channels_last: bool = False) -> Any:
    """The mean of each window: divided by the number of its elements inside x, or by its size if
    padding counts.

    torch's ceil_mode counts only the padding that was asked for, not what a window reaches beyond
    it. To express that, pad with zeros first, and give the rest as padding that does not count.
    """
    attrs = _all_axes(x.ndim, channels_last, window, strides, padding, dilation)
    total = o.reduce_window(x, kind="sum", **attrs)
    padded = padding and any(p != (0, 0) for p in padding)
    if count_include_pad or not padded:
        return total / float(np.prod(window))
    axes = _spatial(x.ndim, channels_last)
    ones = tuple(d if a in axes else 1 for a, d in enumerate(x.shape))
    if all(isinstance(d, int) for d in ones):
        return total / o.reduce_window(np.ones(ones, x.dtype.numpy), kind="sum", **attrs)
    return total / o.reduce_window(filled(x, 1.0, ones), kind="sum", **attrs)


@composite(types=_pool_types)
def lp_pool(x: Any, *, window: tuple[int, ...], strides: Ints = None,
            padding: Pairs | None = None, order: float = 2.0, dilation: Ints = None,
            channels_last: bool = False) -> Any:
    """(Σ |x|ᵖ)^(1/p) of each window."""
    attrs = _all_axes(x.ndim, channels_last, window, strides, padding, dilation)
    powers = x * x if order == 2.0 else o.pow(o.abs(x), order)
    total = o.reduce_window(powers, kind="sum", **attrs)
    return root(total, order)
