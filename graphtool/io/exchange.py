"""Two paths exchanged in one step of the operating system, where it has such a step."""

from __future__ import annotations

import ctypes
import errno
import os
import sys
from pathlib import Path

_HERE, _EXCHANGE = -100, 2  # AT_FDCWD, RENAME_EXCHANGE of Linux; RENAME_SWAP of macOS is 2 too


def exchange(a: Path, b: Path) -> bool:
    """Exchange two directories atomically; False where the system or the drive cannot.

    Raises OSError for anything else, such as a missing path.
    """
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
    if code in (errno.ENOSYS, errno.EINVAL, errno.EOPNOTSUPP, errno.EPERM, errno.EXDEV):
        return False
    raise OSError(code, os.strerror(code), str(a), None, str(b))
