"""What the emitted C is tuned for: vector width, register tiles, caches, compiler flags.

The C itself assumes nothing: it picks its vector type from the compiler's own macros.
"""

from __future__ import annotations

import os
import platform
from dataclasses import dataclass, replace
from pathlib import Path

from graphtool.errors import UsageError


@dataclass(frozen=True, slots=True)
class Target:
    """`lanes`: f32 lanes of a vector; a tile is `mr` rows × `nv` vectors of accumulators.

    `threads` is the most that a run may use: kernels with scratch memory keep a share for each.
    """

    march: str
    lanes: int
    mr: int
    nv: int
    l1: int = 32 << 10
    l2: int = 512 << 10
    threads: int = 1

    @property
    def nr(self) -> int:
        """Columns of a register tile, and of a panel of packed weights."""
        return self.lanes * self.nv


# tiles: all accumulators, one row of B and a broadcast must fit the registers (32, 16, 16, 32)
TABLE: dict[str, Target] = {
    "x86-64-v4": Target("x86-64-v4", 16, 14, 2, 48 << 10, 1 << 20),
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
    machine, flags = platform.machine().lower(), cpu_flags()
    if machine in ("aarch64", "arm64"):
        return replace(TABLE["armv8-a"], march="native")
    if machine not in ("x86_64", "amd64"):
        return replace(TABLE["generic"], march="native")
    if {"avx512f", "avx512bw", "avx512vl", "avx512dq"} <= flags:
        level = "x86-64-v4"
    elif {"avx2", "fma"} <= flags:
        level = "x86-64-v3"
    else:
        level = "x86-64-v2" if "sse4_2" in flags else "x86-64"
    return replace(TABLE[level], march="native")


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
