"""Directories that are written at once: replaced completely, or with new files beside the old ones.

The new directory and the old one change places in one step of the system. Where there is no such
step the old one is out of place for a moment, and `recover` puts it back if the writer was killed
in it.

`write_files` keeps what else lies in the directory. The new files stand in a second directory next
to it, with links for all the rest. When the two have changed places, the first one is brought up to
date out of sight and takes its place again: who works in it works in the same one as before. A
writer that is killed between the two steps leaves a whole directory, though with links in place of
directories; the next writer takes the second step.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from errno import EEXIST, ENOENT, ENOTEMPTY
from pathlib import Path

from graphtool.errors import InputError
from graphtool.io import files
from graphtool.io.atomic import PART, abandoned, claim, locked, sweep, writing
from graphtool.io.host import exchange, flush, opened, settle

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
                what = ("the output directory exists and is not a build" if self.path.is_dir()
                        else "the output is to be a directory, and a file of this name exists")
                raise InputError("GT2112", what, where=str(self.path),
                                 hint="name another, or remove it")
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
            self.held = opened(self.work)
            if self.held is None and not self.work.exists():
                continue  # swept by another
            if self.held is None or claim(self.held):
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
            shutil.rmtree(self.work, ignore_errors=True)  # of before, or after a failure
        finally:
            if self.held is not None:
                os.close(self.held)
        if isinstance(error, OSError):
            raise self.fault(error) from error

    def settle(self) -> None:
        """Flush all files to disk before the directory is moved to its place."""
        for folder, _, names in os.walk(self.work, topdown=False):
            for path in (Path(folder, name) for name in names):
                if path.is_file() and not path.is_symlink():
                    flush(path)
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
                with abandoned(left) as dead:
                    if not path.exists() and dead is not False:
                        left.rename(path)  # without locks too: a living writer tries again
                    elif dead:
                        shutil.rmtree(left, ignore_errors=True)


_BESIDE = ".beside"  # the end of the second directory's name: .NAME.XXXXXXXX.beside


def write_files(out: Path, texts: Mapping[str, str | bytes]) -> None:
    """Write files into a directory, all of them at once; what else lies there stays.

    Where the system cannot exchange directories, or link files, they are written one by one.
    Raises InputError GT0330 where they cannot be written.
    """
    out = Path(os.path.realpath(out))
    with writing(out):
        out.parent.mkdir(parents=True, exist_ok=True)
        with locked(out.parent):
            _finish_left(out)
            there = out.is_dir()
            if there:
                _check(out, texts)
                if _at_once(out, texts):
                    return
    if there:
        for name, text in texts.items():
            files.write_bytes(out / name, _bytes(text))
        return
    with replacing(out) as work:
        for name, text in texts.items():
            (work / name).write_bytes(_bytes(text))


def _bytes(text: str | bytes) -> bytes:
    return text.encode() if isinstance(text, str) else text


def _check(out: Path, texts: Iterable[str]) -> None:
    """Raises InputError GT0330 where a directory has the name of a file."""
    for name in texts:
        if (out / name).is_dir():
            raise InputError("GT0330", "cannot write: it is a directory", where=str(out / name))
        sweep(out / name)


def _at_once(out: Path, texts: Mapping[str, str | bytes]) -> bool:
    """Whether the files could be put into `out` by exchanging directories."""
    work, exchanged = None, False
    try:
        work = Path(tempfile.mkdtemp(prefix=f".{out.name}.", suffix=_BESIDE, dir=out.parent))
        for name, text in texts.items():
            files.write_bytes(work / name, _bytes(text))
        for entry in _entries(out):
            if entry.is_dir(follow_symlinks=False):
                (work / entry.name).symlink_to(_through(work, entry.name))
            elif entry.name not in texts:
                os.link(entry.path, work / entry.name, follow_symlinks=False)
        shutil.copystat(out, work)
        settle(work)
        exchanged = exchange(work, out)
    except OSError:  # no place for it, no links here, or none to the files of others
        pass
    finally:
        if work and not exchanged:
            shutil.rmtree(work, ignore_errors=True)
    if work and exchanged:
        _return(work, out)
    return exchanged


def _return(old: Path, out: Path) -> None:
    """Bring the first directory, now `old`, up to date with `out`, and put it back in its place."""
    entries = _entries(out)
    for entry in entries:
        if not entry.is_dir() and not _is_through(entry, old):
            _link(entry, old)
    names = {entry.name for entry in entries}
    for entry in _entries(old):
        if not entry.is_dir(follow_symlinks=False) and entry.name not in names:
            os.unlink(entry.path)
    settle(old)
    if exchange(old, out):
        settle(out.parent)
        _delete(old, out)


def _link(entry: os.DirEntry[str], old: Path) -> None:
    """Give a file of the new directory its name in the old one, instead of the file there."""
    there = old / entry.name
    if there.is_dir() and not there.is_symlink():
        return  # the user's, and never ours to delete
    with suppress(FileNotFoundError):
        if os.path.samestat(entry.stat(follow_symlinks=False), there.lstat()):
            return
        there.unlink()
    os.link(entry.path, there, follow_symlinks=False)


def _delete(left: Path, out: Path) -> None:
    """Delete the second directory; what somebody has made in it since goes to the first one."""
    for entry in _entries(left):
        if entry.is_dir(follow_symlinks=False) and not (out / entry.name).exists():
            os.rename(entry.path, out / entry.name)
    if not any(entry.is_dir(follow_symlinks=False) for entry in _entries(left)):
        shutil.rmtree(left, ignore_errors=True)


def _finish_left(out: Path) -> None:
    """Finish what killed writers of this directory began; the lock of its folder says that they
    are dead. What they left is the first directory or the second one.
    """
    recover(out)
    sweep(out)
    start, length = f".{out.name}.", len(f".{out.name}.XXXXXXXX{_BESIDE}")
    for name in os.listdir(out.parent):
        if name.startswith(start) and name.endswith(_BESIDE) and len(name) == length:
            left = out.with_name(name)
            if not out.exists():
                left.rename(out)
            elif any(_is_through(entry, left) for entry in _entries(out)):
                _return(left, out)
            else:
                _delete(left, out)


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    with os.scandir(folder) as entries:
        return list(entries)


def _through(work: Path, name: str) -> str:
    return os.path.join(os.pardir, work.name, name)


def _is_through(entry: os.DirEntry[str], first: Path) -> bool:
    """Whether an entry is a link that stands for a directory in the first directory."""
    return entry.is_symlink() and os.readlink(entry.path) == _through(first, entry.name)
