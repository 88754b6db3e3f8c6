"""A picture as Graphviz dot text; Graphviz then draws it."""

from __future__ import annotations

from graphtool.escaping import dot as quoted
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
    return (f"{b.id} [label={quoted(*b.lines)}, tooltip={quoted(b.tip)}, "
            f'fillcolor="{FILL[b.kind]}", color="{STROKE[b.kind]}"{shape}];')
