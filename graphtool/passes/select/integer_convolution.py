"""select's convolutions of small integers that were widened to int32.

integer_product.py explains how their sums are computed.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from graphtool import dtypes
from graphtool import ops as o
from graphtool.analysis.ranges import Narrow, is_single, known_array, narrow, within
from graphtool.ir.graph import Node
from graphtool.ir.trace import Tracer
from graphtool.kernels.choice.sites import Conv
from graphtool.passes.select.goal import Goal, cost_size
from graphtool.passes.select.integer_product import (
    INTEGER,
    Array,
    constant,
    is_small,
    less,
    multiplied,
    unsigned,
)
from graphtool.passes.select.wide_pixels import diagonal, together


def conv(goal: Goal, node: Node, x: Tracer, w: Tracer) -> Any:
    """The int32 convolution as target ops; None if its operands are not narrow."""
    a, out = node.attrs, node.outputs[0].type.shape
    weights, left = known_array(w), narrow(x)
    if left is None or weights is None or not is_single(left.zero) or not convolves(a, x.ndim):
        return None
    strides, dilation = a["strides"] or (1, 1), a["rhs_dilation"] or (1, 1)
    padding = a["padding"] or ((0, 0), (0, 0))
    if x.ndim == 3:  # a 1-d row is an image that is one pixel high
        left = Narrow(o.reshape(left.q, shape=(x.shape[0], 1, *x.shape[1:])), left.zero)
        weights = weights[:, :, None]
        strides, dilation, padding = (
            ((one, *v[-1:]) for one, v in ((1, strides), (1, dilation), ((0, 0), padding))))
    y = _Image(goal, left, weights, tuple(strides), tuple(dilation), a["groups"]).run(padding)
    return y if y is None or x.ndim == 4 else o.reshape(y, shape=out)


def convolves(a: Any, rank: int) -> bool:
    """Whether there are integer kernels for such a convolution."""
    return (rank in (3, 4) and a["channels_last"] and a["batch_groups"] == 1 and not a["dtype"]
            and all(d == 1 for d in a["lhs_dilation"] or ())
            and all(isinstance(p, int) and p >= 0 for pair in a["padding"] or () for p in pair))


class _Image:
    """One convolution of an image of narrow numbers with constant filters [O, C, KH, KW]."""

    def __init__(self, goal: Goal, x: Narrow, w: Array, strides: tuple[int, int],
                 dilation: tuple[int, int], groups: int) -> None:
        self.goal, self.target, self.x, self.w = goal, goal.target, x, w
        self.strides, self.dilation, self.groups = strides, dilation, groups
        self.depthwise = groups == w.shape[0] == x.q.shape[3]

    def run(self, padding: Any) -> Any:
        """The sums, by dot products of bytes, of pairs of 16 bits, or of floats; None if none of
        them is possible."""
        zero = known_array(self.x.zero)
        is_byte = zero is None or within(zero, self.x.q.dtype.low, self.x.q.dtype.high)
        if self.target.dot8 and within(self.w, -128, 127) and is_byte:
            x = unsigned(self.x)
            total = self.kernel(self.padded(x, padding), self.w.astype(np.int8))
            sums = self.w.astype(np.int64).sum((1, 2, 3))
            return None if total is None else less(total, x.zero, sums)
        if not is_small(self.x):
            return None
        wide = o.cast(self.x.q, dtype=dtypes.int16)
        if self.x.zero is not None:
            wide = o.sub(wide, o.cast(self.x.zero, dtype=dtypes.int16) if zero is None
                         else int(zero.reshape(-1)[0]))
        wide = self.padded(Narrow(wide), padding)
        return self.by_floats(wide) if self.depthwise else self.by_pairs(wide)

    def padded(self, x: Narrow, padding: Any) -> Any:
        """The image with its zero point as padding."""
        if not any(p for pair in padding for p in pair):
            return x.q
        lo, hi = (0, *(p[0] for p in padding), 0), (0, *(p[1] for p in padding), 0)
        zero = np.zeros(1) if x.zero is None else known_array(x.zero)
        if zero is not None:
            return o.pad(x.q, lo=lo, hi=hi, value=float(zero.reshape(-1)[0]))
        inside = np.pad(np.ones(x.q.shape[1:3], np.bool_), padding)[None, :, :, None]
        edge = o.cast(o.reshape(x.zero, shape=(1, 1, 1, 1)), dtype=x.q.dtype)
        return o.select(constant(x.q, inside), o.pad(x.q, lo=lo, hi=hi, value=0.0), edge)

    def by_pairs(self, x: Any) -> Any:
        """The convolution of 16-bit numbers, in pairs."""
        if not within(self.w, -32767, 32767):
            return None
        return self.kernel(x, self.w.astype(np.int16))

    def by_floats(self, x: Any) -> Any:
        """The convolution in float32: sums of so few products are exact there."""
        if 255 * int(np.abs(self.w.astype(np.int64)).sum((1, 2, 3)).max(initial=0)) >= 1 << 24:
            return None
        flat = constant(x, self.w[:, 0].transpose(1, 2, 0).astype(np.float32))
        y = o.depthwise(o.cast(x, dtype=dtypes.float32), flat, strides=self.strides,
                        dilation=self.dilation)
        return o.cast(y, dtype=dtypes.int32)

    def kernel(self, x: Any, w: Array) -> Any:
        """The convolution of the padded x with filters of the type that x needs."""
        if self.depthwise and w.dtype == np.int8 and w.shape[1] == 1:
            return self.filtered(x, constant(x, w), w, self.groups)
        if self.groups == 1 and x.shape[1:3] == w.shape[2:] and self.dilation == (1, 1):
            rows = np.ascontiguousarray(w.transpose(2, 3, 1, 0)).reshape(-1, w.shape[0])
            flat = o.reshape(x, shape=(x.shape[0], rows.shape[0]))
            return o.reshape(multiplied(self.goal, flat, constant(x, rows)),
                             shape=(x.shape[0], 1, 1, w.shape[0]))
        if self.groups == 1 and w.shape[2:] == self.strides == (1, 1):
            return multiplied(self.goal, x, constant(x, np.ascontiguousarray(w[:, :, 0, 0].T)))
        return self.filters_together(x, w)

    def filtered(self, x: Any, filters: Any, w: Array, groups: int) -> Any:
        """The convolution by the best kernel for the site, among those in which the sums of w do
        not overflow."""
        n, height, width, channels = x.shape
        o, _, kh, kw = filters.shape
        h, wide = (cost_size((d - (k - 1) * r - 1) // s + 1) for d, k, s, r in zip(
            (height, width), (kh, kw), self.strides, self.dilation, strict=True))
        found = Conv(cost_size(n), h, wide, cost_size(channels), o, kh, kw, *self.strides,
                     *self.dilation, groups, integer=INTEGER[x.dtype])
        largest = _tile(w, x.dtype is dtypes.int16) if self.goal.rules.winograd and (
            x.dtype is dtypes.uint8 or self.is_difference()) else 0
        return self.goal.best(found, x, filters, rules=replace(self.goal.rules, winograd=largest),
                              strides=self.strides, dilation=self.dilation, groups=groups)

    def is_difference(self) -> bool:
        """Whether x - zero is a difference of two bytes of the same type."""
        zero, kind = known_array(self.x.zero), self.x.q.dtype
        if self.x.zero is None or zero is not None:
            return zero is None or within(zero, kind.low, kind.high)
        found = narrow(self.x.zero)
        return found is not None and found.zero is None and found.q.dtype is kind

    def filters_together(self, x: Any, w: Array) -> Any:
        """The convolution with groups joined if they are narrow."""
        joined = together(self.groups, w.shape[0], self.target.lanes)
        filters = constant(x, w)
        if joined > 1:
            filters = diagonal(filters, self.groups, joined)
        return self.filtered(x, filters, w, self.groups // joined)


def _tile(w: Array, signed: bool) -> int:
    """The largest Winograd tile for which the sums of these filters fit in 32 bits; 0 if there is
    none.

    Inputs are bytes, or with `signed` differences of two bytes.
    """
    wide = w.astype(np.int64).reshape(w.shape[0], -1)
    up, down = np.maximum(wide, 0).sum(1), np.maximum(-wide, 0).sum(1)
    most = 255 * int((up + down if signed else np.maximum(up, down)).max(initial=0))
    if not within(w, -600, 600):  # the transform makes them up to 49 times larger
        return 0
    return 4 if most < 1 << 25 else 2 if most < 1 << 29 else 0
