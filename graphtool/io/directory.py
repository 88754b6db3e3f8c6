"""A directory of files that replaces an earlier one completely, or not at all."""

from __future__ import annotations

import os
import shutil
import tempfile
from contextlib import suppress
from errno import EEXIST, ENOTEMPTY
from pathlib import Path

from graphtool.errors import InputError

TRIES = 100  # renames that other builds of the same directory may come between


class replacing:
    """A new directory that replaces `path` once all its files are written without an error."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __enter__(self) -> Path:
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            if _foreign(self.path):
                raise InputError("GT2112", "the output directory exists and is not a build",
                                 where=str(self.path), hint="name another, or remove it")
            self.work = Path(tempfile.mkdtemp(prefix=f".{self.path.name}.", dir=self.path.parent))
            os.chmod(self.work, 0o755)
        except OSError as error:
            raise self.fault(error) from error
        return self.work

    def fault(self, error: OSError) -> InputError:
        """An InputError GT0330 that names the directory and the reason given by the system."""
        return InputError("GT0330", f"cannot write: {error.strerror or error}",
                          where=str(self.path))

    def __exit__(self, kind: object, error: BaseException | None, _: object) -> None:
        if error is None:
            try:
                self.rename()
            except OSError as failed:
                error = failed
        if error is not None:
            shutil.rmtree(self.work, ignore_errors=True)
            if isinstance(error, OSError):
                raise self.fault(error) from error

    def rename(self) -> None:
        """Move the finished directory to `path`. Of several builds at the same time the last one
        wins, whole."""
        old = self.work.with_name(self.work.name + ".old")
        for attempt in range(TRIES):
            with suppress(FileNotFoundError):
                self.path.rename(old)
            try:
                self.work.rename(self.path)
                break
            except OSError as error:  # another build put its own there in between
                if attempt == TRIES - 1 or error.errno not in (ENOTEMPTY, EEXIST):
                    raise
            finally:
                shutil.rmtree(old, ignore_errors=True)


def _foreign(path: Path) -> bool:
    """Whether something stands there that no build made.

    Another build may put its directory in place while we look: what is listed counts only if it is
    the same directory before and after.
    """
    for _ in range(TRIES):
        try:
            before = path.stat()
            names = os.listdir(path)
            if path.stat().st_ino == before.st_ino:
                return bool(names) and "build.json" not in names
        except FileNotFoundError:
            continue
        except NotADirectoryError:
            return True
    return False
