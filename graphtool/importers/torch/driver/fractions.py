"""Arithmetic on sizes with results that are no integers: `1 / (batch - 1)` is a float64 scalar,
and `batch > 3` a bool scalar.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from graphtool import dtypes
from graphtool import ops as o
from graphtool.front import Array
from graphtool.importers.torch.driver.context import Context
from graphtool.symbolic import Poly

_TABLE: Mapping[str, Callable[..., Any]] = {
    "_operator.truediv": o.div, "_operator.mul": o.mul, "_operator.add": o.add,
    "_operator.sub": o.sub, "_operator.pow": o.pow, "_operator.neg": o.neg,
    "torch.sym_float": lambda x: x, "torch._sym_sqrt": o.sqrt, "math.sqrt": o.sqrt,
    "math.floor": o.floor, "math.ceil": o.ceil, "math.trunc": o.trunc,
}

_COMPARE: Mapping[str, Callable[..., Any]] = {
    f"_operator.{name}": getattr(o, name) for name in ("eq", "ne", "lt", "le", "gt", "ge")} | {
    "_operator.and_": o.and_, "_operator.or_": o.or_, "torch.sym_not": o.not_}


def number(c: Context, target: str, args: tuple[Any, ...]) -> Any:
    """The scalar that a call on sizes and fractions gives; None for a call not in the tables."""
    op = _TABLE.get(target) or _COMPARE.get(target)
    if op is None or not any(isinstance(x, (Array, Poly)) for x in args) or not all(
            isinstance(x, (Array, Poly, int, float)) for x in args):
        return None
    logic = any(isinstance(x, Array) and x.dtype is dtypes.bool_ for x in args)
    return op(*(x if logic else c.cast(x, dtypes.float64) for x in args))
