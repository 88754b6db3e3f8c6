"""The page of `view`: one file of HTML, where it is written, and the browser that shows it."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Sequence
from importlib.resources import files as resources
from importlib.util import find_spec
from itertools import chain, count
from pathlib import Path
from typing import Any

from graphtool.errors import UsageError
from graphtool.escaping import json_script, xml
from graphtool.io import release

# in this order, as one
SCRIPTS = ("layout.js", "grid.js", "draw.js", "save.js", "overview.js", "pane.js", "stages.js",
           "heat.js", "panels.js", "search.js", "page.js")
MARK = b'<meta name="generator" content="graphtool view">'  # near the start of each page
PACKAGES = ("fast_sugiyama", "vl_convert")


def need_view() -> None:
    """Raises UsageError GT3034 if the packages of the extra `view` are missing."""
    if missing := [name for name in PACKAGES if find_spec(name) is None]:
        raise UsageError("GT3034", f"view needs {' and '.join(missing)}",
                         hint=release.install("view"))


def page(title: str, sections: Sequence[dict[str, Any]]) -> str:
    """The page's HTML. A section is what `sections.section_of` makes of an artifact."""
    files = resources(__name__)
    parts = {name: files.joinpath(name).read_text("utf-8")
             for name in ("page.html", "page.css", *SCRIPTS)}
    data = json.dumps({"title": title, "sections": list(sections)}, separators=(",", ":"),
                      ensure_ascii=False)
    script = "".join(_dense(parts[name]) for name in SCRIPTS)
    out = parts["page.html"].replace("{{TITLE}}", xml(title))
    out = out.replace("{{STYLE}}", _dense(parts["page.css"])).replace("{{SCRIPT}}", script)
    return out.replace("{{DATA}}", json_script(data))


def _dense(text: str) -> str:
    """A script or style without indentation and lines of comment; no string of them spans lines."""
    return re.sub(r"^\s*(//.*\n)?", "", text, flags=re.MULTILINE)


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
