"""Selection by a condition, clamping, casts, and ops that return their operand."""

from __future__ import annotations

from typing import Any

import ml_dtypes

from graphtool import dtypes
from graphtool import ops as o
from graphtool.dtypes import DType
from graphtool.front import Array, Refused
from graphtool.front.array import pick
from graphtool.importers.torch.driver.context import Context
from graphtool.importers.torch.driver.table import aten


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
def copy(c: Context, self: Array, src: Array, non_blocking: bool = False) -> Any:
    """`src` cast to the dtype of self and broadcast to its shape."""
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
