"""Memory of a device: the weights of a loaded model, which its library copies there, and blocks
that stay there between runs."""

from __future__ import annotations

import ctypes
import weakref
from pathlib import Path
from typing import Any

import numpy as np

from graphtool.native.library import complaint

Array = np.ndarray[Any, Any]


class _Weights(ctypes.Structure):
    """NAME_weights of NAME.h."""

    _fields_ = (("data", ctypes.c_void_p), ("memory", ctypes.c_void_p), ("bytes", ctypes.c_size_t))


class DeviceWeights:
    """Weights in the memory of a device, at `address`, until the object is gone.

    Raises InputError GT2232 with what the library says, for example that there is no device.
    """

    def __init__(self, library: ctypes.CDLL, name: str, path: Path) -> None:
        held = _Weights()
        load, free = getattr(library, f"{name}_load"), getattr(library, f"{name}_free")
        if status := load(ctypes.byref(held), str(path).encode()):
            raise complaint(library, name, status)
        self.address = int(held.data or 0)
        weakref.finalize(self, free, ctypes.byref(held))


_WEIGHTS: weakref.WeakValueDictionary[tuple[str, str, int, int], DeviceWeights] = (
    weakref.WeakValueDictionary())


def weights(library: ctypes.CDLL, name: str, path: Path) -> DeviceWeights:
    """The weights of a build on the device. The entry points of a build that are loaded at the same
    time share them."""
    if not path.is_file():  # they are in the library
        return DeviceWeights(library, name, path)
    stat = path.stat()
    key = (name, str(path.resolve()), stat.st_ino, stat.st_mtime_ns)
    held = _WEIGHTS.get(key)
    if held is None:
        held = _WEIGHTS[key] = DeviceWeights(library, name, path)
    return held


class Block:
    """Bytes in the memory of a device, all 0 at first, until the object is gone.

    Raises InputError GT2232 with what the library of the model `name` says.
    """

    def __init__(self, library: ctypes.CDLL, name: str, size: int) -> None:
        self.library, self.name, self.size = library, name, size
        self._copy = getattr(library, f"{name}_device_copy")
        at = ctypes.c_void_p()
        allocate = getattr(library, f"{name}_device_alloc")
        self._must(allocate(ctypes.byref(at), ctypes.c_size_t(size)))
        self.address = int(at.value or 0)
        weakref.finalize(self, getattr(library, f"{name}_device_free"), at)
        self.write(np.zeros(size, np.uint8))

    def write(self, data: Array) -> None:
        """Fill the block with these bytes."""
        self._must(self._copy(ctypes.c_void_p(self.address), ctypes.c_void_p(data.ctypes.data),
                              ctypes.c_size_t(data.nbytes)))

    def read(self, data: Array, at: int = 0) -> None:
        """Fill an array of the processor from the bytes that start at `at`."""
        self._must(self._copy(ctypes.c_void_p(data.ctypes.data), ctypes.c_void_p(self.address + at),
                              ctypes.c_size_t(data.nbytes)))

    def as_array(self) -> Array:
        """An array whose memory is the block's. A model takes it as input and output; the processor
        cannot read its numbers."""
        return np.ctypeslib.as_array((ctypes.c_uint8 * self.size).from_address(self.address))

    def _must(self, status: int) -> None:
        if status:
            raise complaint(self.library, self.name, status)
