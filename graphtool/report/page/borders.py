"""Edges at the border of a module, and edges that are not drawn.

An edge that enters a module starts in its first layer; an edge that leaves it ends in the last
layer, with bends on the way to the node at its other end. A value with many readers down a chain,
such as a mask, would hold the chain apart: each layer of a transformer would stand one column
further. So each of these readers has a line with the name of the value instead.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import count, pairwise
from typing import Any

STEP = 72.0  # what an item takes in a layer
Layers = list[list[list[Any]]]
MANY = 3  # far readers in one module, beside the nearest one
FAR = 6  # rows below the nearest reader
Edge = tuple[int, int]


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
            layers_ = []
            for row in (*way[1:], r):
                layers_.append(next(names))
                rows[row].append([layers_[-1], x if row == r else side])
            for edge in edges:
                if edge[not enters] == item:
                    path = paths.get(edge, [])
                    paths[edge] = [*layers_, *path] if enters else [*path, *reversed(layers_)]
    return [sorted(row, key=lambda one: one[1]) for row in rows if row], [
        [*edge, *path] for edge, path in paths.items()]


def _beside(xs: Sequence[float], x: float) -> float:
    """`x`, if none of these places is near it; else one to the right or the left of all of them,
    the nearer one."""
    low, high = min(xs), max(xs)
    if all(abs(x - other) >= STEP for other in xs):
        return x
    return high + STEP if high - x <= x - low else low - STEP


def meeting(a: Sequence[str], b: Sequence[str]) -> int:
    """How many modules are around both nodes; the last of them is where their edge runs."""
    return next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y),
                min(len(a), len(b)))


def stubs(edges: Sequence[Edge], chain: Mapping[int, Sequence[str]]) -> set[Edge]:
    """The edges to the far readers of a value that has many of them in one module.

    `edges` go from a node to a later one. In each module the nearest reader keeps its edge, if
    nothing else joins it to where the value comes from.
    """
    row = _rows(edges)
    read: dict[tuple[str, int], dict[int | str, list[Edge]]] = defaultdict(
        lambda: defaultdict(list))
    joined: dict[tuple[str, int | str, int | str], set[int]] = defaultdict(set)
    for a, b in edges:
        depth = meeting(chain[a], chain[b])
        into: list[int | str] = [*chain[b][depth - 1:], b]
        for level, item in pairwise(into):
            read[str(level), a][item].append((a, b))
        joined[chain[a][depth - 1], _at(chain, a, depth), into[1]].add(a)
    out: set[Edge] = set()
    for (level, a), items in read.items():
        high = {item: min(row[b] for _, b in edges_) for item, edges_ in items.items()}
        nearest = min(high, key=high.__getitem__)
        far = [item for item in items if high[item] >= high[nearest] + FAR]
        if len(far) < MANY:
            continue
        out.update(edge for item in far for edge in items[item])
        depth = chain[a].index(level) + 1 if level in chain[a] else 0
        if depth and joined[level, _at(chain, a, depth), nearest] > {a}:
            out.update(edge for edge in items[nearest] if row[edge[1]] >= row[a] + FAR)
    return out


def _at(chain: Mapping[int, Sequence[str]], node: int, depth: int) -> int | str:
    around = chain[node]
    return around[depth] if depth < len(around) else node


def _rows(edges: Sequence[Edge]) -> dict[int, int]:
    """The longest path to each node."""
    row: dict[int, int] = defaultdict(int)
    for a, b in sorted(edges, key=lambda e: e[1]):
        row[b] = max(row[b], row[a] + 1)
    return row
