"""A picture as Graphviz dot text; Graphviz then draws it."""

from __future__ import annotations

from graphtool.exporters.colours import FILL, STROKE
from graphtool.exporters.picture import Box, Picture


def dot(p: Picture) -> str:
    """The dot text of a graph drawn from top to bottom; names are escaped, ids are generated."""
    lines = ["digraph graphtool {", "  rankdir=TB; nodesep=0.3; ranksep=0.35;",
             '  node [shape=box, style="rounded,filled", fontname="Helvetica", fontsize=10];',
             '  edge [color="#667788", arrowsize=0.6, fontname="Helvetica", fontsize=8];']
    lines += [f"  {_box(b)}" for b in p.boxes]
    lines += [f"  {a.start} -> {a.end};" for a in p.arrows]
    return "\n".join([*lines, "}"]) + "\n"


def _box(b: Box) -> str:
    shape = ", shape=ellipse" if b.kind in ("input", "output") else ""
    return (f"{b.id} [label={quote(chr(10).join(b.lines))}, tooltip={quote(b.tip)}, "
            f'fillcolor="{FILL[b.kind]}", color="{STROKE[b.kind]}"{shape}];')


def quote(text: str) -> str:
    """The text as a quoted dot string; a line break becomes \\n."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'
