"""Kills a writer before each step that it asks of the operating system, one after another.

The writer runs in a forked process, which ends at once at the chosen step, as a kill would end it.
"""

from __future__ import annotations

import io
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from graphtool.io import directory, pairs, together

STEPS = ("replace", "rename", "unlink", "remove", "rmdir", "mkdir", "fsync", "link", "write",
         "ftruncate", "chmod", "fchmod", "symlink")
KILLED, WRITTEN = 9, 0


def kill_points(write: Callable[[], object], most: int = 500) -> Iterator[int]:
    """Run `write` again and again, killed one step later each time, until it ends by itself."""
    for step in range(most):
        child = os.fork()
        if child == 0:
            status = 70
            try:
                _kill_at(step)
                write()
                status = WRITTEN
            finally:
                os._exit(status)
        _, status = os.waitpid(child, 0)
        ended = os.waitstatus_to_exitcode(status)
        assert ended in (KILLED, WRITTEN), f"the writer failed at step {step}: {ended}"
        yield step
        if ended == WRITTEN:
            assert step > 2, "no step was seen"
            return
    raise AssertionError("the writer never ended")


def _kill_at(step: int) -> None:
    left = [step]

    def counted(f: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **rest: Any) -> Any:
            if left[0] == 0:
                os._exit(KILLED)
            left[0] -= 1
            return f(*args, **rest)
        return call
    for name in STEPS:
        setattr(os, name, counted(getattr(os, name)))
    for module in (directory, together):
        module.exchange = counted(module.exchange)  # type: ignore[attr-defined]
    pairs.shutil.copyfileobj = counted(shutil.copyfileobj)  # type: ignore[attr-defined]
    os.fdopen = _halves(os.fdopen, left)


def _halves(fdopen: Any, left: list[int]) -> Any:
    """An fdopen of files that write in two halves, between which a kill may come."""
    class Halved(io.BufferedWriter):
        def write(self, data: Any) -> int:
            view = memoryview(data).cast("B")
            for part in (view[:len(view) // 2], view[len(view) // 2:]):
                if left[0] == 0:
                    self.flush()
                    os._exit(KILLED)
                left[0] -= len(view) > 64  # padding is not worth a kill
                super().write(part)
            return len(view)

    def opened(fd: int, mode: str = "r", *args: Any, **rest: Any) -> Any:
        if mode == "wb":
            return Halved(io.FileIO(fd, "wb"))
        return fdopen(fd, mode, *args, **rest)
    return opened


@contextmanager
def kept(folder: Path) -> Iterator[Callable[[], None]]:
    """A function that puts the folder back to what it is now."""
    copy = folder.with_name(folder.name + ".kept")
    shutil.copytree(folder, copy, symlinks=True)

    def restore() -> None:
        shutil.rmtree(folder)
        shutil.copytree(copy, folder, symlinks=True)
    yield restore
    shutil.rmtree(copy)


def leftovers(folder: Path) -> list[str]:
    """What a user would not expect beside the artifacts."""
    return sorted(p.name for p in folder.iterdir()
                  if p.name.startswith(".") or p.name.count(".") > 2)

