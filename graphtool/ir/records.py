"""The rows of a graph file, as msgspec reads them; schemas/graph.schema.json is made from these."""

from __future__ import annotations

from typing import Any

import msgspec

from graphtool.assume import Assumed


class SymbolRow(msgspec.Struct, forbid_unknown_fields=True):
    """A symbol's bounds. `defined`: a node with the attribute `size` defines it; else the shapes of
    the inputs do. Its values are `offset`, `offset + step` and so on."""

    min: int | None = None
    max: int | None = None
    defined: bool = False
    step: int = 1
    offset: int = 0


class InputRow(msgspec.Struct, forbid_unknown_fields=True):
    """An input. `data` or `value` give the first contents of a donated input, if not zero."""

    id: str
    type: str
    data: str | None = None
    value: list[Any] | None = None


class ParamRow(msgspec.Struct, forbid_unknown_fields=True):
    """A constant or a parameter: its type, and its data as a sha256, as base64 text or as
    values."""

    id: str
    type: str
    data: str | None = None
    value: list[Any] | None = None
    trainable: bool = False
    of: list[str] = []  # the author's names of its origins, if they differ from its name
    at: str = ""


class NodeRow(msgspec.Struct, forbid_unknown_fields=True):
    """A node: its op, inputs, attributes and the types of its outputs; `id` is a list for several
    outputs."""

    id: str | list[str]
    op: str
    inputs: list[str | int | float | bool | dict[str, Any] | None] = msgspec.field(name="in")
    type: str | list[str]
    attrs: dict[str, Any] = {}
    of: list[str] = []  # the author's names of its values, if they differ from its name
    at: str = ""


class OutputRow(msgspec.Struct, forbid_unknown_fields=True):
    """An output: its name, the value it returns, and the input whose memory it takes over, if
    any."""

    name: str
    value: str
    donates: str = ""


class GroupRow(msgspec.Struct, forbid_unknown_fields=True):
    """A fusion group: the nodes that one kernel computes, and the root among them."""

    id: str
    root: str
    members: list[str]
    kind: str


class RegionRow(msgspec.Struct, forbid_unknown_fields=True):
    """A region: the graph that an attribute of a control node contains, such as a loop body."""

    id: str
    inputs: list[InputRow]
    params: list[ParamRow]
    nodes: list[NodeRow]
    outputs: list[str]


class LocationRow(msgspec.Struct, forbid_unknown_fields=True):
    """A source location that nodes refer to by its id: file and line, and the text of the line."""

    id: str
    at: str
    text: str = ""


class ModuleRow(msgspec.Struct, forbid_unknown_fields=True):
    """The class that the author gave a module of the source, by the module's path."""

    id: str
    kind: str = msgspec.field(name="class")


class HistoryRow(msgspec.Struct, forbid_unknown_fields=True):
    """The rules that made a value, in order, as `pass.rule`."""

    id: str
    rules: list[str]


class ChoiceRow(msgspec.Struct, forbid_unknown_fields=True):
    """The alternatives of the plan of node `id` (`region/id` in a region): microseconds by plan,
    the chosen one first; `by` is how they were found: by cost or by tuning."""

    id: str
    site: str
    by: str
    us: dict[str, float]


class GraphFile(msgspec.Struct, forbid_unknown_fields=True):
    """The whole file; schemas/graph.schema.json is made from it."""

    format: str
    version: int
    since: str
    meta: dict[str, Any]
    weights: str
    symbols: dict[str, SymbolRow]
    inputs: list[InputRow]
    params: list[ParamRow]
    nodes: list[NodeRow]
    outputs: list[OutputRow]
    regions: list[RegionRow] = []
    groups: list[GroupRow] = []
    locations: list[LocationRow] = []
    history: list[HistoryRow] = []
    choices: list[ChoiceRow] = []
    requires: list[tuple[str | int, str | int]] = []  # pairs of sizes that must be equal
    kept: list[ParamRow] = []  # arrays of the source's state that no node reads
    assumes: list[Assumed] = []  # by the rewrites that made the graph
    modules: list[ModuleRow] = []
