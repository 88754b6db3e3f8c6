"""Where in its author's source a value came from, as graphs and programs write it."""

from __future__ import annotations

import re

_AT = re.compile(r"(?P<file>[^\s:]+\.\w+):(?P<line>\d{1,9})\b")


def source_line(where: str) -> tuple[str, int] | None:
    """The file and the line of `mlp.py:20 MLP.forward`; None for a text that begins otherwise."""
    match = _AT.match(where)
    return (match["file"], int(match["line"])) if match and int(match["line"]) else None
