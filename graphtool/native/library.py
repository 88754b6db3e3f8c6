"""The library of a build: opened anew at each load, and what its status codes mean."""

from __future__ import annotations

import ctypes
from itertools import count
from pathlib import Path

from graphtool.errors import InputError

NO_DEVICE = -8
DEVICE = (NO_DEVICE, -9, -10, -11)  # what a device may say
FIRST_CHECK = -1000  # this status and those below say which check of the model failed
_loads = count()


def open_library(path: Path, target: str, shared: bool = False, device: str = "") -> ctypes.CDLL:
    """The library for the target of this name. It is opened under a path that no earlier load had:
    for a known one the loader would return the library that it has, even if a rebuilt one replaced
    the file.

    `shared`: its dependencies are visible to further libraries, as MPI's parts want it. `device` is
    the language of its kernels if these run on a device. Raises InputError GT2203.
    """
    if device == "opencl":
        from graphtool.native import opencl  # late, as most models need no driver of devices
        opencl.prepare()
    n = next(_loads)  # its binary digits as / and /. leave the path the same
    same = "".join("/." if n >> i & 1 else "/" for i in range(n.bit_length()))
    try:
        return ctypes.CDLL(f"{path.resolve().parent}{same}/{path.name}",
                           mode=ctypes.RTLD_GLOBAL if shared else ctypes.DEFAULT_MODE)
    except OSError as error:
        from graphtool.target import TABLE
        row = TABLE.get(target)
        if row is not None and row.foreign:
            raise InputError(
                "GT2203", f"the library is for {target} ({row.title}), not for this machine",
                where=str(path), hint="copy the folder to such a machine, or build with --target "
                                      "native") from error
        raise InputError("GT2203", f"cannot load the library: {error}",
                         where=str(path)) from error


def _errors(log: ctypes._NamedFuncPointer) -> str:
    """The first errors that the compiler of a device reported; "" if it did not."""
    log.restype = ctypes.c_char_p
    lines = (log() or b"").decode(errors="replace").splitlines()
    return " / ".join([x.strip() for x in lines if "error:" in x][:3])[:600]


def complaint(library: ctypes.CDLL, name: str, status: int) -> InputError:
    """The error for what a C function of the model `name` returned, in the library's own words."""
    if status == -1:
        return InputError("GT2215", "a dimension is out of its range")
    say = getattr(library, f"{name}_status_text", None)
    if say is None:  # a build of release 1.0
        return InputError("GT2215", f"the model returned {status}")
    say.restype = ctypes.c_char_p
    text = (say(status) or b"").decode()
    if status in DEVICE:
        from graphtool.native import cards, opencl
        log = getattr(library, f"{name}_device_log", None)  # only where the driver compiles
        return InputError("GT2232", text, where=_errors(log) if log else "",
                          hint=(opencl if log else cards).NEEDS if status == NO_DEVICE else
                          "graphtool doctor says which devices there are")
    if status > FIRST_CHECK:
        return InputError("GT2215", text)
    message, _, where = text.partition(", at ")
    return InputError("GT0501", message, where=where,
                      hint="the evaluator says which: graphtool eval")
