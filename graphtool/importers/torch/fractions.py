"""Arithmetic on sizes that leaves the integers: `1 / (batch - 1)`, as scalars of float64."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from graphtool import dtypes
from graphtool import ops as o
from graphtool.importers.torch.context import Context
from graphtool.ir.trace import Tracer
from graphtool.symbolic import Poly

_TABLE: Mapping[str, Callable[..., Any]] = {
    "_operator.truediv": o.div, "_operator.mul": o.mul, "_operator.add": o.add,
    "_operator.sub": o.sub, "_operator.pow": o.pow, "_operator.neg": o.neg,
    "torch.sym_float": lambda x: x, "torch._sym_sqrt": o.sqrt, "math.sqrt": o.sqrt,
    "math.floor": o.floor, "math.ceil": o.ceil, "math.trunc": o.trunc,
}


def number(c: Context, target: str, args: tuple[Any, ...]) -> Any:
    """The value of a call on sizes and fractions, None for what decides rather than counts."""
    op = _TABLE.get(target)
    if op is None or not all(isinstance(x, (Tracer, Poly, int, float)) for x in args):
        return None
    return op(*(c.cast(x, dtypes.float64) for x in args))
