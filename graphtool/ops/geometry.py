"""Sizes of sliding windows, which convolution, pooling and their gradients share."""

from __future__ import annotations

from typing import Any

from graphtool.ir.graph import TensorType
from graphtool.ops.common import need
from graphtool.symbolic import Dim, ceildiv, minimum

Pairs = tuple[tuple[Dim, Dim], ...]


def dilate(d: Dim, by: int) -> Dim:
    """The extent of d elements at distance `by` from each other."""
    if by == 1 or d == 0:
        return d
    return (d - 1) * by + 1


def out_dim(d: Dim, window: Dim, stride: int, lo: Dim, hi: Dim, base: int, dilation: int) -> Dim:
    """⌊(dilated input + padding − dilated window) / stride⌋ + 1"""
    need(stride >= 1 and base >= 1 and dilation >= 1, "strides and dilations must be 1 or more")
    return (dilate(d, base) + lo + hi - dilate(window, dilation)) // stride + 1


def overhang(d: Dim, window: Dim, stride: int, lo: Dim, hi: Dim) -> Dim:
    """The padding behind d elements that makes all windows fit which start before its end: what
    ceil_mode adds to `hi`. An open d may add less than nothing where `hi` is never reached."""
    count = ceildiv(d + lo + minimum(stride + hi - window, 0), stride)
    more = (count - 1) * stride + window - (d + lo + hi)
    return max(more, 0) if isinstance(more, int) else more


def under_windows(x: TensorType, window: tuple[Dim, ...], channels_last: bool = False
                  ) -> tuple[Dim, ...]:
    """The sizes of the axes along which windows of more than one element slide: the spatial ones,
    or all if there is an entry for each."""
    last = x.shape[1:-1] if channels_last else x.shape[x.rank - len(window):]
    return tuple(d for d, k in zip(last, window, strict=True) if k != 1)


def conv_defaults(n: int, strides: Any, padding: Any, lhs: Any, rhs: Any) -> Any:
    """The attributes of a convolution over n axes, with defaults for those left out: 1, and no
    padding."""
    ones = (1,) * n
    return strides or ones, padding or ((0, 0),) * n, lhs or ones, rhs or ones
