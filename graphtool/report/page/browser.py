"""Where a page is written that has no name, and the browser that shows it."""

from __future__ import annotations

import os
import sys
from itertools import chain, count
from pathlib import Path

from graphtool.report.page import MARK


def own(stem: str) -> Path:
    """The file of a page in the current folder. An earlier page is replaced, and no other file."""
    names = (Path(f"{stem}{n}.html") for n in chain(("",), map(".{}".format, count(2))))
    return next(p for p in names if not p.exists() or (
        p.is_file() and MARK in p.read_bytes()[:1 << 10]))


def opened(path: Path) -> bool:
    """Open a page in the browser of a desktop; false where there is none."""
    import webbrowser
    if sys.platform not in ("darwin", "win32") and not (
            {"DISPLAY", "WAYLAND_DISPLAY", "BROWSER"} & set(os.environ)):
        return False  # webbrowser would start a browser in the terminal
    try:
        return webbrowser.open(path.resolve().as_uri())
    except (webbrowser.Error, OSError):
        return False
