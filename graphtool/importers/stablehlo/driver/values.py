"""Element types of the text, and types for messages."""

from __future__ import annotations

from collections.abc import Sequence

from graphtool import dtypes
from graphtool.dtypes import DType
from graphtool.front import Refused
from graphtool.importers.stablehlo.text.types import Kind
from graphtool.ir.graph import TensorType
from graphtool.symbolic import text

_ELEMENTS = {
    "i1": dtypes.bool_, "index": dtypes.int64,
    "f8E4M3FN": dtypes.float8e4m3fn, "f8E4M3FNUZ": dtypes.float8e4m3fnuz,
    "f8E5M2": dtypes.float8e5m2, "f8E5M2FNUZ": dtypes.float8e5m2fnuz,
    "f8E4M3": dtypes.float8e4m3, "f8E3M4": dtypes.float8e3m4,
    "f8E4M3B11FNUZ": dtypes.float8e4m3b11fnuz,
    "f8E8M0FNU": dtypes.float8e8m0, "f4E2M1FN": dtypes.float4e2m1,
    **{f"f{n}": dtypes.BY_NAME[f"f{n}"] for n in (16, 32, 64)}, "bf16": dtypes.bfloat16,
    **{f"{mlir}{n}": dtypes.BY_NAME[f"{ours}{n}"] for n in (2, 4, 8, 16, 32, 64)
       for mlir, ours in (("i", "i"), ("si", "i"), ("ui", "u"))},
}


def element_type(kind: Kind) -> DType:
    """The row of a kind's element type. Raises Refused for types that have no counterpart."""
    row = _ELEMENTS.get(kind.element) if kind.shape is not None else None
    if row is None:
        raise Refused("complex numbers are not supported here" if kind.element.startswith("complex")
                      else f"the type {kind} is not supported")
    return row


def shown(types: Sequence[TensorType]) -> str:
    """Types for a message: `f32[2,3], i32[]`."""
    return ", ".join(f"{t.dtype.short}[{','.join(map(text, t.shape))}]" for t in types)
