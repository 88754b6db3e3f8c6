"""Constant arrays by content: a `Weight` identifies its bytes by sha256 and reads them on demand.

The weights file is safetensors with 64-byte aligned data, memory-mapped, one tensor per digest.
Elements of less than a byte are packed in bytes, from the low end.
"""

from __future__ import annotations

import hashlib
import json
import math
import mmap
import re
import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from graphtool.dtypes import BY_SAFETENSORS, DType, as_array, dtype, of_numpy, string
from graphtool.errors import InputError

Array = np.ndarray[Any, Any]
ALIGN = 64
_MAX_HEADER = 100 << 20


@dataclass(frozen=True, slots=True)
class Weight:
    """A constant array. Equality is by digest, type and shape; `stored` holds or maps the data:
    the array itself, or the bytes that `pack` gives of elements of less than a byte."""

    digest: str
    dtype: DType
    shape: tuple[int, ...]
    stored: Array = field(compare=False, repr=False)

    @property
    def source(self) -> Array:
        """The elements; those of less than a byte are unpacked each time."""
        return unpack(self.stored, self.dtype, self.shape) if self.dtype.is_packed else self.stored

    @property
    def size(self) -> int:
        """The number of elements."""
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        """Bytes as they are stored."""
        return self.stored.nbytes


def weight(array: Array) -> Weight:
    """The Weight of an array (made contiguous and read-only)."""
    data = np.ascontiguousarray(as_array(array)).reshape(np.shape(array))
    if data.dtype.byteorder == ">":
        data = data.astype(data.dtype.newbyteorder("<"))
    row = of_numpy(data.dtype)
    stored = pack(data, row.bits) if row.is_packed else data.view()
    stored.flags.writeable = False
    seed = f"{row.short}{list(data.shape)}".encode()
    digest = hashlib.sha256(seed)
    digest.update(_bytes(stored))
    return Weight(f"sha256:{digest.hexdigest()}", row, tuple(data.shape), stored)


def pack(x: Array, bits: int) -> Array:
    """Bytes of the elements of x, each of so many bits, from the low end; the last ones are 0."""
    per = 8 // bits
    fields = np.zeros(-(-x.size // per) * per, np.uint8)
    fields[:x.size] = np.ascontiguousarray(x).reshape(-1).view(np.uint8) & ((1 << bits) - 1)
    shifts = np.arange(per, dtype=np.uint8) * np.uint8(bits)
    out: Array = np.bitwise_or.reduce(fields.reshape(-1, per) << shifts, axis=1, dtype=np.uint8)
    return out


def unpack(data: Array, row: DType, shape: tuple[int, ...]) -> Array:
    """The elements whose packed bytes these are: the inverse of `pack`."""
    shifts = np.arange(8 // row.bits, dtype=np.uint8) * np.uint8(row.bits)
    fields = (data[:, None] >> shifts & np.uint8((1 << row.bits) - 1)).reshape(-1)
    out: Array = fields[:math.prod(shape)].view(row.numpy).reshape(shape)
    out.flags.writeable = False
    return out


def _bytes(data: Array) -> Any:
    """What of an array makes its digest: its bytes, or of strings their text as JSON."""
    if data.dtype == string.numpy:
        return json.dumps(data.reshape(-1).tolist()).encode()
    return data.reshape(-1).view(np.uint8).data if data.size else b""


def elements(raw: Array, row: DType, shape: tuple[Any, ...]) -> Array:
    """The array of these bytes; of elements of less than a byte, each of which had a byte of its
    own in earlier versions. Raises ValueError where they do not fit."""
    count = math.prod(shape)
    if row.is_packed and raw.size == -(-count * row.bits // 8):
        return unpack(raw, row, shape)
    return raw.view(row.numpy).reshape(shape)


def layout(weights: Iterable[Weight]) -> tuple[dict[str, int], int]:
    """Where each digest's bytes start, counted from the end of the header, and their total."""
    unique = {w.digest: w for w in weights}
    at: dict[str, int] = {}
    total = 0
    for digest in sorted(unique):
        at[digest] = total
        total += -(-unique[digest].nbytes // ALIGN) * ALIGN
    return at, total


def save(weights: Iterable[Weight], file: BinaryIO) -> int:
    """Write the weights, each digest once, sorted by digest, as safetensors.

    Returns where the data start: `layout` counts from there.
    """
    unique = {w.digest: w for w in weights}
    starts, _ = layout(unique.values())
    header: dict[str, Any] = {"__metadata__": {"format": "graphtool/weights"}}
    for digest, start in starts.items():
        w = unique[digest]
        end, padded = start + w.nbytes, start + -(-w.nbytes // ALIGN) * ALIGN
        shape = [w.nbytes] if w.dtype.is_packed else list(w.shape)
        header[digest] = {"dtype": w.dtype.safetensors or "U8", "shape": shape,
                          "data_offsets": [start, end]}
        if not w.dtype.safetensors:  # bytes there, and named in the metadata
            packed = w.dtype.is_packed  # which leaves open how many elements, and in which shape
            header["__metadata__"][digest] = w.dtype.name + (str(list(w.shape)) if packed else "")
        if padded > end:  # the format wants no holes
            header[f"pad:{digest}"] = {"dtype": "U8", "shape": [padded - end],
                                       "data_offsets": [end, padded]}
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-(len(text) + 8) % ALIGN)
    file.write(struct.pack("<Q", len(text)) + text)
    for digest in starts:
        data = unique[digest].stored
        file.write(data.reshape(-1).view(np.uint8).data if data.size else b"")
        file.write(b"\0" * (-data.nbytes % ALIGN))
    return len(text) + 8


def load(path: Path) -> Mapping[str, Weight]:
    """Map a weights file; the arrays are views of the mapping, checked against the file's size.

    Raises InputError GT0320 for a truncated or foreign file.
    """
    try:
        with path.open("rb") as file:
            mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except (OSError, ValueError) as error:
        raise InputError("GT0320", f"cannot read the weights file: {error}",
                         where=str(path)) from error
    try:
        return _parse(memoryview(mapped))
    except (ValueError, KeyError, TypeError, struct.error, AttributeError) as error:
        raise InputError("GT0320", f"not a weights file of graphtool, or cut short: {error}",
                         where=str(path)) from error


def _parse(data: memoryview) -> dict[str, Weight]:
    (length,) = struct.unpack_from("<Q", data)
    if length > min(_MAX_HEADER, len(data) - 8):
        raise ValueError("header beyond the end")
    header = json.loads(bytes(data[8:8 + length]))
    exotic = header.pop("__metadata__", {})
    out = {}
    for digest, entry in header.items():
        if not digest.startswith("sha256:"):
            continue
        name, packed, dims = exotic.get(digest, "").partition("[")
        row = dtype(name) if name else BY_SAFETENSORS[entry["dtype"]]
        start, end = entry["data_offsets"]
        shape = tuple(int(d) for d in (re.findall(r"\d+", dims) if packed else entry["shape"]))
        count = math.prod(shape)
        size = -(-count * row.bits // 8) if packed else count * row.bytes
        if not 0 <= start <= end <= len(data) - 8 - length or end - start != size:
            raise ValueError(f"{digest[:16]}… lies outside the file")
        raw = np.frombuffer(data, np.uint8, end - start, 8 + length + start)
        if row.is_packed:  # files of earlier versions have a byte for each element
            raw = raw if packed else pack(raw, row.bits)
            out[digest] = Weight(digest, row, shape, raw)
        else:
            out[digest] = Weight(digest, row, shape, raw.view(row.numpy).reshape(shape))
    return out
