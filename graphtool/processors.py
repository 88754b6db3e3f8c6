"""The processors of this machine as the operating system describes them: number, features, caches.

What this means for C is in target.py. A deployed model imports only this module.
"""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path


def cores() -> int:
    """The processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


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


@cache
def caches() -> tuple[int, int, int]:
    """Bytes of the data caches of a core, according to Linux; 0 if unknown."""
    sizes = [0, 0, 0]
    for index in Path("/sys/devices/system/cpu/cpu0/cache").glob("index*"):
        try:
            kind, level, size = ((index / f).read_text().strip() for f in ("type", "level", "size"))
        except OSError:
            continue
        if kind != "Instruction" and level in ("1", "2", "3") and size[:-1].isdigit():
            sizes[int(level) - 1] = int(size[:-1]) << {"K": 10, "M": 20}.get(size[-1], 0)
    return sizes[0], sizes[1], sizes[2]
