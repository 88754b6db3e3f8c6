"""Reductions: sums, extremes with their indices, moments and norms; and running sums, extremes."""

from __future__ import annotations

import math
from typing import Any

from graphtool.front.names import Word, meaning, read
from graphtool.importers.torch.driver.context import Context, axes_of, axis_of
from graphtool.importers.torch.families.special import log_of_sum
from graphtool.importers.torch.kit import Array, aten, dtypes, o, product
from graphtool.ops.normalise import root


def _reduce(c: Context, name: str, x: Array, dim: Any) -> Any:
    """The named reduction over torch's dims (none or empty: all), in the shape of the result."""
    axes = axes_of(dim, x.ndim)
    y = getattr(o, name)(x, axes=axes) if axes else x
    return y.reshape(c.out.shape)


def _named(words: tuple[Word, ...]) -> Any:
    def handler(c: Context, self: Array, dim: Any = None, keepdim: bool = False, *,
                dtype: Any = None) -> Any:
        """The reduction over `dim`, in the dtype of the result, or of x cast to bool; equal
        extremes share the gradient."""
        truths = all(w.types == "booleans" for w in words)
        kind = dtypes.bool_ if truths else c.out.dtype
        word = meaning(words, kind)
        return _reduce(c, word.op, c.cast(self, kind), dim).cast(c.out.dtype)
    return handler


for _name, _words in read("aten", "axes").items():
    aten(_name)(_named(_words))


@aten("nansum")
def nansum(c: Context, self: Array, dim: Any = None, keepdim: bool = False, *,
           dtype: Any = None) -> Any:
    """reduce_sum over `dim` with NaN counted as 0."""
    x = c.cast(self, c.out.dtype)
    return _reduce(c, "reduce_sum", o.select(o.is_nan(x), 0.0, x) if x.dtype.is_float else x, dim)


@aten("aminmax")
def aminmax(c: Context, self: Array, *, dim: Any = None, keepdim: bool = False) -> Any:
    """(reduce_min, reduce_max) over `dim`."""
    return _reduce(c, "reduce_min", self, dim), _reduce(c, "reduce_max", self, dim)


# ---- extremes with their indices, running sums and extremes --------------------------------------

def _extreme(kind: str) -> Any:
    def handler(c: Context, self: Array, dim: int | None = None, keepdim: bool = False) -> Any:
        """The extreme of all elements, or (extremes, i64 indices) along one axis."""
        if dim is None or not self.ndim or not self.dtype.is_float:
            values = _reduce(c, f"reduce_{kind}", self, dim)
        else:  # the gradient goes to the place that is returned
            axis = axis_of(dim, self.ndim)
            values = o.extreme(self, kind=kind, axis=axis).reshape(c.out.shape)
        if dim is None:
            return values
        return values, _position(kind)(c, self, dim) if c.used(1) else None
    return handler


def _position(kind: str) -> Any:
    def handler(c: Context, self: Array, dim: int | None = None, keepdim: bool = False) -> Any:
        """i64: the index of the extreme along one axis, or among the flat elements."""
        if not self.ndim:
            return c.full((), 0, dtypes.int64)
        x, axis = (self.flat(), 0) if dim is None else (self, axis_of(dim, self.ndim))
        x = x.cast(dtypes.uint8) if x.dtype is dtypes.bool_ else x
        return o.arg_reduce(x, kind=kind, axis=axis).reshape(c.out.shape)
    return handler


def _running(kind: str) -> Any:
    def handler(c: Context, self: Array, dim: int, *, dtype: Any = None) -> Any:
        """The running sum or product along one axis, in the dtype of the result."""
        x = c.cast(self, c.out.dtype)
        return o.cumulative(x, kind=kind, axis=axis_of(dim, x.ndim)) if x.ndim else x
    return handler


def _running_extreme(kind: str) -> Any:
    def handler(c: Context, self: Array, dim: int) -> Any:
        """(running extreme, i64 last index that has it); from a NaN on, both are those of the last
        NaN."""
        if not self.ndim:
            return self, c.full((), 0, dtypes.int64)
        axis = axis_of(dim, self.ndim)
        plain = self.cast(dtypes.uint8) if self.dtype is dtypes.bool_ else self
        top = o.cumulative(plain, kind=kind, axis=axis)
        if not c.used(1):
            return top.cast(self.dtype), None
        hit = o.eq(plain, top)
        hit = hit | o.is_nan(self) if self.dtype.is_float else hit
        places = o.select(hit, c.iota(self.shape, axis), 0)
        return top.cast(self.dtype), o.cumulative(places, kind="max", axis=axis)
    return handler


for _kind in ("max", "min"):
    aten(_kind)(_extreme(_kind))
    aten(f"arg{_kind}")(_position(_kind))
    aten(f"cum{_kind}")(_running_extreme(_kind))
for _kind in ("sum", "prod"):
    aten(f"cum{_kind}")(_running(_kind))


# ---- moments -----------------------------------------------------------------------------------

def _variance(c: Context, x: Array, dim: Any, unbiased: Any, correction: Any) -> Any:
    axes = axes_of(dim, x.ndim)
    less = int(unbiased) if unbiased is not None else 1 if correction is None else correction
    n = product(x.shape[a] for a in axes)
    if isinstance(n, int) and n < less:  # 0/0, not a negative divisor
        less = n
    return o.reduce_var(x, axes=axes, correction=less).reshape(c.out.shape)


@aten("var.correction", "var.dim", "var.default")
def var(c: Context, self: Array, dim: Any = None, unbiased: Any = None, keepdim: bool = False,
        *, correction: Any = None) -> Any:
    """reduce_var over `dim`: Σ (x − mean)² / (n − correction), correction 1 unless given."""
    if isinstance(dim, bool):  # var(x, unbiased)
        dim, unbiased = None, dim
    return _variance(c, self, dim, unbiased, correction)


@aten("std.correction", "std.dim", "std.default")
def std(c: Context, self: Array, dim: Any = None, unbiased: Any = None, keepdim: bool = False,
        *, correction: Any = None) -> Any:
    """√var, with the same arguments."""
    return root(var(c, self, dim, unbiased, keepdim, correction=correction), 2.0)


def _with_mean(ours: Any) -> Any:
    def handler(c: Context, self: Array, dim: Any = None, unbiased: Any = None,
                keepdim: bool = False, *, correction: Any = None) -> Any:
        """(the variance or deviation, reduce_mean) over `dim`."""
        spread = ours(c, self, dim, unbiased, correction=correction) if c.used(0) else None
        dim = None if isinstance(dim, bool) else dim
        mean = o.reduce_mean(self, axes=axes_of(dim, self.ndim)) if c.used(1) else None
        return spread, None if mean is None else mean.reshape(c.out.shape)
    return handler


aten("var_mean")(_with_mean(var))
aten("std_mean")(_with_mean(std))


# ---- norms -------------------------------------------------------------------------------------

@aten("linalg_vector_norm")
def linalg_vector_norm(c: Context, self: Array, ord: Any = 2, dim: Any = None,
                       keepdim: bool = False, *, dtype: Any = None) -> Any:
    """(Σ |x|ᵖ)^(1/p) over `dim`; also p = 0, ∞ and −∞."""
    return _norm(c, c.cast(self, c.out.dtype), ord, dim)


@aten("norm")
def norm(c: Context, self: Array, p: Any = 2, dim: Any = None, keepdim: bool = False, *,
         dtype: Any = None) -> Any:
    """(Σ |x|ᵖ)^(1/p) over `dim`, p = 2 unless given."""
    return _norm(c, c.cast(self, c.out.dtype), 2 if p is None else p, dim)


def _norm(c: Context, x: Array, p: Any, dim: Any) -> Any:
    size = abs(x)
    if p == math.inf:
        return _reduce(c, "reduce_max", size, dim)
    if p == -math.inf:
        return _reduce(c, "reduce_min", size, dim)
    if p == 0:
        return _reduce(c, "reduce_sum", c.cast(o.ne(x, 0.0), x.dtype), dim)
    if p == 1:
        return _reduce(c, "reduce_sum", size, dim)
    if p == 2:
        return root(_reduce(c, "reduce_sum", x * x, dim), 2.0)
    if p < 1:  # |x|ᵖ is steep at 0, where torch's gradient is 0
        zero = o.eq(size, 0.0)
        power = o.select(zero, 0.0, o.pow(o.select(zero, 1.0, size), float(p)))
    else:
        power = o.pow(size, float(p))
    return root(_reduce(c, "reduce_sum", power, dim), float(p))


# ---- running sums of logarithms, differences -----------------------------------------------------

@aten("logcumsumexp")
def logcumsumexp(c: Context, self: Array, dim: int) -> Any:
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


def _scaled_logcumsumexp(x: Array, axis: int) -> Any:
    """The same along an axis of unknown length: one running sum, scaled by the row's maximum."""
    top = o.reduce_max(x, axes=(axis,))
    shift = o.select(o.is_finite(top), top, 0.0)
    total = o.cumulative(o.exp(x - shift), kind="sum", axis=axis)
    none = o.eq(total, 0.0)
    return o.select(none, -math.inf, o.log(o.select(none, 1.0, total)) + shift)


@aten("diff")
def diff(c: Context, self: Array, n: int = 1, dim: int = -1, prepend: Any = None,
         append: Any = None) -> Any:
    """x[i + 1] − x[i] along one axis, n times; of bools xor."""
    axis = axis_of(dim, self.ndim)
    x = o.concat(*(x for x in (prepend, self, append) if x is not None), axis=axis)
    for _ in range(n):
        size = x.shape[axis]
        a, b = x.take(axis, 1, size), x.take(axis, 0, size - 1)
        x = a ^ b if x.dtype is dtypes.bool_ else a - b
    return x
