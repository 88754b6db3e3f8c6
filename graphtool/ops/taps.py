"""Where in its window an extreme is, and its inverse, which the gradient of max pooling needs.

A position is a number within the window, not in the tensor. So it is a small number, has the same
meaning in every layout, and tells which windows took an element, so that no scatter is needed.
"""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np

from graphtool import dtypes
from graphtool import ops as o
from graphtool.ir.facets import Axes, Precision, Trait
from graphtool.ir.graph import TensorType
from graphtool.ir.op import Op, register
from graphtool.loops.ir import Const
from graphtool.loops.pull import Names, Pull, Reduce, apply, cast, index, inside, iterator
from graphtool.ops.common import Array, need
from graphtool.ops.costs import per_operand, per_tap
from graphtool.ops.indexing import Pairs, conv_defaults, flatten_index
from graphtool.ops.reduce import identity
from graphtool.ops.window import sliding, window_infer
from graphtool.symbolic import Dim, ceildiv, maximum, minimum, symbol_of

_EACH = {"window": 1, "strides": 1, "padding": (0, 0)}

# ---- extreme_tap -------------------------------------------------------------------------------


def _tap_infer(x: TensorType, *, kind: str, window: tuple[int, ...],
               strides: tuple[int, ...] | None = None,
               padding: Pairs | None = None) -> TensorType:
    need(kind in ("max", "min"), "kind must be max or min")
    out = window_infer(x, kind=kind, window=window, strides=strides, padding=padding)
    return TensorType(dtypes.int32, out.shape)


def _tap_eval(x: Array, *, kind: str, window: Any, strides: Any, padding: Any) -> Array:
    views = sliding(x, identity(kind, dtypes.of_numpy(x.dtype)), window, strides, padding)
    flat = views.reshape(*views.shape[:x.ndim], int(np.prod(window)))
    best = (np.max if kind == "max" else np.min)(flat, axis=-1, keepdims=True)
    return np.asarray(np.argmax((flat == best) | (flat != flat), axis=-1), np.int32)


def _tap_lower(k: Names, x: Pull, *, kind: str, window: Any, strides: Any,
               padding: Any) -> Pull:
    lower = o.reduce_window.lower
    assert lower is not None and o.pad.lower is not None
    best = lower(k, x, kind=kind, window=window, strides=strides, padding=padding,
                 base_dilation=None, window_dilation=None)
    strides, padding, *_ = conv_defaults(len(x.shape), strides, padding, None, None)
    values = o.pad.lower(k, x, lo=tuple(p[0] for p in padding),
                              hi=tuple(p[1] for p in padding), interior=None,
                              value=identity(kind, x.dtype))
    last = Const(math.prod(window) - 1, dtypes.int32)

    def at(idx: Any) -> Any:
        loops = [None if d == 1 else iterator(k.new("r"), d) for d in window]
        taps = tuple(0 if r is None else symbol_of(r) for r in loops)
        value = values.at(tuple(i * s + r for i, s, r in zip(idx, strides, taps, strict=True)))
        hit = apply("eq", value, best.at(idx), dtype=dtypes.bool_)
        if x.dtype.is_float:
            hit = apply("or", hit, apply("is_nan", value, dtype=dtypes.bool_))
        number = cast(index(flatten_index(taps, window)), dtypes.int32)
        body = apply("select", hit, number, last, dtype=dtypes.int32)
        iters = tuple((r, d) for r, d in zip(loops, window, strict=True) if r is not None)
        return Reduce("min", last, iters, body, dtypes.int32)
    return Pull(dtypes.int32, best.shape, at)


register(Op("extreme_tap", _tap_infer, _tap_eval, None, _tap_lower,
            traits=Trait.WINDOWED, cost=per_tap, precision=Precision.FOLLOW, axes=Axes(each=_EACH),
            doc="the number, within its window, of the first maximum or minimum; padding is the "
                "neutral element"))

# ---- unpool ------------------------------------------------------------------------------------


def _unpool_infer(g: TensorType, taps: TensorType, *, shape: tuple[Dim, ...],
                  window: tuple[int, ...], strides: tuple[int, ...] | None = None,
                  padding: Pairs | None = None) -> TensorType:
    whole = TensorType(g.dtype, shape)
    out = window_infer(whole, kind="max", window=window, strides=strides, padding=padding)
    need(g.shape == taps.shape == out.shape, f"g {g} and taps {taps} must be {out}")
    need(taps.dtype is dtypes.int32, f"taps {taps} must be int32")
    return whole


def _unpool_eval(g: Array, taps: Array, *, shape: Any, window: Any, strides: Any,
                 padding: Any) -> Array:
    strides, padding, *_ = conv_defaults(g.ndim, strides, padding, None, None)
    out = np.zeros([d + lo + hi for d, (lo, hi) in zip(shape, padding, strict=True)], g.dtype)
    for number, tap in enumerate(itertools.product(*map(range, window))):
        to = tuple(slice(t, t + (m - 1) * s + 1, s) if m else slice(0)
                   for t, m, s in zip(tap, g.shape, strides, strict=True))
        out[to] += np.where(taps == number, g, 0)
    return np.ascontiguousarray(out[tuple(
        slice(lo, lo + d) for (lo, _), d in zip(padding, shape, strict=True))])


def _unpool_lower(k: Names, g: Pull, taps: Pull, *, shape: Any, window: Any, strides: Any,
                  padding: Any) -> Pull:
    strides, padding, *_ = conv_defaults(len(shape), strides, padding, None, None)

    def at(idx: Any) -> Any:
        iters, checks, read, tap = [], [], [], []
        for i, d, s, (lo, _), m in zip(idx, window, strides, padding, g.shape, strict=True):
            if (d, s, lo) == (1, 1, 0):
                read.append(i)
                tap.append(0)
                continue
            here = i + lo  # the last window that covers it begins at here − here mod s
            back: Dim = 0
            if d > s:
                it = iterator(k.new("r"), ceildiv(d, s))
                iters.append((it, ceildiv(d, s)))
                back = symbol_of(it)
            at_window, number = here // s - back, here % s + back * s
            checks += [(at_window, m), (number, d)]
            read.append(maximum(minimum(at_window, m - 1), 0))
            tap.append(number)
        number = cast(index(flatten_index(tuple(tap), window)), dtypes.int32)
        hit = apply("eq", taps.at(tuple(read)), number, dtype=dtypes.bool_)
        within = inside(checks)
        hit = hit if within is None else apply("and", within, hit, dtype=dtypes.bool_)
        zero = Const(0, g.dtype)
        body = apply("select", hit, g.at(tuple(read)), zero, dtype=g.dtype)
        return Reduce("add", zero, tuple(iters), body, g.dtype) if iters else body
    return Pull(g.dtype, shape, at)


def _unpool_vjp(t: Any, _y: Any, g: Any, taps: Any, *, shape: Any, window: Any, strides: Any,
                padding: Any) -> tuple[Any, ...]:
    strides, padding, *_ = conv_defaults(g.ndim, strides, padding, None, None)
    wide = o.pad(t, lo=tuple(p[0] for p in padding), hi=tuple(p[1] for p in padding))
    total = None
    for number, tap in enumerate(itertools.product(*map(range, window))):
        part = o.slice(wide, start=tap, strides=strides, limit=tuple(
            a + (m - 1) * s + 1 for a, m, s in zip(tap, g.shape, strides, strict=True)))
        chosen = o.select(o.eq(taps, number), part, 0.0)
        total = chosen if total is None else total + chosen
    return (total,)


register(Op("unpool", _unpool_infer, _unpool_eval, _unpool_vjp, _unpool_lower,
            traits=Trait.WINDOWED, cost=per_operand, precision=Precision.FOLLOW,
            axes=Axes(each=_EACH, sizes=("shape",)),
            doc="the gradient of a maximum over windows: each g is added at the element of its "
                "window whose number is in `taps`; all other elements are 0"))
