"""Ports of a module at its border: an edge that enters starts in the first layer, one that leaves
ends in the last, with bends on the way to the node at its other end."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from typing import Any

STEP = 72.0  # what an item takes in a layer
Layers = list[list[list[Any]]]


def at_borders(layers: Layers, bends: Sequence[list[Any]], edges: Sequence[tuple[Any, Any]]
               ) -> tuple[Layers, list[list[Any]]]:
    """The layers, each a list of [item, x], and the bends of edges, with the ports moved.

    The layout puts a port beside what it belongs to, which may have other items above it: the line
    to the border would run through them. A moved port is beside all of them."""
    paths = {(a, b): list(rest) for a, b, *rest in bends}
    rows = [list(layer) for layer in layers]
    names = (f"b{n}" for n in count(sum(len(path) for path in paths.values())))
    for r, layer in enumerate(layers):
        for item, x in layer:
            enters = str(item).startswith("pi")
            if not (enters or str(item).startswith("po")):
                continue
            way = range(r) if enters else range(len(rows) - 1, r, -1)
            if not way:
                continue
            side = _beside([at for number in way for _, at in rows[number]], x)
            rows[r].remove([item, x])
            rows[way[0]].append([item, side])
            made = []
            for row in (*way[1:], r):
                made.append(next(names))
                rows[row].append([made[-1], x if row == r else side])
            for edge in edges:
                if edge[not enters] == item:
                    path = paths.get(edge, [])
                    paths[edge] = [*made, *path] if enters else [*path, *reversed(made)]
    return [sorted(row, key=lambda one: one[1]) for row in rows if row], [
        [*edge, *path] for edge, path in paths.items()]


def _beside(xs: Sequence[float], x: float) -> float:
    """`x`, if none of these places is near it; else one to the right or the left of all of them,
    the nearer one."""
    low, high = min(xs), max(xs)
    if all(abs(x - other) >= STEP for other in xs):
        return x
    return high + STEP if high - x <= x - low else low - STEP
