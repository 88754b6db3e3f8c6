"""What differs between the systems that graphtool itself runs on, and nothing else.

Linux, macOS and Windows lock, rename and flush in their own ways, and Windows has no folders that
can be opened. Where a system lacks something, the function here says so or does less; its callers
do not ask which system it is. What differs between the systems that libraries are built for is in
native/systems.py.
"""

from __future__ import annotations

import ctypes
import errno
import mmap
import os
import shlex
import sys
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

try:
    import fcntl
except ImportError:  # not a POSIX system
    fcntl = None  # type: ignore[assignment]

_HERE, _EXCHANGE = -100, 2  # AT_FDCWD, RENAME_EXCHANGE of Linux; RENAME_SWAP of macOS is 2 too
_CANNOT = (errno.ENOSYS, errno.EINVAL, errno.EOPNOTSUPP, errno.EPERM, errno.EXDEV)


def windows() -> bool:
    """Whether this is Windows."""
    return sys.platform == "win32"


def opened(path: Path) -> int | None:
    """A file or folder to be locked; None where it is not there, or where nothing can be locked."""
    if fcntl is None:
        return None
    try:
        return os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
    except OSError:
        return None


def lock(fd: int, wait: bool) -> bool | None:
    """Whether the lock was free; None where it cannot be known."""
    if fcntl is None:
        return None
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        return True
    except BlockingIOError:
        return False
    except OSError:
        return None


def put_in_place(file: BinaryIO, temp: str, path: Path) -> None:
    """Flush a new file to disk, and give it its name and the rights of an ordinary file.

    It keeps its lock until it has the name. Windows renames no file that is open, and has no locks
    here.
    """
    file.flush()
    os.fsync(file.fileno())
    if hasattr(os, "fchmod"):
        os.fchmod(file.fileno(), 0o666 & ~_umask())
    if windows():
        file.close()
    os.replace(temp, path)


def flush(path: Path) -> None:
    """Flush a file to disk; a folder's names too, except in Windows. Raises OSError."""
    fd = os.open(path, os.O_RDWR if windows() else os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def settle(folder: Path) -> None:
    """Flush the names in a folder to disk before anything is written later."""
    with suppress(OSError):
        flush(folder)


def contents(path: Path) -> memoryview:
    """The bytes of a file: mapped, except in Windows, which replaces no file that is mapped.

    Raises OSError, and ValueError for an empty file.
    """
    if windows():
        return memoryview(path.read_bytes())
    with path.open("rb") as file:
        return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))


def is_mapped(x: object) -> bool:
    """Whether it is a mapped file itself."""
    return isinstance(x, mmap.mmap)


def let_go(file: mmap.mmap, start: int, stop: int) -> None:
    """Drop the whole pages in a range of bytes of a mapped file, where the system can; they are
    read again when they are used again."""
    first = -(-start // mmap.PAGESIZE) * mmap.PAGESIZE
    length = (stop - first) // mmap.PAGESIZE * mmap.PAGESIZE
    if length > 0 and hasattr(file, "madvise"):
        file.madvise(mmap.MADV_DONTNEED, first, length)


def exchange(a: Path, b: Path) -> bool:
    """Exchange two directories atomically; False where the system or the drive cannot.

    Raises OSError for anything else, such as a missing path.
    """
    if windows():
        return False
    names = os.fsencode(a), os.fsencode(b)
    library = ctypes.CDLL(None, use_errno=True)
    if sys.platform == "darwin" and hasattr(library, "renamex_np"):
        failed = library.renamex_np(*names, ctypes.c_uint(_EXCHANGE))
    elif hasattr(library, "renameat2"):
        failed = library.renameat2(_HERE, names[0], _HERE, names[1], ctypes.c_uint(_EXCHANGE))
    else:
        return False
    if not failed:
        return True
    code = ctypes.get_errno()
    if code in _CANNOT:
        return False
    raise OSError(code, os.strerror(code), str(a), None, str(b))


def cache_folder() -> Path:
    """Where programs of this system keep what they can make again."""
    if given := os.environ.get("XDG_CACHE_HOME"):
        return Path(given)
    if windows() and (local := os.environ.get("LOCALAPPDATA")):
        return Path(local)
    return Path.home() / ("Library/Caches" if sys.platform == "darwin" else ".cache")


def words(command: str) -> list[str]:
    """The words of a command as the system's shell reads them: in Windows a backslash is part of a
    path. Raises ValueError for a quote without its partner."""
    if not windows():
        return shlex.split(command)
    return [word.strip('"') for word in shlex.split(command, posix=False)]


def limit_memory(most: int) -> None:
    """End this process when its data need more bytes, where the system has such limits."""
    try:
        import resource
    except ImportError:
        return
    with suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_DATA, (most, most))


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
