"""Convolution and windowed reduction, closed under differentiation.

conv carries both dilations and batch groups, so that its gradients are conv and transposed
convolution is conv. `channels_last` says where the channel axis of x and y is; the weights stay
[out channels, in channels per group, *window] either way.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from graphtool import dtypes
from graphtool.dtypes import DType
from graphtool.ir.axes import Axes
from graphtool.ir.facets import Precision, Trait
from graphtool.ir.graph import TensorType
from graphtool.ir.op import OPS, Op, register
from graphtool.loops.ir import Const
from graphtool.loops.pull import Names, Pull, Reduce, apply, cast, index, iterator
from graphtool.ops import gradients
from graphtool.ops.common import Array, need
from graphtool.ops.costs import elements, per_tap
from graphtool.ops.geometry import Pairs, conv_defaults, dilate, out_dim
from graphtool.ops.indexing import flatten_index
from graphtool.ops.reduce import identity
from graphtool.symbolic import Dim, product, symbol_of


def conv_infer(x: TensorType, w: TensorType, *, strides: tuple[int, ...] | None = None,
               padding: Pairs | None = None, lhs_dilation: tuple[int, ...] | None = None,
               rhs_dilation: tuple[int, ...] | None = None, groups: int = 1,
               batch_groups: int = 1, channels_last: bool = False,
               dtype: DType | None = None) -> TensorType:
    need(x.rank == w.rank and x.rank >= 3, f"x {x} and w {w} must have one rank, 3 at least")
    need(x.dtype is w.dtype, f"element types differ: {x.dtype.short} and {w.dtype.short}")
    n = x.rank - 2
    strides, padding, lhs, rhs = conv_defaults(n, strides, padding, lhs_dilation, rhs_dilation)
    need(len(strides) == len(padding) == len(lhs) == len(rhs) == n, f"{n} entries an attribute")
    batch, channels, space = x.shape[0], x.shape[-1 if channels_last else 1], (
        x.shape[1:-1] if channels_last else x.shape[2:])
    need(channels == w.shape[1] * groups,
         f"x has {channels} channels, the weights want {w.shape[1]} × {groups} groups")
    need(w.shape[0] % groups == 0, f"{w.shape[0]} output channels in {groups} groups")
    need(batch_groups == 1 or groups == 1, "groups and batch groups exclude each other")
    need(batch % batch_groups == 0 and w.shape[0] % batch_groups == 0, "batch groups must divide")
    out = tuple(out_dim(d, k, s, lo, hi, b, r) for d, k, s, (lo, hi), b, r in zip(
        space, w.shape[2:], strides, padding, lhs, rhs, strict=True))
    need(all(not isinstance(d, int) or d >= 0 for d in out), f"the window does not fit in {x}")
    shape = (batch // batch_groups, *out, w.shape[0]) if channels_last else (
        batch // batch_groups, w.shape[0], *out)
    return TensorType(dtype or x.dtype, shape)


def _conv_eval(x: Array, w: Array, *, strides: Any, padding: Any, lhs_dilation: Any,
               rhs_dilation: Any, groups: int, batch_groups: int, channels_last: bool,
               dtype: DType | None) -> Array:
    n = x.ndim - 2
    strides, padding, lhs, rhs = conv_defaults(n, strides, padding, lhs_dilation, rhs_dilation)
    out = dtype.numpy if dtype else x.dtype
    wide = np.float32 if out.itemsize < 4 and dtypes.of_numpy(out).is_float else out
    x = np.moveaxis(x, -1, 1) if channels_last else x
    x = OPS["pad"](x.astype(wide, copy=False), lo=(0, 0, *(p[0] for p in padding)),
                   hi=(0, 0, *(p[1] for p in padding)), interior=(0, 0, *(d - 1 for d in lhs)))
    w = w.astype(wide, copy=False)
    if batch_groups > 1:  # group g of the batch meets group g of the output channels
        x = np.concatenate(np.split(x, batch_groups, 0), 1)
        groups = batch_groups
    views = _slide(x, tuple(range(2, 2 + n)), w.shape[2:], strides, rhs)
    batch, space = x.shape[0], views.shape[2:2 + n]
    cg, og, taps = x.shape[1] // groups, w.shape[0] // groups, int(np.prod(w.shape[2:]))
    y = np.empty((batch, w.shape[0], *space), wide)
    order = (0, *range(2, 2 + n), 1, *range(2 + n, 2 + 2 * n))
    for g in range(groups):
        cols = views[:, g * cg:(g + 1) * cg].transpose(order).reshape(
            batch * int(np.prod(space)), cg * taps)
        rows = w[g * og:(g + 1) * og].reshape(og, cg * taps)
        part = (cols @ rows.T).reshape(batch, *space, og)
        y[:, g * og:(g + 1) * og] = np.moveaxis(part, -1, 1)
    y = y.astype(out, copy=False)
    return np.ascontiguousarray(np.moveaxis(y, 1, -1)) if channels_last else y


def _conv_lower(k: Names, x: Pull, w: Pull, *, strides: Any, padding: Any, lhs_dilation: Any,
                rhs_dilation: Any, groups: int, batch_groups: int, channels_last: bool,
                dtype: DType | None) -> Pull:
    n = len(x.shape) - 2
    strides, padding, lhs, rhs = conv_defaults(n, strides, padding, lhs_dilation, rhs_dilation)
    result = conv_infer(TensorType(x.dtype, x.shape), TensorType(w.dtype, w.shape),
                        strides=strides, padding=padding, lhs_dilation=lhs, rhs_dilation=rhs,
                        groups=groups, batch_groups=batch_groups, channels_last=channels_last,
                        dtype=dtype)
    edge = ((0, 0),)
    spread = (*edge, *padding, *edge) if channels_last else (*edge, *edge, *padding)
    gaps = (0, *(d - 1 for d in lhs), 0) if channels_last else (0, 0, *(d - 1 for d in lhs))
    padded = OPS["pad"].lower(k, x, lo=tuple(p[0] for p in spread),  # type: ignore[misc]
                              hi=tuple(p[1] for p in spread), interior=gaps, value=0.0)
    cg, og = w.shape[1], w.shape[0] // (groups * batch_groups)
    wide = dtypes.float32 if result.dtype.is_float and result.dtype.bits < 32 else result.dtype

    def at(idx: Any) -> Any:
        b, o = idx[0], idx[-1] if channels_last else idx[1]
        space = idx[1:-1] if channels_last else idx[2:]
        group = o // og
        c = iterator(k.new("c"), cg)
        window = [iterator(k.new("r"), d) for d in w.shape[2:]]
        at_space = [i * s + symbol_of(r) * d
                    for i, s, r, d in zip(space, strides, window, rhs, strict=True)]
        channel = symbol_of(c) + (group * cg if groups > 1 else 0)
        row = b + (group * result.shape[0] if batch_groups > 1 else 0)
        xi = (row, *at_space, channel) if channels_last else (row, channel, *at_space)
        wi = (o, symbol_of(c), *map(symbol_of, window))
        product = apply("mul", cast(padded.at(xi), wide), cast(w.at(wi), wide))
        iters = ((c, cg), *zip(window, w.shape[2:], strict=True))
        if channels_last:
            iters = (*iters[1:], iters[0])
        return cast(Reduce("add", Const(0, wide), iters, product, wide), result.dtype)
    return Pull(result.dtype, result.shape, at)


def _conv_vjp(g: Any, y: Any, x: Any, w: Any, **attrs: Any) -> tuple[Any, ...]:
    return gradients.conv(g, x, w, **attrs)


def _conv_cost(y: TensorType, _x: TensorType, w: TensorType, *,
               lhs_dilation: tuple[int, ...] | None, **_: Any) -> Dim:
    """2 · outputs · channels in a group · window; zeros between dilated inputs are not counted"""
    return 2 * elements(y) * product(w.shape[1:]) // product(lhs_dilation or ())


register(Op("conv", conv_infer, _conv_eval, _conv_vjp, _conv_lower,
            traits=Trait.CONTRACTION, cost=_conv_cost, precision=Precision.LOW,
            doc="n-d correlation with strides, padding, both dilations, groups"))

# ---- reduce_window -----------------------------------------------------------------------------


def window_infer(x: TensorType, *, kind: str, window: tuple[int, ...],
                  strides: tuple[int, ...] | None = None, padding: Pairs | None = None,
                  base_dilation: tuple[int, ...] | None = None,
                  window_dilation: tuple[int, ...] | None = None) -> TensorType:
    need(kind in ("sum", "prod", "max", "min"), f"unknown kind {kind!r}")
    need(len(window) == x.rank, "one window entry per axis")
    strides, padding, base, dilation = conv_defaults(x.rank, strides, padding, base_dilation,
                                                     window_dilation)
    return TensorType(x.dtype, tuple(
        out_dim(d, k, s, lo, hi, b, r) for d, k, s, (lo, hi), b, r in zip(
            x.shape, window, strides, padding, base, dilation, strict=True)))


def _windows(x: Array, fill: Any, window: Any, strides: Any, padding: Any, base: Any,
             dilation: Any) -> Array:
    """A view [*out, *window] of x spread and padded with `fill`."""
    strides, padding, base, dilation = conv_defaults(x.ndim, strides, padding, base, dilation)
    x = OPS["pad"](x, lo=tuple(p[0] for p in padding), hi=tuple(p[1] for p in padding),
                   interior=tuple(b - 1 for b in base), value=fill)
    return _slide(x, tuple(range(x.ndim)), window, strides, dilation)


def sliding(x: Array, fill: Any, window: Any, strides: Any, padding: Any) -> Array:
    """A view [*out, *window] of x padded with `fill`."""
    return _windows(x, fill, window, strides, padding, None, None)


def _slide(x: Array, axes: tuple[int, ...], window: Any, strides: Any, dilation: Any) -> Array:
    """A view with the windows over `axes` behind; empty where a window does not fit."""
    spans: list[Any] = [dilate(k, r) for k, r in zip(window, dilation, strict=True)]
    if any(x.shape[a] < n for a, n in zip(axes, spans, strict=True)):
        kept = [d if a not in axes else max(d - spans[axes.index(a)] + 1, 0)
                for a, d in enumerate(x.shape)]
        for a, s in zip(axes, strides, strict=True):
            kept[a] = -(-kept[a] // s)
        return np.zeros((*kept, *window), x.dtype)
    views = sliding_window_view(x, spans, axes)
    steps = [slice(None)] * x.ndim
    for a, s in zip(axes, strides, strict=True):
        steps[a] = slice(None, None, s)
    return np.asarray(views[(*steps, *(slice(None, None, r) for r in dilation))])


def _window_eval(x: Array, *, kind: str, window: Any, strides: Any, padding: Any,
                 base_dilation: Any, window_dilation: Any) -> Array:
    fill = identity(kind, dtypes.of_numpy(x.dtype))
    views = _windows(x, fill, window, strides, padding, base_dilation, window_dilation)
    reduce = {"sum": np.sum, "prod": np.prod, "max": np.max, "min": np.min}[kind]
    axes = tuple(range(x.ndim, 2 * x.ndim))
    return np.asarray(reduce(views, axis=axes, initial=fill)).astype(x.dtype)  # type: ignore


def _window_lower(k: Names, x: Pull, *, kind: str, window: Any, strides: Any, padding: Any,
                  base_dilation: Any, window_dilation: Any) -> Pull:
    n = len(x.shape)
    strides, padding, base, dilation = conv_defaults(n, strides, padding, base_dilation,
                                                     window_dilation)
    fill = identity(kind, x.dtype)
    padded = OPS["pad"].lower(k, x, lo=tuple(p[0] for p in padding),  # type: ignore[misc]
                              hi=tuple(p[1] for p in padding),
                              interior=tuple(b - 1 for b in base), value=fill)
    shape = window_infer(TensorType(x.dtype, x.shape), kind=kind, window=window, strides=strides,
                          padding=padding, base_dilation=base, window_dilation=dilation).shape
    fn = {"sum": "add", "prod": "mul"}.get(kind, kind)

    def at(idx: Any) -> Any:
        iters, full = [], []
        for i, d, s, r in zip(idx, window, strides, dilation, strict=True):
            if d == 1:
                full.append(i * s)
                continue
            it = iterator(k.new("r"), d)
            iters.append((it, d))
            full.append(i * s + symbol_of(it) * r)
        body = padded.at(tuple(full))
        return Reduce(fn, Const(fill, x.dtype), tuple(iters), body, x.dtype) if iters else body
    return Pull(x.dtype, shape, at)


def _window_vjp(g: Any, y: Any, x: Any, **attrs: Any) -> tuple[Any, ...]:
    return gradients.reduce_window(g, y, x, **attrs)


register(Op("reduce_window", window_infer, _window_eval, _window_vjp, _window_lower,
            traits=Trait.WINDOWED, cost=per_tap, precision=Precision.FOLLOW,
            axes=Axes(each={"window": 1, "strides": 1, "padding": (0, 0), "base_dilation": 1,
                            "window_dilation": 1}),
            doc="pooling: sum, prod, max or min over a sliding window on every axis; "
                "padding counts as the neutral element"))

# ---- arg_reduce_window -------------------------------------------------------------------------


def _arg_window_infer(x: TensorType, *, kind: str, window: tuple[int, ...],
                      strides: tuple[int, ...] | None = None, padding: Pairs | None = None,
                      base_dilation: tuple[int, ...] | None = None,
                      window_dilation: tuple[int, ...] | None = None) -> TensorType:
    need(kind in ("max", "min"), "kind must be max or min")
    out = window_infer(x, kind=kind, window=window, strides=strides, padding=padding,
                        base_dilation=base_dilation, window_dilation=window_dilation)
    return TensorType(dtypes.int64, out.shape)


def _arg_window_eval(x: Array, *, kind: str, **attrs: Any) -> Array:
    best = _window_eval(x, kind=kind, **attrs)
    shape = (attrs["window"], attrs["strides"], attrs["padding"], attrs["base_dilation"],
             attrs["window_dilation"])
    values = _windows(x, identity(kind, dtypes.of_numpy(x.dtype)), *shape)
    places = _windows(np.arange(x.size).reshape(x.shape), _NOWHERE, *shape)
    best = best.reshape(*best.shape, *(1,) * x.ndim)
    hit = (values == best) | (values != values)
    axes = tuple(range(x.ndim, 2 * x.ndim))
    return np.asarray(np.min(np.where(hit, places, _NOWHERE), axis=axes, initial=_NOWHERE))


def _arg_window_lower(k: Names, x: Pull, *, kind: str, window: Any, strides: Any, padding: Any,
                      base_dilation: Any, window_dilation: Any) -> Pull:
    n = len(x.shape)
    attrs = {"window": window, "strides": strides, "padding": padding,
             "base_dilation": base_dilation, "window_dilation": window_dilation}
    best = _window_lower(k, x, kind=kind, **attrs)
    strides, padding, base, dilation = conv_defaults(n, strides, padding, base_dilation,
                                                     window_dilation)
    places = Pull(dtypes.int64, x.shape, lambda idx: index(flatten_index(idx, x.shape)))
    spread = {"lo": tuple(p[0] for p in padding), "hi": tuple(p[1] for p in padding),
              "interior": tuple(b - 1 for b in base)}
    values = OPS["pad"].lower(k, x, **spread, value=identity(kind, x.dtype))  # type: ignore[misc]
    numbers = OPS["pad"].lower(k, places, **spread, value=_NOWHERE)  # type: ignore[misc]

    def at(idx: Any) -> Any:
        iters = [iterator(k.new("r"), d) for d in window]
        full = tuple(i * s + symbol_of(it) * r
                     for i, s, it, r in zip(idx, strides, iters, dilation, strict=True))
        value = values.at(full)
        hit = apply("eq", value, best.at(idx), dtype=dtypes.bool_)
        if x.dtype.is_float:
            hit = apply("or", hit, apply("is_nan", value, dtype=dtypes.bool_))
        body = apply("select", hit, numbers.at(full), index(_NOWHERE), dtype=dtypes.int64)
        return Reduce("min", Const(_NOWHERE, dtypes.int64),
                      tuple(zip(iters, window, strict=True)), body, dtypes.int64)
    return Pull(dtypes.int64, best.shape, at)


_NOWHERE = 2**62  # what a window of nothing but padding gives
register(Op("arg_reduce_window", _arg_window_infer, _arg_window_eval, None, _arg_window_lower,
            traits=Trait.WINDOWED, cost=per_tap,
            doc="where the first extreme of each window stands: its row-major position in x"))
