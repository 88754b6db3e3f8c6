"""Kills a writer before each step that it asks of the operating system, one after another; or lets
the step fail, as a full disk does.

The writer runs in a forked process, which ends at once at the chosen step, as a kill would end it.
"""

from __future__ import annotations

import io
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from graphtool.errors import InputError
from graphtool.io import directory, pairs

STEPS = ("replace", "rename", "unlink", "remove", "rmdir", "mkdir", "fsync", "link", "write",
         "ftruncate", "chmod", "fchmod", "symlink")
KILLED, WRITTEN, REFUSED = 9, 0, 3


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


def fail_points(write: Callable[[], object], number: int, most: int = 500) -> Iterator[int]:
    """Run `write` again and again; each time one step later fails, once, with this errno. Gives the
    step. The writer has to say so, or to get along without the step."""
    for step in range(most):
        child = os.fork()
        if child == 0:
            status, failed = 70, list[int]()
            try:
                _kill_at(step, partial(_fail, failed, number))
                write()
                status = REFUSED if failed else WRITTEN
            except InputError as error:
                status = REFUSED if error.code == "GT0330" and failed else 71
            finally:
                os._exit(status)
        _, status = os.waitpid(child, 0)
        ended = os.waitstatus_to_exitcode(status)
        assert ended in (REFUSED, WRITTEN), f"no clear error at step {step}: {ended}"
        yield step
        if ended == WRITTEN:
            assert step > 2, "no step was seen"
            return
    raise AssertionError("the writer never ended")


def _fail(failed: list[int], number: int) -> None:
    failed.append(number)
    raise OSError(number, os.strerror(number))


def _kill_at(step: int, act: Callable[[], object] = lambda: os._exit(9)) -> None:
    left = [step]

    def counted(f: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **rest: Any) -> Any:
            left[0] -= 1
            if left[0] == -1:
                act()
            return f(*args, **rest)
        return call
    for name in STEPS:
        setattr(os, name, counted(getattr(os, name)))
    directory.exchange = counted(directory.exchange)
    pairs.shutil.copyfileobj = counted(shutil.copyfileobj)  # type: ignore[attr-defined]
    os.fdopen = _halves(os.fdopen, left, act)


def _halves(fdopen: Any, left: list[int], act: Callable[[], object]) -> Any:
    """An fdopen of files that write in two halves, between which a kill may come."""
    class Halved(io.BufferedWriter):
        def write(self, data: Any) -> int:
            view = memoryview(data).cast("B")
            for part in (view[:len(view) // 2], view[len(view) // 2:]):
                if left[0] == 0:
                    self.flush()
                    left[0] = -1
                    act()
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

