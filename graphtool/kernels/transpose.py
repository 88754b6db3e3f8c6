"""transpose.h: elementwise work from one order of axes to another, in square blocks.

It computes no op. Lowering uses it for loops that read along one axis and store along another.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from graphtool import dtypes
from graphtool.kernels.kit import (
    Area, Contract, Dim, Instance, Numbers, Pointer, Record, Rows, ceildiv, mark, register, sizes)

SIDE = 32  # elements of a square of a device: the threads of a warp

MACROS = (*sizes(PLANES="planes", A="extent of the axis along which x is read",
                 B="extent of the axis along which results are stored",
                 XB="elements between adjacent elements along axis B"),
          mark("PAIRS", "an element is two adjacent numbers of 16 bits"))
POINTERS = (Pointer("X", "the elements of plane b", ("b",)),)


def meaning(t: Instance) -> None:
    """Each row, in the order in which it is stored."""
    for p in range(t.get("PLANES")):
        t.rows(t.read("X", p).reshape(t.get("A"), -1), p)


def touches(t: Numbers) -> Iterator[Area | Rows]:
    """What the C touches."""
    planes, a, b, step = t.sizes("PLANES A B XB")
    if not t.get("PAIRS"):
        yield Rows((planes, a, b))
        yield Area("X", (a, b), (1, step), (planes,))
        return
    yield Rows((planes, a, 2 * b))
    yield Area("X", (a, b, 2), (2, 2 * step, 1), (planes,), dtypes.bfloat16)


def teams(macros: Mapping[str, Any], _: int) -> Dim:
    """The squares of a device, of 32 by 32 elements."""
    planes: Dim = macros["PLANES"]
    return planes * ceildiv(macros["A"], SIDE) * ceildiv(macros["B"], SIDE)


register(Record(Contract("transpose", "elementwise work that changes the order of "
                                      "axes", MACROS, POINTERS,
                         meaning, ("b", "m", "n"), touches, grain="pieces",
                         languages={"c": ".h", "cuda": "_cuda.h"}, teams=teams)))
