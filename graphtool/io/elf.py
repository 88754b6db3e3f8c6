"""What a library of Linux holds: the bytes of its code, and the libraries that it needs; and what
an object file adds to a program: code, constants, data, and the bytes of each function.

The format is that of the System V ABI, chapters 4 and 5, with the low byte first; libraries are
read of 64 bits, objects of 32 too.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

_WRITTEN, _LOADED, _RUNS = 1, 2, 4  # SHF_WRITE, SHF_ALLOC, SHF_EXECINSTR
_DYNAMIC, _NEEDED = 6, 1  # SHT_DYNAMIC, DT_NEEDED
_CONTENTS, _SYMBOLS, _ZEROS = 1, 2, 8  # SHT_PROGBITS, SHT_SYMTAB, SHT_NOBITS
_FUNCTION = 2  # STT_FUNC
_UNWINDING = ".eh_frame"  # what only exceptions and debuggers read


@dataclass(frozen=True)
class Elf:
    """Bytes of machine code, and the names of the libraries that are loaded with this one."""

    code: int
    needed: tuple[str, ...]


def read_elf(path: Path) -> Elf | None:
    """The figures of a shared library or program; None for any other file, a static library too."""
    data = path.read_bytes()
    if data[:6] != b"\x7fELF\x02\x01":
        return None
    try:
        return _read(data)
    except (struct.error, ValueError, IndexError):
        return None


def _read(data: bytes) -> Elf:
    first, = struct.unpack_from("<Q", data, 0x28)
    size, count = struct.unpack_from("<HH", data, 0x3A)
    rows = [struct.unpack_from("<IIQQQQIIQQ", data, first + i * size) for i in range(count)]
    needed: list[str] = []
    for _, kind, _, _, at, length, link, *_ in rows:
        if kind != _DYNAMIC:
            continue
        strings = rows[link][4]
        for tag, value in struct.iter_unpack("<QQ", data[at:at + length]):
            if tag == _NEEDED:
                begin = strings + value
                needed.append(data[begin:data.index(b"\0", begin)].decode("utf-8", "replace"))
    return Elf(sum(r[5] for r in rows if r[2] & _RUNS), tuple(needed))


@dataclass(frozen=True)
class Object:
    """Bytes that an object file adds to a program: machine code, constants, data that start with
    values, data that start as zeros; and the code of each function by its name."""

    code: int
    constants: int
    data: int
    zeros: int
    functions: Mapping[str, int]


def read_object(path: Path) -> Object | None:
    """The figures of an object file of 32 or 64 bits; None for any other file."""
    data = path.read_bytes()
    if data[:4] != b"\x7fELF" or data[4:6] not in (b"\1\1", b"\2\1"):
        return None
    try:
        return _object(data, wide=data[4] == 2)
    except (struct.error, ValueError, IndexError):
        return None


def _object(data: bytes, wide: bool) -> Object:
    first, = struct.unpack_from("<Q" if wide else "<I", data, 0x28 if wide else 0x20)
    size, count, names = struct.unpack_from("<HHH", data, 0x3A if wide else 0x2E)
    row = "<IIQQQQIIQQ" if wide else "<10I"
    sections = [struct.unpack_from(row, data, first + i * size) for i in range(count)]
    strings = sections[names][4]
    sums = {"code": 0, "constants": 0, "data": 0, "zeros": 0}
    functions: dict[str, int] = {}
    for name, kind, flags, _, at, length, link, *_ in sections:
        if kind == _SYMBOLS:
            functions.update(_functions(data[at:at + length], data, sections[link][4], wide))
        if not flags & _LOADED or kind not in (_CONTENTS, _ZEROS):
            continue
        if not _text(data, strings + name).startswith(_UNWINDING):
            sums["code" if flags & _RUNS else "zeros" if kind == _ZEROS else
                 "data" if flags & _WRITTEN else "constants"] += length
    return Object(**sums, functions=functions)


def _functions(table: bytes, data: bytes, strings: int, wide: bool) -> Iterator[tuple[str, int]]:
    for row in struct.iter_unpack("<IBBHQQ" if wide else "<IIIBBH", table):
        name, info, size = (row[0], row[1], row[5]) if wide else (row[0], row[3], row[2])
        if info & 15 == _FUNCTION and size:
            yield _text(data, strings + name), size


def _text(data: bytes, at: int) -> str:
    return data[at:data.index(b"\0", at)].decode("utf-8", "replace")
