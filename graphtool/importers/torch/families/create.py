"""Tensors made without data, casts, selection by a condition, and ops that return their operand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

from graphtool.dtypes import DType
from graphtool.front.array import pick
from graphtool.importers.torch.kit import Array, Context, Refused, aten, dtypes, o
from graphtool.io.weights import Array as Numbers


@aten("full", "full_like", "new_full")
def full(c: Context, first: Any, *more: Any, **keywords: Any) -> Any:
    """The fill value broadcast to the shape and dtype of the result."""
    value = keywords.get("fill_value", more[-1] if more else 0)
    return c.full(c.out.shape, value, c.out.dtype)


@aten("zeros", "zeros_like", "new_zeros", "empty", "empty_like", "new_empty", "empty_strided",
      "new_empty_strided", "empty_permuted")
def zeros(c: Context, *_: Any, **__: Any) -> Any:
    """Zeros in the shape of the result; "empty" tensors are zeros too."""
    return c.full(c.out.shape, 0, c.out.dtype)


@aten("ones", "ones_like", "new_ones")
def ones(c: Context, *_: Any, **__: Any) -> Any:
    """Ones in the shape of the result."""
    return c.full(c.out.shape, 1, c.out.dtype)


@aten("scalar_tensor")
def scalar_tensor(c: Context, s: Any, **_: Any) -> Any:
    """A rank-0 tensor of a number or a size."""
    return c.full((), s, c.out.dtype)


@aten("arange.default")
def arange(c: Context, end: Any, **_: Any) -> Any:
    """0, 1, …, end − 1: arange_step from 0 with step 1."""
    return arange_step(c, 0, end)


@aten("arange.start", "arange.start_step")
def arange_step(c: Context, start: Any, end: Any, step: Any = 1, **_: Any) -> Any:
    """start + step·iota in the dtype of the result."""
    dtype = c.out.dtype
    x = c.iota(c.out.shape, 0, dtype)
    x = x if step == 1 else x * c.cast(step, dtype)
    return x if start == 0 else x + c.cast(start, dtype)


@aten("iota", namespace="prims")
def iota(c: Context, length: Any, *, start: Any, step: Any, **_: Any) -> Any:
    """start + step·(0, 1, …): arange_step of the prims form."""
    return arange_step(c, start, None, step)


@aten("linspace")
def linspace(c: Context, start: Any, end: Any, steps: int, **_: Any) -> Any:
    """A constant of `steps` evenly spaced numbers from start to end, both included."""
    if not all(isinstance(x, (int, float)) for x in (start, end, steps)):
        raise Refused("linspace is supported only with numbers for start, end and steps, not "
                      "with tensors or symbolic sizes")
    return c.constant(np.linspace(start, end, steps).astype(c.out.dtype.numpy))


def _hamming(n: int, alpha: float = 0.54, beta: float = 0.46) -> Numbers:
    return alpha - beta * np.cos(2 * np.pi * np.arange(n) / max(n - 1, 1))


def _kaiser(n: int, beta: float = 12.0) -> Numbers:
    return np.kaiser(n, beta)


def _window_handler(name: str, symmetric: Callable[..., Numbers]) -> None:
    @aten(f"{name}_window")
    def window(c: Context, window_length: int, periodic: bool = True, *more: float,
               **_: Any) -> Any:
        """A constant; a periodic window is a symmetric one of one more number, without its last."""
        window = np.ones(window_length) if window_length < 2 else (
            symmetric(window_length + periodic, *more)[:window_length])
        return c.constant(window.astype(c.out.dtype.numpy))


for _name, _symmetric in (("hamming", _hamming), ("blackman", np.blackman),
                          ("bartlett", np.bartlett), ("kaiser", _kaiser)):
    _window_handler(_name, _symmetric)


@aten("eye")
def eye(c: Context, n: Any, m: Any = None, **_: Any) -> Any:
    """iota(rows) = iota(columns), cast to the dtype: ones on the diagonal."""
    same = o.eq(c.iota((c.out.shape[0], 1), 0), c.iota((1, c.out.shape[1]), 1))
    return c.cast(same, c.out.dtype)


def _triangle(c: Context, x: Array, diagonal: int, lower: bool) -> Any:
    rows, cols = x.shape[-2:]
    edge = c.iota((rows, 1), 0) + diagonal if diagonal else c.iota((rows, 1), 0)
    line = c.iota((1, cols), 1)
    kept = line <= edge if lower else line >= edge
    return o.select(kept, x, c.literal(0, x.dtype))


@aten("tril")
def tril(c: Context, self: Array, diagonal: int = 0) -> Any:
    """select(column ≤ row + diagonal, x, 0)."""
    return _triangle(c, self, diagonal, True)


@aten("triu")
def triu(c: Context, self: Array, diagonal: int = 0) -> Any:
    """select(column ≥ row + diagonal, x, 0)."""
    return _triangle(c, self, diagonal, False)


@aten("one_hot")
def one_hot(c: Context, self: Array, num_classes: int = -1) -> Any:
    """index = iota(classes), along a new last axis."""
    classes = c.out.shape[-1]
    index = self.cast(dtypes.int64).reshape((*self.shape, 1))
    line = c.iota((*(1,) * self.ndim, classes), self.ndim)
    return c.cast(o.eq(index, line), c.out.dtype)


# ---- selection, casts ---------------------------------------------------------------------------

@aten("where")
def where(c: Context, condition: Array, self: Any = None, other: Any = None) -> Any:
    """select(condition, a, b); the form with a condition alone has a size that depends on data."""
    if self is None:
        raise Refused("where with a condition alone is not supported; use torch.nonzero")
    a, b = (c.cast(x, c.out.dtype) for x in (self, other))
    if not isinstance(a, Array) and not isinstance(b, Array):
        a = c.number(a, c.out.dtype)
    return o.select(condition.cast(dtypes.bool_), a, b)


@aten("masked_fill")
def masked_fill(c: Context, self: Array, mask: Array, value: Any) -> Any:
    """select(mask, value, x), with the value in the dtype of x."""
    return o.select(mask.cast(dtypes.bool_), c.cast(value, self.dtype), self)


@aten("clamp", "clip", "clamp_min")
def clamp(c: Context, self: Array, min: Any = None, max: Any = None) -> Any:
    """clamp(x, min, max) in the dtype of the result; a missing bound does not limit."""
    return o.clamp(c.cast(self, c.out.dtype), c.cast(min, c.out.dtype), c.cast(max, c.out.dtype))


@aten("clamp_max")
def clamp_max(c: Context, self: Array, max: Any) -> Any:
    """clamp(x, none, max)."""
    return clamp(c, self, None, max)


@aten("_to_copy", "to", "type_as")
def to_copy(c: Context, self: Any, *_: Any, **__: Any) -> Any:
    """A cast to the dtype that torch gives for the result; device and layout are ignored. In vmap
    torch makes tensors of numbers by it."""
    return c.cast(self, c.out.dtype) if isinstance(self, Array) else (
        c.full(c.out.shape, self, c.out.dtype))


@aten("convert_element_type", namespace="prims")
def convert_element_type(c: Context, a: Array, dtype: DType) -> Any:
    """A cast to `dtype`."""
    return c.cast(a, dtype)


@aten("alias", "clone", "lift_fresh_copy", "lift_fresh", "contiguous",
      "alias_copy", "positive", "real")
def identity(c: Context, self: Array, **_: Any) -> Any:
    """The operand itself: copies and aliases need no op here."""
    return self


@aten("copy")
def copy(c: Context, self: Array, src: Any, non_blocking: bool = False) -> Any:
    """`src`, a tensor or a number, cast to the dtype of self and broadcast to its shape."""
    if not isinstance(src, Array):
        whole = self.dtype.is_integer and isinstance(src, float)
        return c.full(self.shape, c.as_operand(int(src) if whole else src, self.dtype), self.dtype)
    return c.cast(src, self.dtype).broadcast(self.shape)


@aten("fill")
def fill(c: Context, self: Array, value: Any) -> Any:
    """`value` in the shape and dtype of self."""
    return c.full(self.shape, value, self.dtype)


@aten("nan_to_num")
def nan_to_num(c: Context, self: Array, nan: float | None = None, posinf: float | None = None,
               neginf: float | None = None) -> Any:
    """select: NaN becomes `nan` or 0, ±∞ the given bounds or the dtype's greatest and least."""
    if not self.dtype.is_float:
        return self
    limit = ml_dtypes.finfo(self.dtype.numpy)
    top = float(limit.max) if posinf is None else posinf
    low = float(limit.min) if neginf is None else neginf
    y = o.select(o.is_nan(self), float(nan or 0.0), self)
    return o.select(o.is_inf(y), pick(y > 0.0, top, low, y), y)
