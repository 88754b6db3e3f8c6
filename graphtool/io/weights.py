"""Constant arrays by content: a `Weight` identifies its bytes by sha256 and reads them on demand.

The weights file is safetensors with 64-byte aligned data, memory-mapped, one tensor per digest
(`save_named` writes names instead, for other tools). Elements of less than a byte are packed in
bytes, from the low end. The data of a weight are checked against its hash when they are first used,
so that a verb that needs no data reads none.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from graphtool.dtypes import BY_SAFETENSORS, DType, as_array, dtype, of_numpy, string
from graphtool.errors import InputError
from graphtool.io import host

Array = np.ndarray[Any, Any]
ALIGN = 64
_MAX_HEADER = 100 << 20


@dataclass(slots=True)
class Mapped:
    """Data in a mapped file; `as_written` are the bytes of the digest, where they differ."""

    data: Array
    path: Path
    as_written: Array | None = None
    checked: bool = False


@dataclass(slots=True)
class MissingWeight(Mapped):
    """Data that are not at hand; `data` has their shape only."""


@dataclass(frozen=True, slots=True)
class Weight:
    """A constant array. Equality is by digest, type and shape; `held` has or maps the data: the
    array itself, or the bytes that `pack` gives of elements of less than a byte."""

    digest: str
    dtype: DType
    shape: tuple[int, ...]
    held: Array | Mapped = field(compare=False, repr=False)

    @property
    def absent(self) -> bool:
        """Whether the data are not at hand."""
        return isinstance(self.held, MissingWeight)

    @property
    def stored(self) -> Array:
        """The data. Raises InputError GT0321 if those of a file do not have the digest."""
        held = self.held
        if not isinstance(held, Mapped):
            return held
        if isinstance(held, MissingWeight):
            raise InputError("GT0320", "the weights file is not at hand", where=self.digest)
        if not held.checked:
            if not intact(self):
                raise InputError("GT0321", f"the data of {self.digest[:19]}… are damaged",
                                 where=str(held.path),
                                 hint="copy the file again, or make it anew from the model")
            held.checked = True
        return held.data

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
        return (self.held.data if isinstance(self.held, Mapped) else self.held).nbytes


def intact(w: Weight) -> bool:
    """Whether the data have the digest; 100 MB take 0.12 s on one core."""
    if not isinstance(w.held, Mapped) or w.held.checked:
        return True
    if isinstance(w.held, MissingWeight):
        return False
    forms = (w.held.data, w.held.as_written)
    return any(w.digest == _digest(x, w.dtype, w.shape) for x in forms if x is not None)


def weight(array: Array) -> Weight:
    """The Weight of an array (made contiguous and read-only)."""
    data = np.ascontiguousarray(as_array(array)).reshape(np.shape(array))
    if data.dtype.byteorder == ">":
        data = data.astype(data.dtype.newbyteorder("<"))
    row = of_numpy(data.dtype)
    stored = pack(data, row.bits) if row.is_packed else data.view()
    stored.flags.writeable = False
    return Weight(_digest(stored, row, tuple(data.shape)), row, tuple(data.shape), stored)


def let_go(x: Array) -> None:
    """Drop the pages of a mapped file that x covers from this process's memory; they are read again
    when they are used again. Nothing happens to an array in memory of its own."""
    base: Any = x
    while base is not None and not host.is_mapped(base):
        base = base.obj if isinstance(base, memoryview) else getattr(base, "base", None)
    if base is not None and x.flags.c_contiguous:
        start = x.ctypes.data - np.frombuffer(base, np.uint8).ctypes.data
        host.let_go(base, start, start + x.nbytes)


def missing(digest: str, row: DType, shape: tuple[int, ...]) -> Weight:
    """A weight with a digest, a type and a shape, but without data; reading its data raises
    GT0320."""
    count = math.prod(shape)
    data = np.broadcast_to(np.zeros((), np.uint8), (-(-count * row.bits // 8),)) if (
        row.is_packed) else np.broadcast_to(np.zeros((), row.numpy), shape)
    return Weight(digest, row, shape, MissingWeight(data, Path()))


def _digest(stored: Array, row: DType, shape: tuple[int, ...]) -> str:
    digest = hashlib.sha256(f"{row.short}{list(shape)}".encode())
    digest.update(_bytes(stored))
    return f"sha256:{digest.hexdigest()}"


def pack(x: Array, bits: int) -> Array:
    """The elements of x in `bits` bits each, packed into bytes, low bits first; padded with 0."""
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
    """What the digest is computed from: the array's bytes, or strings as JSON."""
    if data.dtype == string.numpy:
        return json.dumps(data.reshape(-1).tolist()).encode()
    return data.reshape(-1).view(np.uint8).data if data.size else b""


def elements(raw: Array, row: DType, shape: tuple[Any, ...]) -> Array:
    """The array of these bytes. Elements of less than a byte are unpacked, unless an earlier
    version wrote one byte for each. Raises ValueError if bytes and shape do not fit."""
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
        if not w.dtype.safetensors:  # stored as bytes; the metadata names the type
            packed = w.dtype.is_packed  # then the metadata gives the shape too
            header["__metadata__"][digest] = w.dtype.name + (str(list(w.shape)) if packed else "")
        if padded > end:  # the format allows no gaps
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
    """Map a weights file; the arrays are views of the mapping, checked against the file's size,
    and against their hashes when they are used.

    Raises InputError GT0320 for a truncated or foreign file.
    """
    try:
        mapped = host.contents(path)
    except (OSError, ValueError) as error:
        raise InputError("GT0320", f"cannot read the weights file: {error}",
                         where=str(path)) from error
    try:
        return _parse(mapped, path)
    except (ValueError, KeyError, TypeError, struct.error, AttributeError, OverflowError,
            RecursionError, InputError) as error:
        raise InputError("GT0320", f"not a weights file of graphtool, or cut short: {error}",
                         where=str(path)) from error


def _parse(data: memoryview, path: Path) -> dict[str, Weight]:
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
            held = Mapped(raw, path) if packed else Mapped(pack(raw, row.bits), path, raw)
        else:
            held = Mapped(raw.view(row.numpy).reshape(shape), path)
        out[digest] = Weight(digest, row, shape, held)
    return out


def save_named(named: Mapping[str, Weight], file: BinaryIO) -> None:
    """Write the weights, each of a type that safetensors has; wide types come first, so that all
    are aligned. Source: the format's description, github.com/huggingface/safetensors."""
    order = sorted(named, key=lambda n: (-named[n].dtype.bytes, n))
    header, end = {}, 0
    for name in order:
        w = named[name]
        header[name] = {"dtype": w.dtype.safetensors, "shape": list(w.shape),
                        "data_offsets": [end, end + w.nbytes]}
        end += w.nbytes
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    file.write(struct.pack("<Q", len(text)) + text)
    for name in order:
        data = named[name].stored
        file.write(data.reshape(-1).view(np.uint8).data if data.size else b"")
