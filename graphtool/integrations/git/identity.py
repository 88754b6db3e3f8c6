"""The nodes of three graph files under common keys, so that a merge can compare them.

A node of the base has its position in it as key on every side; a new one has the key of the side
that made it, and the same key on both sides if both made the same node.
"""

from __future__ import annotations

from typing import Any

import msgspec

from graphtool.io import files
from graphtool.ir import serial
from graphtool.ir.graph import Graph
from graphtool.ir.op import OPS
from graphtool.ir.records import GraphFile
from graphtool.report.align import align
from graphtool.report.flat import Item, flatten

Key = tuple[str, int]
Port = tuple[Key, int]


class MergeRecord(msgspec.Struct, frozen=True):
    """What one row of a graph file says, by keys. `what` is the op and its attributes as JSON, a
    region written out; `data` a constant's type and elements; an operand is a port or a literal as
    JSON."""

    kind: str  # input | param | node
    name: str
    what: str
    data: str
    args: tuple[Port | str, ...]
    of: tuple[str, ...]
    outputs: int

    @property
    def content(self) -> tuple[Any, ...]:
        """All but the names."""
        return self.what, self.data, self.args

    def row(self, names: list[str], ports: dict[Port, str], at: str, regions: list[Any]) -> Any:
        """The row of a graph file; the types of a node are left open. Regions are added to
        `regions`."""
        head: dict[str, Any] = {"id": names[0] if len(names) == 1 else names}
        if self.kind != "node":
            head |= msgspec.json.decode(self.data)
        else:
            raw = msgspec.json.decode(self.what)
            head |= {"op": raw["op"], "type": "" if len(names) == 1 else [""] * len(names),
                     "in": [ports[x] if isinstance(x, tuple) else msgspec.json.decode(x)
                            for x in self.args],
                     "attrs": raw["attrs"] | {k: _add(region, f"{names[0]}.{k}", regions)
                                              for k, region in raw["regions"].items()}}
        if self.kind == "input":
            return head
        return head | ({"of": list(self.of)} if self.of else {}) | ({"at": at} if at else {})


def _add(region: dict[str, Any], name: str, regions: list[Any]) -> str:
    """Add a written-out region, and those inside it, as rows; returns its id."""
    at = len(regions)
    nodes = [{k: v for k, v in n.items() if k != "regions"} | {"attrs": n.get("attrs", {}) | {
        k: _add(r, f"{name}/{n['id'] if isinstance(n['id'], str) else n['id'][0]}.{k}", regions)
        for k, r in n.get("regions", {}).items()}} for n in region["nodes"]]
    regions.insert(at, region | {"id": name, "nodes": nodes})
    return name


class MergeSide:
    """One of the three files: its records by key, in order, and what else the merge compares."""

    def __init__(self, file: GraphFile, items: list[Item], keys: list[Key]) -> None:
        self.file, self.keys = file, keys
        self.records: dict[Key, MergeRecord] = {}
        self.names: dict[Key, list[str]] = {}
        self.places: dict[Key, str] = {}
        self.ports: dict[str, Port] = {}
        self.regions = {r.id: msgspec.to_builtins(r) for r in file.regions}
        rows = self.rows()
        for item, key in zip(items, keys, strict=True):
            if not item.inner and item.op != "return":
                self.define(key, rows[item.name])
        self.locations = {r.id: msgspec.to_builtins(r) for r in file.locations}
        self.outputs = [{"name": r.name, "value": self.ports[r.value],
                         "donates": self.ports[r.donates] if r.donates else None}
                        for r in file.outputs]

    def rows(self) -> dict[str, tuple[str, dict[str, Any]]]:
        """Kind and content of each row, by the name of its first value."""
        out = {}
        for kind, table in (("input", self.file.inputs), ("param", self.file.params),
                            ("node", self.file.nodes)):
            for row in table:
                raw = msgspec.to_builtins(row)
                out[raw["id"] if isinstance(raw["id"], str) else raw["id"][0]] = kind, raw
        return out

    def define(self, key: Key, definition: tuple[str, dict[str, Any]]) -> None:
        """Add the record of a row, and its names, under a key."""
        kind, row = definition
        ids = [row["id"]] if isinstance(row["id"], str) else row["id"]
        self.names[key], self.places[key] = ids, row.get("at", "")
        self.ports |= {name: (key, i) for i, name in enumerate(ids)}
        if kind == "node":
            what = files.compact({"op": row["op"], **self.split(row)})
            args = tuple(self.ports[x] if isinstance(x, str) else files.compact(x)
                         for x in row["in"])
            self.records[key] = MergeRecord(
                kind, ids[0], what, "", args, tuple(row["of"]), len(ids))
        else:
            kept = {k: v for k, v in row.items() if k not in ("id", "of", "at") and v is not None}
            self.records[key] = MergeRecord(kind, ids[0], "", files.compact(kept), (),
                                            tuple(row.get("of", ())), 1)

    def split(self, row: dict[str, Any]) -> dict[str, Any]:
        """A node's attributes without its regions, and the regions written out."""
        schema = OPS[row["op"]].schema
        inner = {k for k in row["attrs"] if k in schema and schema[k].annotation is Graph}
        return {"attrs": {k: v for k, v in row["attrs"].items() if k not in inner},
                "regions": {k: self.region(row["attrs"][k]) for k in row["attrs"] if k in inner}}

    def region(self, name: str) -> dict[str, Any]:
        """A region written out, without its id and the places of its nodes."""
        raw = self.regions[name]
        return {k: v for k, v in raw.items() if k != "id"} | {"nodes": [
            {k: v for k, v in n.items() if k != "at"} | self.split(n) for n in raw["nodes"]]}


def sides(base: bytes, ours: bytes, theirs: bytes) -> tuple[MergeSide, MergeSide, MergeSide]:
    """The three files under common keys. Raises InputError for a file that cannot be read."""
    files_ = [serial.file_of(data, where) for data, where in (
        (base, "the base"), (ours, "our side"), (theirs, "their side"))]
    o, a, b = ([*flatten(serial.of_rows(f, "a side").graph)] for f in files_)
    o_keys: list[Key] = [("o", i) for i in range(len(o))]
    a_keys, b_keys = _keys(o, a, "a"), _keys(o, b, "b")
    left = MergeSide(files_[1], a, a_keys)
    right = MergeSide(files_[2], b, b_keys)
    both = {j: i for i, j in align(a, b).items() if a_keys[i][0] == "a" and b_keys[j][0] == "b"}
    for j, i in sorted(both.items()):  # a node that both sides added in the same way
        if _same(left, a_keys[i], right, b_keys[j]):
            b_keys[j] = a_keys[i]
            right = MergeSide(files_[2], b, b_keys)
    return MergeSide(files_[0], o, o_keys), left, right


def _keys(base: list[Item], items: list[Item], name: str) -> list[Key]:
    matches = {j: i for i, j in align(base, items).items()}
    return [("o", matches[j]) if j in matches else (name, j) for j in range(len(items))]


def _same(left: MergeSide, i: Key, right: MergeSide, j: Key) -> bool:
    ours, theirs = left.records.get(i), right.records.get(j)
    return ours is not None and theirs is not None and ours.content == theirs.content
