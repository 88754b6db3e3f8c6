"""Element types and arrays as the text writes them: nested lists, one number for all elements, or
the bytes of all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from graphtool import dtypes
from graphtool.dtypes import DType
from graphtool.front import Refused
from graphtool.importers.stablehlo.text.attributes import Dense
from graphtool.importers.stablehlo.text.tree import MlirType
from graphtool.io.weights import Array
from graphtool.ir.graph import TensorType
from graphtool.symbolic import text

_ELEMENTS = {
    "index": dtypes.int64,
    **{f"si{row.bits}": row for row in dtypes.TABLE if row.kind == "int"},
    **{row.mlir: row for row in dtypes.TABLE if row.mlir},
}


def element_type(kind: MlirType) -> DType:
    """The row of a kind's element type. Raises Refused for types that have no counterpart."""
    row = _ELEMENTS.get(kind.element) if kind.shape is not None else None
    if row is None:
        raise Refused("complex numbers are not supported here" if kind.element.startswith("complex")
                      else f"the type {kind} is not supported")
    return row


def shown(types: Sequence[TensorType]) -> str:
    """Types for a message: `f32[2,3], i32[]`."""
    return ", ".join(f"{t.dtype.short}[{','.join(map(text, t.shape))}]" for t in types)


# ---- arrays -------------------------------------------------------------------------------------

def array_of(value: Dense, dtype: DType, shape: tuple[int, ...]) -> Array:
    """The array of `dense<…>`: nested lists, one number for all elements, or bytes of all.

    Raises ValueError where the elements do not fit the shape.
    """
    count = int(np.prod(shape, dtype=np.int64))
    if isinstance(value.elements, bytes):
        return _from_bytes(value.elements, dtype, shape, count)
    flat: list[Any] = []
    _flatten(value.elements, flat)
    if len(flat) not in (1, count):
        raise ValueError(f"{len(flat)} elements for the shape {list(shape)}")
    out = _numbers(flat, dtype)
    return np.broadcast_to(out.reshape(()), shape) if len(flat) == 1 and not isinstance(
        value.elements, list) else out.reshape(shape)


def _from_bytes(text: bytes, dtype: DType, shape: tuple[int, ...], count: int) -> Array:
    if text[:2].lower() != b"0x":
        raise ValueError("an array of strings")
    data = bytes.fromhex(text[2:].decode())
    if dtype is dtypes.bool_:
        if len(data) == 1 and (data[0] in (0, 255) or count > 8):  # one byte for all elements
            return np.broadcast_to(np.array(data[0] != 0), shape)
        if len(data) == count:
            return np.not_equal(np.frombuffer(data, np.uint8), 0).reshape(shape)
        bits = np.unpackbits(np.frombuffer(data, np.uint8), bitorder="little")
        return bits[:count].astype(np.bool_).reshape(shape)
    array = np.frombuffer(data, dtype.numpy if not dtype.is_packed else np.uint8)
    if dtype.is_packed:
        array = array.astype(dtype.numpy)
    if len(array) == 1 != count:
        return np.broadcast_to(array.reshape(()), shape)
    return array.reshape(shape)


def _flatten(x: Any, out: list[Any]) -> None:
    if isinstance(x, list):
        for i in x:
            _flatten(i, out)
    else:
        out.append(x)


def _numbers(flat: list[Any], dtype: DType) -> Array:
    """Numbers as the text writes them; hexadecimal ones of floats are their bits."""
    if not dtype.is_float:
        return np.array([x if isinstance(x, bool) else int(x, 0) if x[:2] in ("0x", "-0") else
                         int(x) for x in flat], object).astype(dtype.numpy)
    hexadecimal = [isinstance(x, str) and x[:2] == "0x" for x in flat]
    plain = [0.0 if h else float(x) for x, h in zip(flat, hexadecimal, strict=True)]
    out = np.array(plain, np.float64).astype(dtype.numpy)
    if any(hexadecimal):
        whole = dtypes.BY_NAME[f"uint{max(dtype.bits, 8)}"].numpy
        bits = out.view(whole)
        for i, h in enumerate(hexadecimal):
            if h:
                bits[i] = int(flat[i], 16)
    return out
