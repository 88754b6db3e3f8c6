"""What the emitted C is tuned for: vector width, register tiles, caches, compiler flags.

The C itself assumes nothing: it picks its vector type from the compiler's own macros.
"""

from __future__ import annotations

import os
import platform
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from graphtool.errors import UsageError


@dataclass(frozen=True, slots=True)
class Target:
    """`lanes`: f32 lanes of a vector; a tile is `mr` rows × `nv` vectors of accumulators.

    `threads` is the most that a run may use: kernels with scratch memory keep a share for each.
    Caches are in bytes, `bandwidth` in GB/s a core out of each of them and out of memory: only the
    costs of alternatives are computed from these. `bf16` says whether there are dot products of it,
    `dot8` whether there are those of four u8 by four s8.
    """

    march: str
    lanes: int
    mr: int
    nv: int
    l1: int = 32 << 10
    l2: int = 512 << 10
    l3: int = 8 << 20
    threads: int = 1
    mhz: int = 3000
    bandwidth: tuple[float, float, float, float] = (190.0, 95.0, 45.0, 15.0)
    bf16: bool = False
    dot8: bool = False

    @property
    def nr(self) -> int:
        """Columns of a register tile, and of a panel of packed weights."""
        return self.lanes * self.nv


# tiles: all accumulators, one row of B and a broadcast must fit the registers (32, 16, 16, 32)
TABLE: dict[str, Target] = {
    "x86-64-v4": Target("x86-64-v4", 16, 14, 2, 48 << 10, 1 << 20, 32 << 20, mhz=3900,
                        bandwidth=(506.0, 249.0, 112.0, 40.0)),
    "x86-64-v3": Target("x86-64-v3", 8, 6, 2),
    "x86-64-v2": Target("x86-64-v2", 4, 6, 2),
    "x86-64": Target("x86-64", 4, 6, 2),
    "armv8-a": Target("armv8-a", 4, 12, 2),
    "generic": Target("generic", 1, 4, 4),
}


def cpu_flags() -> frozenset[str]:
    """The CPU features that Linux names in /proc/cpuinfo; empty elsewhere."""
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:
        return frozenset()
    for line in text.splitlines():
        if line.startswith(("flags", "Features")):
            return frozenset(line.partition(":")[2].split())
    return frozenset()


def detect() -> Target:
    """The target of this machine with all its cores, to be compiled with -march=native."""
    return replace(_native(), threads=cores())


def _native() -> Target:
    row = TABLE[_level()]
    l1, l2, l3 = (own or usual for own, usual in zip(_caches(), (row.l1, row.l2, row.l3),
                                                     strict=True))
    return replace(row, march="native", l1=l1, l2=l2, l3=l3,
                   bf16=row.lanes == 16 and "avx512_bf16" in cpu_flags(),
                   dot8=bool(_DOT8.get(row.lanes, frozenset()) & cpu_flags()))


# by lanes of a vector: the CPU features that have such dot products of bytes
_DOT8 = {16: frozenset({"avx512_vnni"}), 8: frozenset({"avx_vnni"}),
         4: frozenset({"asimddp", "i8mm"})}


@cache
def _caches() -> tuple[int, int, int]:
    """Bytes of the data caches of a core, as Linux tells them; 0 for what it does not tell."""
    sizes = [0, 0, 0]
    for index in Path("/sys/devices/system/cpu/cpu0/cache").glob("index*"):
        try:
            kind, level, size = ((index / f).read_text().strip() for f in ("type", "level", "size"))
        except OSError:
            continue
        if kind != "Instruction" and level in ("1", "2", "3") and size[:-1].isdigit():
            sizes[int(level) - 1] = int(size[:-1]) << {"K": 10, "M": 20}.get(size[-1], 0)
    return sizes[0], sizes[1], sizes[2]


def isa(target: Target) -> str:
    """The row of the table that the target's instructions are those of."""
    level = _level() if target.march == "native" else target.march
    return f"{level}+bf16" if target.bf16 else level


def tile_rows(target: Target, nv: int, limit: int | None) -> int:
    """Rows of a register tile nv vectors wide: accumulators, a row of B, one broadcast."""
    registers = 32 if target.lanes == 16 or isa(target).startswith("arm") else 16
    most = max(1, min(16, (registers - nv - 1) // nv))
    return most if limit is None else max(1, min(most, limit))


def _level() -> str:
    """The row of the table that this machine's instructions are those of."""
    machine, flags = platform.machine().lower(), cpu_flags()
    if machine in ("aarch64", "arm64"):
        return "armv8-a"
    if machine not in ("x86_64", "amd64"):
        return "generic"
    if {"avx512f", "avx512bw", "avx512vl", "avx512dq"} <= flags:
        return "x86-64-v4"
    if {"avx2", "fma"} <= flags:
        return "x86-64-v3"
    return "x86-64-v2" if "sse4_2" in flags else "x86-64"


def named(march: str, threads: int = 0) -> Target:
    """The target called `march`, for at most `threads` threads (0: this machine's cores).

    Raises UsageError GT2101 for an unknown one.
    """
    return replace(_row(march), threads=threads or cores())


def _row(march: str) -> Target:
    if march == "native":
        return _native()
    march = {"v2": "x86-64-v2", "v3": "x86-64-v3", "v4": "x86-64-v4"}.get(march, march)
    if march not in TABLE:
        raise UsageError("GT2101", f"unknown target {march!r}",
                         hint=f"one of native, {', '.join(TABLE)}")
    return TABLE[march]


def cores() -> int:
    """The processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
