"""A directory of files that replaces an earlier one completely, or not at all.

The new directory and the old one change places in one step. Where the system has no such step the
old one is out of place for a moment, and `recover` puts it back if the writer was killed in it.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable
from contextlib import suppress
from errno import EEXIST, ENOENT, ENOTEMPTY
from pathlib import Path

from graphtool.errors import InputError
from graphtool.io import locks
from graphtool.io.atomic import PART, settle, sweep
from graphtool.io.exchange import exchange

TRIES = 100  # attempts to rename: another build of the directory may rename in between
_OLD = ".old"  # the end of an earlier directory's name while the new one takes its place


class replacing:
    """A new directory that replaces `path` once all its files are written without an error.

    `known` says of the names in an earlier directory whether it may be replaced.
    """

    def __init__(self, path: Path, known: Callable[[list[str]], bool] | None = None) -> None:
        self.path = Path(os.path.realpath(path))
        self.known = known or (lambda names: "build.json" in names)

    def __enter__(self) -> Path:
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            recover(self.path)
            if self.foreign():
                raise InputError("GT2112", "the output directory exists and is not a build",
                                 where=str(self.path), hint="name another, or remove it")
            sweep(self.path)
            self.open()
            os.chmod(self.work, 0o755)
        except OSError as error:
            raise self.fault(error) from error
        return self.work

    def open(self) -> None:
        """Make the new directory, and lock it as long as this process works on it."""
        while True:
            self.work = Path(tempfile.mkdtemp(prefix=f".{self.path.name}.", suffix=PART,
                                              dir=self.path.parent))
            with suppress(FileNotFoundError):
                self.held = os.open(self.work, os.O_RDONLY)
                if locks.claim(self.held):
                    return
                os.close(self.held)

    def fault(self, error: OSError) -> InputError:
        """An InputError GT0330 that names the directory and the reason given by the system."""
        return InputError("GT0330", f"cannot write: {error.strerror or error}",
                          where=str(self.path))

    def __exit__(self, kind: object, error: BaseException | None, _: object) -> None:
        try:
            if error is None:
                try:
                    self.settle()
                    self.rename()
                except OSError as failed:
                    error = failed
            shutil.rmtree(self.work, ignore_errors=True)  # the old one, or one that has failed
        finally:
            os.close(self.held)
        if isinstance(error, OSError):
            raise self.fault(error) from error

    def settle(self) -> None:
        """Flush all files to disk before the directory is moved to its place."""
        for folder, _, names in os.walk(self.work, topdown=False):
            for path in (Path(folder, name) for name in names):
                if path.is_file() and not path.is_symlink():
                    with path.open("rb") as file:
                        os.fsync(file.fileno())
            settle(Path(folder))

    def rename(self) -> None:
        """Move the finished directory to `path`. Of several builds at the same time the last one
        wins, whole."""
        for attempt in range(TRIES):
            try:
                if not self.swap():
                    self.work.rename(self.path)
                break
            except OSError as error:  # another build put its own there in between, or took it away
                if attempt == TRIES - 1 or error.errno not in (ENOTEMPTY, EEXIST, ENOENT):
                    raise
        settle(self.path.parent)

    def swap(self) -> bool:
        """Exchange the finished directory for the one at `path`; False if nothing is there now."""
        if not self.path.exists():
            return False
        if exchange(self.work, self.path):
            return True
        old = self.work.with_suffix(_OLD)
        self.path.rename(old)
        try:
            self.work.rename(self.path)
        except OSError:
            with suppress(OSError):
                old.rename(self.path)
            raise
        finally:
            shutil.rmtree(old, ignore_errors=True)
        return True

    def foreign(self) -> bool:
        """Whether something stands there that no build made.

        Another build may put its directory in place while we look: what is listed counts only if
        it is the same directory before and after.
        """
        for _ in range(TRIES):
            try:
                before = self.path.stat()
                names = os.listdir(self.path)
                if self.path.stat().st_ino == before.st_ino:
                    return bool(names) and not self.known(names)
            except FileNotFoundError:
                continue
            except NotADirectoryError:
                return True
        return False


def recover(path: Path) -> None:
    """Put back the directory that a killed writer had moved away, or delete it if it is replaced.
    """
    length = len(f".{path.name}.XXXXXXXX{_OLD}")
    with suppress(OSError):
        for name in os.listdir(path.parent):
            if len(name) == length and name.startswith(f".{path.name}.") and name.endswith(_OLD):
                left = path.with_name(name)
                with locks.abandoned(left) as dead:
                    if dead and path.exists():
                        shutil.rmtree(left, ignore_errors=True)
                    elif dead:
                        left.rename(path)
