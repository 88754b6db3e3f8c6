"""A module that is called several times, as one for each call, where one box would be a loop.

A pooling between three blocks is read by each and reads each: as one box it has edges up and down.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence

Path = tuple[str, ...]


def calls(paths: Sequence[Path], edges: Sequence[tuple[int, int]], ops: Sequence[str]
          ) -> list[Path]:
    """The path of each node, where a module whose parts have the same ops, and meet only outside
    of it, in a loop, is `pool`, `pool#2`, …; nodes are in the order of a run.

    A module's backward pass has other ops than its forward pass, and stays with it."""
    out = list(paths)
    after: dict[int, list[int]] = defaultdict(list)
    for a, b in edges:
        after[a].append(b)
    for depth in range(max(map(len, paths), default=0)):
        modules: dict[Path, list[int]] = defaultdict(list)
        for i, path in enumerate(out):
            if len(path) > depth:
                modules[path[:depth + 1]].append(i)
        for path, nodes in modules.items():
            parts = _parts(nodes, after)
            if len(parts) == 1 or len({tuple(sorted(ops[i] for i in part)) for part in parts}) > 1:
                continue
            if not _returns(nodes, after):
                continue
            for number, part in enumerate(parts[1:], 2):
                for i in part:
                    out[i] = (*path[:-1], f"{path[-1]}#{number}", *out[i][depth + 1:])
    return out


def _parts(nodes: Sequence[int], after: dict[int, list[int]]) -> list[list[int]]:
    """The nodes in sets that no edge connects, by the first of each."""
    inside, leader = set(nodes), {n: n for n in nodes}

    def first(n: int) -> int:
        while leader[n] != n:
            leader[n] = n = leader[leader[n]]
        return n
    for a in nodes:
        for b in after[a]:
            if b in inside:
                x, y = sorted((first(a), first(b)))
                leader[y] = x
    out: dict[int, list[int]] = defaultdict(list)
    for n in nodes:
        out[first(n)].append(n)
    return [out[n] for n in sorted(out)]


def _returns(nodes: Collection[int], after: dict[int, list[int]]) -> bool:
    """Whether a path leaves the nodes and comes back to one of them."""
    inside, last = set(nodes), max(nodes)
    stack = [b for a in nodes for b in after[a] if b not in inside]
    seen = set(stack)
    while stack:
        for b in after[stack.pop()]:
            if b in inside:
                return True
            if b < last and b not in seen:
                seen.add(b)
                stack.append(b)
    return False
