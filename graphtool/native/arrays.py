"""Arrays of the caller as compiled code takes them: their addresses, and whether they are alike."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from graphtool.errors import InputError

Array = np.ndarray[Any, Any]
Seen = list[tuple[str, np.dtype[Any], tuple[int, ...]]]  # name, type and shape of each input


def as_before(seen: Seen, given: Mapping[str, Any]) -> list[Array] | None:
    """The named arrays, if types, shapes and layouts are those seen before; None if any is not."""
    arrays = []
    for name, kind, shape in seen:
        x = given.get(name)
        if type(x) is not np.ndarray or x.shape != shape or x.dtype != kind or not (
                x.flags.c_contiguous and x.flags.aligned):
            return None
        arrays.append(x)
    return arrays


def _address_reader() -> Callable[[Array], int]:
    """A fast way to the address of an array: `a.ctypes.data` takes 2 µs, as long as a tiny model.

    In CPython the pointer is the first field of numpy's public struct; that is tried out here.
    """
    field, head = ctypes.c_size_t.from_address, object.__basicsize__

    def quick(a: Array) -> int:
        return field(id(a) + head).value

    def slow(a: Array) -> int:
        return int(a.ctypes.data)
    probe = np.arange(12)
    usable = sys.implementation.name == "cpython" and head == 2 * ctypes.sizeof(ctypes.c_void_p)
    return quick if usable and all(quick(a) == slow(a) for a in (probe, probe[3:])) else slow


address = _address_reader()


def as_array(name: str, x: Any) -> Array:
    """An input as an array; its memory is used without a copy if possible."""
    if isinstance(x, np.ndarray):
        return x
    try:
        return np.from_dlpack(x) if hasattr(x, "__dlpack__") else np.asarray(x)
    except (BufferError, RuntimeError, TypeError, ValueError) as error:
        raise InputError("GT2217", f"{name} cannot be read as an array: {error}",
                         hint="give a numpy array, or a tensor on the CPU, detached") from error
