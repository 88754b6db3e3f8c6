"""The table of element types, one row each. A fact about a type is written only in its row.

`string` is evaluated only: numpy's strings of any length. Compiled code does not support it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Any, Literal

import numpy as np

from graphtool.errors import InputError, near

Kind = Literal["float", "int", "uint", "bool", "string"]


@dataclass(frozen=True, slots=True)
class DType:
    """One element type: its names and properties here, in C, in numpy, and in other formats.

    `source` is numpy's type, or the name of a type of ml_dtypes, which is imported at first use.
    `c` is the C type of an element that has its own bytes; C functions for the type end in its
    short name. `onnx` is the number in a TensorProto, `torch` the name in torch and `torch_code`
    the number in its archives; `safetensors` is the name in that format and `rank` the position of
    such arrays in a file. 0 or "" means that there is no such type.
    """

    name: str
    short: str
    source: np.dtype | str
    c: str
    bits: int
    kind: Kind
    onnx: int = 0
    torch: str = ""
    torch_code: int = 0
    safetensors: str = ""
    rank: int = 0

    @property
    def numpy(self) -> np.dtype:
        """The numpy type of arrays with such elements."""
        return _narrow(self.source) if isinstance(self.source, str) else self.source

    @property
    def mlir(self) -> str:
        """The name of the type in MLIR; "" for strings."""
        if self.kind == "bool":
            return "i1"
        if self.kind == "uint":
            return f"ui{self.bits}"
        if self.is_float and self.bits <= 8:
            return f"{self.short[:2]}{self.short[2:].upper()}{_MLIR.get(self.name, '')}"
        return "" if self.kind == "string" else self.short

    @property
    def is_borrowed(self) -> bool:
        """Whether numpy itself lacks the type, and ml_dtypes has it."""
        return isinstance(self.source, str)

    @property
    def npy(self) -> str:
        """The name of the type in .npy files, without the byte order: V if numpy does not have
        the type."""
        letter = {"float": "f", "int": "i", "uint": "u", "bool": "b", "string": "T"}[self.kind]
        return f"{'V' if self.is_borrowed else letter}{self.bytes}"

    @property
    def bytes(self) -> int:
        """Bytes of one element in memory; types below 8 bits take a whole byte unpacked."""
        return max(1, self.bits // 8)

    @property
    def is_packed(self) -> bool:
        """Whether elements share bytes in files and in constants of C, the first in the lowest
        bits."""
        return self.bits < 8

    @property
    def is_float(self) -> bool:
        """Whether this is a floating-point type."""
        return self.kind == "float"

    @property
    def is_integer(self) -> bool:
        """Whether this is a signed or unsigned integer type."""
        return self.kind in ("int", "uint")

    @property
    def is_narrow(self) -> bool:
        """Whether it is a float type that C does not have: it is stored in this type and
        computed in float32."""
        return self.is_float and self.bits < 32

    def loses(self, x: object) -> bool:
        """Whether x is a number that this narrow float has as 0, as infinity or in fewer digits
        than others."""
        if not self.is_narrow or not isinstance(x, float) or x == 0 or not math.isfinite(x):
            return False
        info = import_module("ml_dtypes").finfo(self.numpy)
        return not float(info.smallest_normal) <= abs(x) <= float(info.max)

    @property
    def computes(self) -> DType:
        """The type of computations: float32 for narrow floats, which are rounded when stored;
        one byte for smaller integers."""
        if self.is_narrow:
            return float32
        return (int8 if self.kind == "int" else uint8) if self.is_packed else self

    @property
    def low(self) -> int:
        """The smallest number of an integer type."""
        return -1 << (self.bits - 1) if self.kind == "int" else 0

    @property
    def high(self) -> int:
        """The largest number of an integer type."""
        return self.low + (1 << self.bits) - 1

    def __hash__(self) -> int:
        return hash(self.name)

    def __repr__(self) -> str:
        return self.short


@cache
def _narrow(name: str) -> np.dtype:
    dtype: np.dtype = np.dtype(getattr(import_module("ml_dtypes"), name))
    return dtype


def _row(name: str, short: str, source: object, c: str, bits: int, kind: Kind, onnx: int = 0,
         torch: str = "", torch_code: int = 0, safetensors: str = "", rank: int = 0) -> DType:
    numpy_type = source if isinstance(source, str) else np.dtype(source)  # type: ignore[call-overload]
    return DType(name, short, numpy_type, c, bits, kind, onnx, torch, torch_code, safetensors, rank)


TABLE: tuple[DType, ...] = (
    float64 := _row("float64", "f64", np.float64, "double", 64, "float", 11, "float64", 8,
                    "F64", 10),
    float32 := _row("float32", "f32", np.float32, "float", 32, "float", 1, "float32", 7, "F32", 9),
    float16 := _row("float16", "f16", np.float16, "uint16_t", 16, "float", 10, "float16", 6,
                    "F16", 5),
    bfloat16 := _row("bfloat16", "bf16", "bfloat16", "uint16_t", 16, "float", 16, "bfloat16", 13,
                     "BF16", 6),
    float8e4m3fn := _row("float8e4m3fn", "f8e4m3fn", "float8_e4m3fn", "uint8_t", 8, "float", 17,
                         "float8_e4m3fn", 29),
    float8e4m3fnuz := _row("float8e4m3fnuz", "f8e4m3fnuz", "float8_e4m3fnuz", "uint8_t", 8, "float",
                           18, "float8_e4m3fnuz", 31),
    float8e5m2 := _row("float8e5m2", "f8e5m2", "float8_e5m2", "uint8_t", 8, "float", 19,
                       "float8_e5m2", 30),
    float8e5m2fnuz := _row("float8e5m2fnuz", "f8e5m2fnuz", "float8_e5m2fnuz", "uint8_t", 8, "float",
                           20, "float8_e5m2fnuz", 32),
    float8e4m3 := _row("float8e4m3", "f8e4m3", "float8_e4m3", "uint8_t", 8, "float"),
    float8e3m4 := _row("float8e3m4", "f8e3m4", "float8_e3m4", "uint8_t", 8, "float"),
    float8e4m3b11fnuz := _row("float8e4m3b11fnuz", "f8e4m3b11fnuz", "float8_e4m3b11fnuz", "uint8_t",
                              8, "float"),
    float8e8m0 := _row("float8e8m0", "f8e8m0", "float8_e8m0fnu", "uint8_t", 8, "float", 24,
                       "float8_e8m0fnu", 33),
    float4e2m1 := _row("float4e2m1", "f4e2m1", "float4_e2m1fn", "uint8_t", 4, "float", 23),
    int64 := _row("int64", "i64", np.int64, "int64_t", 64, "int", 7, "int64", 5, "I64", 11),
    int32 := _row("int32", "i32", np.int32, "int32_t", 32, "int", 6, "int32", 4, "I32", 7),
    int16 := _row("int16", "i16", np.int16, "int16_t", 16, "int", 5, "int16", 3, "I16", 3),
    int8 := _row("int8", "i8", np.int8, "int8_t", 8, "int", 3, "int8", 2, "I8", 2),
    int4 := _row("int4", "i4", "int4", "int8_t", 4, "int", 22),
    int2 := _row("int2", "i2", "int2", "int8_t", 2, "int", 26),
    uint64 := _row("uint64", "u64", np.uint64, "uint64_t", 64, "uint", 13, "uint64", 35, "U64", 12),
    uint32 := _row("uint32", "u32", np.uint32, "uint32_t", 32, "uint", 12, "uint32", 34, "U32", 8),
    uint16 := _row("uint16", "u16", np.uint16, "uint16_t", 16, "uint", 4, "uint16", 28, "U16", 4),
    uint8 := _row("uint8", "u8", np.uint8, "uint8_t", 8, "uint", 2, "uint8", 1, "U8", 1),
    uint4 := _row("uint4", "u4", "uint4", "uint8_t", 4, "uint", 21),
    uint2 := _row("uint2", "u2", "uint2", "uint8_t", 2, "uint", 25),
    bool_ := _row("bool", "bool", np.bool_, "uint8_t", 8, "bool", 9, "bool", 12, "BOOL", 0),
    string := _row("string", "str", np.dtypes.StringDType(), "", 128, "string", 8),
)
_MLIR = {"float8e8m0": "FNU", "float4e2m1": "FN"}  # what MLIR's name has behind ours
# the 16-bit types that kernels read directly; their headers number them from 1
HALVES = (bfloat16, float16)
BY_NAME = {key: row for row in TABLE for key in (row.name, row.short)}
BY_ONNX = {row.onnx: row for row in TABLE if row.onnx}
BY_SAFETENSORS = {row.safetensors: row for row in TABLE if row.safetensors}
_OF_NUMPY = {row.source: row for row in TABLE if not row.is_borrowed}


@cache
def _by_numpy() -> dict[np.dtype, DType]:
    return {row.numpy: row for row in TABLE}


def dtype(name: str) -> DType:
    """The row called `name` (long or short). Raises InputError GT0301 for an unknown name."""
    if name not in BY_NAME:
        short = " ".join(row.short for row in TABLE)
        raise InputError("GT0301", f"unknown element type {name!r}",
                         hint=near(name, BY_NAME, f"one of {short}"))
    return BY_NAME[name]


def of_numpy(numpy_type: np.dtype) -> DType:
    """The row of a numpy type. Raises InputError GT0302 for types such as object or complex."""
    kind = np.dtype(numpy_type)
    row = string if kind.kind == "U" else _OF_NUMPY.get(kind) or _by_numpy().get(kind)
    if row is None:
        raise InputError("GT0302", f"the numpy type {numpy_type} is not supported")
    return row


def as_array(x: Any) -> np.ndarray[Any, Any]:
    """x as an array of one of the types above.

    numpy's strings of fixed length become `string`, and so does a Python string, because numpy
    returns a single element as one.
    """
    array = np.asarray(x)
    return array.astype(string.numpy) if array.dtype.kind == "U" else array


def converted(x: np.ndarray[Any, Any], to: DType) -> np.ndarray[Any, Any] | None:
    """x with elements of the type `to`; None where the value of a number would change.

    Floats are rounded to floats, but none that is finite becomes infinite. Integers stay exactly
    what they are; no float becomes an integer. Strings and complex numbers are not converted.
    """
    have = _by_numpy().get(x.dtype)
    if have is to:
        return x
    if have is None or string in (have, to) or to is bool_ or have.is_float > to.is_float:
        return None
    with np.errstate(all="ignore"):
        out = x.astype(to.numpy)
        if have.is_float:
            lost = np.isfinite(x) & ~np.isfinite(out)
        elif to.is_float:
            wide = out.astype(np.float64)
            lost = (wide >= 2.0 ** 63) | (wide.astype(np.int64) != x.astype(np.int64))
        else:
            lost = (out.astype(x.dtype) != x) | ((out < 0) != (x < 0))
    return None if lost.any() else out


def read_bits(x: Any, to: DType) -> Any:
    """The bits of the elements of x as those of a type of the same size; a bool is whether the
    number is not 0."""
    return x.view(np.uint8) != 0 if to is bool_ else x.view(to.numpy)


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
