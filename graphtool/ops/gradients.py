"""The gradients that take more than a line: reductions, running ones, scatter, conv, windows.

All are built from ops, so they differentiate again. Un-broadcasting is not done here but once, in
autodiff.
"""

from __future__ import annotations

import itertools
from typing import Any

from graphtool import dtypes
from graphtool.ir.op import OPS
from graphtool.ir.op import ops as o
from graphtool.ir.trace import like
from graphtool.ops.common import filled
from graphtool.ops.geometry import conv_defaults, dilate
from graphtool.symbolic import Dim, product


def _took(x: Any, y: Any) -> Any:
    """Where a maximum (or minimum) y took the element x: equal, or NaN."""
    return o.or_(o.eq(x, y), o.is_nan(x))


def _iota(x: Any, shape: tuple[Dim, ...], axis: int) -> Any:
    return like(x, o.iota, shape=shape, axis=axis, dtype=dtypes.int64)


# ---- reductions --------------------------------------------------------------------------------


def reduce(kind: str, g: Any, y: Any, x: Any, axes: tuple[int, ...]) -> tuple[Any, ...]:
    """Of reduce_sum, prod, max, min: ties of an extreme share its gradient evenly."""
    axes = tuple(sorted({a % x.ndim for a in axes})) if x.ndim else ()
    if kind == "sum":
        return (o.broadcast(g, shape=x.shape),)
    if kind == "prod":
        return (g * _others(x, axes),)
    share = o.cast(_took(x, y), dtype=x.dtype)
    return (g * share / o.reduce_sum(share, axes=axes),)


def _others(x: Any, axes: tuple[int, ...]) -> Any:
    """The product of all other elements: what stands before times what stands behind."""
    if not axes:
        return filled(x, 1.0, x.shape)
    perm = (*(a for a in range(x.ndim) if a not in axes), *axes)
    last = o.transpose(x, perm=perm)
    lead = last.shape[:x.ndim - len(axes)]
    flat = o.reshape(last, shape=(*lead, product(last.shape[len(lead):])))
    before, behind = (o.cumulative(flat, kind="prod", axis=len(lead), exclusive=True, reverse=r)
                      for r in (False, True))
    out = o.reshape(before * behind, shape=last.shape)
    return o.transpose(out, perm=tuple(perm.index(a) for a in range(x.ndim)))


# ---- cumulative --------------------------------------------------------------------------------


def cumulative(g: Any, y: Any, x: Any, *, kind: str, axis: int, reverse: bool,
               exclusive: bool) -> tuple[Any, ...]:
    """A sum runs back; products and extremes go over all pairs (i, j), x[i] in y[j]'s prefix."""
    axis %= x.ndim
    if kind == "sum":
        return (o.cumulative(g, kind="sum", axis=axis, reverse=not reverse, exclusive=exclusive),)
    perm = (*(a for a in range(x.ndim) if a != axis), axis)
    back = tuple(perm.index(a) for a in range(x.ndim))
    gt, yt, xt = (o.transpose(v, perm=perm) for v in (g, y, x))
    lead, n = xt.shape[:-1], xt.shape[-1]
    column, row = (_iota(x, (n, 1), 0), _iota(x, (1, n), 1))  # i and j
    seen = _in_prefix(column, row, reverse, exclusive)
    across = o.reshape(gt, shape=(*lead, 1, n))
    if kind == "prod":
        wide = o.broadcast(o.reshape(xt, shape=(*lead, 1, n)), shape=(*lead, n, n))
        others = o.cumulative(o.select(o.eq(column, row), 1.0, wide), kind="prod",
                              axis=len(lead) + 1, reverse=reverse, exclusive=exclusive)
        pairs = o.select(seen, others * across, 0.0)
    else:
        pairs = o.select(_latest(xt, yt, lead, n, column, seen, reverse), across, 0.0)
    total = o.reduce_sum(pairs, axes=(len(lead) + 1,))
    return (o.transpose(o.reshape(total, shape=xt.shape), perm=back),)


def _in_prefix(i: Any, j: Any, reverse: bool, exclusive: bool) -> Any:
    if reverse:
        return o.gt(i, j) if exclusive else o.ge(i, j)
    return o.lt(i, j) if exclusive else o.le(i, j)


def _latest(x: Any, y: Any, lead: tuple[Dim, ...], n: Dim, column: Any, seen: Any,
            reverse: bool) -> Any:
    """Which x[i] each running extreme y[j] took: of equal ones the one met last, as in torch."""
    at_i, at_j = o.reshape(x, shape=(*lead, n, 1)), o.reshape(y, shape=(*lead, 1, n))
    hit = o.and_(_took(at_i, at_j), seen)
    place = o.select(hit, column, n if isinstance(n, int) and reverse else -1)
    if reverse:
        size = like(x, o.dim, of=n, dtype=dtypes.int64)
        best = o.reduce_min(o.select(hit, column, size), axes=(len(lead),))
    else:
        best = o.reduce_max(place, axes=(len(lead),))
    return o.and_(hit, o.eq(column, best))


# ---- scatter -----------------------------------------------------------------------------------


def scatter(g: Any, y: Any, x: Any, indices: Any, updates: Any, *, axes: tuple[int, ...],
            batch: int, kind: str) -> tuple[Any, ...]:
    """Of two updates set to one place only the winner has a gradient; extremes share evenly."""
    where = {"axes": axes, "batch": batch}
    at = o.gather(g, indices, **where)
    match kind:
        case "add":
            return g, None, at
        case "set":
            zeros = filled(x, 0.0, updates.shape)
            return (o.scatter(g, indices, zeros, kind="set", **where), None,
                    o.select(_winners(x, indices, updates, where), at, 0.0))
        case "mul":
            factor = o.scatter(filled(x, 1.0, x.shape), indices, updates, kind="mul", **where)
            return g * factor, None, at * _other_factors(x, indices, updates, where)
    from_x = o.cast(_took(x, y), dtype=x.dtype)
    from_u = o.cast(_took(updates, o.gather(y, indices, **where)), dtype=x.dtype)
    shared = g / o.scatter(from_x, indices, from_u, kind="add", **where)
    return shared * from_x, None, o.gather(shared, indices, **where) * from_u


def _winners(x: Any, indices: Any, updates: Any, where: dict[str, Any]) -> Any:
    """Which updates are still there in the end: number them, scatter the numbers, read back."""
    number = o.reshape(_iota(x, (product(updates.shape),), 0), shape=updates.shape)
    left = o.scatter(filled(x, -1, x.shape, dtypes.int64), indices, number, kind="set", **where)
    return o.eq(o.gather(left, indices, **where), number)


def _other_factors(x: Any, indices: Any, updates: Any, where: dict[str, Any]) -> Any:
    """x times all other updates of the same place, exact where factors are 0."""
    zero = o.eq(updates, 0.0)
    safe = o.select(zero, 1.0, updates)
    zeros = o.gather(o.scatter(filled(x, 0.0, x.shape), indices, o.cast(zero, dtype=x.dtype),
                               kind="add", **where), indices, **where)
    rest = o.gather(o.scatter(x, indices, safe, kind="mul", **where), indices, **where) / safe
    return o.select(o.eq(zeros, o.cast(zero, dtype=x.dtype)), rest, 0.0)


# ---- conv --------------------------------------------------------------------------------------


def conv(g: Any, x: Any, w: Any, *, strides: Any, padding: Any, lhs_dilation: Any,
         rhs_dilation: Any, groups: int, batch_groups: int, channels_last: bool,
         dtype: Any) -> tuple[Any, ...]:
    """Both gradients are conv: strides and left dilation change places, as do groups and batch."""
    n = x.ndim - 2
    geometry = conv_defaults(n, strides, padding, lhs_dilation, rhs_dilation)
    g = g if dtype is None or dtype is x.dtype else o.cast(g, dtype=x.dtype)
    first = (0, n + 1, *range(1, n + 1))
    if channels_last:
        g, x = o.transpose(g, perm=first), o.transpose(x, perm=first)
    gx = _conv_x(g, x, w, geometry, groups, batch_groups)
    gw = _conv_w(g, x, w, geometry, groups, batch_groups)
    return (o.transpose(gx, perm=(0, *range(2, n + 2), 1)) if channels_last else gx), gw


def _swapped(x: Any) -> Any:
    return o.transpose(x, perm=(1, 0, *range(2, x.ndim)))


def _edges(x: Any, w: Any, g: Any, geometry: Any) -> list[tuple[Dim, Dim, Dim, Dim]]:
    """Per spatial axis: the dilated sizes of x, w and g, and the padding before."""
    strides, padding, lhs, rhs = geometry
    return [(dilate(d, b), dilate(k, r), dilate(m, s), lo) for d, k, m, s, (lo, _), b, r in zip(
        x.shape[2:], w.shape[2:], g.shape[2:], strides, padding, lhs, rhs, strict=True)]


def _conv_x(g: Any, x: Any, w: Any, geometry: Any, groups: int, batch_groups: int) -> Any:
    strides, _, lhs, rhs = geometry
    parts = groups * batch_groups
    per, channels, window = w.shape[0] // parts, w.shape[1], w.shape[2:]
    flipped = o.reshape(o.reverse(w, axes=tuple(range(2, w.ndim))),
                        shape=(parts, per, channels, *window))
    turned = o.transpose(flipped, perm=(0, 2, 1, *range(3, flipped.ndim)))
    padding = tuple((k - 1 - lo, d + lo - m) for d, k, m, lo in _edges(x, w, g, geometry))
    gx = o.conv(g, o.reshape(turned, shape=(parts * channels, per, *window)), strides=lhs,
                padding=padding, lhs_dilation=strides, rhs_dilation=rhs, groups=parts)
    if batch_groups == 1:
        return gx
    split = o.reshape(gx, shape=(g.shape[0], batch_groups, channels, *x.shape[2:]))
    return o.reshape(o.transpose(split, perm=(1, 0, *range(2, split.ndim))), shape=x.shape)


def _conv_w(g: Any, x: Any, w: Any, geometry: Any, groups: int, batch_groups: int) -> Any:
    strides, _, lhs, rhs = geometry
    padding = tuple((lo, k - 1 + m - d - lo) for d, k, m, lo in _edges(x, w, g, geometry))
    gw = o.conv(_swapped(x), _swapped(g), strides=rhs, padding=padding, lhs_dilation=lhs,
                rhs_dilation=strides, groups=batch_groups, batch_groups=groups)
    return _swapped(gw)


# ---- reduce_window -----------------------------------------------------------------------------


def reduce_window(g: Any, y: Any, x: Any, *, kind: str, **attrs: Any) -> tuple[Any, ...]:
    """A sum's gradient is a windowed sum; an extreme's goes to the first element that held it; a
    factor's is the product of the others, one tap of the window after the other."""
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
        total = total + _vjp("slice")(mine, None, wide, **cut)[0]
    return _vjp("pad")(total, None, x, **around, value=1.0)[0]


def _vjp(name: str) -> Any:
    return OPS[name].vjp


def _all_but_one(factors: list[Any]) -> list[Any]:
    """For each factor the product of the others; None where there are none."""
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
