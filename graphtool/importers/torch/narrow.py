"""Numbers beside 16-bit floats: torch computes with some of them before it rounds them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from graphtool.dtypes import DType
from graphtool.importers.torch.kit import Array, Context
from graphtool.ir.graph import is_constant, is_parameter
from graphtool.ir.op import OPS


def unrounded(c: Context, fn: Any, a: Any, b: Any, *, cuts: bool = False) -> Any:
    """fn(a, b), in float32 if the 16-bit type of the result has a number that is an operand as 0
    or ∞; if fn `cuts` its result to whole numbers, also if the type rounds the number.

    So does torch, also for a constant of rank 0: in a mask (1 − m)·−1e9 of float16, 0·−1e9 is 0,
    and 0·−∞ would be NaN.
    """
    dtype = c.out.dtype
    if not dtype.is_narrow:
        return fn(*(c.as_operand(x, dtype) for x in (a, b)))
    a, b = (_number(x, dtype) for x in (a, b))
    if any(_is_lost(x, dtype, cuts) for x in (a, b)):
        return c.cast(fn(*(c.cast(c.as_operand(x, dtype), dtype.computes) if isinstance(x, Array)
                           else x for x in (a, b))), dtype)
    return fn(*(c.as_operand(x, dtype) for x in (a, b)))


def _number(x: Any, dtype: DType) -> Any:
    """A number as a float, also that of a constant of rank 0 in a wider type than `dtype`."""
    if isinstance(x, Array) and not x.ndim and not x.dtype.is_narrow:
        node = x.maker
        while node is not None and node.op is OPS["stop_gradient"]:
            node = x.builder.made_by.get(node.inputs[0])
        if node is not None and is_constant(node) and not is_parameter(node):
            return float(node.attrs["data"].source)
    return float(x) if isinstance(x, int) else x


def _is_lost(x: Any, dtype: DType, exact: bool) -> bool:
    """Whether x is a finite number that the type has as 0 or ∞, or if `exact` as another one."""
    if not isinstance(x, float) or not math.isfinite(x) or not x:
        return False
    with np.errstate(all="ignore"):
        rounded = float(np.asarray(x, dtype.numpy))
    return rounded != x if exact else not rounded or math.isinf(rounded)
