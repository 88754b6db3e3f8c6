"""Contractions: matrix products, linear layers, convolutions, distances."""

from __future__ import annotations

from typing import Any

import numpy as np

from graphtool.importers.least_sizes import fitting_conv
from graphtool.importers.torch.driver.context import Context, batched, pairs
from graphtool.importers.torch.kit import Array, Dim, Refused, aten, dtypes, o

# ---- matrix products ---------------------------------------------------------------------------


@aten("mm", "bmm")
def mm(c: Context, self: Array, mat2: Array, **_: Any) -> Any:
    """matmul of two matrices, or of two batches of matrices."""
    return o.matmul(self, mat2)


@aten("matmul", "mv", "dot", "vdot")
def matmul(c: Context, self: Array, other: Array) -> Any:
    """matmul; a vector gets an axis of size 1 for it, which the result does not have."""
    a = self if self.ndim > 1 else self.unsqueeze(0)
    b = other if other.ndim > 1 else other.unsqueeze()
    return o.matmul(a, b).reshape(c.out.shape)


@aten("outer", "ger")
def outer(c: Context, self: Array, vec2: Array) -> Any:
    """x[:, none]·y, [n, m]."""
    return self.cast(c.out.dtype).unsqueeze() * vec2.cast(c.out.dtype)


def _weighted(c: Context, x: Any, factor: Any) -> Any:
    return x if factor == 1 else x * c.cast(factor, x.dtype)


def _plus(c: Context, self: Array, product: Any, beta: Any, alpha: Any) -> Any:
    product = _weighted(c, product, alpha)
    return product if beta == 0 else product + _weighted(c, self, beta)


@aten("addmm", "baddbmm")
def addmm(c: Context, self: Array, mat1: Array, mat2: Array, *, beta: Any = 1,
          alpha: Any = 1) -> Any:
    """beta·x + alpha·matmul(a, b)."""
    return _plus(c, self, o.matmul(mat1, mat2), beta, alpha)


@aten("addbmm")
def addbmm(c: Context, self: Array, batch1: Array, batch2: Array, *, beta: Any = 1,
           alpha: Any = 1) -> Any:
    """beta·x + alpha·Σ over the batch of matmul(a, b)."""
    return _plus(c, self, o.matmul(batch1, batch2).reduce("sum", (0,)), beta, alpha)


@aten("addmv")
def addmv(c: Context, self: Array, mat: Array, vec: Array, *, beta: Any = 1,
          alpha: Any = 1) -> Any:
    """beta·x + alpha·(matrix · vector)."""
    return _plus(c, self, matmul(c, mat, vec), beta, alpha)


@aten("addr")
def addr(c: Context, self: Array, vec1: Array, vec2: Array, *, beta: Any = 1,
         alpha: Any = 1) -> Any:
    """beta·x + alpha·outer(u, v)."""
    return _plus(c, self, outer(c, vec1, vec2), beta, alpha)


@aten("linear")
def linear(c: Context, input: Array, weight: Array, bias: Array | None = None) -> Any:
    """x·wᵀ + b by our linear; a vector x or w becomes a matrix for the call."""
    if weight.ndim == 1:
        y = matmul(c, input, weight)
        return y if bias is None else y + bias
    if input.ndim == 1:
        return o.linear(input.unsqueeze(0), weight, bias).reshape(c.out.shape)
    return o.linear(input, weight, bias)


# ---- products in groups of rows ----------------------------------------------------------------

@aten("_grouped_mm")
def grouped_mm(c: Context, self: Array, mat2: Array, offs: Array | None = None,
               bias: Array | None = None, out_dtype: Any = None) -> Any:
    """Row r times matrix e, where offs[e − 1] ≤ r < offs[e]; rows after the last group are 0.
    With few rows each row gathers its matrix; with many, all products are made, one is taken."""
    if offs is None or bias is not None or self.ndim != 2 or mat2.ndim != 3:
        raise Refused("a grouped product is supported only as [rows, k] times [groups, k, n] "
                      "with `offs` and without `bias`")
    rows, (count, _, width) = self.shape[0], mat2.shape
    place = c.iota((rows, 1), 0)
    done = place >= offs.reshape((1, count)).cast(dtypes.int64)
    group = o.reduce_sum(done.cast(dtypes.int64), axes=(1,))
    inside = group < c.number(count, dtypes.int64)
    group = o.select(inside, group, 0)
    if isinstance(rows, int) and isinstance(count, int) and rows <= count:
        y = o.matmul(self.unsqueeze(1), o.gather(mat2, group, axes=(0,))).reshape((rows, width))
    else:
        every = o.matmul(self.unsqueeze(0), mat2)
        y = o.gather(every, o.concat(group, place, axis=1), axes=(0, 1))
    return c.cast(o.select(inside, y, 0.0), c.out.dtype)


@aten("grouped_mm_fallback", namespace="transformers")
def grouped_mm_fallback(c: Context, input: Array, weight: Array, offs: Array) -> Any:
    """grouped_mm, as the transformers library spells it."""
    return grouped_mm(c, input, weight, offs)


# ---- convolution -------------------------------------------------------------------------------

def _conv(x: Array, w: Array, bias: Array | None, **attrs: Any) -> Any:
    """conv plus the bias; an x without a batch axis gets one for the call."""
    n = w.ndim - 2

    def whole(x: Array) -> Any:
        y = fitting_conv(x, w, **attrs)
        return y if bias is None else y + bias.reshape((bias.shape[0], *(1,) * n))
    return batched(whole, x, n)


@aten("conv1d", "conv2d", "conv3d")
def conv(c: Context, input: Array, weight: Array, bias: Array | None = None, stride: Any = 1,
         padding: Any = 0, dilation: Any = 1, groups: int = 1) -> Any:
    """Our conv, channels at axis 1; `padding` is numbers, "same" or "valid"."""
    n = weight.ndim - 2
    dilation = pairs(dilation, n)
    if isinstance(padding, str):
        edges = _named_padding(padding, weight.shape[2:], dilation)
    else:
        edges = tuple((p, p) for p in pairs(padding, n))
    return _conv(input, weight, bias, strides=pairs(stride, n), padding=edges,
                 rhs_dilation=dilation, groups=groups)


def _named_padding(name: str, window: tuple[Dim, ...], dilation: tuple[int, ...]) -> Any:
    """(lo, hi) for each axis; of an odd total "same" puts the larger half at the end."""
    total = [d * (k - 1) if name == "same" else 0 for d, k in zip(dilation, window, strict=True)]
    return tuple((t // 2, t - t // 2) for t in total)


@aten("convolution", "_convolution")
def convolution(c: Context, input: Array, weight: Array, bias: Array | None, stride: Any,
                padding: Any, dilation: Any, transposed: bool, output_padding: Any,
                groups: int, *_: Any) -> Any:
    """conv, or conv_transpose if `transposed`."""
    if transposed:
        return conv_transpose(c, input, weight, bias, stride, padding, output_padding, groups,
                              dilation)
    return conv(c, input, weight, bias, stride, padding, dilation, groups)


@aten("conv_transpose1d", "conv_transpose2d", "conv_transpose3d")
def conv_transpose(c: Context, input: Array, weight: Array, bias: Array | None = None,
                   stride: Any = 1, padding: Any = 0, output_padding: Any = 0, groups: int = 1,
                   dilation: Any = 1) -> Any:
    """conv of the input dilated by the stride (lhs_dilation), with the window reversed."""
    return _conv(input, transposed_weights(weight, groups), bias, **transposed_attrs(
        weight, stride, padding, output_padding, groups, dilation))


def transposed_attrs(w: Array, stride: Any, padding: Any, output_padding: Any, groups: int,
                     dilation: Any) -> dict[str, Any]:
    """The attributes of the plain conv that computes a transposed convolution."""
    n = w.ndim - 2
    strides, pad, more, spread = (pairs(x, n) for x in (stride, padding, output_padding, dilation))
    edges = tuple((d * (k - 1) - p, d * (k - 1) - p + m) for d, k, p, m in zip(
        spread, w.shape[2:], pad, more, strict=True))
    return {"padding": edges, "lhs_dilation": strides, "rhs_dilation": spread, "groups": groups,
            "absent": True}


def transposed_weights(w: Array, groups: int) -> Array:
    """[in, out / groups, *window] as [out, in / groups, *window], with the window reversed.

    It is its own inverse.
    """
    inputs, outputs, *window = w.shape
    space = range(2, w.ndim)
    if groups == 1:
        w = w.transpose([1, 0, *space])
    else:
        w = w.reshape((groups, inputs // groups, outputs, *window))
        w = w.transpose([0, 2, 1, *(i + 1 for i in space)])
        w = w.reshape((groups * outputs, inputs // groups, *window))
    return w if all(k == 1 for k in window) else o.reverse(w, axes=tuple(space))


# ---- products of three, distances ------------------------------------------------------------

@aten("_trilinear")
def trilinear(c: Context, i1: Array, i2: Array, i3: Array, expand1: tuple[int, ...],
              expand2: tuple[int, ...], expand3: tuple[int, ...], sumdim: tuple[int, ...],
              unroll_dim: int = 1) -> Any:
    """Σ over `sumdim` of the product of three tensors, each with new axes of size 1."""
    def expanded(x: Array, new: tuple[int, ...]) -> Array:
        dims = iter(x.shape)
        return x.reshape([1 if i in new else next(dims) for i in range(x.ndim + len(new))])
    whole = expanded(i1, expand1) * expanded(i2, expand2) * expanded(i3, expand3)
    return o.reduce_sum(whole, axes=tuple(sumdim)).reshape(c.out.shape)


def _distance(gap: Array, p: float) -> Any:
    """The p-norm along the last axis, which the result does not have."""
    axis = (gap.ndim - 1,)
    if p == 0:
        return o.ne(gap, 0.0).cast(gap.dtype).reduce("sum", axis)
    return o.norm(gap, axes=axis, order=float(p)).reshape(gap.shape[:-1])


@aten("_cdist_forward")
def cdist(c: Context, x1: Array, x2: Array, p: float, compute_mode: Any = None) -> Any:
    """The p-norm of every row of x1 minus every row of x2, [..., n, m]."""
    return _distance(x1.unsqueeze(-2) - x2.unsqueeze(-3), p)


@aten("_pdist_forward")
def pdist(c: Context, self: Array, p: float = 2.0) -> Any:
    """The distances of rows i < j, [n·(n − 1) / 2], by two gathers."""
    if not isinstance(self.shape[0], int):
        raise Refused("pdist over a symbolic number of rows is not supported; fix that size for "
                      "the export")
    a, b = (self.at(r, 0) for r in np.triu_indices(self.shape[0], 1))
    return _distance(a - b, p)
