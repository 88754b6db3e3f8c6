"""select's products and convolutions of small integers that were widened to int32.

(x - z)·(w - v) = x·w - z·Σw - v·Σx + K·z·v: the kernel takes u8 by s8, and what zero points add is
a constant per column where they are. Where the machine has no such dot product, x - z and w - v are
multiplied as 16-bit numbers. All of it is modulo 2³², as int32 is.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from graphtool import dtypes
from graphtool.ir.graph import Node
from graphtool.ir.op import ops as o
from graphtool.ir.trace import Tracer
from graphtool.ops.integer import GROUP
from graphtool.passes.narrowed import Narrow, is_single, known_array, narrow, within
from graphtool.passes.select_product import Goal
from graphtool.passes.widen import diagonal, together
from graphtool.symbolic import Dim, bounds, product
from graphtool.target import Target

Array = np.ndarray[Any, Any]


def _int32(x: Any) -> Array:
    return np.asarray(x).astype(np.int64).astype(np.int32)


def _unsigned(x: Narrow) -> Narrow:
    """The same number with q in u8: -128 becomes 0."""
    if x.q.dtype is dtypes.uint8:
        return x
    q = o.bitcast(o.xor(x.q, -128), dtype=dtypes.uint8)
    return Narrow(q, o.add(x.zero, 128) if isinstance(x.zero, Tracer) else (x.zero or 0) + 128)


def _signed(x: Narrow) -> Narrow:
    """The same number with q in s8: 255 becomes 127."""
    if x.q.dtype is dtypes.int8:
        return x
    q = o.xor(o.bitcast(x.q, dtype=dtypes.int8), -128)
    return Narrow(q, o.sub(x.zero, 128) if isinstance(x.zero, Tracer) else (x.zero or 0) - 128)


def _constant(beside: Any, x: Array) -> Any:
    return beside.builder.constant(x)


def _is_small(x: Narrow) -> bool:
    """Whether the difference has 9 bits: its zero point had 8 too."""
    zero = known_array(x.zero)
    if x.zero is None or zero is not None:
        return zero is None or within(zero, -255, 255)
    return narrow(x.zero) is not None


def panel(target: Target, n: Dim, rows: Dim) -> int:
    """Columns of a panel: wide where few rows make reading the weights all the work."""
    if isinstance(n, int) and n <= target.lanes:
        return target.lanes
    few = (bounds(rows)[1] or 1 << 20) <= 3
    if not few or not isinstance(n, int) or n < 4 * target.lanes:
        return target.nr
    widths = [target.lanes * v for v in range(8, 3, -1)]
    return min(widths, key=lambda nr: -(-n // nr) * nr)


# ---- products ----------------------------------------------------------------------------------

def matmul(goal: Goal, node: Node, x: Tracer, w: Tracer) -> Any:
    """The product of int32 as a target op; None where its operands are not narrow."""
    if node.attrs["transpose_a"]:
        x = o.transpose(x, perm=(*range(x.ndim - 2), x.ndim - 1, x.ndim - 2))
    if node.attrs["transpose_b"]:
        w = o.transpose(w, perm=(*range(w.ndim - 2), w.ndim - 1, w.ndim - 2))
    left = narrow(x)
    if left is None or not _spans_rows(left, x):
        return None
    rows = product(x.shape[:-1]) if w.ndim == 2 else x.shape[-2]
    nr = panel(goal.target, w.shape[-1], rows)
    weights = known_array(w)
    if weights is not None and weights.ndim == 2:
        return _by_known(goal, x, left, weights, nr)
    right = narrow(w)
    if right is None or (bounds(rows)[1] or 1 << 20) < 4 or not _spans_columns(right, w):
        return None
    return _by_moving(goal, x, left, w, right, nr)


def _spans_rows(x: Narrow, whole: Tracer) -> bool:
    """Whether the zero point is the same along a row."""
    return is_single(x.zero) or (x.zero.shape[-1] == 1 and x.zero.ndim <= whole.ndim)


def _spans_columns(x: Narrow, whole: Tracer) -> bool:
    return is_single(x.zero) or x.zero.ndim == 1 or (
        x.zero.shape[-2] == 1 and x.zero.ndim <= whole.ndim)


def _by_known(goal: Goal, x: Tracer, left: Narrow, w: Array, nr: int) -> Any:
    """A product with constant weights."""
    n = w.shape[1]
    low, high = (f(w, axis=0, initial=0).astype(np.int64) for f in (np.min, np.max))
    middle = (high + low + 1) // 2
    centre = np.where((low < -128) | (high > 127), middle, 0)
    if not goal.target.dot8 or np.any(high - low > 255):
        if not _is_small(left) or not within(w, -32767, 32767):
            return None
        packed = o.pack_int(_constant(x, w.astype(np.int16)), nr=nr)
        return o.matmul_int(o.cast(x, dtype=dtypes.int16), packed, n=n)
    left = _unsigned(left)
    moved = (w - centre).astype(np.int8)
    total = o.matmul_int(left.q, o.pack_int(_constant(x, moved), nr=nr), n=n)
    if centre.any():
        sums = o.reduce_sum(o.cast(left.q, dtype=dtypes.int32), axes=(x.ndim - 1,))
        total = o.add(total, o.mul(sums, _constant(x, _int32(centre))))
    return _less(total, left.zero, w.astype(np.int64).sum(0))


def _less(total: Any, zero: Any, sums: Array) -> Any:
    """total - zero·Σw"""
    if zero is None:
        return total
    known = known_array(zero)
    if known is None:
        return o.sub(total, o.mul(zero, _constant(total, _int32(sums))))
    drawn = known.astype(np.int64) * sums
    return o.sub(total, _constant(total, _int32(drawn))) if drawn.any() else total


def _by_moving(goal: Goal, x: Tracer, left: Narrow, w: Tracer, right: Narrow, nr: int) -> Any:
    """A product of two operands that come at run time."""
    n, depth = w.shape[-1], x.shape[-1]
    if not isinstance(n, int):
        return None
    if not goal.target.dot8:
        if not (_is_small(left) and _is_small(right)):
            return None
        packed = o.pack_int(o.cast(w, dtype=dtypes.int16), nr=nr)
        return o.matmul_int(o.cast(x, dtype=dtypes.int16), packed, n=n)
    if not isinstance(depth, int):
        return None
    left, right = _unsigned(left), _signed(right)
    total = o.matmul_int(left.q, o.pack_int(right.q, nr=nr), n=n)
    if left.zero is not None:
        down = o.reduce_sum(o.cast(right.q, dtype=dtypes.int32), axes=(w.ndim - 2,))
        if right.zero is not None:
            down = o.sub(down, o.mul(right.zero, depth) if isinstance(right.zero, Tracer)
                         else right.zero * depth)
        total = o.sub(total, o.mul(left.zero, down))
    if right.zero is not None:
        along = o.reduce_sum(o.cast(left.q, dtype=dtypes.int32), axes=(x.ndim - 1,))
        total = o.sub(total, o.mul(along, right.zero))
    return total


# ---- convolutions ------------------------------------------------------------------------------

def conv(goal: Goal, node: Node, x: Tracer, w: Tracer) -> Any:
    """The convolution of int32 as target ops; None where its operands are not narrow."""
    a, out = node.attrs, node.outputs[0].type.shape
    weights, left = known_array(w), narrow(x)
    if left is None or weights is None or not is_single(left.zero) or not convolves(a, x.ndim):
        return None
    strides, dilation = a["strides"] or (1, 1), a["rhs_dilation"] or (1, 1)
    padding = a["padding"] or ((0, 0), (0, 0))
    if x.ndim == 3:  # a row is an image one pixel high
        left = Narrow(o.reshape(left.q, shape=(x.shape[0], 1, *x.shape[1:])), left.zero)
        weights = weights[:, :, None]
        strides, dilation, padding = (
            ((one, *v[-1:]) for one, v in ((1, strides), (1, dilation), ((0, 0), padding))))
    y = _Image(goal, left, weights, tuple(strides), tuple(dilation), a["groups"]).run(padding)
    return y if y is None or x.ndim == 4 else o.reshape(y, shape=out)


def convolves(a: Any, rank: int) -> bool:
    """Whether there are kernels of integers for such a convolution."""
    return (rank in (3, 4) and a["channels_last"] and a["batch_groups"] == 1 and not a["dtype"]
            and all(d == 1 for d in a["lhs_dilation"] or ())
            and all(isinstance(p, int) and p >= 0 for pair in a["padding"] or () for p in pair))


class _Image:
    """One convolution of an image of narrow numbers by constant filters [O, C, KH, KW]."""

    def __init__(self, goal: Goal, x: Narrow, w: Array, strides: tuple[int, int],
                 dilation: tuple[int, int], groups: int) -> None:
        self.target, self.x, self.w = goal.target, x, w
        self.strides, self.dilation, self.groups = strides, dilation, groups
        self.depthwise = groups == w.shape[0] == x.q.shape[3]

    def run(self, padding: Any) -> Any:
        zero = known_array(self.x.zero)
        held = zero is None or within(zero, *(
            (0, 255) if self.x.q.dtype is dtypes.uint8 else (-128, 127)))
        if self.target.dot8 and within(self.w, -128, 127) and held:
            x = _unsigned(self.x)
            total = self.kernel(self.padded(x, padding), self.w.astype(np.int8))
            sums = self.w.astype(np.int64).sum((1, 2, 3))
            return None if total is None else _less(total, x.zero, sums)
        if not _is_small(self.x):
            return None
        wide = o.cast(self.x.q, dtype=dtypes.int16)
        if self.x.zero is not None:
            wide = o.sub(wide, o.cast(self.x.zero, dtype=dtypes.int16) if zero is None
                         else int(zero.reshape(-1)[0]))
        wide = self.padded(Narrow(wide), padding)
        return self.by_floats(wide) if self.depthwise else self.by_pairs(wide)

    def padded(self, x: Narrow, padding: Any) -> Any:
        """The image with its zero point around it."""
        if not any(p for pair in padding for p in pair):
            return x.q
        lo, hi = (0, *(p[0] for p in padding), 0), (0, *(p[1] for p in padding), 0)
        zero = np.zeros(1) if x.zero is None else known_array(x.zero)
        if zero is not None:
            return o.pad(x.q, lo=lo, hi=hi, value=float(zero.reshape(-1)[0]))
        inside = np.pad(np.ones(x.q.shape[1:3], np.bool_), padding)[None, :, :, None]
        edge = o.cast(o.reshape(x.zero, shape=(1, 1, 1, 1)), dtype=x.q.dtype)
        return o.select(_constant(x.q, inside), o.pad(x.q, lo=lo, hi=hi, value=0.0), edge)

    def by_pairs(self, x: Any) -> Any:
        if not within(self.w, -32767, 32767):
            return None
        return self.kernel(x, self.w.astype(np.int16))

    def by_floats(self, x: Any) -> Any:
        """Sums of so few products are exact in float32: the kernels of floats take them."""
        if 255 * int(np.abs(self.w.astype(np.int64)).sum((1, 2, 3)).max(initial=0)) >= 1 << 24:
            return None
        flat = _constant(x, self.w[:, 0].transpose(1, 2, 0).astype(np.float32))
        y = o.depthwise(o.cast(x, dtype=dtypes.float32), flat, strides=self.strides,
                        dilation=self.dilation)
        return o.cast(y, dtype=dtypes.int32)

    def kernel(self, x: Any, w: Array) -> Any:
        """Padded x by filters whose type x suits."""
        if self.depthwise and w.dtype == np.int8 and w.shape[1] == 1:
            high = _high(w.shape[2], self.strides[0], self.dilation[0])
            packed = o.pack_int_depthwise(_constant(x, w), high=high, stride=self.strides[0])
            return o.depthwise_int(x, packed, window=w.shape[2:], strides=self.strides,
                                   dilation=self.dilation)
        if self.groups == 1 and x.shape[1:3] == w.shape[2:] and self.dilation == (1, 1):
            rows = np.ascontiguousarray(w.transpose(2, 3, 1, 0)).reshape(-1, w.shape[0])
            flat = o.reshape(x, shape=(x.shape[0], rows.shape[0]))
            return o.reshape(self.product(flat, rows), shape=(x.shape[0], 1, 1, w.shape[0]))
        if self.groups == 1 and w.shape[2:] == self.strides == (1, 1):
            return self.product(x, w[:, :, 0, 0].T)
        return self.direct(x, w)

    def product(self, x: Any, w: Array) -> Any:
        nr = panel(self.target, w.shape[1], product(x.shape[:-1]))
        packed = o.pack_int(_constant(x, np.ascontiguousarray(w)), nr=nr)
        return o.matmul_int(x, packed, n=w.shape[1])

    def direct(self, x: Any, w: Array) -> Any:
        joined = together(self.groups, w.shape[0], self.target.lanes)
        groups, filters = self.groups // joined, _constant(x, w)
        if joined > 1:
            filters = diagonal(filters, self.groups, joined)
        depth = filters.shape[1]
        nr = self.target.lanes if w.shape[0] // groups <= self.target.lanes else self.target.nr
        # groups of bytes that would be broken up at each tap: a kernel row is one run
        flush = groups == self.dilation[1] == 1 and depth % GROUP[filters.dtype] != 0
        packed = o.pack_int_conv(filters, nr=nr, groups=groups, joined=flush)
        return o.conv_int(x, packed, channels=w.shape[0], depth=depth, window=w.shape[2:],
                          strides=self.strides, dilation=self.dilation, joined=flush)


def _high(rows: int, stride: int, dilation: int) -> int:
    """Output rows of a register block: two where they share quads of input rows."""
    quads = [-(-(rows + (high - 1) * stride) // 4) / high for high in (1, 2)]
    return 2 if dilation == 1 and quads[1] < quads[0] else 1


