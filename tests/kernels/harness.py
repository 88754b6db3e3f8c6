"""Compiles snippets of C against the kernel headers and calls them with numpy arrays.

Arrays from `guarded` end right before an inaccessible page, so a read or write past their end is
a crash and not a silent success.
"""

from __future__ import annotations

import ctypes
import mmap
import platform
import shutil
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graphtool.kernels import headers
from tests.compilers import run_compiler

KERNELS = Path(__file__).parents[2] / "graphtool" / "kernels" / "c"
_WRITTEN = tempfile.TemporaryDirectory(prefix="graphtool-headers-")  # what no file holds
(Path(_WRITTEN.name) / headers.END).write_text(headers.template_end())
INCLUDES = [f"-I{folder}" for folder in (KERNELS / "compute", KERNELS / "host", _WRITTEN.name)]
STRICT = ["-std=gnu11", "-O3", "-Wall", "-Wextra", "-Werror"]

Array = np.ndarray[Any, Any]

_X86 = platform.machine() in ("x86_64", "AMD64")


def _runs(flag: str) -> bool:
    """Whether this machine has every instruction of an x86-64 level."""
    if flag != "x86-64-v3":
        return True
    cpuinfo = Path("/proc/cpuinfo")
    return cpuinfo.exists() and {"avx2", "fma", "bmi2"} <= set(cpuinfo.read_text().split())


# One row a vector width: what the compiler is told.
WIDTHS = {
    "native": ["-march=native"],
    **({level: [f"-march={level}"] for level in ("x86-64-v3", "x86-64") if _runs(level)}
       if _X86 else {}),
    "scalar": ["-march=native", "-DGT_LANES=1"],
}
# As builds compile it for this machine. For the other widths tests ask for values alone, and -O1
# takes half the time; the slow tests compile these as builds do, too.
width = pytest.mark.parametrize("flags", [
    *(pytest.param(flags if name == "native" else ["-O1", *flags], id=name)
      for name, flags in WIDTHS.items()),
    *(pytest.param(flags, id=f"{name}-O3", marks=pytest.mark.slow)
      for name, flags in WIDTHS.items() if name != "native")])


def compile_c(source: str, where: Path, flags: list[str], cc: str = "gcc") -> ctypes.CDLL:
    """Builds `source` into a shared library; any warning is a failure that shows it."""
    if shutil.which(cc) is None:
        pytest.skip(f"{cc} is not installed")
    (where / "snippet.c").write_text(source)
    library = where / "snippet.so"
    done = run_compiler([cc, *STRICT, *flags, *INCLUDES, "-shared", "-fPIC", "snippet.c", "-o",
                   library.name, "-lm"], where)
    assert done.returncode == 0, done.stderr[:4000]
    return ctypes.CDLL(str(library))


def guarded(array: Array) -> Array:
    """A copy of `array` whose last byte stands before an inaccessible page."""
    page = mmap.PAGESIZE
    size = -(-max(array.nbytes, 1) // page) * page
    memory = mmap.mmap(-1, size + page)
    start = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    libc = ctypes.CDLL(None, use_errno=True)
    assert libc.mprotect(ctypes.c_void_p(start + size), ctypes.c_size_t(page), 0) == 0
    # the mmap object must outlive the view: numpy keeps it as the view's base
    view = np.frombuffer(memory, array.dtype, array.size, offset=size - array.nbytes)
    view = view.reshape(array.shape)
    view[...] = array
    return view


def call(function: Any, *arguments: Array | int, threads: int = 1) -> None:
    """function(t, threads, arguments...) for each t in turn; the kernels need no barrier."""
    passed = [ctypes.c_void_p(a.ctypes.data) if isinstance(a, np.ndarray) else ctypes.c_int64(a)
              for a in arguments]
    for t in range(threads):
        function(ctypes.c_int(t), ctypes.c_int(threads), *passed)


def lanes(library: ctypes.CDLL) -> int:
    """GT_LANES of a library whose source ends with LANES."""
    return int(library.lanes())


LANES = "int lanes(void);\nint lanes(void) { return GT_LANES; }\n"


def whole(rng: np.random.Generator, *shape: int) -> Array:
    """Small whole numbers: float sums of their products are exact, and tests ask for equality."""
    return rng.integers(-4, 5, shape).astype(np.float32)


def pack(matrix: Array, nr: int) -> Array:
    """[..., K, N] -> [..., ceil(N/nr), K, nr], zero padded: the layout of a packed right side."""
    *batch, k, n = matrix.shape
    panels = -(-n // nr)
    padded = np.zeros((*batch, k, panels * nr), np.float32)
    padded[..., :n] = matrix
    return np.ascontiguousarray(np.moveaxis(padded.reshape(*batch, k, panels, nr), -2, -3))
