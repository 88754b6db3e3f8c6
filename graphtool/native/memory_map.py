"""Memory from the operating system, for weights and for an arena, in huge pages if available."""

from __future__ import annotations

import math
import mmap
import os
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from graphtool.errors import InputError

Array = np.ndarray[Any, Any]
HUGE, ALIGN = 2 << 20, 64
LARGE = 1 << 16


def room(size: int) -> Array:
    """So many bytes of memory, aligned for vectors; much is in huge pages, if the system has them.
    """
    if size < HUGE or not hasattr(mmap, "MADV_HUGEPAGE"):
        return _aligned(size)
    held = mmap.mmap(-1, size + HUGE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    ask_huge(held)
    whole = np.frombuffer(held, np.uint8)
    start = -int(whole.ctypes.data) % HUGE
    return whole[start:start + size]


def result(shape: tuple[int, ...], kind: Any) -> Array:
    """An array for a result; a large one begins where a line of the cache does, as stores of whole
    vectors are up to a third slower elsewhere."""
    size = math.prod(shape) * np.dtype(kind).itemsize
    return np.empty(shape, kind) if size < LARGE else _aligned(size).view(kind).reshape(shape)


def _aligned(size: int) -> Array:
    whole = np.empty(size + ALIGN, np.uint8)
    start = -int(whole.ctypes.data) % ALIGN
    return whole[start:start + size]


def ask_huge(held: mmap.mmap) -> None:
    """Ask for huge pages, so that a kernel needs fewer page look-ups. A refusal has no effect."""
    if hasattr(mmap, "MADV_HUGEPAGE"):
        with suppress(OSError):
            held.madvise(mmap.MADV_HUGEPAGE)


def weights(path: Path, offset: int, size: int) -> tuple[int, Array | None]:
    """The address of the weights, and the object that keeps them in memory.

    They are read, not mapped: what becomes of the file later does not concern a loaded model, and
    in huge pages a call does not spend up to half of its time on looking up small ones.
    Raises InputError GT2204 for a file that is missing, or has not the size that was built.
    """
    if size == 0:
        return 0, None
    try:
        with path.open("rb") as file:
            stored = os.fstat(file.fileno()).st_size
            head = int.from_bytes(file.read(8), "little") + 8  # of safetensors: the header's length
            if stored != head + size:
                what = "cut short" if stored < head + size else "too long"
                raise InputError("GT2204", f"the weights file is {what}: {stored} bytes, "
                                           f"{head + size} expected", where=str(path))
            if head != offset:
                raise InputError("GT2204", f"the weights begin at byte {head}, not at {offset} as "
                                           "build.json says", where=str(path))
            whole = room(size)
            file.seek(offset)
            if file.readinto(whole.data) != size:
                raise InputError("GT2204", "the weights file is cut short", where=str(path))
    except OSError as error:
        raise InputError("GT2204", f"cannot read the weights: {error}", where=str(path)) from error
    return int(whole.ctypes.data), whole
