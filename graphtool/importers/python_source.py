"""Runs Python source that defines a model; its faults are reported with their line.

A file is loaded under a private name, so that it shadows nothing.
"""

from __future__ import annotations

import hashlib
import importlib
import sys
import traceback
from collections.abc import Callable
from contextlib import redirect_stdout
from pathlib import Path
from types import ModuleType
from typing import Any

from graphtool.errors import GraphtoolError, InputError, listed, near
from graphtool.plugins import module_of_file

_ROOTS = ("site-packages/", "dist-packages/")


def module_of(place: str) -> ModuleType:
    """The module of a file (a path ending in .py) or of a dotted name."""
    if not place.endswith(".py"):
        if "" not in sys.path:
            sys.path.insert(0, "")
        return importlib.import_module(place)
    path = Path(place)
    if not path.is_file():
        raise InputError("GT1111", f"there is no file {place}")
    name = f"_graphtool_source_{hashlib.sha256(str(path.resolve()).encode()).hexdigest()[:12]}"
    folder = str(path.resolve().parent)
    sys.path.insert(0, folder)  # so that the file finds its neighbours, as under `python FILE`
    try:
        return module_of_file(name, path)
    finally:
        sys.path.remove(folder)


def attribute_of(module: ModuleType, place: str, attribute: str) -> Any:
    """What `attribute` (with dots) names in the module. Raises InputError GT1112 if it is not
    there."""
    value: Any = module
    for part in attribute.split("."):
        if not hasattr(value, part):
            known = [n for n, x in vars(module).items() if not n.startswith("_")
                     and getattr(x, "__module__", "") == module.__name__]
            raise InputError("GT1112", f"{place} has no {attribute!r}",
                             hint=near(part, known, f"it has {listed(known, 20)}"))
        value = getattr(value, part)
    return value


def guarded(doing: str, action: Callable[[], Any], library: str) -> Any:
    """The action's result; what it raises becomes one error that names the user's line, and what
    it prints goes to stderr: a verb's stdout may be the graph. `library` is the folder of the
    package whose lines are not the user's."""
    try:
        with redirect_stdout(sys.stderr):
            return action()
    except GraphtoolError:
        raise
    except SyntaxError as error:
        place = f"{Path(error.filename or '').name}:{error.lineno}", (error.text or "").strip()
        raise InputError("GT1111", f"{doing}: {type(error).__name__}: {error.msg}",
                         where=place) from error
    except (Exception, SystemExit) as error:
        line, text = user_line(error, library)
        raise InputError("GT1111", f"{doing}: {type(error).__name__}: {error}",
                         where=(line, text)) from error


# ---- the user's line ---------------------------------------------------------------------------

def user_line(error: BaseException, library: str) -> tuple[str, str]:
    """(`file.py:12 forward`, source text) of the innermost frame that is not that of the library in
    `library`."""
    place = ("", "")
    for link in chain(error):
        for frame in traceback.extract_tb(link.__traceback__):
            path = frame.filename.replace("\\", "/")
            ours = "/graphtool/importers/" in path
            if path.startswith(library) or path.startswith("<") or ours:
                continue
            place = f"{short_file(path)}:{frame.lineno} {frame.name}", frame.line or ""
        if place[0]:
            break
    return place


def chain(error: BaseException | None) -> list[BaseException]:
    """The exception and what led to it, innermost last."""
    links: list[BaseException] = []
    while error is not None and error not in links:
        links.append(error)
        error = error.__cause__ or error.__context__
    return links


def root_of(package_file: str | None) -> str:
    """The directory of an installed package, with forward slashes and one at the end."""
    return Path(package_file or "").parent.as_posix() + "/"


def short_file(path: str) -> str:
    """The path below site-packages or dist-packages, else the file's name alone."""
    path = path.replace("\\", "/")
    for root in _ROOTS:
        if root in path:
            return path.rpartition(root)[2]
    return path.rpartition("/")[2]
