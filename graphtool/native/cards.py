"""The GPUs of this machine, as their driver names them. Nothing is loaded onto them."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass

DRIVER = "libcuda.so.1"
NEEDS = ("run it on a machine with a GPU of NVIDIA and its driver; graphtool doctor says what is "
         "there")
_MAJOR, _MINOR, _MULTIPROCESSORS = 75, 76, 16  # attributes of a device, by the driver's numbers
_LENGTH = 256  # bytes of a name


@dataclass(frozen=True, slots=True)
class Card:
    """One GPU: its name, 10 · major + minor of its compute capability, its multiprocessors and the
    bytes of its memory."""

    name: str
    arch: int
    multiprocessors: int
    memory: int


@dataclass(frozen=True, slots=True)
class Driver:
    """The driver, and its GPUs. `version` is that of CUDA which it supports, such as 13.0;
    `failure` is the number of the error if it cannot be used, else 0."""

    version: str
    cards: tuple[Card, ...]
    failure: int = 0


class _Failed(Exception):
    """A call of the driver that failed, with its status."""


def driver() -> Driver | None:
    """What the driver says; None if there is none."""
    try:
        library = ctypes.CDLL(DRIVER)
    except OSError:
        return None
    version = _number(library, "cuDriverGetVersion") or 0
    said = f"{version // 1000}.{version % 1000 // 10}"
    try:
        _must(library.cuInit(0))
        count = ctypes.c_int()
        _must(library.cuDeviceGetCount(ctypes.byref(count)))
        return Driver(said, tuple(_card(library, i) for i in range(count.value)))
    except _Failed as failed:
        return Driver(said, (), failed.args[0])


def _must(status: int) -> None:
    if status:
        raise _Failed(status)


def _number(library: ctypes.CDLL, function: str, *args: int) -> int | None:
    """The integer that a function of the driver stores; None if it fails."""
    number = ctypes.c_int()
    return None if getattr(library, function)(ctypes.byref(number), *args) else number.value


def _card(library: ctypes.CDLL, ordinal: int) -> Card:
    device, memory = ctypes.c_int(), ctypes.c_size_t()
    name = ctypes.create_string_buffer(_LENGTH)
    _must(library.cuDeviceGet(ctypes.byref(device), ordinal))
    _must(library.cuDeviceGetName(name, _LENGTH, device))
    _must(library.cuDeviceTotalMem_v2(ctypes.byref(memory), device))
    major, minor, count = (_number(library, "cuDeviceGetAttribute", which, device.value) or 0
                           for which in (_MAJOR, _MINOR, _MULTIPROCESSORS))
    return Card(name.value.decode(errors="replace"), 10 * major + minor, count, memory.value)
