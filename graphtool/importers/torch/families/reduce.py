"""Reductions: sums, extremes with their indices, moments and norms; and running sums, extremes."""

from __future__ import annotations

import math
from typing import Any

from graphtool import dtypes
from graphtool import ops as o
from graphtool.importers.torch.driver.context import Context, axes_of, axis_of
from graphtool.importers.torch.driver.table import aten
from graphtool.importers.torch.families.logarithms import log_of_sum
from graphtool.ir.trace import Tracer
from graphtool.ops.normalise import root
from graphtool.symbolic import Dim, product


def _reduce(c: Context, name: str, x: Tracer, dim: Any) -> Any:
    """The named reduction over torch's dims (none or empty: all), in the shape of the result."""
    axes = axes_of(dim, x.ndim)
    y = getattr(o, name)(x, axes=axes) if axes else x
    return c.reshape(y, c.out.shape)


@aten("sum")
def sum(c: Context, self: Tracer, dim: Any = None, keepdim: bool = False, *,
        dtype: Any = None) -> Any:
    """reduce_sum over `dim`, in the dtype of the result; of bools reduce_or."""
    name = "reduce_or" if c.out.dtype is dtypes.bool_ else "reduce_sum"
    return _reduce(c, name, c.cast(self, c.out.dtype), dim)


@aten("nansum")
def nansum(c: Context, self: Tracer, dim: Any = None, keepdim: bool = False, *,
           dtype: Any = None) -> Any:
    """reduce_sum over `dim` with NaN counted as 0."""
    x = c.cast(self, c.out.dtype)
    return _reduce(c, "reduce_sum", o.select(o.is_nan(x), 0.0, x) if x.dtype.is_float else x, dim)


@aten("prod")
def prod(c: Context, self: Tracer, dim: Any = None, keepdim: bool = False, *,
         dtype: Any = None) -> Any:
    """reduce_prod over `dim`, in the dtype of the result; of bools reduce_and."""
    name = "reduce_and" if c.out.dtype is dtypes.bool_ else "reduce_prod"
    return _reduce(c, name, c.cast(self, c.out.dtype), dim)


@aten("mean")
def mean(c: Context, self: Tracer, dim: Any = None, keepdim: bool = False, *,
         dtype: Any = None) -> Any:
    """reduce_mean over `dim`, in the dtype of the result."""
    return _reduce(c, "reduce_mean", c.cast(self, c.out.dtype), dim)


@aten("amax")
def amax(c: Context, self: Tracer, dim: Any = (), keepdim: bool = False) -> Any:
    """reduce_max over `dim`; equal elements share the gradient."""
    return _reduce(c, "reduce_max", self, dim)


@aten("amin")
def amin(c: Context, self: Tracer, dim: Any = (), keepdim: bool = False) -> Any:
    """reduce_min over `dim`; equal elements share the gradient."""
    return _reduce(c, "reduce_min", self, dim)


@aten("aminmax")
def aminmax(c: Context, self: Tracer, *, dim: Any = None, keepdim: bool = False) -> Any:
    """(reduce_min, reduce_max) over `dim`."""
    return _reduce(c, "reduce_min", self, dim), _reduce(c, "reduce_max", self, dim)


@aten("any")
def any(c: Context, self: Tracer, dim: Any = None, keepdim: bool = False) -> Any:
    """reduce_or over `dim` of x cast to bool."""
    y = _reduce_logical(c, "reduce_or", self, dim)
    return c.cast(y, c.out.dtype)


@aten("all")
def all(c: Context, self: Tracer, dim: Any = None, keepdim: bool = False) -> Any:
    """reduce_and over `dim` of x cast to bool."""
    y = _reduce_logical(c, "reduce_and", self, dim)
    return c.cast(y, c.out.dtype)


def _reduce_logical(c: Context, name: str, x: Tracer, dim: Any) -> Any:
    return _reduce(c, name, c.cast(x, dtypes.bool_), dim)


@aten("logsumexp")
def logsumexp(c: Context, self: Tracer, dim: Any, keepdim: bool = False) -> Any:
    """log Σ exp(x) over `dim`, by our op that does not overflow."""
    return _reduce(c, "logsumexp", c.cast(self, c.out.dtype), dim)


# ---- extremes with their indices ---------------------------------------------------------------

def _extreme(c: Context, x: Tracer, dim: int | None, kind: str) -> Any:
    if dim is None:
        return _reduce(c, f"reduce_{kind}", x, None)
    if not x.ndim or not x.dtype.is_float:
        values = _reduce(c, f"reduce_{kind}", x, dim)
    else:  # the gradient goes to the place that is returned
        values = c.reshape(o.extreme(x, kind=kind, axis=axis_of(dim, x.ndim)), c.out.shape)
    return values, _position(c, x, dim, kind) if c.used(1) else None


def _position(c: Context, x: Tracer, dim: int | None, kind: str) -> Any:
    shape = c.outs[1].shape if c.used(1) and c.outs[1] else c.out.shape
    if not x.ndim:
        return c.full((), 0, dtypes.int64)
    if dim is None:
        x, dim = c.reshape(x, (product(x.shape),)), 0
    if x.dtype is dtypes.bool_:
        x = c.cast(x, dtypes.uint8)
    index = o.arg_reduce(x, kind=kind, axis=axis_of(dim, x.ndim))
    return c.reshape(index, shape)


@aten("max")
def max(c: Context, self: Tracer, dim: int | None = None, keepdim: bool = False) -> Any:
    """reduce_max of all elements, or (maxima, i64 indices) along one axis."""
    return _extreme(c, self, dim, "max")


@aten("min")
def min(c: Context, self: Tracer, dim: int | None = None, keepdim: bool = False) -> Any:
    """reduce_min of all elements, or (minima, i64 indices) along one axis."""
    return _extreme(c, self, dim, "min")


@aten("argmax")
def argmax(c: Context, self: Tracer, dim: int | None = None, keepdim: bool = False) -> Any:
    """i64: the index of the maximum along one axis, or among the flat elements."""
    return _position(c, self, dim, "max")


@aten("argmin")
def argmin(c: Context, self: Tracer, dim: int | None = None, keepdim: bool = False) -> Any:
    """i64: the index of the minimum along one axis, or among the flat elements."""
    return _position(c, self, dim, "min")


# ---- moments -----------------------------------------------------------------------------------

def _variance(c: Context, x: Tracer, dim: Any, correction: Any) -> Any:
    axes = axes_of(dim, x.ndim)
    less = 1 if correction is None else correction
    n = product(x.shape[a] for a in axes)
    if isinstance(n, int) and n < less:  # 0/0, not a negative divisor
        less = n
    return o.reduce_var(x, axes=axes, correction=less)


def _correction(unbiased: Any, correction: Any) -> Any:
    return int(unbiased) if unbiased is not None else correction


@aten("var.correction", "var.dim", "var.default")
def var(c: Context, self: Tracer, dim: Any = None, unbiased: Any = None, keepdim: bool = False,
        *, correction: Any = None) -> Any:
    """reduce_var over `dim`: Σ (x − mean)² / (n − correction), correction 1 unless given."""
    if isinstance(dim, bool):  # var(x, unbiased)
        dim, unbiased = None, dim
    return c.reshape(_variance(c, self, dim, _correction(unbiased, correction)), c.out.shape)


@aten("std.correction", "std.dim", "std.default")
def std(c: Context, self: Tracer, dim: Any = None, unbiased: Any = None, keepdim: bool = False,
        *, correction: Any = None) -> Any:
    """√var, with the same arguments."""
    return root(var(c, self, dim, unbiased, keepdim, correction=correction), 2.0)


@aten("var_mean")
def var_mean(c: Context, self: Tracer, dim: Any = None, unbiased: Any = None,
             keepdim: bool = False, *, correction: Any = None) -> Any:
    """(reduce_var, reduce_mean) over `dim`."""
    if isinstance(dim, bool):  # var_mean(x, unbiased)
        dim, unbiased = None, dim
    shape = next(t.shape for t in c.outs if t is not None)
    y = _variance(c, self, dim, _correction(unbiased, correction)) if c.used(0) else None
    m = o.reduce_mean(self, axes=axes_of(dim, self.ndim)) if c.used(1) else None
    return tuple(None if x is None else c.reshape(x, shape) for x in (y, m))


@aten("std_mean")
def std_mean(c: Context, self: Tracer, dim: Any = None, unbiased: Any = None,
             keepdim: bool = False, *, correction: Any = None) -> Any:
    """(√reduce_var, reduce_mean) over `dim`."""
    y, m = var_mean(c, self, dim, unbiased, keepdim, correction=correction)
    return None if y is None else root(y, 2.0), m


# ---- norms -------------------------------------------------------------------------------------

@aten("linalg_vector_norm")
def linalg_vector_norm(c: Context, self: Tracer, ord: Any = 2, dim: Any = None,
                       keepdim: bool = False, *, dtype: Any = None) -> Any:
    """(Σ |x|ᵖ)^(1/p) over `dim`; also p = 0, ∞ and −∞."""
    return _norm(c, c.cast(self, c.out.dtype), ord, dim)


@aten("norm")
def norm(c: Context, self: Tracer, p: Any = 2, dim: Any = None, keepdim: bool = False, *,
         dtype: Any = None) -> Any:
    """(Σ |x|ᵖ)^(1/p) over `dim`, p = 2 unless given."""
    return _norm(c, c.cast(self, c.out.dtype), 2 if p is None else p, dim)


def _norm(c: Context, x: Tracer, p: Any, dim: Any) -> Any:
    size = o.abs(x)
    if p == math.inf:
        return _reduce(c, "reduce_max", size, dim)
    if p == -math.inf:
        return _reduce(c, "reduce_min", size, dim)
    if p == 0:
        return _reduce(c, "reduce_sum", c.cast(o.ne(x, 0.0), x.dtype), dim)
    if p == 1:
        return _reduce(c, "reduce_sum", size, dim)
    if p == 2:
        return root(_reduce(c, "reduce_sum", o.mul(x, x), dim), 2.0)
    if p < 1:  # |x|ᵖ is steep at 0, where torch's gradient is 0
        zero = o.eq(size, 0.0)
        power = o.select(zero, 0.0, o.pow(o.select(zero, 1.0, size), float(p)))
    else:
        power = o.pow(size, float(p))
    return root(_reduce(c, "reduce_sum", power, dim), float(p))


# ---- running -----------------------------------------------------------------------------------

def _running(c: Context, x: Tracer, dim: int, kind: str) -> Any:
    x = c.cast(x, c.out.dtype)
    return o.cumulative(x, kind=kind, axis=axis_of(dim, x.ndim)) if x.ndim else x


@aten("cumsum")
def cumsum(c: Context, self: Tracer, dim: int, *, dtype: Any = None) -> Any:
    """cumulative sum along one axis, in the dtype of the result."""
    return _running(c, self, dim, "sum")


@aten("cumprod")
def cumprod(c: Context, self: Tracer, dim: int, *, dtype: Any = None) -> Any:
    """cumulative product along one axis, in the dtype of the result."""
    return _running(c, self, dim, "prod")


def _running_extreme(c: Context, x: Tracer, dim: int, kind: str) -> Any:
    """(running extreme, last index that has it); from a NaN on, both are those of the last NaN."""
    if not x.ndim:
        return x, c.full((), 0, dtypes.int64)
    axis = axis_of(dim, x.ndim)
    plain = c.cast(x, dtypes.uint8) if x.dtype is dtypes.bool_ else x
    top = o.cumulative(plain, kind=kind, axis=axis)
    hit = o.eq(plain, top)
    if x.dtype.is_float:
        hit = o.or_(hit, o.is_nan(x))
    places = o.select(hit, c.iota(x.shape, axis), 0)
    return c.cast(top, x.dtype), o.cumulative(places, kind="max", axis=axis) if c.used(1) else None


@aten("cummax")
def cummax(c: Context, self: Tracer, dim: int) -> Any:
    """(running maximum along one axis, i64 last index that has it)."""
    return _running_extreme(c, self, dim, "max")


@aten("cummin")
def cummin(c: Context, self: Tracer, dim: int) -> Any:
    """(running minimum along one axis, i64 last index that has it)."""
    return _running_extreme(c, self, dim, "min")


@aten("logcumsumexp")
def logcumsumexp(c: Context, self: Tracer, dim: int) -> Any:
    """log Σ exp(x[..i]) by log₂ n sums in logarithms, each with itself moved by twice as much.

    No exponential is lost beside a much larger one later in the row, as it would be if all were
    scaled by one maximum.
    """
    if not self.ndim:
        return self
    axis = axis_of(dim, self.ndim)
    n = self.shape[axis]
    if not isinstance(n, int):
        return _scaled_logcumsumexp(self, axis)
    y, step = self, 1
    while step < n:
        by = tuple(step * (a == axis) for a in range(self.ndim))
        moved = o.pad(y, lo=by, hi=tuple(-d for d in by), value=-math.inf)
        y, step = log_of_sum(y, moved), 2 * step
    return y


def _scaled_logcumsumexp(x: Tracer, axis: int) -> Any:
    """The same along an axis of unknown length: one running sum, scaled by the row's maximum."""
    top = o.reduce_max(x, axes=(axis,))
    shift = o.select(o.is_finite(top), top, 0.0)
    total = o.cumulative(o.exp(o.sub(x, shift)), kind="sum", axis=axis)
    none = o.eq(total, 0.0)
    return o.select(none, -math.inf, o.add(o.log(o.select(none, 1.0, total)), shift))


@aten("diff")
def diff(c: Context, self: Tracer, n: int = 1, dim: int = -1, prepend: Any = None,
         append: Any = None) -> Any:
    """x[i + 1] − x[i] along one axis, n times; of bools xor."""
    axis = axis_of(dim, self.ndim)
    parts = [x for x in (prepend, self, append) if x is not None]
    x = parts[0] if len(parts) == 1 else o.concat(*parts, axis=axis)
    for _ in range(n):
        size: Dim = x.shape[axis]
        a, b = c.window(x, axis, 1, size), c.window(x, axis, 0, size - 1)
        x = o.xor(a, b) if x.dtype is dtypes.bool_ else o.sub(a, b)
    return x
