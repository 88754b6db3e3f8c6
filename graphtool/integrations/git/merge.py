"""The three-way merge of graph files, by the nodes that correspond to each other.

Names, order and line breaks do not count. What both sides change, differently, is a conflict; so is
a node that one side removes and the other changes or reads. Fusion groups, choices and history
belong to one state of the graph: where both sides changed the graph they are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import Any

import msgspec

from graphtool.errors import InputError
from graphtool.integrations.git.identity import Key, MergeRecord, MergeSide, sides
from graphtool.io import files
from graphtool.ir import serial
from graphtool.ir.graph import Module
from graphtool.ir.records import GraphFile

_TABLES = ("groups", "history", "choices")


class Merge(msgspec.Struct):
    """A merged graph as text, or the reasons why there is none."""

    text: str
    conflicts: list[str]
    dropped: list[str]  # tables that were left out


def merge(base: bytes, ours: bytes, theirs: bytes) -> Merge:
    """The merge of two descendants of a graph file. Raises InputError for a file that cannot be
    read."""
    o, a, b = sides(base, ours, theirs)
    merger = _Merger(o, a, b)
    rows = merger.rows()
    if merger.conflicts:
        return Merge("", merger.conflicts, [])
    try:
        module = serial.of_rows(rows, "the merged graph")
    except InputError as error:
        conflicts = ", ".join(error.where.splitlines()[1:])
        return Merge("", [f"together the changes make no graph: {error.message}"
                          + (f" ({conflicts})" if conflicts else "")], [])
    return Merge(_text(module, rows), [], merger.dropped)


def _text(module: Module, rows: GraphFile) -> str:
    return serial.dumps(module, rows.weights)


class _Merger:
    def __init__(self, o: MergeSide, a: MergeSide, b: MergeSide) -> None:
        self.o, self.a, self.b = o, a, b
        self.conflicts: list[str] = []
        self.dropped: list[str] = []
        self.locations: dict[str, dict[str, Any]] = {}
        self.moved: dict[str, str] = {}  # ids of locations that B's nodes have now

    def rows(self) -> GraphFile:
        """The merged rows, the types of nodes left open; not to be used if there are conflicts."""
        keys = dict.fromkeys((*self.order(), *self.o.records))  # removed ones may conflict too
        merged = {k: r for k in keys if (r := self.record(k)) is not None}
        self.check(merged)
        records = {} if self.conflicts else _sorted(merged)
        names = self.names(records)
        self.merge_locations()
        raw = msgspec.to_builtins(self.a.file)
        raw |= {"weights": self.a.file.weights or self.b.file.weights,
                "meta": self.table("meta", self.a.file.meta),
                "symbols": self.table("the dim", {})}
        if self.conflicts:
            return self.a.file
        ports = {(k, i): n for k, merged in names.items() for i, n in enumerate(merged)}
        regions: list[Any] = []

        def built(kind: str) -> list[Any]:
            return [r.row(names[k], ports, self.at(k), regions) for k, r in records.items()
                    if r.kind == kind]
        raw |= {"inputs": built("input"), "params": built("param"), "nodes": built("node")}
        raw |= {"outputs": [{"name": row["name"], "value": ports[row["value"]],
                             "donates": ports[row["donates"]] if row["donates"] else ""}
                            for row in self.outputs()],
                "regions": regions, "locations": list(self.locations.values()),
                "requires": self.requires()}
        both = [*raw["assumes"], *msgspec.to_builtins(self.b.file.assumes)]
        raw["assumes"] = [r for i, r in enumerate(both) if r not in both[:i]]
        raw["modules"] = [*{r.id: r for r in (*self.b.file.modules, *self.a.file.modules)}.values()]
        for table in _TABLES:
            if raw[table]:
                self.dropped.append(table)
            raw[table] = []
        return msgspec.convert(raw, GraphFile)

    def conflict(self, text: str) -> None:
        if text not in self.conflicts:
            self.conflicts.append(text)

    def three(self, o: Any, a: Any, b: Any, what: str,
              said: Callable[[Any], str] | None = None) -> Any:
        """The value that at most one side changed; a conflict about `what` if both did."""
        if a == b or b == o:
            return a
        if a != o:
            said = said or _short
            self.conflict(f"{what}: {said(a)} on our side, {said(b)} on theirs")
        return b

    def order(self) -> list[Key]:
        """Ours in our order; what is new on their side stands behind what it follows there."""
        out = list(self.a.records)
        at = 0
        for key in self.b.records:
            if key not in self.a.records and key not in self.o.records:
                out.insert(at, key)
            if key in out:
                at = out.index(key) + 1
        return out

    def record(self, key: Key) -> MergeRecord | None:
        """The merged record of a node; None if a side removed it."""
        o, a, b = (s.records.get(key) for s in (self.o, self.a, self.b))
        if o is None:
            return a or b
        if a is None or b is None:
            left = a or b
            if left is not None and left.content != o.content:
                gone, kept = ("our", "theirs") if a is None else ("their", "ours")
                self.conflict(f"{o.name}: removed on {gone} side, changed on {kept}")
            return None
        what = self.three(o.what, a.what, b.what, o.name, _op)
        data = self.three(o.data, a.data, b.data, f"the data of {o.name}")
        if not len(o.args) == len(a.args) == len(b.args):
            args = self.three(o.args, a.args, b.args, f"the operands of {o.name}")
        else:
            args = tuple(self.three(x, y, z, f"operand {i} of {o.name}") for i, (x, y, z) in
                         enumerate(zip(o.args, a.args, b.args, strict=True)))
        origin = a if what == a.what else b
        return msgspec.structs.replace(origin, what=what, data=data, args=args)

    def check(self, records: Mapping[Key, MergeRecord]) -> None:
        """What is read exists."""
        for r in records.values():
            for x in r.args:
                if isinstance(x, tuple) and x[0] not in records:
                    self.conflict(f"{r.name} reads {self.told(x[0])}, which the other side "
                                  "removed")
        for row in self.outputs():
            if (key := row["value"][0]) not in records:
                self.conflict(f"the output {row['name']} is {self.told(key)}, which the other side "
                              "removed")

    def told(self, key: Hashable) -> str:
        return next(s.records[key].name for s in (self.o, self.a, self.b) if key in s.records)

    def names(self, records: Mapping[Key, MergeRecord]) -> dict[Key, list[str]]:
        """The names of each record's values: what a side has renamed is renamed; all differ."""
        out: dict[Key, list[str]] = {}
        taken: set[str] = set()
        for key in records:
            o, a, b = (s.names.get(key) for s in (self.o, self.a, self.b))
            merged = (a if b is None or b == o or a != o else b) if a is not None else b
            assert merged is not None
            out[key] = [_free(n, taken) for n in merged]
        return out

    def merge_locations(self) -> None:
        """Ours, then those of their new nodes, under a free id if ours means another place."""
        ours, theirs = self.a.locations, self.b.locations
        base = self.o.locations
        self.locations = {k: theirs[k] if base.get(k) == v and k in theirs else v
                          for k, v in ours.items()}
        for key, row in theirs.items():
            if self.locations.get(key, row) == row or base.get(key) == row:
                self.locations.setdefault(key, row)
                continue
            name = _free(key, set(self.locations))
            self.moved[key], self.locations[name] = name, row | {"id": name}

    def at(self, key: Key) -> str:
        """The id of a node's place: ours, unless only their side has the node or has moved it."""
        o, a, b = (s.places.get(key) for s in (self.o, self.a, self.b))
        if a is None or (b is not None and a == o and b != o):
            return self.moved.get(b or "", b or "")
        return a

    def table(self, what: str, otherwise: Mapping[str, Any]) -> dict[str, Any]:
        """The merged `meta` (ours where both changed it) or, else, the symbols."""
        o, a, b = (s.file.meta if what == "meta" else msgspec.to_builtins(s.file.symbols)
                   for s in (self.o, self.a, self.b))
        out = {}
        for k in {**a, **b}:
            x, y, z = o.get(k), a.get(k), b.get(k)
            kept = otherwise[k] if what == "meta" and k in otherwise and y != x else (
                self.three(x, y, z, f"{what} {k}"))
            if kept is not None:
                out[k] = kept
        return out

    def outputs(self) -> list[dict[str, Any]]:
        """The outputs, with keys for values; position by position if their number is the same."""
        o, a, b = self.o.outputs, self.a.outputs, self.b.outputs
        if not len(o) == len(a) == len(b):
            return list(self.three(o, a, b, "the outputs"))
        return [{k: self.three(x.get(k), y.get(k), z.get(k), f"{k} of the output {y['name']}")
                 for k in y} for x, y, z in zip(o, a, b, strict=True)]

    def requires(self) -> list[Any]:
        o, a, b = (s.file.requires for s in (self.o, self.a, self.b))
        return [*(r for r in a if r in b or r not in o), *(r for r in b if r not in (*a, *o))]


def _sorted(records: Mapping[Key, MergeRecord]) -> dict[Key, MergeRecord]:
    """The records in the same order as far as each stands behind what it reads; without those of
    a cycle, which the reader then misses."""
    out: dict[Key, MergeRecord] = {}
    open_: set[Key] = set()
    for first in records:
        stack = [first]
        while stack:
            key = stack[-1]
            reads = [x[0] for x in records[key].args if isinstance(x, tuple)]
            todo = [k for k in reads if k not in out and k not in open_]
            open_.add(key)
            if todo:
                stack += reversed(todo)
                continue
            stack.pop()
            out.setdefault(key, records[key])
    return out


def _free(name: str, taken: set[str]) -> str:
    """The name, or with a number that makes it new; it is taken from now on."""
    unique, i = name, 2
    while unique in taken:
        unique, i = f"{name}#{i}", i + 1
    taken.add(unique)
    return unique


def _short(x: Any) -> str:
    text = "nothing" if x is None else x if isinstance(x, str) else files.compact(x)
    return text if len(text) <= 80 else f"{text[:77]}…"


def _op(what: str) -> str:
    """What a record is, for a person: of a node the op, and its attributes if it has any."""
    raw = msgspec.json.decode(what) if what else {}
    if "op" not in raw:
        return _short(what)
    attrs = raw["attrs"]
    return _short(raw["op"] + (f" with {files.compact(attrs)}" if attrs else ""))
