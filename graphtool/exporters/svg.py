"""A picture as one SVG file without another program: rows by longest path, few crossings, straight
long arrows."""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from graphtool.escaping import xml
from graphtool.exporters.picture import FILL, STROKE, Box, Picture

# ---- layout -------------------------------------------------------------------------------------

SWEEPS = 12
GAP_X, GAP_Y = 22.0, 34.0


@dataclass(eq=False)
class Point:
    """A box, or a dummy point of width 0 where a long arrow passes through a layer."""

    id: str
    width: float
    height: float
    layer: int = 0
    x: float = 0.0
    y: float = 0.0
    above: list[Point] = field(default_factory=list)
    below: list[Point] = field(default_factory=list)

    @property
    def dummy(self) -> bool:
        """True for a bend of a long arrow, which has no box."""
        return self.width == 0


@dataclass(frozen=True)
class LayeredDrawing:
    """The centre of each box, and the points through which each arrow goes."""

    places: Mapping[str, Point]
    routes: Mapping[tuple[str, str], tuple[Point, ...]]
    width: float
    height: float


def layout(sizes: Mapping[str, tuple[float, float]],
           arrows: Sequence[tuple[str, str]]) -> LayeredDrawing:
    """The positions of boxes of the given sizes; the arrows must have no cycle."""
    points = {name: Point(name, w, h) for name, (w, h) in sizes.items()}
    _assign_layers(points, arrows)
    routes = {arrow: _route(points[arrow[0]], points[arrow[1]]) for arrow in arrows}
    everything = list(points.values()) + [p for r in routes.values() for p in r[1:-1]]
    for route in routes.values():
        for a, b in pairwise(route):
            a.below.append(b)
            b.above.append(a)
    layers: list[list[Point]] = [[] for _ in range(1 + max((p.layer for p in everything),
                                                           default=-1))]
    for p in everything:
        layers[p.layer].append(p)
    _order(layers)
    _place_x(layers)
    height = _place_y(layers)
    left = min((p.x - p.width / 2 for p in everything), default=0.0)
    for p in everything:
        p.x -= left
    right = max((p.x + p.width / 2 for p in everything), default=0.0)
    return LayeredDrawing(points, routes, right, height)


def _assign_layers(points: Mapping[str, Point], arrows: Sequence[tuple[str, str]]) -> None:
    """Layers by the longest path from the top; then nodes with slack move down to their reader."""
    below: dict[str, list[str]] = {name: [] for name in points}
    above: dict[str, list[str]] = {name: [] for name in points}
    for a, b in arrows:
        below[a].append(b)
        above[b].append(a)
    order = _topological(below, above)
    for name in order:
        points[name].layer = 1 + max((points[a].layer for a in above[name]), default=-1)
    for name in reversed(order):
        if below[name] and len(above[name]) < len(below[name]):
            points[name].layer = min(points[b].layer for b in below[name]) - 1


def _topological(below: Mapping[str, Sequence[str]],
                 above: Mapping[str, Sequence[str]]) -> list[str]:
    """The names in topological order; otherwise the given order is kept."""
    waiting = {name: len(a) for name, a in above.items()}
    ready = [name for name, count in waiting.items() if count == 0]
    for name in ready:  # grows as it goes
        for b in below[name]:
            waiting[b] -= 1
            if waiting[b] == 0:
                ready.append(b)
    return ready


def _route(a: Point, b: Point) -> tuple[Point, ...]:
    dummies = [Point("", 0.0, 0.0, layer) for layer in range(a.layer + 1, b.layer)]
    return (a, *dummies, b)


# ---- order within a layer ----------------------------------------------------------------------

def _order(layers: list[list[Point]]) -> None:
    """Sort each layer by the positions of its neighbours, in sweeps down and up; the best order is
    kept."""
    best, fewest = [list(layer) for layer in layers], _crossings(layers)
    for sweep in range(SWEEPS):
        down = sweep % 2 == 0
        for layer in layers if down else reversed(layers):
            _sort_by_neighbours(layer, layers, down)
        count = _crossings(layers)
        if count < fewest:
            best, fewest = [list(layer) for layer in layers], count
        if fewest == 0:
            break
    for layer, order in zip(layers, best, strict=True):
        layer[:] = order


def _sort_by_neighbours(layer: list[Point], layers: list[list[Point]], down: bool) -> None:
    at = layer[0].layer + (-1 if down else 1) if layer else -1
    if not 0 <= at < len(layers):
        return
    position = {id(p): float(i) for i, p in enumerate(layers[at])}
    index = {id(p): float(i) for i, p in enumerate(layer)}

    def key(p: Point) -> float:
        near = [position[id(q)] for q in (p.above if down else p.below)]
        return sum(near) / len(near) if near else index[id(p)]
    layer.sort(key=key)


def _crossings(layers: Sequence[Sequence[Point]]) -> int:
    """The number of pairs of arrows that cross, by insertion into a sorted list, layer by layer."""
    total = 0
    for upper, lower in pairwise(layers):
        position = {id(p): i for i, p in enumerate(lower)}
        seen: list[int] = []
        for p in upper:
            ends = sorted(position[id(q)] for q in p.below)
            for end in ends:
                total += len(seen) - bisect_right(seen, end)
            for end in ends:
                insort(seen, end)
    return total


# ---- coordinates -------------------------------------------------------------------------------

def _place_x(layers: list[list[Point]]) -> None:
    """Start without gaps, then move each point towards the weighted mean of its neighbours."""
    for layer in layers:
        x = 0.0
        for p in layer:
            p.x = x + p.width / 2
            x += p.width + GAP_X
        for p in layer:
            p.x -= x / 2
    for sweep in range(2 * SWEEPS):
        down = sweep % 2 == 0
        for layer in layers if down else reversed(layers):
            _pull(layer, down)


def _pull(layer: list[Point], down: bool) -> None:
    """The positions nearest to the wished ones without overlap: points that collide form a block.

    Blocks merge from left to right (isotonic regression), which keeps the order and the gaps.
    """
    blocks: list[tuple[float, float, list[tuple[Point, float]]]] = []  # weight, centre, members
    for p in layer:
        near = p.above if down else p.below
        boxes = [q for q in near if not q.dummy]  # the main line stays straight, skips go round it
        wish = _median(q.x for q in boxes or near) if near else p.x
        weight = _weight(p, boxes) if near else 0.25
        block = (weight, wish, [(p, 0.0)])
        while blocks and _overlap(blocks[-1], block):
            block = _merge(blocks.pop(), block)
        blocks.append(block)
    for _, start, members in blocks:
        for p, offset in members:
            p.x = start + offset


def _weight(p: Point, boxes: Sequence[Point]) -> float:
    """The weight of a point's wish: 1 for a box, 0.3 for a dummy, 0.02 for one next to a box."""
    if not p.dummy:
        return 1.0
    return 0.02 if boxes else 0.3


Block = tuple[float, float, list[tuple[Point, float]]]


def _overlap(a: Block, b: Block) -> bool:
    last, offset = a[2][-1]
    first = b[2][0][0]
    return a[1] + offset + _distance(last, first) > b[1] + 1e-9


def _merge(a: Block, b: Block) -> Block:
    last, offset = a[2][-1]
    shift = offset + _distance(last, b[2][0][0])
    weight = a[0] + b[0]
    start = (a[0] * a[1] + b[0] * (b[1] - shift)) / weight
    return weight, start, [*a[2], *((p, o + shift) for p, o in b[2])]


def _distance(a: Point, b: Point) -> float:
    return (a.width + b.width) / 2 + GAP_X


def _median(values: Iterable[float]) -> float:
    ordered = sorted(values)
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2


def _place_y(layers: list[list[Point]]) -> float:
    y = 0.0
    for layer in layers:
        height = max((p.height for p in layer), default=0.0)
        for p in layer:
            p.y = y + height / 2
        y += height + GAP_Y
    return max(0.0, y - GAP_Y)


# ---- SVG ----------------------------------------------------------------------------------------

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
