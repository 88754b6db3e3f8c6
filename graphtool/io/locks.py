"""Locks that end with the process that holds them, so that a kill leaves none behind.

Some systems have no such locks (no fcntl, some network drives). There nobody waits, and nothing is
deleted that may belong to a running process.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

try:
    import fcntl
except ImportError:  # not a POSIX system
    fcntl = None  # type: ignore[assignment]


@contextmanager
def folder(path: Path) -> Iterator[None]:
    """A context that only one writer of this folder can be in at a time."""
    fd = _opened(path)
    if fd is None:
        yield
        return
    try:
        _lock(fd, wait=True)
        yield
    finally:
        os.close(fd)


def claim(fd: int) -> bool:
    """Lock what was just made; False if a sweeper has come first and deletes it."""
    if fcntl is None:
        return True
    return _lock(fd, wait=False) is not False and os.fstat(fd).st_nlink > 0


@contextmanager
def abandoned(path: Path) -> Iterator[bool]:
    """Whether the process that made this file or directory is gone; nobody claims it meanwhile."""
    fd = _opened(path)
    try:
        yield fd is not None and _lock(fd, wait=False) is True
    finally:
        if fd is not None:
            os.close(fd)


def _opened(path: Path) -> int | None:
    try:
        return os.open(path, os.O_RDONLY | os.O_NOFOLLOW) if fcntl is not None else None
    except OSError:
        return None


def _lock(fd: int, wait: bool) -> bool | None:
    """Whether the lock was free; None where it cannot be known."""
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        return True
    except BlockingIOError:
        return False
    except OSError:
        return None
