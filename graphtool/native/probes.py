"""What a C compiler can do: its version, and whether a trivial program compiles with some flags.

That a compiler supports its own flags is remembered in the object cache, so that a build does not
ask again; what it lacks may be installed later, and libraries may go, so these are asked each time.
"""

from __future__ import annotations

import hashlib
import subprocess
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any

from graphtool.errors import CompilerError
from graphtool.native import cache

TEXT: dict[str, Any] = {"encoding": "utf-8", "errors": "replace"}  # a compiler may print any bytes
TIMEOUT = 600  # seconds for one file; the first time zig compiles its C library too
_PROGRAM = """
#ifdef GT_MPI
#include <mpi.h>
int size(void) { int n; return MPI_Comm_size(MPI_COMM_WORLD, &n) ? 0 : n; }
#endif
#if defined GT_THREADS && !defined __wasm__ && !defined _WIN32
#include <pthread.h>
int main(void) { return pthread_atfork(0, 0, 0); }
#elif defined _OPENMP
#include <omp.h>
int main(void) { return omp_get_max_threads() < 0; }
#else
int main(void) { return 0; }
#endif
"""
_OTHERS = ("-DGT_MPI", "-static")  # flags that need a library which is not the compiler's


@lru_cache(maxsize=32)
def version_of(command: tuple[str, ...]) -> str | None:
    """The first line of `--version`; None where the command cannot be run."""
    try:
        done = subprocess.run([*command, "--version"], capture_output=True, timeout=30,
                              **TEXT)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.splitlines()[0] if done.returncode == 0 and done.stdout else None


@lru_cache(maxsize=64)
def supports(command: tuple[str, ...], *flags: str, libraries: tuple[str, ...] = ()) -> bool:
    """Whether `compiles` is true; a compiler of this name and version that once supported flags of
    its own is not asked again."""
    version = None if libraries or set(flags) & set(_OTHERS) else version_of(command)
    if version is None:
        return compiles(command, *flags, libraries=libraries)
    parts = (_PROGRAM, version, *command, "flags", *flags)
    key = hashlib.sha256("\0".join(parts).encode()).hexdigest()
    with tempfile.TemporaryDirectory(prefix="graphtool-") as folder:
        mark = Path(folder) / "supported"
        if cache.get(key, mark):
            return True
        works = compiles(command, *flags)
        if works:
            with suppress(OSError):  # of a full disk: it is asked again
                mark.write_bytes(b"")
                cache.put(key, mark)
        return works


def run(command: Sequence[str], cwd: Path | None = None, given: str | None = None
        ) -> subprocess.CompletedProcess[str]:
    """A finished compiler, which was given a text to read. Raises CompilerError GT2120 where it
    cannot be run, GT2123 where it takes too long."""
    try:
        return subprocess.run(command, cwd=cwd, input=given, capture_output=True, timeout=TIMEOUT,
                              **TEXT)
    except OSError as error:
        raise CompilerError("GT2120", f"cannot run {command[0]}: {error.strerror}") from error
    except subprocess.TimeoutExpired as error:
        raise CompilerError("GT2123", f"{command[0]} took more than {TIMEOUT} s") from error


def compiles(command: tuple[str, ...], *flags: str, libraries: tuple[str, ...] = ()) -> bool:
    """Whether a trivial program compiles with the flags, OpenMP's header included, and links.

    With `libraries` it is linked with these only, not with the libraries that the flags imply.
    Raises CompilerError GT2123 where it takes too long.
    """
    with tempfile.TemporaryDirectory(prefix="graphtool-") as folder:
        output = f"{folder}/probe"
        try:
            done = run([*command, *flags, *(("-c",) if libraries else ()), "-x", "c", "-", "-o",
                        output], given=_PROGRAM)
            if libraries and done.returncode == 0:
                done = run([*command, output, *libraries, "-o", f"{output}.exe"])
        except CompilerError as error:
            if error.code == "GT2123":  # which says nothing of the flags
                raise
            return False
        return done.returncode == 0
