"""A device on the processor: libcuda in C, and gcc in place of the compiler of CUDA."""

from __future__ import annotations

import ctypes
import faulthandler
import os
import subprocess
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

HERE = Path(__file__).parent
# no user compiles this so: values alone count, and -O1 takes three times as long
FLAGS = ("-O0", "-fPIC", "-shared", "-ffp-contract=off", "-fno-strict-aliasing", "-w")


class OnC:
    """Compiles kernels in CUDA to a shared library, which is what the driver here loads."""

    def __init__(self, *more: str) -> None:
        self.more = more  # flags
        words = sha256((HERE / "on_c.h").read_bytes()).hexdigest()
        self.version = f"gcc, which reads CUDA as C by {words} {more}"

    def compile(self, source: Path, machine: str, text: bool, to: Path, types: str) -> None:
        """Compile the kernels, whatever the architecture; C has types of its own. PTX is a text
        that no driver takes."""
        if text:
            to.write_text(f"// {machine}\n")
            return
        subprocess.run(["gcc", *FLAGS, *self.more, "-x", "c", f"-I{source.parent}", "-include",
                        str(HERE / "on_c.h"), str(source), "-o", str(to), "-lm"], check=True,
                       capture_output=True)


_LOADED: list[ctypes.CDLL] = []


def driver(folder: Path) -> ctypes.CDLL:
    """The driver, compiled and loaded: a library that asks for libcuda.so.1 then gets it. A process
    has one, whose state each test sets."""
    if _LOADED:
        return _LOADED[0]
    path = folder / "libcuda.so.1"
    subprocess.run(["gcc", "-O2", "-g", "-Wall", "-Wextra", "-Werror", "-fPIC", "-shared",
                    "-Wl,-soname,libcuda.so.1", *map(str, sorted(HERE.glob("*.c"))), "-o",
                    str(path)], check=True)
    _LOADED.append(ctypes.CDLL(str(path), mode=ctypes.RTLD_GLOBAL))
    return _LOADED[0]


def folder() -> str:
    """Where the driver is, for LD_LIBRARY_PATH of other processes."""
    return str(Path(_LOADED[0]._name).parent)


def shows(is_right: Callable[[], bool]) -> bool:
    """Whether the driver ends a process that calls this, or the values are wrong."""
    if child := os.fork():
        return os.waitpid(child, 0)[1] != 0
    faulthandler.disable()
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # what the driver says as it ends
    os._exit(not is_right())
