"""The differences between two graphs, as few as possible.

Names, order and fusion groups do not count; regions are flattened. Consequences are not reported: a
node whose operand was replaced, or whose type follows from its operands, is not a difference.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Literal

import msgspec

from graphtool.analysis import costs
from graphtool.ir.graph import Module, is_constant
from graphtool.ir.listing import required
from graphtool.ir.run_sizes import all_nodes
from graphtool.report.align import align
from graphtool.report.compiled import cost_of
from graphtool.report.flat import Arg, Item, Port, flatten
from graphtool.report.table import Size, size

Kind = Literal["added", "removed", "changed", "moved", "retyped"]
SIGNS: dict[Kind, str] = {"added": "+", "removed": "-", "changed": "~", "moved": ">",
                          "retyped": "t"}


class Change(msgspec.Struct):
    """One difference. `name` is from the second graph; that of a removed node from the first.
    `where` is the place in the source, as the graph states it."""

    kind: Kind
    name: str
    op: str
    detail: str
    where: str = ""


class Delta(msgspec.Struct):
    """A number in the first and in the second graph. `known`: where it is that of the compiled
    program, or needs none; before fusion, kernels, bytes and memory are at most so many."""

    name: str
    before: Size
    after: Size
    known: tuple[bool, bool] = (True, True)


class Diff(msgspec.Struct, dict=True):  # the Python API adds the graphs, for notebooks to draw
    """All of the report; schemas/diff.schema.json is made from it."""

    equal: bool
    nodes: tuple[int, int]
    changes: list[Change]
    retyped_after: int  # nodes whose type changed because their operands' did
    ops: list[Delta]
    totals: list[Delta]


def diff(a: Module, b: Module) -> Diff:
    """The differences between two modules, compared by structure."""
    left, right = _sourced(a), _sourced(b)
    finder = _Finder(left, right, align(left, right, bridged=True))
    changes = [*_rules(a, b), *finder.changes()]
    ops = _op_deltas(left, right)
    totals = _totals(a, b) if changes else []
    return Diff(not changes, (_count(left), _count(right)), changes, finder.follow, ops, totals)


def _sourced(m: Module) -> list[Item]:
    """The items of a module, each with its place in the source."""
    def at(item: Item) -> str:
        known = m.locations.get(item.where)
        return known.at if known else item.where
    return [replace(item, where=at(item)) for item in flatten(m.graph)]


def _rules(a: Module, b: Module) -> list[Change]:
    """What only one of the modules requires of its sizes."""
    before, after = required(a), required(b)
    return [*(Change("removed", rule, "require", "") for rule in before if rule not in after),
            *(Change("added", rule, "require", "") for rule in after if rule not in before)]


def _count(items: list[Item]) -> int:
    return sum(item.op not in ("input", "region", "return", "constant") for item in items)


class _Finder:
    def __init__(self, a: list[Item], b: list[Item], pairs: dict[int, int]) -> None:
        self.a, self.b, self.pairs = a, b, pairs
        self.back = {j: i for i, j in pairs.items()}
        self.follow = 0

    def changes(self) -> list[Change]:
        """All differences: removed nodes first, then the others in the order of the second
        graph."""
        out = [Change("removed", x.name, x.op, _signature(x), x.where)
               for i, x in enumerate(self.a) if i not in self.pairs]
        for j, y in enumerate(self.b):
            if j not in self.back:
                out.append(Change("added", y.name, y.op, _signature(y), y.where))
            else:
                out += self.pair(self.a[self.back[j]], y)
        return out

    def pair(self, x: Item, y: Item) -> list[Change]:
        """The differences between two paired nodes, changes of attributes in one line."""
        parts = [] if x.op == y.op else [f"{x.op} → {y.op}"]
        parts += [f"{k} {x.attrs.get(k, 'default')} → {y.attrs.get(k, 'default')}"
                  for k in dict.fromkeys((*x.attrs, *y.attrs)) if x.attrs.get(k) != y.attrs.get(k)]
        parts += self.literals(x, y)
        if x.content != y.content:
            parts.append(self.content(x, y))
        if parts:
            return [Change("changed", y.name, y.op, ", ".join(parts), y.where)]
        if moved := self.moved(x, y):
            return [Change("moved", y.name, y.op, moved, y.where)]
        return self.retyped(x, y)

    def content(self, x: Item, y: Item) -> str:
        if x.op == "input":
            return f"{x.content} → {y.content}"
        types = "" if x.types == y.types else f", {_types(x)} → {_types(y)}"
        return f"data {x.content[:15]} → {y.content[:15]}{types}"

    def literals(self, x: Item, y: Item) -> list[str]:
        """Changes of operands that are literals or exist on one side only."""
        out = []
        for i in range(max(len(x.args), len(y.args))):
            p = x.args[i] if i < len(x.args) else "nothing"
            q = y.args[i] if i < len(y.args) else "nothing"
            if p != q and (isinstance(p, str) or isinstance(q, str)):
                out.append(f"operand {i} {self.name(self.a, p)} → {self.name(self.b, q)}")
        return out

    def moved(self, x: Item, y: Item) -> str:
        """Changes of operands that exist in both graphs but are not paired with each other."""
        out = []
        for i, (p, q) in enumerate(zip(x.args, y.args, strict=True)):
            if not isinstance(p, tuple) or not isinstance(q, tuple):
                continue
            same = self.pairs.get(p[0]) == q[0] and p[1] == q[1]
            if not same and p[0] in self.pairs and q[0] in self.back \
                    and not self.through(p, q):
                out.append(f"operand {i} {self.name(self.a, p)} → {self.name(self.b, q)}")
        return ", ".join(out)

    def through(self, p: Port, q: Port) -> bool:
        """Whether q depends on p, or p on q, through added or removed nodes only."""
        return (_reaches(self.b, q, (self.pairs[p[0]], p[1]), self.back)
                or _reaches(self.a, p, (self.back[q[0]], q[1]), self.pairs))

    def retyped(self, x: Item, y: Item) -> list[Change]:
        if x.types == y.types:
            return []
        if any(self.differs(arg) for arg in y.args) or y.op == "region":
            self.follow += 1
            return []
        return [Change("retyped", y.name, y.op, f"{_types(x)} → {_types(y)}", y.where)]

    def differs(self, arg: Arg) -> bool:
        """Whether the operand is new, or its type differs from its counterpart's."""
        if isinstance(arg, str):
            return False
        before = self.back.get(arg[0])
        return before is None or self.a[before].types != self.b[arg[0]].types

    def name(self, items: list[Item], arg: Arg) -> str:
        return arg if isinstance(arg, str) else items[arg[0]].name


def _reaches(items: list[Item], start: Arg, goal: Arg, paired: dict[int, int]) -> bool:
    """Whether `start` depends on `goal` through unpaired nodes only."""
    stack: list[Arg] = [start]
    seen: set[int] = set()
    while stack:
        here = stack.pop()
        if here == goal:
            return True
        if isinstance(here, str) or here[0] in seen or here[0] in paired:
            continue
        seen.add(here[0])
        stack += items[here[0]].args
    return False


def _signature(item: Item) -> str:
    attrs = ", ".join(f"{k}={v}" for k, v in item.attrs.items())
    return f"{_types(item)}" + (f" ({attrs})" if attrs else "")


def _types(item: Item) -> str:
    return ", ".join(map(str, item.types))


def _op_deltas(a: list[Item], b: list[Item]) -> list[Delta]:
    ours, theirs = Counter(x.op for x in a), Counter(y.op for y in b)
    return [Delta(op, ours[op], theirs[op]) for op in sorted({*ours, *theirs})
            if ours[op] != theirs[op]]


def _totals(a: Module, b: Module) -> list[Delta]:
    (left, left_known), (right, right_known) = cost_of(a), cost_of(b)
    known = left_known, right_known
    return [
        Delta("FLOPs", size(costs.total(costs.flops, a.graph)),
              size(costs.total(costs.flops, b.graph))),
        Delta("kernels", left.calls, right.calls, known),
        Delta("bytes moved", size(left.bytes), size(right.bytes), known),
        Delta("weight bytes", _weights(a), _weights(b)),
        Delta("peak memory", size(left.arena), size(right.arena), known)]


def _weights(m: Module) -> int:
    return sum(n.attrs["data"].nbytes for n in all_nodes(m.graph) if is_constant(n))
