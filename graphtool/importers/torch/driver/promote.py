"""torch's type promotion: the element type in which an op on mixed operands is computed."""

from __future__ import annotations

from typing import Any

from graphtool import dtypes
from graphtool.dtypes import DType
from graphtool.front import Array

_KINDS = {"bool": 0, "uint": 1, "int": 1, "float": 2}


def category(x: Any) -> int:
    """0 bool, 1 integer, 2 floating point; for a tensor or a Python number."""
    if isinstance(x, Array):
        return _KINDS[x.dtype.kind]
    return 0 if isinstance(x, bool) else 2 if isinstance(x, float) else 1


def result_type(*xs: Any) -> DType:
    """The promoted type of tensors with axes; rank-0 tensors, then numbers, change it only if
    their category (bool, integer, float) is higher."""
    levels = ([x.dtype for x in xs if isinstance(x, Array) and x.ndim],
              [x.dtype for x in xs if isinstance(x, Array) and not x.ndim],
              [_of_number(x) for x in xs if not isinstance(x, Array)])
    result: DType | None = None
    for level in levels:
        here: DType | None = None
        for d in level:
            here = d if here is None else promote(here, d)
        if here is not None and (result is None or _KINDS[here.kind] > _KINDS[result.kind]):
            result = here
    return result or dtypes.float32


def _of_number(x: Any) -> DType:
    return (dtypes.bool_, dtypes.int64, dtypes.float32)[category(x)]


def promote(a: DType, b: DType) -> DType:
    """The type that torch promotes two element types to."""
    if a is b:
        return a
    ka, kb = _KINDS[a.kind], _KINDS[b.kind]
    if ka != kb:
        return a if ka > kb else b
    if a.kind == "float":
        if a.bits == b.bits:  # float16 with bfloat16
            return dtypes.float32
        return a if a.bits > b.bits else b
    if a.kind == b.kind:
        return a if a.bits > b.bits else b
    signed, unsigned = (a, b) if a.kind == "int" else (b, a)
    if signed.bits > unsigned.bits:
        return signed
    return {8: dtypes.int16, 16: dtypes.int32}.get(unsigned.bits, dtypes.int64)
