"""Tells TorchScript archives from other files that torch writes, without running any of them.

`torch.save` and `torch.jit.save` write the same kind of zip; only the second holds code. A pickle
is never loaded here: what it would import is read from its opcodes.
"""

from __future__ import annotations

import io
import pickletools
import re
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from graphtool.errors import InputError

Kind = Literal["torchscript", "pt2"]

_MAX_PICKLE = 1 << 28
# what a checkpoint of plain tensors imports
_PLAIN = re.compile(r"(torch\._utils _rebuild_\w+|torch(\.storage)? \w*Storage|torch\.\w+ ?\w*|"
                    r"collections OrderedDict|torch\.serialization \w+)")
_DO = ("a pickle is never read, since that can run any code. Make the model in Python, load its "
       "weights there (torch.load(path, weights_only=True)), and import FILE.py:NAME; or save the "
       "model by torch.export.save or torch.jit.save")


def kind_of(path: Path) -> Kind:
    """What a `.pt` file is.

    Raises InputError GT0332 if it cannot be read, GT1211 if it is no archive of a model, GT1212 if
    it is a pickle, which names what the pickle would import.
    """
    where = str(path)
    try:
        with zipfile.ZipFile(path) as archive:
            names = {n.partition("/")[2]: n for n in archive.namelist()}
            if "constants.pkl" in names and any(n.startswith("code/") for n in names):
                return "torchscript"
            if "archive_format" in names:
                return "pt2"
            if "data.pkl" in names:
                info = archive.getinfo(names["data.pkl"])
                data = archive.read(info) if info.file_size <= _MAX_PICKLE else b""
                raise _pickle(data, where)
            raise InputError("GT1211", "not an archive of a model: it has neither code nor a graph",
                             where=where, hint="torch.jit.save and torch.export.save write one")
    except (FileNotFoundError, IsADirectoryError, PermissionError) as error:
        raise InputError("GT0332", f"cannot read: {error.strerror or error}",
                         where=where) from error
    except (OSError, zipfile.BadZipFile, NotImplementedError, EOFError,
            UnicodeDecodeError) as error:
        with path.open("rb") as file:
            head = file.read(_MAX_PICKLE)
        if head[:1] == b"\x80":  # the protocol byte of a pickle: torch.save before 1.6
            raise _pickle(head, where) from None
        raise InputError("GT1211", f"not an archive of a model, or cut short: {error}",
                         where=where) from error


def _pickle(data: bytes, where: str) -> InputError:
    imports = list(dict.fromkeys(_imports(data)))
    others = [name.replace(" ", ".") for name in imports if not _PLAIN.fullmatch(name)]
    if others:
        more = ", …" if len(others) > 5 else ""
        return InputError("GT1212", "a pickle of Python objects, not a TorchScript archive: it "
                          f"would import {', '.join(others[:5])}{more}", where=where, hint=_DO)
    return InputError("GT1212", "weights without a model (a state dict), not a TorchScript archive",
                      where=where, hint=_DO)


def _imports(data: bytes) -> Iterator[str]:
    """`module name` of everything that the pickles would import, read from their opcodes."""
    stream, texts = io.BytesIO(data), ["", ""]
    try:
        while True:  # the old format is several pickles in a row
            for op, argument, _ in pickletools.genops(stream):
                if op.name in ("GLOBAL", "INST"):
                    yield str(argument)
                elif op.name == "STACK_GLOBAL":
                    yield " ".join(texts[-2:])
                elif isinstance(argument, str):
                    texts.append(argument)
    except (ValueError, IndexError, EOFError, UnicodeDecodeError):
        return  # what follows the pickles are the tensors' bytes
