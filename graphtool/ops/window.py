"""Reductions over sliding windows, closed under differentiation, and pooling over the spatial axes
of x [N, C, …] (or […, C] with channels_last)."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from graphtool import dtypes
from graphtool import ops as o
from graphtool.ir.facets import Axes, Precision, Trait
from graphtool.ir.graph import TensorType
from graphtool.ir.op import Op, register
from graphtool.loops.ir import Const
from graphtool.loops.pull import Names, Pull, Reduce, apply, index, iterator
from graphtool.ops.common import Array, composite, filled, in_float32, need
from graphtool.ops.costs import per_tap
from graphtool.ops.indexing import (
    Pairs,
    conv_defaults,
    dilate,
    flatten_index,
    out_dim,
    under_windows,
)
from graphtool.ops.normalise import root
from graphtool.ops.reduce import identity
from graphtool.symbolic import Dim, product, symbol_of


def window_infer(x: TensorType, *, kind: str, window: tuple[int, ...],
                  strides: tuple[int, ...] | None = None, padding: Pairs | None = None,
                  base_dilation: tuple[int, ...] | None = None,
                  window_dilation: tuple[int, ...] | None = None) -> TensorType:
    """The type of a reduction over sliding windows. Each attribute has one entry for each axis.

    Raises TypeMismatch GT0412 for an unknown kind or a wrong number of entries.
    """
    need(kind in ("sum", "prod", "max", "min"), f"unknown kind {kind!r}")
    need(len(window) == x.rank, "window, strides, padding and dilations need one entry per axis")
    strides, padding, base, dilation = conv_defaults(x.rank, strides, padding, base_dilation,
                                                     window_dilation)
    return TensorType(x.dtype, tuple(
        out_dim(d, k, s, lo, hi, b, r) for d, k, s, (lo, hi), b, r in zip(
            x.shape, window, strides, padding, base, dilation, strict=True)))


def _filled(x: TensorType, *, window: tuple[int, ...], **_: Any) -> tuple[Dim, ...]:
    return under_windows(x, window)


def _windows(x: Array, fill: Any, window: Any, strides: Any, padding: Any, base: Any,
             dilation: Any) -> Array:
    """A view [*out, *window] of x, dilated and padded with `fill`."""
    strides, padding, base, dilation = conv_defaults(x.ndim, strides, padding, base, dilation)
    x = o.pad(x, lo=tuple(p[0] for p in padding), hi=tuple(p[1] for p in padding),
              interior=tuple(b - 1 for b in base), value=fill)
    return slide(x, tuple(range(x.ndim)), window, strides, dilation)


def sliding(x: Array, fill: Any, window: Any, strides: Any, padding: Any) -> Array:
    """A view [*out, *window] of x padded with `fill`."""
    return _windows(x, fill, window, strides, padding, None, None)


def slide(x: Array, axes: tuple[int, ...], window: Any, strides: Any, dilation: Any) -> Array:
    """A view of x with the windows over `axes` as its last axes; empty if a window does not fit."""
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


@in_float32
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
    padded = o.pad.lower(k, x, lo=tuple(p[0] for p in padding),  # type: ignore[misc]
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


def _window_vjp(g: Any, y: Any, x: Any, *, kind: str, **attrs: Any) -> tuple[Any, ...]:
    """The gradient of each kind.

    That of a sum is a windowed sum; that of an extreme goes to the first element that equals it;
    that of a factor is the product of the others, computed for one tap of the window at a time.
    """
    if kind == "prod":
        return (_window_prod(g, x, **attrs),)
    if kind == "sum":
        return (_window_sum(g, x, **attrs),)
    plain = all(d == 1 for n in ("base_dilation", "window_dilation") for d in attrs[n] or ())
    if plain:
        where = {n: attrs[n] for n in ("window", "strides", "padding")}
        taps = o.extreme_tap(x, kind=kind, **where)
        return (o.unpool(g, taps, shape=x.shape, **where),)
    places = product(g.shape)
    index = o.arg_reduce_window(x, kind=kind, **attrs)
    flat = o.scatter(filled(x, 0.0, (product(x.shape),)), o.reshape(index, shape=(places, 1)),
                     o.reshape(g, shape=(places,)), axes=(0,), kind="add")
    return (o.reshape(flat, shape=x.shape),)


def _window_prod(g: Any, x: Any, *, window: Any, strides: Any, padding: Any, base_dilation: Any,
                 window_dilation: Any) -> Any:
    strides, padding, base, dilation = conv_defaults(x.ndim, strides, padding, base_dilation,
                                                     window_dilation)
    around = {"lo": tuple(lo for lo, _ in padding), "hi": tuple(hi for _, hi in padding),
              "interior": tuple(b - 1 for b in base)}
    wide = o.pad(x, **around, value=1.0)
    spans = [(m - 1) * s + 1 for m, s in zip(g.shape, strides, strict=True)]
    taps = []
    for at in itertools.product(*(range(0, k * r, r) for k, r in zip(
            window, dilation, strict=True))):
        limit = tuple(a + n for a, n in zip(at, spans, strict=True))
        taps.append(({"start": at, "limit": limit, "strides": tuple(strides)},
                     o.slice(wide, start=at, limit=limit, strides=strides)))
    total = filled(x, 0.0, wide.shape)
    for (cut, _), others in zip(taps, _all_but_one([t for _, t in taps]), strict=True):
        mine = g if others is None else g * others
        total = total + o.slice.vjp(mine, None, wide, **cut)[0]  # type: ignore[misc]
    back = o.pad.vjp(total, None, x, **around, value=1.0)  # type: ignore[misc]
    return back[0]


def _all_but_one(factors: list[Any]) -> list[Any]:
    """For each factor the product of all others; None if there are no others."""
    def runs(xs: list[Any]) -> list[Any]:
        out: list[Any] = [None]
        for x in xs[:-1]:
            out.append(x if out[-1] is None else out[-1] * x)
        return out
    before, behind = runs(factors), runs(factors[::-1])[::-1]
    return [b if a is None else a if b is None else a * b
            for a, b in zip(before, behind, strict=True)]


def _window_sum(g: Any, x: Any, *, window: Any, strides: Any, padding: Any, base_dilation: Any,
                window_dilation: Any) -> Any:
    strides, padding, base, dilation = conv_defaults(x.ndim, strides, padding, base_dilation,
                                                     window_dilation)
    edges = []
    for d, m, k, s, (lo, _), b, r in zip(x.shape, g.shape, window, strides, padding, base,
                                         dilation, strict=True):
        edges.append((dilate(k, r) - 1 - lo, dilate(d, b) + lo - dilate(m, s)))
    return o.reduce_window(g, kind="sum", window=window, strides=base, padding=tuple(edges),
                           base_dilation=strides, window_dilation=dilation)


register(Op("reduce_window", window_infer, _window_eval, _window_vjp, _window_lower,
            traits=Trait.WINDOWED, cost=per_tap, filled=_filled, precision=Precision.FOLLOW,
            axes=Axes(each={"window": 1, "strides": 1, "padding": (0, 0), "base_dilation": 1,
                            "window_dilation": 1}),
            doc="the sum, product, maximum or minimum of each window; padding is the neutral "
                "element"))

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
    values = o.pad.lower(k, x, **spread, value=identity(kind, x.dtype))  # type: ignore[misc]
    numbers = o.pad.lower(k, places, **spread, value=_NOWHERE)  # type: ignore[misc]

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


_NOWHERE = 2**62  # the result for a window that holds only padding
register(Op("arg_reduce_window", _arg_window_infer, _arg_window_eval, None, _arg_window_lower,
            traits=Trait.WINDOWED, cost=per_tap, filled=_filled,
            doc="the row-major index in x of the maximum or minimum of each window; the first of "
                "equal elements"))


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
