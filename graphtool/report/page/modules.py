"""The modules of a graph: a tree by the paths of its nodes, in sizes that a person can look at."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field

MOST = 120  # items of a module; of more, parts are made
PART = 60
Path = tuple[str, ...]


@dataclass
class Group:
    """A module: its path, the modules in it, its own nodes."""

    path: Path
    name: str
    key: str = ""
    kind: str = ""  # the author's class
    rises: bool = False  # it is drawn from the bottom to the top
    nodes: list[int] = field(default_factory=list)
    groups: list[Group] = field(default_factory=list)

    def members(self) -> list[int]:
        """The nodes in it and below."""
        return [*self.nodes, *(i for g in self.groups for i in g.members())]

    def size(self, without: Set[int] = frozenset()) -> int:
        """The number of nodes in it and below."""
        return len(set(self.nodes) - without) + sum(g.size(without) for g in self.groups)

    def all(self) -> Iterator[Group]:
        """The module and those in it, each before those in it."""
        yield self
        for g in self.groups:
            yield from g.all()


def grouped(paths: Mapping[int, Path]) -> Group:
    """The tree of modules of some nodes, in the order of their first nodes."""
    root = Group((), "")
    found: dict[Path, Group] = {(): root}
    for i, path in paths.items():
        for depth in range(1, len(path) + 1):
            part = path[:depth]
            if part not in found:
                found[part] = Group(part, part[-1])
                found[part[:-1]].groups.append(found[part])
        found[path].nodes.append(i)
    _tidy(root)
    return root


def class_at(at: str) -> str:
    """The class in a location of torch, `mlp.py:9 MLP.forward`."""
    found = re.search(r" (\w+)\.\w+$", at)
    return found[1] if found else ""


def classes(group: Group, paths: Sequence[Path], owners: Sequence[str],
            around: Set[str] = frozenset()) -> None:
    """Find the class of each module that has nodes of its own beside modules: theirs is it, unless
    a module around it has that class. A module without others in it may be one of torch, whose
    nodes are of the class that calls it."""
    inside = [paths[i] for i in group.members()] or [()]
    path = inside[0][:sum(len(set(words)) == 1 for words in zip(*inside, strict=False))]
    own = {owners[i] for i in group.nodes if paths[i] == path} - around
    if group.path and len(own) == 1 and any(inner != path for inner in inside):
        (group.kind,) = own
    for g in group.groups:
        classes(g, paths, owners, around | own)


def _tidy(group: Group) -> None:
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


def _split(group: Group) -> None:
    """Make parts of consecutive items, so that no level shows more than MOST."""
    items: list[tuple[int, int | Group]] = sorted(
        [*((n, n) for n in group.nodes), *((_first(g), g) for g in group.groups)],
        key=lambda pair: pair[0])
    group.nodes, group.groups = [], []
    for at in range(0, len(items), PART):
        part = items[at:at + PART]
        if len(part) == 1 and isinstance(part[0][1], Group):
            group.groups.append(part[0][1])
            continue
        made = Group(group.path, f"part {at // PART + 1}")
        made.nodes = [x for _, x in part if isinstance(x, int)]
        made.groups = [x for _, x in part if isinstance(x, Group)]
        if len(made.groups) > 1 and not made.nodes:
            made.name = f"{made.groups[0].name} … {made.groups[-1].name}"
        group.groups.append(made)
    if len(group.groups) > MOST:
        _split(group)


def _first(group: Group) -> int:
    return min([*group.nodes, *(_first(g) for g in group.groups)])
