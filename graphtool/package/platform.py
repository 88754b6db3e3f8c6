"""For which system and processor a compiled library is, as its file says."""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass
from pathlib import Path

from graphtool.errors import UsageError

_ELF = {3: ("i686", "i386"), 40: ("armv7l", "armhf"), 62: ("x86_64", "amd64"),
        183: ("aarch64", "arm64"), 243: ("riscv64", "riscv64")}  # e_machine: Python's, Debian's
_MACH = {0x01000007: "x86_64", 0x0100000C: "arm64"}
_OLDEST = 17  # the oldest glibc that manylinux_2_x names


@dataclass(frozen=True, slots=True)
class Platform:
    """The tag of wheels, and the architecture in Debian's words; "" where it has none."""

    tag: str
    debian: str = ""


def platform_of(library: Path) -> Platform:
    """The platform of a shared or static library. Raises UsageError GT2242 if the file says none.

    A library of Linux needs at least the glibc of its newest symbol (PEP 600).
    """
    data = library.read_bytes()
    at = 0
    if data.startswith(b"!<arch>\n"):
        at = data.find(b"\x7fELF")
    if data[at:at + 4] == b"\x7fELF":
        machine = _ELF.get(struct.unpack_from("<H", data, at + 18)[0])
        if machine is not None:
            python, debian = machine
            if b"ld-musl" in data or b"libc.musl" in data:
                return Platform(f"musllinux_1_2_{python}", debian)
            newest = max((int(x) for x in re.findall(rb"GLIBC_2\.(\d+)", data)), default=_OLDEST)
            return Platform(f"manylinux_2_{max(newest, _OLDEST)}_{python}", debian)
    if data[:4] == b"\xcf\xfa\xed\xfe" and (cpu := struct.unpack_from("<I", data, 4)[0]) in _MACH:
        return Platform(f"macosx_11_0_{_MACH[cpu]}")
    if data[:2] == b"MZ":
        return Platform("win_amd64")
    raise UsageError("GT2242", f"{library.name} does not say for which machine it is",
                     where=str(library))
