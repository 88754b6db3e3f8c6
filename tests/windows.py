"""A process that Windows would be hard on: what it lacks is missing, what it refuses is refused.

`python -m tests.windows FOLDER` works in it as a user does, and prints what it made.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

MISSING = {os: ("fchmod", "fork", "getloadavg", "O_NOFOLLOW", "geteuid"),
           signal: ("SIGALRM", "alarm")}


def pretend() -> None:
    """Make this process one of Windows for graphtool; other packages are imported before."""
    for name in ("numpy", "rich.console", "typer"):
        import_module(name)
    for name in ("fcntl", "resource"):
        sys.modules[name] = None  # type: ignore[assignment]
    for module, names in MISSING.items():
        for name in names:
            delattr(module, name)
    real = {name: getattr(os, name) for name in ("open", "fsync", "replace", "rename", "unlink")}

    def open_(path: Any, *args: Any, **kwargs: Any) -> int:
        if "dir_fd" not in kwargs and os.path.isdir(path) and _caller() != "tempfile":
            raise PermissionError(13, "Permission denied", path)
        return int(real["open"](path, *args, **kwargs))

    def fsync(fd: int) -> None:
        flags = Path(f"/proc/self/fdinfo/{fd}").read_text().split("flags:")[1].split()[0]
        if not int(flags, 8) & (os.O_WRONLY | os.O_RDWR):
            raise OSError(9, "Bad file descriptor")
        real["fsync"](fd)

    def moved(name: str) -> Any:
        def move(a: Any, b: Any) -> None:
            if in_use(a) or in_use(b) or (name == "rename" and os.path.lexists(b)):
                raise PermissionError(13, "The process cannot access the file", a, 32, b)
            real[name](a, b)
        return move

    def unlink(path: Any, **kwargs: Any) -> None:
        if "dir_fd" not in kwargs and in_use(path):
            raise PermissionError(13, "The process cannot access the file", path)
        real["unlink"](path, **kwargs)
    os.open, os.fsync, os.unlink = open_, fsync, unlink  # type: ignore[assignment]
    os.replace, os.rename = moved("replace"), moved("rename")

    class CDLL(ctypes.CDLL):
        def __init__(self, name: str, *args: Any, **kwargs: Any) -> None:
            if name is None:
                raise TypeError("bad argument type for built-in operation")
            super().__init__(name, *args, **kwargs)
    ctypes.CDLL = CDLL  # type: ignore[misc]
    os.environ.setdefault("CC", "cc")  # the search for one asks for cc.exe
    sys.platform = "win32"


def _caller() -> str:
    """The module that called what asks: shutil and tempfile have ways of their own in Windows."""
    name = sys._getframe(2).f_globals["__name__"]
    return "tempfile" if name in ("shutil", "tempfile") else name


def in_use(path: Any) -> bool:
    """Whether this process has a file open or mapped, or one in the folder."""
    place = os.path.realpath(path)
    maps = (line.split(None, 5) for line in Path("/proc/self/maps").read_text().splitlines())
    used = [words[5] for words in maps if len(words) == 6]
    used += [os.readlink(f"/proc/self/fd/{n}") for n in os.listdir("/proc/self/fd")
             if os.path.lexists(f"/proc/self/fd/{n}")]
    return any(name == place or name.startswith(place + os.sep) for name in used)


def work(folder: Path) -> None:
    """Import, optimise in place, build twice, run, emit into a folder of the user's, check."""
    from graphtool.cli.faults import run
    from graphtool.verify import oracle
    assert oracle.main
    graph, build = str(folder / "g.graph.json"), str(folder / "b")
    (folder / "mine").mkdir()
    (folder / "mine" / "main.c").write_text("mine")
    for argv in (["import", "samples/digits.onnx", "--no-check",
                  "-o", graph],
                 ["opt", graph, "-o", graph, "--passes", "simplify,fold,dce"],
                 ["build", graph, "-o", build, "--name", "net"],
                 ["build", graph, "-o", build, "--name", "other"],
                 ["emit", graph, "-o", str(folder / "mine"), "--name", "net"],
                 ["emit", graph, "-o", str(folder / "mine"), "--name", "net", "--single"],
                 ["run", build, "--random", "-o", str(folder / "y.npz")],
                 ["check", graph, build]):
        code = run(argv)
        if code:
            raise SystemExit(f"{argv} ended with {code}")


if __name__ == "__main__":
    pretend()
    work(Path(sys.argv[1]))
