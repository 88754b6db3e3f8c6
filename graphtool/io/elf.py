"""What a library of Linux holds: the bytes of its code, and the libraries that it needs.

The format is that of the System V ABI, chapters 4 and 5, for 64 bits and the low byte first.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from pathlib import Path

_RUNS = 4  # SHF_EXECINSTR
_DYNAMIC, _NEEDED = 6, 1  # SHT_DYNAMIC, DT_NEEDED


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
