"""The drivers of OpenCL on this machine and their devices, and how a run finds those that PyPI has.

A library of `build --target opencl` opens libOpenCL.so.1, which asks the drivers that the system
knows. Where it knows none, the packages of the extra `opencl` stand in: pyopencl has such a
library, and pocl is a driver for the processor.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from graphtool.io import release

LOADER = "libOpenCL.so.1"
VENDORS = Path("/etc/OpenCL/vendors")  # where the system lists its drivers
NEEDS = (f"a driver of OpenCL is needed: that of the GPU, or pocl for the processor, which "
         f"`{release.install('opencl')}` brings; graphtool doctor says what is there")
_ANY, _MOST = 0xFFFFFFFF, 16
_NAME, _EXTENSIONS, _UNITS, _MEMORY, _VERSION = 0x102B, 0x1030, 0x1002, 0x101F, 0x102F
_PLATFORM_NAME = 0x0902


@dataclass(frozen=True, slots=True)
class Card:
    """One device: its name and platform, the version of OpenCL, its compute units, the bytes of its
    memory, and whether it computes in float64."""

    name: str
    platform: str
    version: str
    units: int
    memory: int
    doubles: bool


@cache
def prepare() -> ctypes.CDLL | None:
    """libOpenCL, so that libraries find it and a driver; None if there is none."""
    variables = {"OCL_ICD_VENDORS", "OCL_ICD_FILENAMES"}  # of two implementations of libOpenCL
    driver = _of_package("libpocl-*.so")
    if driver and not variables & os.environ.keys() and not any(VENDORS.glob("*.icd")):
        os.environ.update(dict.fromkeys(variables, driver))
    for name in filter(None, (LOADER, _of_package("libOpenCL*.so*"))):
        try:
            return ctypes.CDLL(name, mode=ctypes.RTLD_GLOBAL)
        except OSError:
            continue
    return None


def _of_package(pattern: str) -> str:
    """A library among those of pyopencl, where pocl puts its own; "" if there is none."""
    spec = find_spec("pyopencl")
    folders = spec.submodule_search_locations if spec else None
    found = sorted(str(p) for folder in folders or () for p in Path(folder, ".libs").glob(pattern))
    return found[0] if found else ""


def cards() -> list[Card] | None:
    """The devices of all platforms; None without libOpenCL."""
    library = prepare()
    return None if library is None else [*_cards(library)]


def _cards(library: ctypes.CDLL) -> Iterator[Card]:
    for platform in _handles(library.clGetPlatformIDs):
        at = ctypes.c_void_p(platform)
        label = _text(library.clGetPlatformInfo, at, _PLATFORM_NAME)
        for device in _handles(library.clGetDeviceIDs, at, ctypes.c_uint64(_ANY)):
            d = ctypes.c_void_p(device)
            units, memory = (_number(library.clGetDeviceInfo, d, what)
                             for what in (_UNITS, _MEMORY))
            name, extensions, version = (_text(library.clGetDeviceInfo, d, what)
                                         for what in (_NAME, _EXTENSIONS, _VERSION))
            yield Card(name, label, version, units, memory, "cl_khr_fp64" in extensions.split())


def _handles(function: ctypes._NamedFuncPointer, *args: object) -> list[int]:
    """What a function that fills an array of handles has; none if it fails."""
    found, count = (ctypes.c_void_p * _MOST)(), ctypes.c_uint32()
    if function(*args, ctypes.c_uint32(_MOST), found, ctypes.byref(count)):
        return []
    return [h for h in found[:min(count.value, _MOST)] if h is not None]


def _text(function: ctypes._NamedFuncPointer, of: ctypes.c_void_p, what: int) -> str:
    size = ctypes.c_size_t()
    if function(of, what, ctypes.c_size_t(0), None, ctypes.byref(size)):
        return ""
    room = ctypes.create_string_buffer(size.value + 1)
    function(of, what, size, room, None)
    return room.value.decode(errors="replace").strip()


def _number(function: ctypes._NamedFuncPointer, of: ctypes.c_void_p, what: int) -> int:
    number = ctypes.c_uint64()
    function(of, what, ctypes.c_size_t(ctypes.sizeof(number)), ctypes.byref(number), None)
    return number.value
