"""Contractions: matrix products, linear layers, convolutions, distances."""

from __future__ import annotations

from typing import Any

import numpy as np

from graphtool import dtypes
from graphtool import ops as o
from graphtool.front import Refused
from graphtool.importers.torch.driver.context import Context, pairs
from graphtool.importers.torch.driver.table import aten
from graphtool.ir.trace import Tracer
from graphtool.symbolic import Dim

# ---- matrix products ---------------------------------------------------------------------------


@aten("mm", "bmm")
def mm(c: Context, self: Tracer, mat2: Tracer, **_: Any) -> Any:
    """matmul of two matrices, or of two batches of matrices."""
    return o.matmul(self, mat2)


@aten("matmul", "mv", "dot", "vdot")
def matmul(c: Context, self: Tracer, other: Tracer) -> Any:
    """matmul; a vector gets an axis of size 1 for it, which the result does not have."""
    a = self if self.ndim > 1 else c.reshape(self, (1, self.shape[0]))
    b = other if other.ndim > 1 else c.reshape(other, (other.shape[0], 1))
    return c.reshape(o.matmul(a, b), c.out.shape)


@aten("outer", "ger")
def outer(c: Context, self: Tracer, vec2: Tracer) -> Any:
    """x[:, none]·y, [n, m]."""
    return o.mul(c.reshape(c.cast(self, c.out.dtype), (self.shape[0], 1)),
                 c.cast(vec2, c.out.dtype))


def _weighted(c: Context, x: Any, factor: Any) -> Any:
    return x if factor == 1 else o.mul(x, c.cast(factor, x.dtype))


def _plus(c: Context, self: Tracer, product: Any, beta: Any, alpha: Any) -> Any:
    product = _weighted(c, product, alpha)
    return product if beta == 0 else o.add(product, _weighted(c, self, beta))


@aten("addmm", "baddbmm")
def addmm(c: Context, self: Tracer, mat1: Tracer, mat2: Tracer, *, beta: Any = 1,
          alpha: Any = 1) -> Any:
    """beta·x + alpha·matmul(a, b)."""
    return _plus(c, self, o.matmul(mat1, mat2), beta, alpha)


@aten("addbmm")
def addbmm(c: Context, self: Tracer, batch1: Tracer, batch2: Tracer, *, beta: Any = 1,
           alpha: Any = 1) -> Any:
    """beta·x + alpha·Σ over the batch of matmul(a, b)."""
    total = o.reduce_sum(o.matmul(batch1, batch2), axes=(0,))
    return _plus(c, self, c.reshape(total, total.shape[1:]), beta, alpha)


@aten("addmv")
def addmv(c: Context, self: Tracer, mat: Tracer, vec: Tracer, *, beta: Any = 1,
          alpha: Any = 1) -> Any:
    """beta·x + alpha·(matrix · vector)."""
    return _plus(c, self, matmul(c, mat, vec), beta, alpha)


@aten("addr")
def addr(c: Context, self: Tracer, vec1: Tracer, vec2: Tracer, *, beta: Any = 1,
         alpha: Any = 1) -> Any:
    """beta·x + alpha·outer(u, v)."""
    return _plus(c, self, outer(c, vec1, vec2), beta, alpha)


@aten("linear")
def linear(c: Context, input: Tracer, weight: Tracer, bias: Tracer | None = None) -> Any:
    """x·wᵀ + b by our linear; a vector x or w becomes a matrix for the call."""
    if weight.ndim == 1:
        y = matmul(c, input, weight)
        return y if bias is None else o.add(y, bias)
    if input.ndim == 1:
        y = o.linear(c.reshape(input, (1, input.shape[0])), weight, bias)
        return c.reshape(y, c.out.shape)
    return o.linear(input, weight, bias)


# ---- products in groups of rows ----------------------------------------------------------------

@aten("_grouped_mm")
def grouped_mm(c: Context, self: Tracer, mat2: Tracer, offs: Tracer | None = None,
               bias: Tracer | None = None, out_dtype: Any = None) -> Any:
    """Row r times matrix e, where offs[e − 1] ≤ r < offs[e]; rows after the last group are 0.
    With few rows each row gathers its matrix; with many, all products are made, one is taken."""
    if offs is None or bias is not None or self.ndim != 2 or mat2.ndim != 3:
        raise Refused("a grouped product is supported only as [rows, k] times [groups, k, n] "
                      "with `offs` and without `bias`")
    rows, (count, depth, width) = self.shape[0], mat2.shape
    place = c.iota((rows, 1), 0)
    done = o.ge(place, c.cast(c.reshape(offs, (1, count)), dtypes.int64))
    group = o.reduce_sum(c.cast(done, dtypes.int64), axes=(1,))
    inside = o.lt(group, c.number(count, dtypes.int64))
    group = o.select(inside, group, 0)
    if isinstance(rows, int) and isinstance(count, int) and rows <= count:
        y = o.matmul(c.reshape(self, (rows, 1, depth)), o.gather(mat2, group, axes=(0,)))
        y = c.reshape(y, (rows, width))
    else:
        every = o.matmul(c.reshape(self, (1, rows, depth)), mat2)
        y = o.gather(every, o.concat(group, place, axis=1), axes=(0, 1))
    return c.cast(o.select(inside, y, 0.0), c.out.dtype)


@aten("grouped_mm_fallback", namespace="transformers")
def grouped_mm_fallback(c: Context, input: Tracer, weight: Tracer, offs: Tracer) -> Any:
    """grouped_mm, as the transformers library spells it."""
    return grouped_mm(c, input, weight, offs)


# ---- convolution -------------------------------------------------------------------------------

def _conv(c: Context, x: Tracer, w: Tracer, bias: Tracer | None, strides: tuple[int, ...],
          padding: Any, dilation: tuple[int, ...], groups: int) -> Any:
    """conv plus the bias; an x without a batch axis gets one for the call."""
    single = x.ndim == w.ndim - 1
    x = c.reshape(x, (1, *x.shape)) if single else x
    y = _biased(c, o.conv(x, w, strides=strides, padding=padding, rhs_dilation=dilation,
                          groups=groups), bias)
    return c.reshape(y, y.shape[1:]) if single else y


def _biased(c: Context, y: Any, bias: Tracer | None) -> Any:
    if bias is None:
        return y
    return o.add(y, c.reshape(bias, (bias.shape[0], *(1,) * (y.ndim - 2))))


@aten("conv1d", "conv2d", "conv3d")
def conv(c: Context, input: Tracer, weight: Tracer, bias: Tracer | None = None, stride: Any = 1,
         padding: Any = 0, dilation: Any = 1, groups: int = 1) -> Any:
    """Our conv, channels at axis 1; `padding` is numbers, "same" or "valid"."""
    n = weight.ndim - 2
    dilation = pairs(dilation, n)
    if isinstance(padding, str):
        edges = _named_padding(padding, weight.shape[2:], dilation)
    else:
        edges = tuple((p, p) for p in pairs(padding, n))
    return _conv(c, input, weight, bias, pairs(stride, n), edges, dilation, groups)


def _named_padding(name: str, window: tuple[Dim, ...], dilation: tuple[int, ...]) -> Any:
    """(lo, hi) for each axis; of an odd total "same" puts the larger half at the end."""
    total = [d * (k - 1) if name == "same" else 0 for d, k in zip(dilation, window, strict=True)]
    return tuple((t // 2, t - t // 2) for t in total)


@aten("convolution", "_convolution")
def convolution(c: Context, input: Tracer, weight: Tracer, bias: Tracer | None, stride: Any,
                padding: Any, dilation: Any, transposed: bool, output_padding: Any,
                groups: int, *_: Any) -> Any:
    """conv, or conv_transpose if `transposed`."""
    if transposed:
        return conv_transpose(c, input, weight, bias, stride, padding, output_padding, groups,
                              dilation)
    return conv(c, input, weight, bias, stride, padding, dilation, groups)


@aten("conv_transpose1d", "conv_transpose2d", "conv_transpose3d")
def conv_transpose(c: Context, input: Tracer, weight: Tracer, bias: Tracer | None = None,
                   stride: Any = 1, padding: Any = 0, output_padding: Any = 0, groups: int = 1,
                   dilation: Any = 1) -> Any:
    """conv of the input dilated by the stride (lhs_dilation), with the window reversed."""
    single = input.ndim == weight.ndim - 1
    x = c.reshape(input, (1, *input.shape)) if single else input
    y = o.conv(x, transposed_weights(c, weight, groups),
               **transposed_attrs(weight, stride, padding, output_padding, groups, dilation))
    y = _biased(c, y, bias)
    return c.reshape(y, y.shape[1:]) if single else y


def transposed_attrs(w: Tracer, stride: Any, padding: Any, output_padding: Any, groups: int,
                     dilation: Any) -> dict[str, Any]:
    """The attributes of the plain conv that computes a transposed convolution."""
    n = w.ndim - 2
    strides, pad, more, spread = (pairs(x, n) for x in (stride, padding, output_padding, dilation))
    edges = tuple((d * (k - 1) - p, d * (k - 1) - p + m) for d, k, p, m in zip(
        spread, w.shape[2:], pad, more, strict=True))
    return {"padding": edges, "lhs_dilation": strides, "rhs_dilation": spread, "groups": groups,
            "absent": True}


def transposed_weights(c: Context, w: Tracer, groups: int) -> Tracer:
    """[in, out / groups, *window] as [out, in / groups, *window], with the window reversed.

    It is its own inverse.
    """
    inputs, outputs, *window = w.shape
    space = range(2, w.ndim)
    if groups == 1:
        w = c.transpose(w, [1, 0, *space])
    else:
        w = c.reshape(w, (groups, inputs // groups, outputs, *window))
        w = c.transpose(w, [0, 2, 1, *(i + 1 for i in space)])
        w = c.reshape(w, (groups * outputs, inputs // groups, *window))
    return w if all(k == 1 for k in window) else o.reverse(w, axes=tuple(space))


# ---- products of three, distances ------------------------------------------------------------

@aten("_trilinear")
def trilinear(c: Context, i1: Tracer, i2: Tracer, i3: Tracer, expand1: tuple[int, ...],
              expand2: tuple[int, ...], expand3: tuple[int, ...], sumdim: tuple[int, ...],
              unroll_dim: int = 1) -> Any:
    """Σ over `sumdim` of the product of three tensors, each with new axes of size 1."""
    parts = []
    for x, new in ((i1, expand1), (i2, expand2), (i3, expand3)):
        dims = iter(x.shape)
        shape = [1 if i in new else next(dims) for i in range(x.ndim + len(new))]
        parts.append(c.reshape(x, shape))
    total = o.reduce_sum(o.mul(o.mul(*parts[:2]), parts[2]), axes=tuple(sumdim))
    return c.reshape(total, c.out.shape)


def _distance(c: Context, gap: Any, p: float) -> Any:
    """The p-norm along the last axis, which the result does not have."""
    axis = (gap.ndim - 1,)
    if p == 0:
        y = o.reduce_sum(c.cast(o.ne(gap, 0.0), gap.dtype), axes=axis)
    else:
        y = o.norm(gap, axes=axis, order=float(p))
    return c.reshape(y, c.out.shape)


@aten("_cdist_forward")
def cdist(c: Context, x1: Tracer, x2: Tracer, p: float, compute_mode: Any = None) -> Any:
    """The p-norm of every row of x1 minus every row of x2, [..., n, m]."""
    a = c.reshape(x1, (*x1.shape[:-1], 1, x1.shape[-1]))
    b = c.reshape(x2, (*x2.shape[:-2], 1, *x2.shape[-2:]))
    return _distance(c, o.sub(a, b), p)


@aten("_pdist_forward")
def pdist(c: Context, self: Tracer, p: float = 2.0) -> Any:
    """The distances of rows i < j, [n·(n − 1) / 2], by two gathers."""
    if not isinstance(self.shape[0], int):
        raise Refused("pdist over a symbolic number of rows is not supported; fix that size for "
                      "the export")
    rows = np.stack(np.triu_indices(self.shape[0], 1))
    a, b = (o.gather(self, c.constant(r[:, None], dtypes.int64), axes=(0,)) for r in rows)
    return _distance(c, o.sub(a, b), p)
