"""A content-addressed cache of compiled objects in the user's own directory (mode 0700).

Entries are written under a temporary name and renamed, so that concurrent builds are safe. Each
begins with the hash of its contents: a damaged one is compiled again, not linked.
"""

from __future__ import annotations

import atexit
import hashlib
import os
import shutil
import tempfile
import time
from contextlib import suppress
from functools import cache
from pathlib import Path

from graphtool.errors import InputError
from graphtool.io import files
from graphtool.io.host import cache_folder

SUM = 32  # bytes of sha256 that an entry begins with
LIMIT = 512 << 20  # bytes that `prune` leaves


def directory() -> Path:
    """The cache's directory, created if necessary; a private one if that cannot be written."""
    base = cache_folder() / "graphtool"
    try:
        base.mkdir(parents=True, exist_ok=True, mode=0o700)
        os.chmod(base, 0o700)
        return base
    except OSError:
        return _private()


@cache
def _private() -> Path:
    """A directory for this process only."""
    path = Path(tempfile.mkdtemp(prefix="graphtool-cache-"))
    atexit.register(shutil.rmtree, path, ignore_errors=True)
    return path


def get(key: str, to: Path) -> bool:
    """Copy the entry to `to`; returns whether there was one. A damaged one is deleted."""
    entry = _entry(key)
    try:
        held = entry.read_bytes()
        if _hash(held[SUM:]) != held[:SUM]:
            entry.unlink(missing_ok=True)
            return False
        to.write_bytes(held[SUM:])
        os.utime(entry)
        return True
    except OSError:
        return False


def put(key: str, source: Path) -> None:
    """Store a copy of the file behind its hash; it is no error if the cache cannot be written."""
    entry = _entry(key)
    with suppress(OSError, InputError):
        entry.parent.mkdir(mode=0o700, exist_ok=True)
        data = source.read_bytes()
        files.write_bytes(entry, _hash(data) + data)


def _entry(key: str) -> Path:
    """Where an entry is; entries of 1.0 have no suffix, because they have no hash."""
    return directory() / key[:2] / f"{key}.hashed"


def _hash(data: bytes) -> bytes:
    return hashlib.sha256(data).digest()


def entries() -> list[tuple[float, int, Path]]:
    """(last use, bytes, path) of each entry, oldest first."""
    rows = []
    for path in directory().glob("??/*"):
        try:
            stat = path.stat()
        except OSError:
            continue
        rows.append((stat.st_mtime, stat.st_size, path))
    return sorted(rows)


def prune(limit: int = LIMIT, max_age_days: float = 30) -> int:
    """Delete entries unused for long, then the oldest until the rest fits; returns the bytes
    freed."""
    rows = entries()
    total, freed = sum(size for _, size, _ in rows), 0
    oldest = time.time() - max_age_days * 86400
    for used, size, path in rows:
        if used < oldest or total - freed > limit:
            path.unlink(missing_ok=True)
            freed += size
    return freed


def prune_daily() -> None:
    """`prune`, if the last one was more than a day ago; builds call it."""
    stamp = directory() / "pruned"
    try:
        fresh = time.time() - stamp.stat().st_mtime < 86400
    except OSError:
        fresh = False
    if not fresh:
        with suppress(OSError):
            stamp.touch()
            prune()


def clear() -> int:
    """Delete everything; returns the bytes freed."""
    return prune(limit=0, max_age_days=-1)
