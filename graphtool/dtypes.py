"""The table of element types: one row each. A row is the only place that knows a type's facts.

`string` is evaluated only: numpy's strings of any length. Compiled code has no place for them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Any, Literal

import numpy as np

from graphtool.errors import InputError

Kind = Literal["float", "int", "uint", "bool", "string"]


@dataclass(frozen=True, slots=True)
class DType:
    """One element type: its long and short names, numpy's type, C's type, size and kind.

    `source` is numpy's type, or the name of one of ml_dtypes, which is imported at first use.
    """

    name: str
    short: str
    source: np.dtype | str
    c: str
    bits: int
    kind: Kind

    @property
    def numpy(self) -> np.dtype:
        """The type of arrays of such elements."""
        return _narrow(self.source) if isinstance(self.source, str) else self.source

    @property
    def bytes(self) -> int:
        """Bytes of one element in memory; types below 8 bits take a whole byte unpacked."""
        return max(1, self.bits // 8)

    @property
    def is_float(self) -> bool:
        return self.kind == "float"

    @property
    def is_integer(self) -> bool:
        return self.kind in ("int", "uint")

    def __hash__(self) -> int:
        return hash(self.name)

    def __repr__(self) -> str:
        return self.short


@cache
def _narrow(name: str) -> np.dtype:
    found: np.dtype = np.dtype(getattr(import_module("ml_dtypes"), name))
    return found


def _row(name: str, short: str, source: object, c: str, bits: int, kind: Kind) -> DType:
    own = source if isinstance(source, str) else np.dtype(source)  # type: ignore[call-overload]
    return DType(name, short, own, c, bits, kind)


TABLE: tuple[DType, ...] = (
    float64 := _row("float64", "f64", np.float64, "double", 64, "float"),
    float32 := _row("float32", "f32", np.float32, "float", 32, "float"),
    float16 := _row("float16", "f16", np.float16, "uint16_t", 16, "float"),
    bfloat16 := _row("bfloat16", "bf16", "bfloat16", "uint16_t", 16, "float"),
    float8e4m3fn := _row(
        "float8e4m3fn", "f8e4m3fn", "float8_e4m3fn", "uint8_t", 8, "float"),
    float8e4m3fnuz := _row(
        "float8e4m3fnuz", "f8e4m3fnuz", "float8_e4m3fnuz", "uint8_t", 8, "float"),
    float8e5m2 := _row("float8e5m2", "f8e5m2", "float8_e5m2", "uint8_t", 8, "float"),
    float8e5m2fnuz := _row(
        "float8e5m2fnuz", "f8e5m2fnuz", "float8_e5m2fnuz", "uint8_t", 8, "float"),
    float8e8m0 := _row("float8e8m0", "f8e8m0", "float8_e8m0fnu", "uint8_t", 8, "float"),
    float4e2m1 := _row("float4e2m1", "f4e2m1", "float4_e2m1fn", "uint8_t", 4, "float"),
    int64 := _row("int64", "i64", np.int64, "int64_t", 64, "int"),
    int32 := _row("int32", "i32", np.int32, "int32_t", 32, "int"),
    int16 := _row("int16", "i16", np.int16, "int16_t", 16, "int"),
    int8 := _row("int8", "i8", np.int8, "int8_t", 8, "int"),
    int4 := _row("int4", "i4", "int4", "int8_t", 4, "int"),
    int2 := _row("int2", "i2", "int2", "int8_t", 2, "int"),
    uint64 := _row("uint64", "u64", np.uint64, "uint64_t", 64, "uint"),
    uint32 := _row("uint32", "u32", np.uint32, "uint32_t", 32, "uint"),
    uint16 := _row("uint16", "u16", np.uint16, "uint16_t", 16, "uint"),
    uint8 := _row("uint8", "u8", np.uint8, "uint8_t", 8, "uint"),
    uint4 := _row("uint4", "u4", "uint4", "uint8_t", 4, "uint"),
    uint2 := _row("uint2", "u2", "uint2", "uint8_t", 2, "uint"),
    bool_ := _row("bool", "bool", np.bool_, "uint8_t", 8, "bool"),
    string := _row("string", "str", np.dtypes.StringDType(), "", 128, "string"),
)
HALVES = (bfloat16, float16)  # stored so, computed in float32
BY_NAME = {key: row for row in TABLE for key in (row.name, row.short)}
_OF_NUMPY = {row.source: row for row in TABLE if not isinstance(row.source, str)}


@cache
def _by_numpy() -> dict[np.dtype, DType]:
    return {row.numpy: row for row in TABLE}


def dtype(name: str) -> DType:
    """The row called `name` (long or short). Raises InputError GT0301 for an unknown name."""
    if name not in BY_NAME:
        known = " ".join(row.short for row in TABLE)
        raise InputError("GT0301", f"unknown element type {name!r}", hint=f"one of {known}")
    return BY_NAME[name]


def of_numpy(numpy_type: np.dtype) -> DType:
    """The row of a numpy type. Raises InputError GT0302 for types such as object or complex."""
    own = np.dtype(numpy_type)
    row = string if own.kind == "U" else _OF_NUMPY.get(own) or _by_numpy().get(own)
    if row is None:
        raise InputError("GT0302", f"numpy type {numpy_type} has no counterpart here")
    return row


def as_array(x: Any) -> np.ndarray[Any, Any]:
    """x as an array of one of the types above: numpy's strings of fixed length become `string`,
    and so does a Python string, which is how numpy hands out an element of one."""
    array = np.asarray(x)
    return array.astype(string.numpy) if array.dtype.kind == "U" else array


def as_strings(x: Any) -> np.ndarray[Any, Any]:
    """An array of strings; its elements may be objects: str, or bytes in UTF-8. Raises InputError
    GT0303 for anything else."""
    array = np.asarray(x)
    if array.dtype.kind in "OS":
        flat = [v.decode("utf-8", "replace") if isinstance(v, bytes) else v
                for v in array.reshape(-1)]
        if not all(isinstance(v, str) for v in flat):
            raise InputError("GT0303", "an array of objects that are not all strings")
        return np.array(flat, string.numpy).reshape(array.shape)
    if array.dtype.kind not in "UT":
        raise InputError("GT0303", f"{array.dtype} is not a type of strings")
    return array.astype(string.numpy)
