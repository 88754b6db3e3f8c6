"""Activation functions: each becomes one of our activation ops where there is one."""

from __future__ import annotations

from typing import Any

from graphtool import ops as o
from graphtool.front import Array
from graphtool.importers.torch.driver.context import Context, axis_of
from graphtool.importers.torch.driver.table import aten


@aten("log_sigmoid_forward")
def log_sigmoid_forward(c: Context, self: Array) -> Any:
    """log_sigmoid(x); the second result, a buffer for the gradient, is not needed."""
    return o.log_sigmoid(self), None


@aten("hardtanh")
def hardtanh(c: Context, self: Array, min_val: Any = -1, max_val: Any = 1) -> Any:
    """hardtanh(x, lo, hi) of floats; clamp(x, min_val, max_val) of integers."""
    if self.dtype.is_float:
        return o.hardtanh(self, lo=float(min_val), hi=float(max_val))
    return o.clamp(self, c.literal(min_val, self.dtype), c.literal(max_val, self.dtype))


@aten("relu6")
def relu6(c: Context, self: Array) -> Any:
    """hardtanh(x, 0, 6)."""
    return hardtanh(c, self, 0, 6)


@aten("elu")
def elu(c: Context, self: Array, alpha: Any = 1, scale: Any = 1, input_scale: Any = 1) -> Any:
    """scale·elu(x, α); with an input scale s, α·(exp(s·x) − 1) where x ≤ 0."""
    if input_scale == 1:
        y = o.elu(self, alpha=float(alpha))
    else:
        negative = o.expm1(o.min(self, 0.0) * float(input_scale)) * float(alpha)
        y = o.select(self > 0.0, self, negative)
    return y if scale == 1 else y * float(scale)


@aten("prelu", "_prelu_kernel")
def prelu(c: Context, self: Array, weight: Array) -> Any:
    """prelu(x, w) with one slope for each channel (axis 1), or one for all elements."""
    if weight.ndim == 1 and self.ndim > 1:  # one slope a channel, axis 1
        weight = weight.reshape((weight.shape[0], *(1,) * (self.ndim - 2)))
    return o.prelu(self, weight)


@aten("threshold")
def threshold(c: Context, self: Array, threshold: Any, value: Any) -> Any:
    """select(x > threshold, x, value)."""
    return o.select(self > c.literal(threshold, self.dtype), self, c.literal(value, self.dtype))


@aten("hardshrink")
def hardshrink(c: Context, self: Array, lambd: Any = 0.5) -> Any:
    """select(|x| ≤ λ, 0, x)."""
    return o.select(abs(self) <= float(lambd), 0.0, self)


@aten("softshrink")
def softshrink(c: Context, self: Array, lambd: Any = 0.5) -> Any:
    """0 where |x| ≤ λ, else x − λ·sign(x), which NaN and its gradient pass."""
    bound = float(lambd)
    return o.select(abs(self) <= bound, 0.0, self - o.sign(self) * bound)


@aten("glu")
def glu(c: Context, self: Array, dim: int = -1) -> Any:
    """a·sigmoid(b), where a and b are the two halves of x along `dim`."""
    axis = axis_of(dim, self.ndim)
    n = self.shape[axis]
    return self.take(axis, 0, n // 2) * o.sigmoid(self.take(axis, n // 2, n))


def _normalised(ours: str) -> Any:
    def handler(c: Context, self: Array, dim: int, dtype: Any = None) -> Any:
        """Along one axis, in the dtype of the result; a rank-0 tensor counts as one element."""
        x = self.cast(c.out.dtype)
        x = x if x.ndim else x.flat()
        return getattr(o, ours)(x, axis=axis_of(dim, x.ndim)).reshape(self.shape)
    return handler


aten("softmax", "_softmax", "_safe_softmax")(_normalised("softmax"))
aten("log_softmax", "_log_softmax")(_normalised("log_softmax"))
