"""select's products of small integers that were widened to int32.

(x - z)·(w - v) = x·w - z·Σw - v·Σx + K·z·v: the kernel multiplies u8 by s8, and the terms with zero
points are one constant for each column if the weights are constant. If the machine has no such dot
product, x - z and w - v are multiplied as 16-bit numbers. All of this is modulo 2³², as int32 is.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from graphtool import dtypes
from graphtool import ops as o
from graphtool.analysis.ranges import Narrow, is_single, known_array, narrow, within
from graphtool.ir.graph import Node
from graphtool.ir.trace import Tracer
from graphtool.kernels.choice.sites import Product
from graphtool.passes.select.goal import Goal
from graphtool.symbolic import bounds, product, typical_size

Array = np.ndarray[Any, Any]


def _int32(x: Any) -> Array:
    return np.asarray(x).astype(np.int64).astype(np.int32)


def unsigned(x: Narrow) -> Narrow:
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


def constant(beside: Any, x: Array) -> Any:
    """The array as a constant of the graph that `beside` is in."""
    return beside.builder.constant(x)


def is_small(x: Narrow) -> bool:
    """Whether the difference fits in 9 bits: its zero point had 8 bits too."""
    zero = known_array(x.zero)
    if x.zero is None or zero is not None:
        return zero is None or within(zero, -255, 255)
    return narrow(x.zero) is not None


def multiplied(goal: Goal, x: Any, w: Any, known: bool = True) -> Any:
    """x·w of types that the kernel supports, in panels of the best width for the site."""
    n = w.shape[-1]
    batch = 1 if w.ndim == 2 else product(x.shape[:-2])
    rows = product(x.shape[:-1]) if w.ndim == 2 else x.shape[-2]
    site = Product(typical_size(batch), typical_size(rows), typical_size(n),
                   typical_size(x.shape[-1]), known,
                   fixed=all(isinstance(d, int) for d in (batch, rows, n)),
                   dtype=x.dtype)
    return goal.best(site, x, w, transpose=False)


def matmul(goal: Goal, node: Node, x: Tracer, w: Tracer) -> Any:
    """The int32 product as a target op; None if its operands are not narrow."""
    if node.attrs["transpose_a"]:
        x = o.transpose(x, perm=(*range(x.ndim - 2), x.ndim - 1, x.ndim - 2))
    if node.attrs["transpose_b"]:
        w = o.transpose(w, perm=(*range(w.ndim - 2), w.ndim - 1, w.ndim - 2))
    left = narrow(x)
    if left is None or not _spans_rows(left, x):
        return None
    rows = product(x.shape[:-1]) if w.ndim == 2 else x.shape[-2]
    weights = known_array(w)
    if weights is not None and weights.ndim == 2:
        return _by_known(goal, x, left, weights)
    right = narrow(w)
    if right is None or (bounds(rows)[1] or 1 << 20) < 4 or not _spans_columns(right, w):
        return None
    return _by_moving(goal, x, left, w, right)


def _spans_rows(x: Narrow, whole: Tracer) -> bool:
    """Whether the zero point is the same along a row."""
    return is_single(x.zero) or (x.zero.shape[-1] == 1 and x.zero.ndim <= whole.ndim)


def _spans_columns(x: Narrow, whole: Tracer) -> bool:
    return is_single(x.zero) or x.zero.ndim == 1 or (
        x.zero.shape[-2] == 1 and x.zero.ndim <= whole.ndim)


def _by_known(goal: Goal, x: Tracer, left: Narrow, w: Array) -> Any:
    """A product with constant weights."""
    low, high = (f(w, axis=0, initial=0).astype(np.int64) for f in (np.min, np.max))
    middle = (high + low + 1) // 2
    centre = np.where((low < -128) | (high > 127), middle, 0)
    if not goal.target.dot8 or np.any(high - low > 255):
        if not is_small(left) or not within(w, -32767, 32767):
            return None
        return multiplied(goal, o.cast(x, dtype=dtypes.int16), constant(x, w.astype(np.int16)))
    left = unsigned(left)
    total = multiplied(goal, left.q, constant(x, (w - centre).astype(np.int8)))
    if centre.any():
        sums = o.reduce_sum(o.cast(left.q, dtype=dtypes.int32), axes=(x.ndim - 1,))
        total = o.add(total, o.mul(sums, constant(x, _int32(centre))))
    return less(total, left.zero, w.astype(np.int64).sum(0))


def less(total: Any, zero: Any, sums: Array) -> Any:
    """total - zero·Σw. If the term is constant, it is added as a constant, so that it can join a
    bias."""
    if zero is None:
        return total
    known = known_array(zero)
    if known is None:
        return o.sub(total, o.mul(zero, constant(total, _int32(sums))))
    drawn = known.astype(np.int64) * sums
    return o.add(total, constant(total, _int32(-drawn))) if drawn.any() else total


def _by_moving(goal: Goal, x: Tracer, left: Narrow, w: Tracer, right: Narrow) -> Any:
    """A product of two operands that are both known only at run time."""
    depth = x.shape[-1]
    if not isinstance(w.shape[-1], int):
        return None
    if not goal.target.dot8:
        if not (is_small(left) and is_small(right)):
            return None
        return multiplied(goal, o.cast(x, dtype=dtypes.int16), o.cast(w, dtype=dtypes.int16), False)
    if not isinstance(depth, int):
        return None
    left, right = unsigned(left), _signed(right)
    total = multiplied(goal, left.q, right.q, False)
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
