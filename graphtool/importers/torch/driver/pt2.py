"""Reads a `.pt2` archive: a zip of JSON and raw weights. Runs no code from it.

A pickled weight is refused; sample inputs and guards are not read; sizes are parsed by whitelist;
only ops with a handler are accepted. A program that was never decomposed may need torch: if it
cannot be converted as it is, pt2_live.py decomposes it.
"""

from __future__ import annotations

import json
import re
import zipfile
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from graphtool.dtypes import DType
from graphtool.errors import InputError, UnsupportedError
from graphtool.importers.torch.driver.captured import CapturedProgram
from graphtool.importers.torch.driver.pt2_graph import COMPLEX_TYPES, SCALAR_TYPES, read_program
from graphtool.importers.torch.driver.settled import to_module
from graphtool.io import files
from graphtool.io.weights import Array, Weight, weight
from graphtool.ir.graph import Module

_Folders = Mapping[str, Mapping[str, Weight]]
_MAX_JSON = 1 << 30
_MAX_MEMBERS = 1 << 20
_FAULTS = (KeyError, TypeError, ValueError, IndexError, AttributeError, RecursionError,
           OverflowError)


def read_pt2(path: Path | str) -> Module:
    """The module of an archive that `torch.export.save` wrote.

    Raises InputError GT0332 if it cannot be read, GT120x for a foreign, damaged or unsafe
    archive, UnsupportedError GT1101 for calls that cannot be imported.
    """
    path = Path(path)
    try:
        with zipfile.ZipFile(path) as archive:
            return _Archive(archive, str(path)).module()
    except (FileNotFoundError, IsADirectoryError, PermissionError) as error:
        raise InputError("GT0332", f"cannot read: {error.strerror or error}",
                         where=str(path)) from error
    except (OSError, zipfile.BadZipFile, NotImplementedError, EOFError,
            UnicodeDecodeError) as error:
        raise InputError("GT1201", f"not a .pt2 archive, or cut short: {error}",
                         where=str(path)) from error


class _Archive:
    def __init__(self, archive: zipfile.ZipFile, where: str) -> None:
        self.archive, self.where = archive, where
        self.members = self._members()
        self.read_already: dict[str, bytes] = {}

    def fault(self, code: str, message: str, hint: str = "") -> InputError:
        return InputError(code, message, where=self.where, hint=hint)

    def _members(self) -> dict[str, zipfile.ZipInfo]:
        """The members by their path below the archive's one top folder."""
        infos = self.archive.infolist()
        tops = {i.filename.partition("/")[0] for i in infos}
        if len(tops) != 1 or len(infos) > _MAX_MEMBERS:
            raise self.fault("GT1201", "not a .pt2 archive: it has no single top folder")
        out: dict[str, zipfile.ZipInfo] = {}
        for info in infos:
            name = info.filename.partition("/")[2]
            if name in out:
                raise self.fault("GT1203", f"the archive has the member {name!r} twice")
            out[name] = info
        return out

    def read(self, name: str, limit: int | None = None) -> bytes:
        """A member's bytes, checked against its CRC."""
        info = self.members.get(name)
        if info is None:
            raise self.fault("GT1202", f"the archive lacks {name!r}")
        if info.compress_type != zipfile.ZIP_STORED or (limit and info.file_size > limit):
            raise self.fault("GT1203", f"the member {name!r} is compressed or too large",
                             "torch.export.save writes archives without compression")
        if name not in self.read_already:
            try:
                self.read_already[name] = self.archive.read(info)
            except (zipfile.BadZipFile, OSError, EOFError, RuntimeError) as error:
                raise self.fault("GT1203", f"the member {name!r} is damaged: {error}") from error
        return self.read_already[name]

    def json(self, name: str) -> Any:
        return files.read_json(self.read(name, _MAX_JSON), f"{self.where}: {name}")

    def module(self) -> Module:
        model = self._model_file()
        raw = self.json(model)
        weights = self._weights(model)
        try:
            program = read_program(raw, {**weights["weights"], **weights["constants"]}, self.fault)
        except _FAULTS as error:
            raise self.fault("GT1202", f"malformed program: {type(error).__name__} "
                                       f"{str(error)[:200]}") from error
        try:
            return to_module(program)
        except UnsupportedError as error:
            functional = self._functional(raw, weights, program)
            if functional is None:
                raise error
        return to_module(functional)

    def _functional(self, raw: Any, weights: _Folders, program: CapturedProgram
                    ) -> CapturedProgram | None:
        """The program after torch's decompositions; None if torch is missing or cannot read it."""
        if find_spec("torch") is None:
            return None
        from graphtool.importers.torch.driver import pt2_live
        return pt2_live.functional(raw, weights, program)

    def _model_file(self) -> str:
        if "archive_format" not in self.members and any(
                m.startswith("serialized_") for m in self._flat()):
            raise self.fault("GT1204", "an archive of torch before 2.8, which keeps its weights as "
                                       "pickles", "save it again with a newer torch, or import "
                                       "the Python source instead")
        if self.read("archive_format", 64).strip() != b"pt2":
            raise self.fault("GT1201", "not a .pt2 archive")
        models = [m for m in self.members if re.fullmatch(r"models/[^/]+\.json", m)]
        if len(models) != 1:
            raise self.fault("GT1202", f"one exported program expected, {len(models)} found",
                             "AOTInductor packages hold compiled code, not a graph")
        return models[0]

    def _flat(self) -> list[str]:
        return [name.rpartition("/")[2] for name in self.members] + [
            i.filename for i in self.archive.infolist()]

    # ---- weights -------------------------------------------------------------------------------

    def _weights(self, model: str) -> _Folders:
        stem = model.removeprefix("models/").removesuffix(".json")
        out: dict[str, dict[str, Weight]] = {"weights": {}, "constants": {}}
        for folder, tensors in out.items():
            name = f"data/{folder}/{stem}_{folder}_config.json"
            if name in self.members:
                try:
                    for key, row in self.json(name)["config"].items():
                        tensors[key] = self._weight(folder, key, row)
                except _FAULTS as error:
                    raise self.fault("GT1202", f"malformed {name}: {error}") from error
        return out

    def _weight(self, folder: str, key: str, row: Mapping[str, Any]) -> Weight:
        path = row["path_name"]
        if row["use_pickle"] is not False or row.get("tensor_meta") is None:
            raise self.fault("GT1205", f"{key!r} is stored as a pickle, which could run any code",
                             "export the model with plain tensors on the CPU: no subclasses, no "
                             "scripted objects")
        if not isinstance(path, str) or not re.fullmatch(r"[A-Za-z0-9_.-]+", path):
            raise self.fault("GT1203", f"the weight {key!r} has the path {path!r}")
        return weight(self._strided(key, row["tensor_meta"],
                                    self.read(f"data/{folder}/{path}")))

    def _strided(self, key: str, meta: Mapping[str, Any], raw: bytes) -> Array:
        """The tensor's elements from its bytes; strides that leave the bytes are refused."""
        parts = COMPLEX_TYPES.get(meta["dtype"])
        dtype: DType | None = parts or SCALAR_TYPES.get(meta["dtype"])
        if dtype is None:
            raise self.fault("GT1206", f"{key!r} has an element type that is not supported")
        shape, strides = ([_whole(d["as_int"]) for d in meta[k]] for k in ("sizes", "strides"))
        offset = _whole(meta["storage_offset"]["as_int"])
        if parts is not None:  # as an axis of their own
            shape, strides, offset = [*shape, 2], [*(2 * s for s in strides), 1], 2 * offset
        if len(shape) != len(strides) or meta.get("layout", 7) != 7:
            raise self.fault("GT1202", f"{key!r} is not a strided tensor",
                             "x.to_dense() gives one before the export")
        count = len(raw) // dtype.bytes
        last = offset + sum((d - 1) * s for d, s in zip(shape, strides, strict=True))
        if 0 not in shape and last >= count:
            raise self.fault("GT1203", f"{key!r} needs more than the {len(raw)} bytes that are "
                                       "stored")
        if 0 in shape:
            return np.zeros(shape, dtype.numpy)
        # strided as plain bits, since numpy's stride tricks know no float8
        flat = np.frombuffer(raw, f"u{dtype.bytes}", count)
        bits = np.lib.stride_tricks.as_strided(
            flat[offset:], shape, [s * dtype.bytes for s in strides], writeable=False)
        return np.asarray(bits.view(dtype.numpy))


def _whole(x: Any) -> int:
    if type(x) is not int or not 0 <= x < 1 << 48:
        raise ValueError(f"{json.dumps(x)[:50]} is not a size")
    return x
