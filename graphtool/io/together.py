"""Several files written into a directory at once, though other things lie in it, also directories.

The new files stand in a second directory beside it, where links stand for all the rest. In one step
of the system the two change places, so that the new files are there together. The first directory
is then brought up to date out of sight, and takes its place again in one step: who works in it, or
in a directory below, works in the same one as before.

A writer that is killed between the two steps leaves a whole directory, though with links in place
of directories; the next writer takes the second step.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path

from graphtool.errors import InputError
from graphtool.io import files, locks
from graphtool.io.atomic import settle, sweep, writing
from graphtool.io.directory import recover, replacing
from graphtool.io.exchange import exchange

_BESIDE = ".beside"  # the end of the second directory's name: .NAME.XXXXXXXX.beside


def write_files(out: Path, texts: Mapping[str, str | bytes]) -> None:
    """Write files into a directory, all of them at once; what else lies there stays.

    Where the system cannot exchange directories, or link files, they are written one by one.
    Raises InputError GT0330 where they cannot be written.
    """
    out = Path(os.path.realpath(out))
    with writing(out):
        out.parent.mkdir(parents=True, exist_ok=True)
        with locks.folder(out.parent):
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
    with os.scandir(folder) as found:
        return list(found)


def _through(work: Path, name: str) -> str:
    return os.path.join(os.pardir, work.name, name)


def _is_through(entry: os.DirEntry[str], first: Path) -> bool:
    """Whether an entry is a link that stands for a directory in the first directory."""
    return entry.is_symlink() and os.readlink(entry.path) == _through(first, entry.name)
