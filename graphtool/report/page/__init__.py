"""`graphtool view`: one HTML page of graphs, programs, builds and profiles that needs no network.

The page's own style and script are files beside this one. The packages of the extra `view` lay the
graph out and draw the plots when the page is made; nothing of them is in it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from importlib.resources import files as resources
from importlib.util import find_spec
from typing import Any

from graphtool.errors import UsageError
from graphtool.escaping import json_script, xml
from graphtool.io import release

# in this order, as one
SCRIPTS = ("layout.js", "grid.js", "draw.js", "pane.js", "stages.js", "panels.js", "page.js")
MARK = b'<meta name="generator" content="graphtool view">'  # near the start of each page
PACKAGES = ("fast_sugiyama", "vl_convert")


def need_view() -> None:
    """Raises UsageError GT3034 if the packages of the extra `view` are missing."""
    if missing := [name for name in PACKAGES if find_spec(name) is None]:
        raise UsageError("GT3034", f"view needs {' and '.join(missing)}",
                         hint=release.install("view"))


def page(title: str, sections: Sequence[dict[str, Any]]) -> str:
    """The page's HTML. A section is what `sections.section_of` makes of an artifact."""
    own = resources(__name__)
    parts = {name: own.joinpath(name).read_text() for name in ("page.html", "page.css", *SCRIPTS)}
    data = json.dumps({"title": title, "sections": list(sections)}, separators=(",", ":"),
                      ensure_ascii=False)
    script = "\n".join(parts[name] for name in SCRIPTS)
    out = parts["page.html"].replace("{{TITLE}}", xml(title))
    out = out.replace("{{STYLE}}", parts["page.css"]).replace("{{SCRIPT}}", script)
    return out.replace("{{DATA}}", json_script(data))
