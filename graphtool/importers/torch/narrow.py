"""Numbers beside 16-bit floats: torch computes with some of them before it rounds them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from graphtool.dtypes import DType
from graphtool.importers.torch.kit import Array, Context
from graphtool.ir.graph import is_constant, is_parameter
from graphtool.ir.op import OPS


def unrounded(c: Context, fn: Any, a: Any, b: Any) -> Any:
    """fn(a, b), a product or a quotient. One of a 16-bit type is computed in float32 if the type
    rounds an operand that is a number, or b, a tensor of rank 0 in a wider type.

    So does torch: 300.7 times a bfloat16 is not 300 times it. Of a constant a of rank 0 torch keeps
    only what the type has as 0 or ∞: in a mask (1 − m)·−1e9 of float16, 0·−1e9 is 0, and 0·−∞
    would be NaN.
    """
    dtype = c.out.dtype
    if not dtype.is_narrow:
        return fn(*(c.as_operand(x, dtype) for x in (a, b)))
    first, second = _number(a, dtype), _number(b, dtype)
    wide = isinstance(second, Array) and not second.ndim and not second.dtype.is_narrow
    if wide or _is_lost(first, dtype, not isinstance(a, Array)) or _is_lost(second, dtype, True):
        first = c.as_operand(first, dtype)
        second = second if wide else c.as_operand(second, dtype)
        return c.cast(fn(*(c.cast(x, dtype.computes) if isinstance(x, Array) else x
                           for x in (first, second))), dtype)
    return fn(*(c.as_operand(x, dtype) for x in (first, second)))


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
