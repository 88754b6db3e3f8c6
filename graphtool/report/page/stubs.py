"""Edges that are not drawn: those of a value that many readers down a chain have, as a mask has.

Drawn, they would hold the chain apart: each layer of a transformer would stand one column further.
Each reader has a line with the value's name instead.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import pairwise

MANY = 3  # far readers in one module, beside the nearest one
FAR = 6  # rows below the nearest reader
Edge = tuple[int, int]


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
        high = {item: min(row[b] for _, b in found) for item, found in items.items()}
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
