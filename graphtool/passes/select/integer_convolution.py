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
from graphtool.kernels import conv_bytes
from graphtool.kernels.choice.sites import Conv
from graphtool.kernels.images import padded_space
from graphtool.passes.select.equivalent_convolutions import (
    diagonal,
    of_one_pixel,
    rows_of_one_pixel,
    together,
)
from graphtool.passes.select.goal import Goal
from graphtool.passes.select.integer_product import (
    Array,
    constant,
    is_small,
    less,
    multiplied,
    unsigned,
)
from graphtool.passes.select.polyphase import polyphase, unfit
from graphtool.symbolic import typical_size


def conv(goal: Goal, node: Node, x: Tracer, w: Tracer) -> Any:
    """The int32 convolution as target ops; None if its operands are not narrow."""
    a, out = dict(node.attrs), node.outputs[0].type.shape
    weights, left = known_array(w), narrow(x)
    if left is None or weights is None or not is_single(left.zero) or not convolves(a, x.ndim):
        return None
    shape = out
    if x.ndim == 3:  # a 1-d row is an image that is one pixel high
        left = Narrow(o.reshape(left.q, shape=(x.shape[0], 1, *x.shape[1:])), left.zero)
        weights, shape = weights[:, :, None], (out[0], 1, *out[1:])
        a |= {k: (one, *(a[k] or (one,))[-1:]) for k, one in (
            ("strides", 1), ("rhs_dilation", 1), ("lhs_dilation", 1), ("padding", (0, 0)))}
    image = _Image(goal, left, weights, tuple(a["strides"] or (1, 1)),
                   tuple(a["rhs_dilation"] or (1, 1)), a["groups"])
    spread = any(d != 1 and n != 1 for d, n in zip(
        a["lhs_dilation"] or (), left.q.shape[1:3], strict=False))
    y = image.transposed(a, shape) if spread else image.run(a)
    return y if y is None or x.ndim == 4 else o.reshape(y, shape=out)


def convolves(a: Any, rank: int) -> bool:
    """Whether there are integer kernels for such a convolution."""
    return (rank in (3, 4) and a["channels_last"] and a["batch_groups"] == 1 and not a["dtype"]
            and all(isinstance(p, int) and p >= 0 for pair in a["padding"] or () for p in pair))


class _Image:
    """One convolution of an image of narrow numbers with constant filters [O, C, KH, KW]."""

    def __init__(self, goal: Goal, x: Narrow, w: Array, strides: tuple[int, int],
                 dilation: tuple[int, int], groups: int) -> None:
        self.goal, self.target, self.x, self.w = goal, goal.target, x, w
        self.strides, self.dilation, self.groups = strides, dilation, groups
        self.depthwise = groups == w.shape[0] == x.q.shape[3]

    def run(self, a: Any) -> Any:
        """The sums, by dot products of bytes, of pairs of 16 bits, or of floats; None if none of
        them is possible."""
        padding = a["padding"] or ((0, 0), (0, 0))
        if self.without_vectors() and not self.is_product(padding):
            return self.bytewise(padding)
        x = self.readable()
        if x is None:
            return None
        if of_one_pixel(x.q, self.w, {**a, "padding": padding}):
            return self.one_pixel(x, padding)
        return self.sums(self.padded(x, padding), x.zero)

    def without_vectors(self) -> bool:
        """Whether the kernels for processors without vectors, which read an image without its
        padding, can compute it."""
        zero = known_array(self.x.zero)
        return (self.target.freestanding and (self.groups == 1 or self.depthwise)
                and isinstance(self.x.q.shape[0], int) and within(self.w, -128, 127)
                and (self.x.zero is None or (zero is not None and within(
                    zero, self.x.q.dtype.low, self.x.q.dtype.high))))

    def is_product(self, padding: Any) -> bool:
        """Whether the input or the output is one pixel, so that one product computes it."""
        out = padded_space(self.x.q, self.w.shape[2:], self.strides, self.dilation, padding)
        return self.groups == 1 and (out == (1, 1, 1) or self.x.q.shape[1:3] == (1, 1))

    def bytewise(self, padding: Any) -> Any:
        """The sums by the kernels for processors without vectors."""
        x, w, known = self.x.q, self.w.astype(np.int8), known_array(self.x.zero)
        zero = 0 if known is None else int(known.reshape(-1)[0])
        attrs = {"padding": padding, "window": w.shape[2:], "strides": self.strides,
                 "dilation": self.dilation}
        self.goal.note(x, "padding is not in memory; of a window, each byte is read once")
        if self.depthwise and w.shape[1] == 1:
            return o.depthwise_bytes(x, constant(x, np.ascontiguousarray(w[:, 0])), zero=zero,
                                     **attrs)
        padded = any(p for pair in padding for p in pair)
        # vectors multiply s8 by s8: they take 128 of u8 at no cost, and the bias takes the rest
        free = zero if padded or not self.target.words else 0 if x.dtype is dtypes.int8 else 128
        y = o.conv_bytes(x, constant(x, conv_bytes.packed(w)), channels=w.shape[0], zero=free,
                         **attrs)
        return less(y, zero - free, self.w.astype(np.int64).sum((1, 2, 3)))

    def one_pixel(self, x: Narrow, padding: Any) -> Any:
        """All outputs of an image of one pixel by one product."""
        rows, out = rows_of_one_pixel(self.w, padding)
        flat = o.reshape(x.q, shape=(x.q.shape[0], rows.shape[0]))
        kind = np.int16 if flat.dtype is dtypes.int16 else np.int8
        total = multiplied(self.goal, flat, constant(flat, rows.astype(kind)))
        y = less(total, x.zero, rows.astype(np.int64).sum(0))
        return o.reshape(y, shape=(flat.shape[0], *out, self.w.shape[0]))

    def transposed(self, a: Any, out: Any) -> Any:
        """The sums of a transposed convolution: by phases, or with zeros between the elements."""
        x = self.readable()
        if x is None or self.strides != (1, 1):
            return None
        padding, steps = a["padding"] or ((0, 0), (0, 0)), a["lhs_dilation"]
        if unfit(x.q, self.w, a, out):
            return self.sums(self.padded(x, padding, steps), x.zero)

        def convolve(part: Any, taps: Array, _: Any, zeros: bool) -> Any:
            return _Image(self.goal, self.x, taps, (1, 1), (1, 1), self.groups).sums(part, x.zero)
        return polyphase(x.q, self.w, a, out, convolve, self.target.lanes,
                         lambda q, edges: self.padded(Narrow(q, x.zero), edges))

    def readable(self) -> Narrow | None:
        """The image in a type that kernels read: bytes with their zero point, or the differences
        in 16 bits; None if they do not fit."""
        zero = known_array(self.x.zero)
        is_byte = zero is None or within(zero, self.x.q.dtype.low, self.x.q.dtype.high)
        if self.target.dot8 and within(self.w, -128, 127) and is_byte:
            return unsigned(self.x)
        if not is_small(self.x) or not (self.exact_in_floats() if self.in_floats() else within(
                self.w, -32767, 32767)):
            return None
        wide = o.cast(self.x.q, dtype=dtypes.int16)
        if self.x.zero is not None:
            wide = o.sub(wide, o.cast(self.x.zero, dtype=dtypes.int16) if zero is None
                         else int(zero.reshape(-1)[0]))
        return Narrow(wide)

    def sums(self, x: Any, zero: Any) -> Any:
        """The convolution of the padded x."""
        if x.dtype is dtypes.int16:
            return self.by_floats(x) if self.in_floats() else self.kernel(
                x, self.w.astype(np.int16))
        total = self.kernel(x, self.w.astype(np.int8))
        sums = self.w.astype(np.int64).sum((1, 2, 3))
        return None if total is None else less(total, zero, sums)

    def padded(self, x: Narrow, padding: Any, steps: Any = (1, 1)) -> Any:
        """The image with its zero point as padding, and between elements that stand `steps`
        apart."""
        if not any(p for pair in padding for p in pair) and set(steps) == {1}:
            return x.q
        lo, hi = (0, *(p[0] for p in padding), 0), (0, *(p[1] for p in padding), 0)
        gaps = (0, *(s - 1 for s in steps), 0)
        zero = np.zeros(1) if x.zero is None else known_array(x.zero)
        if zero is not None:
            return o.pad(x.q, lo=lo, hi=hi, interior=gaps, value=float(zero.reshape(-1)[0]))
        inside = o.pad(np.ones((1, *x.q.shape[1:3], 1), np.uint8), lo=lo, hi=hi, interior=gaps)
        edge = o.cast(o.reshape(x.zero, shape=(1, 1, 1, 1)), dtype=x.q.dtype)
        spread = o.pad(x.q, lo=lo, hi=hi, interior=gaps, value=0.0)
        return o.select(constant(x.q, inside.astype(np.bool_)), spread, edge)

    def in_floats(self) -> bool:
        """Whether floats filter each channel as fast as pairs of 16 bits do."""
        return self.depthwise and self.target.pair[0] > 1

    def exact_in_floats(self) -> bool:
        """Whether float32 holds the sums of so few products exactly."""
        return 255 * int(np.abs(self.w.astype(np.int64)).sum((1, 2, 3)).max(initial=0)) < 1 << 24

    def by_floats(self, x: Any) -> Any:
        """The depthwise convolution in float32."""
        flat = constant(x, self.w[:, 0].transpose(1, 2, 0).astype(np.float32))
        y = o.depthwise(o.cast(x, dtype=dtypes.float32), flat, strides=self.strides,
                        dilation=self.dilation)
        return o.cast(y, dtype=dtypes.int32)

    def kernel(self, x: Any, w: Array) -> Any:
        """The convolution of the padded x with filters of the type that x needs."""
        if self.depthwise:
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
        h, wide = (typical_size((d - (k - 1) * r - 1) // s + 1) for d, k, s, r in zip(
            (height, width), (kh, kw), self.strides, self.dilation, strict=True))
        site = Conv(typical_size(n), h, wide, typical_size(channels), o, kh, kw, *self.strides,
                    *self.dilation, groups, dtype=x.dtype)
        largest = _tile(w, x.dtype is dtypes.int16) if self.goal.rules.winograd and (
            x.dtype is dtypes.uint8 or self.is_difference()) else 0
        return self.goal.best(site, x, filters, rules=replace(self.goal.rules, winograd=largest),
                              strides=self.strides, dilation=self.dilation, groups=groups)

    def is_difference(self) -> bool:
        """Whether x - zero is a difference of two bytes of the same type."""
        zero, kind = known_array(self.x.zero), self.x.q.dtype
        if self.x.zero is None or zero is not None:
            return zero is None or within(zero, kind.low, kind.high)
        narrowed = narrow(self.x.zero)
        return narrowed is not None and narrowed.zero is None and narrowed.q.dtype is kind

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
