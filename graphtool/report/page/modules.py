"""The modules of a graph: a tree by the paths of its nodes, in sizes that a person can look at.

A module that is called several times becomes one module for each call: a pooling between three
blocks is read by each and reads each, and as one box it would have edges up and down.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field

MOST = 120  # items of a module; of more, parts are made
PART = 60
Path = tuple[str, ...]


@dataclass
class ModuleGroup:
    """A module: its path, the modules in it, its own nodes."""

    path: Path
    name: str
    key: str = ""
    kind: str = ""  # the author's class
    rises: bool = False  # it is drawn from the bottom to the top
    nodes: list[int] = field(default_factory=list)
    groups: list[ModuleGroup] = field(default_factory=list)

    def members(self) -> list[int]:
        """The nodes in it and below."""
        return [*self.nodes, *(i for g in self.groups for i in g.members())]

    def size(self, without: Set[int] = frozenset()) -> int:
        """The number of nodes in it and below."""
        return len(set(self.nodes) - without) + sum(g.size(without) for g in self.groups)

    def all(self) -> Iterator[ModuleGroup]:
        """The module and those in it, each before those in it."""
        yield self
        for g in self.groups:
            yield from g.all()


def grouped(paths: Mapping[int, Path]) -> ModuleGroup:
    """The tree of modules of some nodes, in the order of their first nodes."""
    root = ModuleGroup((), "")
    groups: dict[Path, ModuleGroup] = {(): root}
    for i, path in paths.items():
        for depth in range(1, len(path) + 1):
            part = path[:depth]
            if part not in groups:
                groups[part] = ModuleGroup(part, part[-1])
                groups[part[:-1]].groups.append(groups[part])
        groups[path].nodes.append(i)
    _tidy(root)
    return root


def classes(group: ModuleGroup, paths: Sequence[Path], known: Mapping[str, str], above: Path = ()
            ) -> dict[int, str]:
    """Find the class of each module by its path in `known`, and return the paths of the other
    known modules, which were dissolved into single nodes, by these nodes."""
    inside = [paths[i] for i in group.members()] or [()]
    shared = inside[0][:sum(len(set(words)) == 1 for words in zip(*inside, strict=False))]
    here = _dotted(group.path).endswith(group.name.partition(" ")[0])  # it was not joined with one
    found = next((path for path in (shared, *([group.path] if here else []))
                  if path == shared[:len(path)] and path != above and _dotted(path) in known), ())
    group.kind = known.get(_dotted(found), "")
    alone = {i: _dotted(paths[i]) for i in group.nodes
             if paths[i] not in (shared, found, above) and _dotted(paths[i]) in known}
    for g in group.groups:
        alone |= classes(g, paths, known, found or above)
    return alone


def _dotted(path: Path) -> str:
    """A path as the author writes it, without the number of the call."""
    return ".".join(re.sub(r"#\d+$", "", word) for word in path)


def _tidy(group: ModuleGroup) -> None:
    """Dissolve modules of one node, join a module with the only one in it, split large ones."""
    kept = []
    for g in group.groups:
        _tidy(g)
        while not g.nodes and len(g.groups) == 1:
            (only,) = g.groups
            g.name, g.nodes, g.groups = f"{g.name}.{only.name}", only.nodes, only.groups
        if g.size() < 2:
            group.nodes += g.nodes
        else:
            kept.append(g)
    group.groups, group.nodes = kept, sorted(group.nodes)
    if len(group.nodes) + len(group.groups) > MOST:
        _split(group)


def _split(group: ModuleGroup) -> None:
    """Make parts of consecutive items, so that no level shows more than MOST."""
    items: list[tuple[int, int | ModuleGroup]] = sorted(
        [*((n, n) for n in group.nodes), *((_first(g), g) for g in group.groups)],
        key=lambda pair: pair[0])
    group.nodes, group.groups = [], []
    for at in range(0, len(items), PART):
        part = items[at:at + PART]
        if len(part) == 1 and isinstance(part[0][1], ModuleGroup):
            group.groups.append(part[0][1])
            continue
        chunk = ModuleGroup(group.path, f"part {at // PART + 1}")
        chunk.nodes = [x for _, x in part if isinstance(x, int)]
        chunk.groups = [x for _, x in part if isinstance(x, ModuleGroup)]
        if len(chunk.groups) > 1 and not chunk.nodes:
            chunk.name = f"{chunk.groups[0].name} … {chunk.groups[-1].name}"
        group.groups.append(chunk)
    if len(group.groups) > MOST:
        _split(group)


def _first(group: ModuleGroup) -> int:
    return min([*group.nodes, *(_first(g) for g in group.groups)])


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
