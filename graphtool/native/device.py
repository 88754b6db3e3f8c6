"""The weights of a loaded model whose kernels run on a device: its library copies them there."""

from __future__ import annotations

import ctypes
import weakref
from pathlib import Path

from graphtool.native.library import complaint


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
