"""How a cache keeps its numbers: as the model has them, in 16 bits, or as int8 with a factor for
each row.

A row is what one position of one head has: the elements along the last axis, or along the axis
before it, where the last one is that of the positions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from graphtool import dtypes
from graphtool import ops as o
from graphtool.dtypes import DType
from graphtool.ops.packed import LEAST, STEPS
from graphtool.symbolic import Dim

Kept = Literal["own", "bf16", "f16", "i8"]
_TYPES = {"bf16": dtypes.bfloat16, "f16": dtypes.float16, "i8": dtypes.int8}


@dataclass(frozen=True)
class Rows:
    """The form of one cache: the model's type, the type that is kept, the axis of positions."""

    own: DType
    kept: DType
    axis: int

    @property
    def scaled(self) -> bool:
        """Whether there is a factor for each row."""
        return self.kept is dtypes.int8 and self.kept is not self.own

    def across(self, rank: int) -> int:
        """The axis along which a row lies."""
        return rank - 2 if self.axis == rank - 1 else rank - 1

    def factors(self, shape: tuple[Dim, ...]) -> tuple[Dim, ...]:
        """The shape of the factors of numbers of this shape."""
        at = self.across(len(shape))
        return (*shape[:at], 1, *shape[at + 1:])

    def stored(self, x: Any) -> tuple[Any, ...]:
        """The numbers that are kept for x, and the factors of rows.

        A row is divided by a 127th of its greatest magnitude and rounded, ties to even; one with a
        NaN or an infinity reads as NaN.
        """
        if not self.scaled:
            return (x if self.kept is self.own else o.cast(x, dtype=self.kept),)
        x = x if x.dtype is dtypes.float32 else o.cast(x, dtype=dtypes.float32)
        top = o.max(o.reduce_max(o.abs(x), axes=(self.across(x.ndim),)), LEAST)
        return o.cast(o.round(x * (STEPS / top)), dtype=dtypes.int8), top / STEPS

    def read(self, kept: Any, factors: Any = None) -> Any:
        """The numbers in the model's type."""
        if factors is not None:
            wide = o.cast(kept, dtype=dtypes.float32) * factors
            return wide if self.own is dtypes.float32 else o.cast(wide, dtype=self.own)
        return kept if self.kept is self.own else o.cast(kept, dtype=self.own)


def rows_of(own: DType, kept: Kept, axis: int, rank: int) -> Rows:
    """The form of a cache; one that is not of floats, or has no axis beside that of positions,
    keeps the model's type."""
    fits = own.is_float and rank >= 2 and kept != "own"
    return Rows(own, _TYPES[kept] if fits else own, axis)
