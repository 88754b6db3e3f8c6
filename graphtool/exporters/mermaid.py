"""A picture as Mermaid flowchart text, which Markdown viewers draw."""

from __future__ import annotations

from graphtool.escaping import mermaid as escaped
from graphtool.exporters.colours import FILL, STROKE
from graphtool.exporters.picture import Box, Picture


def mermaid(p: Picture) -> str:
    """A flowchart from top to bottom; text is escaped, ids are generated."""
    kinds = sorted({b.kind for b in p.boxes})
    lines = ["flowchart TB"]
    lines += [f"  {_box(b)}:::{b.kind}_" for b in p.boxes]
    lines += [f"  {a.start} --> {a.end}" for a in p.arrows]
    lines += [f"  classDef {k}_ fill:{FILL[k]},stroke:{STROKE[k]},color:#000" for k in kinds]
    return "\n".join(lines) + "\n"


def _box(b: Box) -> str:
    label = "<br/>".join(map(escaped, b.lines))
    left, right = ("([", "])") if b.kind in ("input", "output") else ("[", "]")
    return f'{b.id}{left}"{label}"{right}'
