"""Division in torch: true, cut towards 0, rounded downwards, and the remainders of the last two."""

from __future__ import annotations

from typing import Any

from graphtool import ops as o
from graphtool.dtypes import DType
from graphtool.front import Array
from graphtool.importers.torch.driver.context import Context
from graphtool.importers.torch.driver.table import aten
from graphtool.importers.torch.families.elementwise import in_range, operands


@aten("div", "divide", "true_divide")
def div(c: Context, self: Any, other: Any, *, rounding_mode: str | None = None) -> Any:
    """a / b; `rounding_mode` "trunc" rounds towards 0, "floor" downwards."""
    a, b = operands(c, self, other)
    if rounding_mode is None:
        return in_range(c, o.div, a, b)
    if rounding_mode == "trunc":
        return a / b if not c.out.dtype.is_float else o.trunc(a / b)
    return floor_divide(c, self, other)


@aten("floor_divide")
def floor_divide(c: Context, self: Any, other: Any) -> Any:
    """a / b rounded downwards; of 16-bit floats in float32."""
    inner = c.out.dtype.computes
    return c.cast(_floor_div(inner, *(c.as_operand(x, inner) for x in (self, other))), c.out.dtype)


def _floor_div(dtype: DType, a: Any, b: Any) -> Any:
    """The quotient cut towards 0, and one less where the remainder has not the sign of b.

    The quotient of floats is (a − rem(a, b)) / b: ⌊a / b⌋ would give 10 for 1 / 0.1, not 9.
    """
    if dtype.kind == "uint":
        return a / b
    rest = o.rem(a, b)
    if isinstance(b, Array):
        below = (rest < 0) & (b > 0) | (rest > 0) & (b < 0)
    else:
        below = rest > 0 if b < 0 else rest < 0
    whole = o.round((a - rest) / b) if dtype.is_float else a / b
    floor = o.select(below, whole - 1, whole)
    if not dtype.is_float:
        return floor
    return o.select(o.eq(b, 0.0), a / b, floor) if isinstance(b, Array) else (floor if b
        else a / b)
