"""The library of a build: opened anew at each load, and what its status codes mean."""

from __future__ import annotations

import ctypes
from itertools import count
from pathlib import Path

from graphtool.errors import InputError

DEVICE = (-8, -9, -10)  # what a device may say
FIRST_CHECK = -1000  # this status and those below say which check of the model failed
_loads = count()


def open_library(path: Path, shared: bool = False) -> ctypes.CDLL:
    """The library, opened by a name that no earlier load had. For a known name the loader would
    return the library that it has, even if a rebuilt one replaced the file.

    `shared`: its dependencies are visible to further libraries, as MPI's parts want it.
    """
    n = next(_loads)  # its binary digits as / and /. leave the path the same
    same = "".join("/." if n >> i & 1 else "/" for i in range(n.bit_length()))
    return ctypes.CDLL(f"{path.resolve().parent}{same}/{path.name}",
                       mode=ctypes.RTLD_GLOBAL if shared else ctypes.DEFAULT_MODE)


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
        return InputError("GT2232", text, hint="run it on a machine with a GPU of NVIDIA and its "
                                               "driver; graphtool doctor says what is there")
    if status > FIRST_CHECK:
        return InputError("GT2215", text)
    message, _, where = text.partition(", at ")
    return InputError("GT0501", message, where=where,
                      hint="the evaluator says which: graphtool eval")
