"""Pairs the nodes of two graphs that correspond to each other, without the use of names.

Anchors are inputs by position and constants by content. Then (1) equal cones from the inputs,
(2) equal cones towards the outputs, (3) best-first agreement with neighbours already paired,
(4) like items beyond what only one of the graphs has.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice

from graphtool.report.flat import Arg, Item

_FANOUT = 64  # readers of one value that phase 3 compares pairwise
_REACH, _DEPTH = 40, 3  # items that phase 4 looks at beyond one operand, and levels above each


def align(a: Sequence[Item], b: Sequence[Item], bridged: bool = False) -> dict[int, int]:
    """The pairs of indices (in a, in b) of corresponding items; each item is in one pair at most.

    `bridged`: with phase 4, for readers. What it pairs is alike, but need not be equal in value: a
    convolution, and the same convolution with a batch norm folded into it."""
    ids: dict[object, int] = {}
    pairs = _Pairs(a, b, _cones(a, ids), _cones(b, ids))
    pairs.take(len(a) - 1, len(b) - 1)  # the outputs are each other's counterpart
    for key in (_both, _below, _above):
        _match_unique(pairs, key)
    _spread(pairs)
    _match_symmetric(pairs)
    if bridged:
        _bridge(pairs)
    _match_leftovers(pairs)
    return pairs.forward


Cone = tuple[int, int]  # what an item depends on, what depends on it


def _both(cone: Cone) -> object:
    return cone


def _below(cone: Cone) -> object:
    return cone[0]


def _above(cone: Cone) -> object:
    return cone[1]


def _cones(items: Sequence[Item], ids: dict[object, int]) -> list[Cone]:
    below, above = _cones_from_inputs(items, ids), _cones_to_outputs(items, ids)
    return list(zip(below, above, strict=True))


def _cones_from_inputs(items: Sequence[Item], ids: dict[object, int]) -> list[int]:
    """A number for each item; equal numbers mean equal items with equal inputs, recursively."""
    out: list[int] = []
    for item in items:
        args = tuple((out[x[0]], x[1]) if isinstance(x, tuple) else x for x in item.args)
        out.append(ids.setdefault(("from", item.label, item.content, args), len(ids)))
    return out


def _cones_to_outputs(items: Sequence[Item], ids: dict[object, int]) -> list[int]:
    """A number for each item; equal numbers mean equal readers, recursively. Constants' data do not
    count."""
    out = [0] * len(items)
    for at in range(len(items) - 1, -1, -1):
        item = items[at]
        users = tuple(sorted((out[u], position, _result(items[u].args[position]))
                             for u, position in item.users))
        literals = tuple(x for x in item.args if isinstance(x, str))
        kind = "input" if item.op == "input" else "node"
        out[at] = ids.setdefault(("to", kind, item.label, literals, users), len(ids))
    return out


def _result(arg: Arg) -> int:
    return arg[1] if isinstance(arg, tuple) else 0


class _Pairs:
    """The pairs found so far, in both directions, and those whose neighbours are unvisited."""

    def __init__(self, a: Sequence[Item], b: Sequence[Item],
                 cones_a: Sequence[Cone], cones_b: Sequence[Cone]) -> None:
        self.a, self.b, self.cones_a, self.cones_b = a, b, cones_a, cones_b
        self.forward: dict[int, int] = {}
        self.backward: dict[int, int] = {}
        self.fresh: list[tuple[int, int]] = []

    def take(self, i: int, j: int) -> None:
        self.forward[i], self.backward[j] = j, i
        self.fresh.append((i, j))

    def free(self, i: int, j: int) -> bool:
        return i not in self.forward and j not in self.backward

    def classes(self, key: Callable[[Cone], object]) -> list[tuple[list[int], list[int]]]:
        """The unpaired items of both sides with equal keys, in order."""
        where: dict[object, tuple[list[int], list[int]]] = {}
        for i, cone in enumerate(self.cones_a):
            if i not in self.forward:
                where.setdefault(key(cone), ([], []))[0].append(i)
        for j, cone in enumerate(self.cones_b):
            if j not in self.backward:
                where.setdefault(key(cone), ([], []))[1].append(j)
        return list(where.values())


def _match_unique(pairs: _Pairs, key: Callable[[Cone], object]) -> None:
    """Pair the items whose key occurs once on each side."""
    for ours, theirs in pairs.classes(key):
        if len(ours) == len(theirs) == 1:
            pairs.take(ours[0], theirs[0])


def _match_symmetric(pairs: _Pairs) -> None:
    """Pair items that have equal keys: the first of each class, then the neighbours of that
    pair."""
    for ours, theirs in pairs.classes(_both):
        for i, j in zip(ours, theirs, strict=False):
            if pairs.free(i, j):
                pairs.take(i, j)
                _spread(pairs)


def _spread(pairs: _Pairs) -> None:
    """Pair the neighbours of new pairs, in descending order of agreement."""
    heap: list[tuple[int, int, int]] = []

    def push_around(i: int, j: int) -> None:
        for x, y in _neighbours(pairs, i, j):
            score = _agreement(pairs, x, y)
            if score:
                heapq.heappush(heap, (-score, x, y))

    for pair in pairs.fresh:
        push_around(*pair)
    pairs.fresh.clear()
    while heap:
        score, i, j = heapq.heappop(heap)
        if not pairs.free(i, j):
            continue
        now = _agreement(pairs, i, j)
        if now != -score:
            heapq.heappush(heap, (-now, i, j))
            continue
        pairs.take(i, j)
        pairs.fresh.clear()
        push_around(i, j)


def _neighbours(pairs: _Pairs, i: int, j: int) -> Iterator[tuple[int, int]]:
    """Unpaired operands at the same position, and unpaired readers at the same position."""
    a, b = pairs.a, pairs.b
    for x, y in zip(a[i].args, b[j].args, strict=False):
        if isinstance(x, tuple) and isinstance(y, tuple) and pairs.free(x[0], y[0]) \
                and a[x[0]].op == b[y[0]].op:
            yield x[0], y[0]
    ours = [u for u in a[i].users if u[0] not in pairs.forward][:_FANOUT]
    theirs = [u for u in b[j].users if u[0] not in pairs.backward][:_FANOUT]
    for x_item, x_position in ours:
        for y_item, y_position in theirs:
            if x_position == y_position and a[x_item].op == b[y_item].op:
                yield x_item, y_item


def _agreement(pairs: _Pairs, i: int, j: int) -> int:
    """A score: paired neighbours at equal positions, equal literals, attributes, types and cones; 0
    without a paired neighbour or an equal literal."""
    a, b = pairs.a[i], pairs.b[j]
    score = 0
    for x, y in zip(a.args, b.args, strict=False):
        if isinstance(x, tuple) and isinstance(y, tuple):
            score += 4 * (pairs.forward.get(x[0]) == y[0] and x[1] == y[1])
        else:
            score += x == y
    theirs = {(u, position) for u, position in b.users}
    score += sum(4 for u, position in a.users
                 if (pairs.forward.get(u), position) in theirs)
    if score == 0:
        return 0
    (below_a, above_a), (below_b, above_b) = pairs.cones_a[i], pairs.cones_b[j]
    return score + (a.attrs == b.attrs) + (a.types == b.types) + 2 * (
        (below_a == below_b) + (above_a == above_b))


def _bridge(pairs: _Pairs) -> None:
    """Pair what a paired item needs with the nearest item like it on the other side, beyond nodes
    that only one side has: a quantised layer reads its inputs through many."""
    order = list(pairs.forward)
    at = 0
    while at < len(order):
        i = order[at]
        j, at = pairs.forward[i], at + 1
        for p, q in zip(pairs.a[i].args, pairs.b[j].args, strict=False):
            if not isinstance(p, tuple) or not isinstance(q, tuple):
                continue
            while (beyond := _beyond(pairs, p[0], q[0])) is not None:
                pairs.take(*beyond)
                _spread(pairs)
                order += list(islice(pairs.forward, len(order), None))


def _beyond(pairs: _Pairs, x: int, y: int) -> tuple[int, int] | None:
    """Of the unpaired items that x and y need, themselves included, the two that are most alike,
    and of equals the nearest."""
    theirs = list(_unpaired(pairs.b, y, pairs.backward))
    match = [(like, -m - n, i, j) for m, i in enumerate(_unpaired(pairs.a, x, pairs.forward))
             for n, j in enumerate(theirs) if (like := _alike(pairs, i, j, _DEPTH))]
    return max(match)[2:] if match else None


def _alike(pairs: _Pairs, i: int, j: int, depth: int) -> int:
    """How many items are alike here and above, by their labels and shapes."""
    a, b = pairs.a[i], pairs.b[j]
    if a.label != b.label or [t.shape for t in a.types] != [t.shape for t in b.types]:
        return 0
    above = ((x[0], y[0]) for x, y in zip(a.args, b.args, strict=False)
             if depth and isinstance(x, tuple) and isinstance(y, tuple))
    return 1 + sum(_alike(pairs, x, y, depth - 1) for x, y in above)


def _unpaired(items: Sequence[Item], start: int, paired: Mapping[int, int]) -> Iterator[int]:
    """`start` and what it needs through unpaired items only, the nearest first."""
    seen, queue = {start}, deque([start])
    while queue:
        at = queue.popleft()
        if at in paired:
            continue
        yield at
        for arg in items[at].args:
            if isinstance(arg, tuple) and arg[0] not in seen and len(seen) < _REACH:
                seen.add(arg[0])
                queue.append(arg[0])


def _match_leftovers(pairs: _Pairs) -> None:
    """Pair items of different ops if all their operands and all their readers are paired."""
    def place(items: Sequence[Item], at: int, to: Callable[[int], object]) -> object | None:
        item = items[at]
        args = tuple((to(x[0]), x[1]) for x in item.args if isinstance(x, tuple))
        users = tuple(sorted((str(to(u)), position) for u, position in item.users))
        unknown = any(p[0] is None for p in args) or any(u[0] == "None" for u in users)
        return None if unknown or not users or not args else (args, users)

    def theirs(j: int) -> object:
        return j if j in pairs.backward else None

    places: dict[object, int] = {}
    for i in range(len(pairs.a)):
        if i not in pairs.forward and (key := place(pairs.a, i, pairs.forward.get)) is not None:
            places[key] = i
    for j in range(len(pairs.b)):
        if j not in pairs.backward:
            key = place(pairs.b, j, theirs)
            partner = places.pop(key, None) if key is not None else None
            if partner is not None:
                pairs.take(partner, j)
