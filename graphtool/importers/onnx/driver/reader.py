"""Reads a file as a checked ModelProto, and its tensors as arrays. Knows no operators.

External data is read only from inside the model's own folder, by memory map. The layout of the
Hugging Face cache (`snapshots/REV/…` linking into `blobs/`) counts as inside.
"""

from __future__ import annotations

import math
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import ModelProto, TensorProto, numpy_helper

from graphtool import dtypes
from graphtool.dtypes import DType
from graphtool.errors import InputError
from graphtool.front import Refused
from graphtool.importers.limits import Limits
from graphtool.io import files
from graphtool.io.weights import Array, unpack


def read_model(path: Path) -> ModelProto:
    """The ModelProto of a `.onnx` file.

    Raises InputError GT1001 for bytes that are not an ONNX model, GT1002 for a model without a
    graph.
    """
    return parse_model(files.read_bytes(path), str(path.name))


def parse_model(data: bytes, where: str) -> ModelProto:
    """The ModelProto of these bytes; `where` names their file in errors.

    Raises InputError GT1001 for bytes that are not an ONNX model, GT1002 for a model without a
    graph.
    """
    try:
        model = onnx.load_model_from_string(data)
    except Exception as error:  # the protobuf runtimes raise classes of their own
        raise InputError("GT1001", f"not an ONNX model, or cut short: {error}",
                         where=where) from error
    if not model.HasField("graph") or not (model.graph.node or model.graph.output):
        raise InputError("GT1002", "the file holds no ONNX graph", where=where,
                         hint="the file may be of another kind, or empty")
    check_names(model, where)
    return model


def check_names(message: Any, where: str) -> None:
    """Check that all names are text.

    Raises InputError GT1001 for a name that is not UTF-8, which protobuf returns as bytes.
    """
    for field, content in message.ListFields():
        if field.type not in (field.TYPE_STRING, field.TYPE_MESSAGE):
            continue
        repeated = not isinstance(content, (str, bytes)) and hasattr(content, "__len__")
        for item in content if repeated else (content,):
            if isinstance(item, bytes):
                raise InputError("GT1001", f"the name {item[:40]!r} is not UTF-8",
                             where=where)
            if isinstance(item, TensorProto):
                if isinstance(item.name, bytes):
                    raise InputError("GT1001", f"the name {item.name[:40]!r} is not UTF-8",
                             where=where)
            elif not isinstance(item, str):
                check_names(item, where)


def element_type(elem_type: int) -> DType:
    """The dtype of an ONNX element type.

    Raises Refused for complex numbers, InputError GT1004 for an unknown type.
    """
    if elem_type in (TensorProto.COMPLEX64, TensorProto.COMPLEX128):
        raise Refused("complex numbers are not supported")
    if elem_type not in dtypes.BY_ONNX:
        raise InputError("GT1004", f"unknown ONNX element type {elem_type}")
    return dtypes.BY_ONNX[elem_type]


# ---- tensors -----------------------------------------------------------------------------------

def array(tensor: TensorProto, base_dir: Path | None) -> Array:
    """The array of a TensorProto. Raises InputError GT1005 if data and dims do not fit."""
    row = element_type(tensor.data_type)
    shape = tuple(tensor.dims)
    if any(d < 0 for d in shape):
        raise InputError("GT1005", f"initializer {tensor.name!r} has a negative dimension")
    if tensor.data_location == TensorProto.EXTERNAL:
        if row is dtypes.string:
            raise InputError("GT1005", f"initializer {tensor.name!r}: strings do not lie in "
                                       "another file")
        return _external(tensor, row, shape, base_dir)
    if row is dtypes.string:
        return _strings(tensor, shape)
    if tensor.HasField("raw_data"):
        raw = tensor.raw_data  # a copy each time that it is asked for
        _need_size(tensor, row, shape, len(raw))
        if row.is_packed:
            return unpack(np.frombuffer(raw, np.uint8), row, shape)
        if sys.byteorder == "little":
            return np.frombuffer(raw, row.numpy).reshape(shape)
    try:
        out = numpy_helper.to_array(tensor)
    except (ValueError, TypeError, OverflowError) as error:
        raise InputError("GT1005", f"initializer {tensor.name!r} of shape {list(shape)}: "
                                   f"{error}") from error
    return np.asarray(out).astype(row.numpy, copy=False).reshape(shape)


def _strings(tensor: TensorProto, shape: tuple[int, ...]) -> Array:
    strings = list(tensor.string_data)
    if len(strings) != math.prod(shape):
        raise InputError("GT1005", f"initializer {tensor.name!r} of shape {list(shape)} has "
                                   f"{len(strings)} strings")
    return dtypes.as_strings(np.array(strings, object)).reshape(shape)


def _need_size(tensor: TensorProto, row: DType, shape: tuple[int, ...], got: int) -> int:
    bits = math.prod(shape) * row.bits
    expected = -(-bits // 8)
    if got != expected:
        raise InputError("GT1005", f"initializer {tensor.name!r} {row.short}{list(shape)} needs "
                                   f"{expected} bytes, {got} given")
    return expected


def _external(tensor: TensorProto, row: DType, shape: tuple[int, ...],
              base_dir: Path | None) -> Array:
    entries = {e.key: e.value for e in tensor.external_data}
    name = tensor.name
    if base_dir is None:
        raise InputError("GT1006", f"initializer {name!r} lies in another file, and the model "
                                   "was given without a folder",
                         hint="give the path of the model's file")
    path = external_path(base_dir, entries.get("location", ""), name)
    size = path.stat().st_size
    expected = -(-math.prod(shape) * row.bits // 8)
    offset = _byte_count(entries.get("offset", "0"), name)
    length = _byte_count(entries.get("length", str(expected)), name)
    _need_size(tensor, row, shape, length)
    if offset + length > size:
        raise InputError("GT1008", f"initializer {name!r} is at bytes {offset} to "
                                   f"{offset + length} of a file of {size} bytes", where=path.name,
                         hint="the file may be cut short, or belong to another model")
    if not length:
        return np.zeros(shape, row.numpy)
    raw = np.memmap(path, np.uint8, "r", offset, (length,))
    if row.is_packed:
        return unpack(raw, row, shape)
    return np.asarray(raw).view(row.numpy).reshape(shape)


def _byte_count(text: str, name: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 20):
        raise InputError("GT1008", f"the offset or length {text[:40]!r} of initializer {name!r} "
                                   "is not a number of bytes")
    return int(text)


def external_path(base_dir: Path, location: str, name: str) -> Path:
    """The path of the file that holds an external tensor.

    Raises InputError GT1007 for a path outside the folder, GT1009 for a file that cannot be read.
    """
    parts = location.replace("\\", "/").split("/")
    plain = location and not location.startswith(("/", "\\")) and ".." not in parts \
        and "\0" not in location and ":" not in parts[0]
    if not plain:
        raise InputError("GT1007", f"initializer {name!r} names the file {location!r}, which is "
                                   "not inside the model's folder",
                         hint="put the file into that folder, and name it by a relative path")
    path = base_dir / location
    try:
        target, home = path.resolve(strict=True), base_dir.resolve(strict=True)
    except (OSError, RuntimeError) as error:
        raise InputError("GT1009", f"the file {location!r} of initializer {name!r} cannot be "
                                   "read", hint="it belongs beside the model") from error
    if not target.is_relative_to(home) and not _in_blobs(home, target):
        raise InputError("GT1007", f"initializer {name!r}: {location!r} is a link that leads out "
                                   "of the model's folder", hint="copy the file into that folder")
    if not target.is_file():
        raise InputError("GT1009", f"{location!r} of initializer {name!r} is not a file")
    return target


def _in_blobs(home: Path, target: Path) -> bool:
    snapshots = next((p for p in (home, *home.parents) if p.name == "snapshots"), None)
    return snapshots is not None and target.parent == snapshots.parent / "blobs"


def dense(sparse: Any, base_dir: Path | None, limits: Limits, where: str) -> Array:
    """The dense array of a SparseTensorProto. Its indices are flat, or one row for each entry.

    Raises InputError GT1022 if it takes more bytes than the limits allow.
    """
    size = math.prod(sparse.dims) * element_type(sparse.values.data_type).bits // 8
    limits.check_bytes(size, "the sparse tensor laid out", where)
    values, at = array(sparse.values, base_dir), array(sparse.indices, base_dir)
    out = np.zeros(tuple(sparse.dims), values.dtype)
    if at.ndim == 1:
        out.reshape(-1)[at] = values
    else:
        out[tuple(at.T)] = values
    return out


# ---- attributes --------------------------------------------------------------------------------

def attribute(a: Any, base_dir: Path | None, limits: Limits) -> Any:
    """An AttributeProto as a Python value: a graph as GraphProto, a string as str."""
    match a.type:
        case a.FLOAT:
            return shortest(a.f)
        case a.INT:
            return int(a.i)
        case a.STRING:
            return a.s.decode("utf-8", "replace")
        case a.TENSOR:
            return array(a.t, base_dir)
        case a.GRAPH:
            return a.g
        case a.FLOATS:
            return tuple(shortest(x) for x in a.floats)
        case a.INTS:
            return tuple(int(x) for x in a.ints)
        case a.STRINGS:
            return tuple(s.decode("utf-8", "replace") for s in a.strings)
        case a.TENSORS:
            return tuple(array(t, base_dir) for t in a.tensors)
        case a.SPARSE_TENSOR:
            return dense(a.sparse_tensor, base_dir, limits, f"attribute {a.name}")
        case a.TYPE_PROTO:
            return a.tp
        case a.GRAPHS:
            return tuple(a.graphs)
        case _:
            raise Refused(f"the kind of the attribute {a.name!r} is not supported")


def shortest(x: float) -> float:
    """The shortest decimal with the same float32: 1e-05, not 9.999999747378752e-06."""
    return float(str(np.float32(x)))
