"""Tuples and tokens, which are no tensors of a graph; and quantised values from and to numbers."""

from __future__ import annotations

from typing import Any

from graphtool.importers.stablehlo.driver.context import Context
from graphtool.importers.stablehlo.driver.parts import TOKEN, Group
from graphtool.importers.stablehlo.driver.registry import Refused, stablehlo


@stablehlo("tuple")
def tuple_(ctx: Context, *xs: Any) -> list[Any]:
    """The operands as one value."""
    return [Group(xs)]


@stablehlo("get_tuple_element")
def get_tuple_element(ctx: Context, x: Any, *, index: int) -> Any:
    """One member of a tuple."""
    return x.members[index]


@stablehlo("after_all", "create_token")
def after_all(ctx: Context, *tokens: Any) -> Any:
    """A token: what it orders is in order anyway."""
    return TOKEN


@stablehlo("uniform_quantize", "uniform_dequantize", elementwise=True)
def uniform(ctx: Context, x: Any) -> Any:
    """The same number: the driver reads and writes the integers of quantised types."""
    return x


# operations that a graph has no place for, and why
OUTSIDE = {
    "infeed": "a run reads its inputs only", "outfeed": "a run writes its outputs only",
    "send": "a run writes its outputs only", "recv": "a run reads its inputs only",
    "async_start": "a graph has no operations that run beside others",
    "async_done": "a graph has no operations that run beside others",
    "rng": "its numbers follow from no state, and no two runs would agree; use rng_bit_generator",
}


def _refused(name: str, why: str) -> None:
    @stablehlo(name)
    def refuse(ctx: Context, *xs: Any, **attrs: Any) -> Any:
        raise Refused(why)
    del refuse


for _name, _why in OUTSIDE.items():
    _refused(_name, _why)
