"""Convolution, closed under differentiation.

conv has both dilations and batch groups as attributes, so its gradients are conv, and so is
transposed convolution. `channels_last` says whether the channel axis of x and y is the last or the
second one; the weights are [out channels, in channels per group, *window] in both cases.

Where a window covers no element of x, because of padding or dilation, it covers zeros, and 0 · ∞
is NaN. With `absent` nothing is there, and the weight is not used. A transposed convolution and the
gradient of x mean this: each element is spread, and no zeros are put between or around them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from graphtool import dtypes
from graphtool import ops as o
from graphtool.dtypes import DType
from graphtool.ir.facets import Precision, Trait, Weighing
from graphtool.ir.graph import TensorType
from graphtool.ir.op import Op, register
from graphtool.loops.ir import Const
from graphtool.loops.pull import Names, Pull, Reduce, apply, cast, iterator
from graphtool.ops.common import Array, equal_dims, need
from graphtool.ops.costs import elements
from graphtool.ops.indexing import Pairs, conv_defaults, dilate, out_dim, under_windows
from graphtool.ops.window import slide
from graphtool.symbolic import Dim, product, symbol_of


def conv_infer(x: TensorType, w: TensorType, *, strides: tuple[int, ...] | None = None,
               padding: Pairs | None = None, lhs_dilation: tuple[int, ...] | None = None,
               rhs_dilation: tuple[int, ...] | None = None, groups: int = 1,
               batch_groups: int = 1, channels_last: bool = False, absent: bool = False,
               dtype: DType | None = None) -> TensorType:
    """The type of a convolution of x [N, C, spatial…] with w [M, C / groups, window…].

    With `channels_last` the channel axis of x and of the result is the last one. Raises
    TypeMismatch GT0412 if shapes, groups or attributes do not fit.
    """
    need(x.rank == w.rank and x.rank >= 3, f"x {x} and w {w} must have the same rank, 3 or more")
    need(x.dtype is w.dtype, f"element types differ: {x.dtype.short} and {w.dtype.short}")
    n = x.rank - 2
    strides, padding, lhs, rhs = conv_defaults(n, strides, padding, lhs_dilation, rhs_dilation)
    need(len(strides) == len(padding) == len(lhs) == len(rhs) == n,
         f"strides, padding and dilations need {n} entries each, one per spatial axis")
    batch, channels, space = x.shape[0], x.shape[-1 if channels_last else 1], (
        x.shape[1:-1] if channels_last else x.shape[2:])
    equal_dims((channels,), (w.shape[1] * groups,),
               f"x has {channels} channels, but the weights are for {w.shape[1]} × {groups} groups")
    need(w.shape[0] % groups == 0, f"{w.shape[0]} output channels cannot be divided into {groups} "
                                   f"groups")
    need(batch_groups == 1 or groups == 1, "groups and batch_groups cannot both be greater than 1")
    need(batch % batch_groups == 0 and w.shape[0] % batch_groups == 0,
         "batch_groups must divide the batch and the output channels")
    out = tuple(out_dim(d, k, s, lo, hi, b, r) for d, k, s, (lo, hi), b, r in zip(
        space, w.shape[2:], strides, padding, lhs, rhs, strict=True))
    need(all(not isinstance(d, int) or d >= 0 for d in out),
         f"the window is larger than the padded x {x}")
    shape = (batch // batch_groups, *out, w.shape[0]) if channels_last else (
        batch // batch_groups, w.shape[0], *out)
    return TensorType(dtype or x.dtype, shape)


def _conv_filled(x: TensorType, w: TensorType, *, lhs_dilation: tuple[int, ...] | None = None,
                 channels_last: bool = False, **_: Any) -> tuple[Dim, ...]:
    window = tuple(max(k, d) if isinstance(k, int) else k for k, d in zip(
        w.shape[2:], lhs_dilation or (1,) * (w.rank - 2), strict=True))
    return *under_windows(x, window, channels_last), *(k for k in window if not isinstance(k, int))


def _conv_eval(x: Array, w: Array, *, strides: Any, padding: Any, lhs_dilation: Any,
               rhs_dilation: Any, groups: int, batch_groups: int, channels_last: bool,
               absent: bool, dtype: DType | None) -> Array:
    n = x.ndim - 2
    strides, padding, lhs, rhs = conv_defaults(n, strides, padding, lhs_dilation, rhs_dilation)
    out = dtype.numpy if dtype else x.dtype
    wide = np.float32 if out.itemsize < 4 and dtypes.of_numpy(out).is_float else out
    x = np.moveaxis(x, -1, 1) if channels_last else x
    edges: dict[str, Any] = {
        "lo": (0, 0, *(p[0] for p in padding)), "hi": (0, 0, *(p[1] for p in padding)),
        "interior": (0, 0, *(d - 1 for d in lhs))}
    seen = o.pad(np.ones((1, 1, *x.shape[2:]), bool), **edges)
    x, w = o.pad(x.astype(wide, copy=False), **edges), w.astype(wide, copy=False)
    if batch_groups > 1:  # group g of the batch is convolved with group g of the output channels
        x = np.concatenate(np.split(x, batch_groups, 0), 1)
        groups = batch_groups
    views, seen = (slide(v, tuple(range(2, 2 + n)), w.shape[2:], strides, rhs) for v in (x, seen))
    if absent and not np.isfinite(w).all():
        y = _present(views, seen, w, groups)
    else:
        y = _products(views, w, groups)
    y = y.astype(out, copy=False)
    return np.ascontiguousarray(np.moveaxis(y, 1, -1)) if channels_last else y


def _present(views: Array, seen: Array, w: Array, groups: int) -> Array:
    """Σ over the window of views [N, C, *out, *window] and w, where `seen` is true."""
    n = w.ndim - 2
    batch, channels, *space = views.shape[:2 + n]
    y = np.zeros((batch, w.shape[0], *space), w.dtype)
    for tap in np.ndindex(*w.shape[2:]):
        part = views[(..., *tap)].reshape(batch, groups, channels // groups, -1)
        taps = w[(..., *tap)].reshape(groups, w.shape[0] // groups, w.shape[1])
        y += np.where(seen[(..., *tap)], (taps @ part).reshape(y.shape), w.dtype.type(0))
    return y


def _products(views: Array, w: Array, groups: int) -> Array:
    """Σ over the window of views [N, C, *out, *window] and w, a product of matrices a group."""
    n = w.ndim - 2
    batch, channels, *space = views.shape[:2 + n]
    cg, og, taps = channels // groups, w.shape[0] // groups, int(np.prod(w.shape[2:]))
    y = np.zeros((batch, w.shape[0], *space), w.dtype)
    if cg == og == 1:  # a filter for each channel: all channels at once, tap by tap
        for tap in np.ndindex(*w.shape[2:]):
            y += views[(..., *tap)] * w[(slice(None), 0, *tap)].reshape(-1, *(1,) * n)
        groups = 0
    order = (0, *range(2, 2 + n), 1, *range(2 + n, 2 + 2 * n))
    for g in range(groups):
        cols = views[:, g * cg:(g + 1) * cg].transpose(order).reshape(
            batch * int(np.prod(space)), cg * taps)
        rows = w[g * og:(g + 1) * og].reshape(og, cg * taps)
        part = (cols @ rows.T).reshape(batch, *space, og)
        y[:, g * og:(g + 1) * og] = np.moveaxis(part, -1, 1)
    return y


def _conv_lower(k: Names, x: Pull, w: Pull, *, strides: Any, padding: Any, lhs_dilation: Any,
                rhs_dilation: Any, groups: int, batch_groups: int, channels_last: bool,
                absent: bool, dtype: DType | None) -> Pull:
    n = len(x.shape) - 2
    strides, padding, lhs, rhs = conv_defaults(n, strides, padding, lhs_dilation, rhs_dilation)
    result = conv_infer(TensorType(x.dtype, x.shape), TensorType(w.dtype, w.shape),
                        strides=strides, padding=padding, lhs_dilation=lhs, rhs_dilation=rhs,
                        groups=groups, batch_groups=batch_groups, channels_last=channels_last,
                        dtype=dtype)
    edge = ((0, 0),)
    spread = (*edge, *padding, *edge) if channels_last else (*edge, *edge, *padding)
    gaps = (0, *(d - 1 for d in lhs), 0) if channels_last else (0, 0, *(d - 1 for d in lhs))
    there = Pull(dtypes.bool_, x.shape, lambda idx: Const(True, dtypes.bool_))
    padded, seen = (o.pad.lower(k, v, lo=tuple(p[0] for p in spread),  # type: ignore[misc]
                                hi=tuple(p[1] for p in spread), interior=gaps, value=0.0)
                    for v in (x, there))
    cg, og = w.shape[1], w.shape[0] // (groups * batch_groups)
    wide = dtypes.float32 if result.dtype.is_narrow else result.dtype

    def at(idx: Any) -> Any:
        b, outs = idx[0], idx[-1] if channels_last else idx[1]
        space = idx[1:-1] if channels_last else idx[2:]
        group = outs // og
        c = iterator(k.new("c"), cg)
        window = [iterator(k.new("r"), d) for d in w.shape[2:]]
        at_space = [i * s + symbol_of(r) * d
                    for i, s, r, d in zip(space, strides, window, rhs, strict=True)]
        channel = symbol_of(c) + (group * cg if groups > 1 else 0)
        row = b + (group * result.shape[0] if batch_groups > 1 else 0)
        xi = (row, *at_space, channel) if channels_last else (row, channel, *at_space)
        wi = (outs, symbol_of(c), *map(symbol_of, window))
        product = apply("mul", cast(padded.at(xi), wide), cast(w.at(wi), wide))
        if absent:
            product = apply("select", seen.at(xi), product, Const(0, wide), dtype=wide)
        iters = ((c, cg), *zip(window, w.shape[2:], strict=True))
        if channels_last:
            iters = (*iters[1:], iters[0])
        return cast(Reduce("add", Const(0, wide), iters, product, wide), result.dtype)
    return Pull(result.dtype, result.shape, at)


def _conv_vjp(g: Any, _y: Any, x: Any, w: Any, *, strides: Any, padding: Any, lhs_dilation: Any,
              rhs_dilation: Any, groups: int, batch_groups: int, channels_last: bool,
              absent: bool, dtype: Any) -> tuple[Any, ...]:
    """Both gradients are conv. Strides and left dilation are exchanged, and so are groups and
    batch groups. Around g and between its elements nothing is, whatever is around x."""
    n = x.ndim - 2
    geometry = conv_defaults(n, strides, padding, lhs_dilation, rhs_dilation)
    g = g if dtype is None or dtype is x.dtype else o.cast(g, dtype=x.dtype)
    first = (0, n + 1, *range(1, n + 1))
    if channels_last:
        g, x = o.transpose(g, perm=first), o.transpose(x, perm=first)
    gx = _conv_x(g, x, w, geometry, groups, batch_groups)
    gw = _conv_w(g, x, w, geometry, groups, batch_groups, absent)
    return (o.transpose(gx, perm=(0, *range(2, n + 2), 1)) if channels_last else gx), gw


def _swapped(x: Any) -> Any:
    return o.transpose(x, perm=(1, 0, *range(2, x.ndim)))


def _edges(x: Any, w: Any, g: Any, geometry: Any) -> list[tuple[Dim, Dim, Dim, Dim]]:
    """For each spatial axis: the dilated sizes of x, w and g, and the padding at its start."""
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
                padding=padding, lhs_dilation=strides, rhs_dilation=rhs, groups=parts,
                absent=True)
    if batch_groups == 1:
        return gx
    split = o.reshape(gx, shape=(g.shape[0], batch_groups, channels, *x.shape[2:]))
    return o.reshape(o.transpose(split, perm=(1, 0, *range(2, split.ndim))), shape=x.shape)


def _conv_w(g: Any, x: Any, w: Any, geometry: Any, groups: int, batch_groups: int,
            absent: bool) -> Any:
    strides, _, lhs, rhs = geometry
    padding = tuple((lo, k - 1 + m - d - lo) for d, k, m, lo in _edges(x, w, g, geometry))
    gw = o.conv(_swapped(x), _swapped(g), strides=rhs, padding=padding, lhs_dilation=lhs,
                rhs_dilation=strides, groups=batch_groups, batch_groups=groups, absent=absent)
    return _swapped(gw)


def _conv_cost(y: TensorType, _x: TensorType, w: TensorType, *,
               lhs_dilation: tuple[int, ...] | None, **_: Any) -> Dim:
    """2 · outputs · channels of a group · window; zeros between dilated inputs are not counted"""
    return 2 * elements(y) * product(w.shape[1:]) // product(lhs_dilation or ())


register(Op("conv", conv_infer, _conv_eval, _conv_vjp, _conv_lower,
            traits=Trait.CONTRACTION, cost=_conv_cost, precision=Precision.LOW,
            filled=_conv_filled, weighing=Weighing("conv", only={"batch_groups": 1, "dtype": None}),
            doc="y[n, o, p] = Σ x[n, c, p·stride + k·dilation − padding]·w[o, c, k] over channels "
                "c and positions k of the window, in any number of dimensions; `lhs_dilation` "
                "puts zeros between the elements of x, `groups` divides the channels, "
                "`batch_groups` the batch; where a window covers no element of x it reads 0, with "
                "`absent` it does not use the weight"))
