"""Memory from the operating system: for a file of weights and for an arena, in huge pages if
available."""

from __future__ import annotations

import mmap
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from graphtool.errors import InputError

Array = np.ndarray[Any, Any]
HUGE = 2 << 20
READ = 32 << 20  # bytes of weights that are read into huge pages; a mapped file has small ones


def room(size: int) -> Array:
    """So many bytes of memory; a large arena is in huge pages, if the system has them."""
    if size < HUGE or not hasattr(mmap, "MADV_HUGEPAGE"):
        return np.empty(size, np.uint8)
    held = mmap.mmap(-1, size + HUGE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    ask_huge(held)
    whole = np.frombuffer(held, np.uint8)
    start = -int(whole.ctypes.data) % HUGE
    return whole[start:start + size]


def ask_huge(held: mmap.mmap) -> None:
    """Ask for huge pages, so that a kernel needs fewer page look-ups. A refusal has no effect."""
    if hasattr(mmap, "MADV_HUGEPAGE"):
        with suppress(OSError):
            held.madvise(mmap.MADV_HUGEPAGE)


def mapped(path: Path, offset: int, size: int) -> tuple[int, Array | None]:
    """The address of the weights, and the object that keeps them in memory.

    Files are mapped, but large weights are read into huge pages, if the system has them: all of
    them are read at each call, and looking up small pages then takes up to half of the time.
    Raises InputError GT2204 for a file that is missing or cut short.
    """
    if size == 0:
        return 0, None
    try:
        with path.open("rb") as file:
            if size >= READ and hasattr(mmap, "MADV_HUGEPAGE"):
                whole = room(size)
                file.seek(offset)
                return _complete(file.readinto(whole.data), size, whole, path)
            held = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except (OSError, ValueError) as error:
        raise InputError("GT2204", f"cannot map the weights: {error}", where=str(path)) from error
    return _complete(len(held) - offset, size, np.frombuffer(held, np.uint8)[offset:], path)


def _complete(found: int, size: int, view: Array, path: Path) -> tuple[int, Array]:
    """The address of the view, if all bytes were found."""
    if found < size:
        raise InputError("GT2204", "the weights file is cut short", where=str(path))
    return int(view.ctypes.data), view
