"""Arrays in and out of .npy and .npz files, under any names, never through pickle."""

from __future__ import annotations

import io
import tokenize
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from graphtool.dtypes import BY_NAME, as_array, of_numpy, string
from graphtool.errors import InputError
from graphtool.io import files

Array = np.ndarray[Any, Any]
_EPOCH = (1980, 1, 1, 0, 0, 0)  # a zip entry must have a date; equal arrays must give equal bytes


def load(path: Path) -> dict[str, Array]:
    """The arrays of an .npz file by name; an .npy file gives one under its stem.

    Raises InputError GT0332 where it cannot be read, GT0335 where it is not such a file.
    """
    return loads(files.read_bytes(path), str(path), path.stem)


def loads(data: bytes, where: str, stem: str = "x") -> dict[str, Array]:
    """`load` of bytes."""
    try:
        if data[:6] == b"\x93NUMPY":
            return {stem: _read(io.BytesIO(data))}
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            return {name.removesuffix(".npy"): _read(io.BytesIO(archive.read(name)))
                    for name in archive.namelist()}
    except (ValueError, OSError, EOFError, zipfile.BadZipFile, zlib.error, KeyError,
            NotImplementedError, MemoryError, SyntaxError, tokenize.TokenError) as error:
        raise InputError("GT0335", f"not an .npy or .npz file of plain arrays, or cut short: "
                                   f"{error}", where=where) from error


def _read(file: BinaryIO) -> Array:
    array = np.asarray(np.lib.format.read_array(file, allow_pickle=False))
    fields = array.dtype.names
    if fields is not None and len(fields) == 1 and fields[0] in BY_NAME:
        return np.asarray(array.view(BY_NAME[fields[0]].numpy))
    return as_array(array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("=")))


def save(arrays: Mapping[str, Array], path: Path) -> None:
    """Write an .npz file; or an .npy file where the name says so and there is one array."""
    if path.suffix == ".npy":
        if len(arrays) != 1:
            raise InputError("GT0336", f"an .npy file holds one array, {len(arrays)} to write",
                             where=str(path), hint="name the file .npz")
        data = _npy(next(iter(arrays.values())))
    else:
        data = dumps(arrays)
    files.write_bytes(path, data)


def dumps(arrays: Mapping[str, Array]) -> bytes:
    """An .npz archive, stored uncompressed; equal arrays give equal bytes."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        for name, array in arrays.items():
            archive.writestr(zipfile.ZipInfo(f"{name}.npy", _EPOCH), _npy(array))
    return buffer.getvalue()


def _npy(array: Array) -> bytes:
    buffer = io.BytesIO()
    data = np.asarray(array)
    if data.dtype == string.numpy:  # as numpy's strings of one length
        data = np.array(data.reshape(-1).tolist(), str).reshape(data.shape)
    contiguous = np.ascontiguousarray(data).reshape(data.shape)
    if data.dtype.isbuiltin == 2:  # numpy cannot write bfloat16 and the like:
        row = of_numpy(data.dtype)  # a record of one field says by its name what the bytes are
        contiguous = contiguous.view([(row.name, f"V{data.dtype.itemsize}")])
    np.lib.format.write_array(buffer, contiguous, allow_pickle=False)
    return buffer.getvalue()
