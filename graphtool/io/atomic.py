"""Files that appear whole or not at all, and locks that end with the process that holds them.

The next writer deletes what a killed one left. Some systems have no such locks (Windows, some
network drives). There nobody waits, and nothing is deleted that may belong to a running process.
"""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from graphtool.errors import InputError
from graphtool.io import host


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """A context that only one writer of this folder can be in at a time."""
    fd = host.opened(path)
    if fd is None:
        yield
        return
    try:
        host.lock(fd, wait=True)
        yield
    finally:
        os.close(fd)


def claim(fd: int) -> bool:
    """Lock what was just made; False if a sweeper has come first and deletes it."""
    return host.lock(fd, wait=False) is not False and os.fstat(fd).st_nlink > 0


@contextmanager
def abandoned(path: Path) -> Iterator[bool | None]:
    """Whether the process that made this file or directory is gone; None where it cannot be known.
    Nobody claims it meanwhile."""
    fd = host.opened(path)
    try:
        yield None if fd is None else host.lock(fd, wait=False)
    finally:
        if fd is not None:
            os.close(fd)


_OPEN = ("/dev/std", "/dev/fd/", "/proc/self/fd/")
PART = ".part"  # the end of a temporary name: .NAME.XXXXXXXX.part


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """A context that turns an OSError into InputError GT0330 with the path."""
    try:
        yield
    except OSError as error:
        raise InputError("GT0330", f"cannot write: {error.strerror or error}",
                         where=str(path)) from error


@contextmanager
def atomic(path: Path) -> Iterator[BinaryIO]:
    """A binary file that takes its name only when all of it is on disk.

    A device, a pipe or an open file is written to as it is. What a killed writer of this path
    left is deleted.
    Raises InputError GT0330 when it cannot be written (no such folder, full disk).
    """
    with writing(path), _atomic(path) as file:
        yield file


@contextmanager
def _atomic(path: Path) -> Iterator[BinaryIO]:
    temp = None
    try:
        if is_stream(path):
            with path.open("wb") as stream:
                yield stream
            return
        path = Path(os.path.realpath(path))
        sweep(path)
        fd, temp = _part(path)
        with os.fdopen(fd, "wb") as file:
            yield file
            host.put_in_place(file, temp, path)  # still locked: the writer lives
        temp = None
    finally:
        if temp is not None and os.path.exists(temp):
            os.unlink(temp)


def is_stream(path: Path) -> bool:
    """Whether a path names a device, a pipe, or a file that this process has open: what is written
    to it has no name, and nothing can lie beside it."""
    try:
        mode = path.stat().st_mode
    except OSError:
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)) or (
        os.path.abspath(path).startswith(_OPEN))


def _part(path: Path) -> tuple[int, str]:
    """A new temporary file beside `path`, which is locked while it is open."""
    while True:
        fd, temp = tempfile.mkstemp(prefix=f".{path.name}.", suffix=PART, dir=path.parent)
        if claim(fd):
            return fd, temp
        os.close(fd)


def sweep(path: Path) -> None:
    """Delete the temporary files and directories of writers of `path` that were killed."""
    for name in _parts(path):
        left = path.with_name(name)
        with abandoned(left) as dead:
            if dead and left.is_dir():
                shutil.rmtree(left, ignore_errors=True)
            elif dead:
                left.unlink(missing_ok=True)


def _parts(path: Path) -> list[str]:
    start, length = f".{path.name}.", len(path.name) + len("..XXXXXXXX") + len(PART)
    try:
        return [n for n in os.listdir(path.parent)
                if n.endswith(PART) and n.startswith(start) and len(n) == length]
    except OSError:  # the folder may be written, not listed
        return []
