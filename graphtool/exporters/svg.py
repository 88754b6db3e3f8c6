"""A picture as one SVG file, laid out by diagram_layout.py; it needs no other program."""

from __future__ import annotations

from graphtool.escaping import xml
from graphtool.exporters.colours import FILL, STROKE
from graphtool.exporters.diagram_layout import Point, layout
from graphtool.exporters.picture import Box, Picture

_CHAR, _LINE, _MARGIN = 6.7, 14.0, 16.0  # of an 11 px monospaced font
_STYLE = ("text{font:11px ui-monospace,Menlo,Consolas,'DejaVu Sans Mono',monospace;"
          "text-anchor:middle}.t{font-weight:bold}")


def svg(p: Picture) -> str:
    """The SVG text; the tooltip of each box is its place in the source."""
    sizes = {b.id: (max(len(s) for s in b.lines) * _CHAR + 18, len(b.lines) * _LINE + 10)
             for b in p.boxes}
    placed = layout(sizes, [(a.start, a.end) for a in p.arrows])
    width, height = placed.width + 2 * _MARGIN, placed.height + 2 * _MARGIN
    lines = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
             f'viewBox="{-_MARGIN:.0f} {-_MARGIN:.0f} {width:.0f} {height:.0f}">',
             f"<style>{_STYLE}</style>",
             '<defs><marker id="a" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" '
             'markerHeight="7" orient="auto"><path d="M0 0L8 4L0 8z" fill="#667788"/></marker>'
             "</defs>",
             f'<rect x="{-_MARGIN:.0f}" y="{-_MARGIN:.0f}" width="{width:.0f}" '
             f'height="{height:.0f}" fill="#ffffff"/>']
    lines += [_arrow(placed.routes[a.start, a.end]) for a in p.arrows]
    lines += [_box(b, placed.places[b.id]) for b in p.boxes]
    return "\n".join([*lines, "</svg>"]) + "\n"


def _box(b: Box, at: Point) -> str:
    x, y = at.x - at.width / 2, at.y - at.height / 2
    radius = at.height / 2 if b.kind in ("input", "output") else 4
    text = "".join(
        f'<text x="{at.x:.1f}" y="{y + 5 + _LINE * (i + 0.75):.1f}"'
        f'{" class=" + chr(34) + "t" + chr(34) if i == 0 else ""}>{xml(s)}</text>'
        for i, s in enumerate(b.lines))
    return (f'<g><title>{xml(b.tip or b.lines[0])}</title><rect x="{x:.1f}" y="{y:.1f}" '
            f'width="{at.width:.1f}" height="{at.height:.1f}" rx="{radius:.1f}" '
            f'fill="{FILL[b.kind]}" stroke="{STROKE[b.kind]}"/>{text}</g>')


def _arrow(route: tuple[Point, ...]) -> str:
    """The path of an arrow: vertical at both ends, with a smooth curve to each point of its
    route."""
    first, last = route[0], route[-1]
    x, y = first.x, first.y + first.height / 2
    path = f"M{x:.1f} {y:.1f}"
    for p in route[1:]:
        to_y = p.y - p.height / 2 if p is last else p.y
        bend = (to_y - y) / 2
        path += f"C{x:.1f} {y + bend:.1f} {p.x:.1f} {to_y - bend:.1f} {p.x:.1f} {to_y:.1f}"
        x, y = p.x, to_y
    return f'<path d="{path}" fill="none" stroke="#667788" marker-end="url(#a)"/>'
