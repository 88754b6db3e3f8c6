"""Checks TensorProtos without decoding them: type, dims, and that the data fill them exactly."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from onnx import TensorProto

from graphtool import dtypes
from graphtool.errors import InputError

_COMPLEX = {TensorProto.COMPLEX64: ("float_data", 64), TensorProto.COMPLEX128: ("double_data", 128)}
_OWN = {TensorProto.FLOAT: "float_data", TensorProto.DOUBLE: "double_data",
        TensorProto.INT64: "int64_data", TensorProto.UINT64: "uint64_data",
        TensorProto.UINT32: "uint64_data", TensorProto.STRING: "string_data"}
_FIELDS = ("float_data", "int32_data", "string_data", "int64_data", "double_data", "uint64_data")
_LARGEST = 1 << 62  # elements; a product beyond it overflows in other tools
RANK = 64  # of an array of numpy


def check_tensor(t: Any, where: str) -> None:
    """Check one tensor.

    Raises InputError GT1004 for an unknown element type, GT1005 for dims or data that do not fit,
    GT1001 for text that is not UTF-8.
    """
    name = f"tensor {t.name!r}" if t.name else "the tensor"
    if t.data_type not in dtypes.BY_ONNX and t.data_type not in _COMPLEX:
        raise InputError("GT1004", f"{name} has the unknown element type {t.data_type}",
                         where=where)
    count = math.prod(t.dims)
    if any(d < 0 for d in t.dims) or count > _LARGEST:
        raise InputError("GT1005", f"{name} cannot have the dims {list(t.dims)}", where=where,
                         hint="a dimension is at least 0, their product at most 2**62")
    if len(t.dims) > RANK:
        raise InputError("GT1005", f"{name} has {len(t.dims)} dimensions, {RANK} at most",
                         where=where)
    held = [f for f in _FIELDS if len(getattr(t, f))] + ["raw_data"] * t.HasField("raw_data")
    if t.data_location == TensorProto.EXTERNAL:
        if held:
            raise InputError("GT1005", f"{name} has its data in another file and in {held[0]} "
                                       "as well", where=where)
        return
    if len(held) > 1:
        raise InputError("GT1005", f"{name} has its data twice, in {held[0]} and in {held[1]}",
                         where=where)
    field, bits = _form(t)
    stored = held[0] if held else field
    if stored not in (field, "raw_data") or (stored == "raw_data" and not bits):
        raise InputError("GT1005", f"{name} of type {_type(t)} must have its data in {field}, not "
                                   f"in {stored}", where=where)
    got = len(t.raw_data) if stored == "raw_data" else len(getattr(t, field))
    expected = -(-count * bits // 8) if stored == "raw_data" else _entries(t, count, bits)
    if got != expected:
        what = "bytes" if stored == "raw_data" else f"entries of {field}"
        raise InputError("GT1005", f"{name} {_type(t)}{list(t.dims)} needs {expected} {what}, "
                                   f"{got} given", where=where)
    _check_entries(t, stored, name, where)


def _form(t: Any) -> tuple[str, int]:
    """The field that holds the tensor's data, and the bits of an element (0 for strings)."""
    if t.data_type in _COMPLEX:
        return _COMPLEX[t.data_type]
    row = dtypes.BY_ONNX[t.data_type]
    return _OWN.get(t.data_type, "int32_data"), 0 if row is dtypes.string else row.bits


def _entries(t: Any, count: int, bits: int) -> int:
    if t.data_type in _COMPLEX:
        return 2 * count
    return -(-count * bits // 8) if 0 < bits < 8 and dtypes.BY_ONNX[t.data_type].is_packed \
        else count


def _type(t: Any) -> str:
    return str(TensorProto.DataType.Name(t.data_type).lower())


def _check_entries(t: Any, stored: str, name: str, where: str) -> None:
    """Check what a field can hold beyond its type: text that is UTF-8, integers in range."""
    if stored == "string_data":
        for text in t.string_data:
            try:
                text.decode("utf-8")
            except UnicodeDecodeError as error:
                raise InputError("GT1001", f"{name} holds {text[:40]!r}, which is not UTF-8",
                                 where=where) from error
    elif stored == "int32_data" and len(t.int32_data):
        row = dtypes.BY_ONNX[t.data_type]
        low, high = (row.low, row.high) if row.is_integer and row.bits >= 8 else \
            (0, 1) if row is dtypes.bool_ else (0, (1 << max(row.bits, 8)) - 1)
        entries = np.asarray(t.int32_data)
        if entries.min() < low or entries.max() > high:
            raise InputError("GT1005", f"{name} of type {_type(t)} has an entry that is not in "
                                       f"{low}..{high}", where=where)


def check_sparse(s: Any, where: str) -> None:
    """Check a SparseTensorProto: its indices are inside its dims, in order, none twice.

    Raises InputError GT1004, GT1005.
    """
    check_tensor(s.values, where)
    check_tensor(s.indices, where)
    name, dims = f"sparse tensor {s.values.name!r}", list(s.dims)

    def fault(text: str) -> InputError:
        return InputError("GT1005", f"{name} of dims {dims}: {text}", where=where)
    if any(d < 0 for d in dims) or math.prod(dims) > _LARGEST:
        raise fault("a dimension is at least 0, their product at most 2**62")
    if len(dims) > RANK:
        raise fault(f"{RANK} dimensions at most")
    if len(s.values.dims) != 1 or s.indices.data_type != TensorProto.INT64:
        raise fault("the values must be a vector and the indices int64")
    count, rows = s.values.dims[0], list(s.indices.dims)
    if rows not in ([count], [count, len(dims)]):
        raise fault(f"{count} values have indices of shape {rows}")
    at = np.frombuffer(s.indices.raw_data, "<i8") if s.indices.HasField("raw_data") \
        else np.asarray(s.indices.int64_data, np.int64)
    if not at.size:
        return
    limit = np.asarray(dims if len(rows) == 2 else math.prod(dims), np.int64)
    table = at.reshape(rows)
    if (table < 0).any() or (table >= limit).any():
        raise fault("an index is out of range")
    flat = at if len(rows) == 1 else np.ravel_multi_index(tuple(table.T), tuple(dims))
    if (flat[1:] <= flat[:-1]).any():
        raise fault("the indices are not in ascending order, or one is given twice")
