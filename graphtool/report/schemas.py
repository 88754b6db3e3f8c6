"""The JSON Schema of every artifact and report, made from the types that write and read them.

That of a graph file also has the names of the ops and the attributes of each.
"""

from __future__ import annotations

import inspect
from dataclasses import is_dataclass
from types import NoneType, UnionType
from typing import Any, Literal, get_args, get_origin

import msgspec

from graphtool.dtypes import TABLE, DType
from graphtool.io import files
from graphtool.io.manifest_rows import Manifest
from graphtool.io.versions import GRAPH
from graphtool.io.weights import Weight
from graphtool.ir.graph import Graph
from graphtool.ir.op import OPS, Op
from graphtool.ir.plan import Plan
from graphtool.ir.serial import GraphFile
from graphtool.kernels.choice.tuning import Row
from graphtool.loops.records import ProgramFile
from graphtool.machines import Machine
from graphtool.package.record import Packaged
from graphtool.passes.journal import Event
from graphtool.report.bench import Base, Bench
from graphtool.report.build_diff import BuildDiff
from graphtool.report.captures import Captures
from graphtool.report.catalog import Ops, Passes
from graphtool.report.diff import Diff
from graphtool.report.doctor import Doctor
from graphtool.report.git import GitStatus, HookReport, Review
from graphtool.report.lineage import Lineage
from graphtool.report.lint import Lint
from graphtool.report.listing import FxListing, Listing
from graphtool.report.modules import ModuleTable
from graphtool.report.profile import Profile
from graphtool.report.quantised import QuantiseReport
from graphtool.report.size import SizeReport
from graphtool.report.stats import Stats
from graphtool.report.summary import Summary
from graphtool.report.support import Support
from graphtool.report.why import WhyNot, WhyReport
from graphtool.symbolic import Poly
from graphtool.tune.search import TuneReport

Schema = dict[str, Any]
_PLAIN: dict[Any, Schema] = {
    int: {"type": "integer"}, bool: {"type": "boolean"}, str: {"type": "string"},
    NoneType: {"type": "null"}, Any: {},
    float: {"anyOf": [{"type": "number"}, {"enum": ["nan", "inf", "-inf"]}]},
    Poly: {"type": "string", "description": "a size such as 2*batch + 1"},
    Graph: {"type": "string", "description": "the id of a region"},
    DType: {"$ref": "#/$defs/dtype"}, Plan: {"$ref": "#/$defs/plan"},
    Weight: {"type": "object"}}
_WIDTH = 120
TYPES: dict[str, Any] = {
    "graph": GraphFile, "program": ProgramFile, "build": Manifest, "stats": Stats,
    "size": SizeReport,
    "listing": Listing, "modules": ModuleTable, "fx-listing": FxListing, "diff": Diff, "ops": Ops,
    "passes": Passes,
    "build-diff": BuildDiff, "support": Support, "lint": Lint,
    "doctor": Doctor, "bench": Bench, "profile": Profile, "tune": TuneReport,
    "tuning": Row, "machine": Machine, "why": WhyReport, "why-not-fused": WhyNot,
    "captures": Captures, "quantise": QuantiseReport, "git-status": GitStatus,
    "git-check": HookReport, "review": Review, "bench-base": Base, "package": Packaged,
    "journal": Event, "lineage": Lineage, "report": Summary}


def constrain(parts: dict[str, Schema]) -> None:
    """Add the constraints of the op registry and of the format's version to the schemas in
    `parts`."""
    head = parts["GraphFile"]["properties"]
    for name, value in GRAPH.head.items():
        head[name] = {"const": value}
    parts["dtype"] = {"enum": [row.short for row in TABLE]}
    parts["plan"] = {"type": "object", "properties": {"kind": {"type": "string"}},
                     "required": ["kind"], "additionalProperties": {"type": "integer"}}
    node = parts["NodeRow"]
    node["properties"]["op"] = {"enum": sorted(OPS)}
    for op in _with_attributes():
        parts[f"attributes of {op.name}"] = attributes(op)
    bare = sorted(set(OPS) - {op.name for op in _with_attributes()})
    node["allOf"] = [_rule(op) for op in _with_attributes()] + [
        {"if": {"properties": {"op": {"enum": bare}}},
         "then": {"properties": {"attrs": {"maxProperties": 0}}}}]


def _with_attributes() -> list[Op]:
    return [OPS[name] for name in sorted(OPS) if OPS[name].schema]


def _rule(op: Op) -> Schema:
    """The schema of the attributes of one op's nodes; `attrs` is required if one has no default."""
    then: Schema = {"properties": {"attrs": {"$ref": f"#/$defs/attributes of {op.name}"}}}
    if any(a.required for a in op.schema.values()):
        then["required"] = ["attrs"]
    return {"if": {"properties": {"op": {"const": op.name}}}, "then": then}


def attributes(op: Op) -> Schema:
    """The schema of an op's attributes, as an object."""
    return {"type": "object",
            "properties": {a.name: annotated(a.annotation) for a in op.schema.values()},
            "required": [a.name for a in op.schema.values() if a.required],
            "additionalProperties": False}


def annotated(a: Any) -> Schema:
    """The schema of the JSON value of an annotated type."""
    args = get_args(a)
    if isinstance(a, UnionType):
        return {"anyOf": [annotated(x) for x in args]}
    if get_origin(a) is Literal:
        return {"enum": list(args)}
    if get_origin(a) is not tuple:
        return _PLAIN[NoneType if a is None else a]
    if len(args) == 2 and args[1] is ...:
        return {"type": "array", "items": annotated(args[0])}
    return {"type": "array", "prefixItems": [annotated(x) for x in args], "items": False,
            "minItems": len(args)}


def schema_text(name: str, type: Any) -> str:
    """The text of schemas/NAME.schema.json."""
    (schema,), parts = msgspec.json.schema_components([type], ref_template="#/$defs/{name}")
    for part in parts.values() if is_dataclass(type) else ():  # `decode` takes no unknown field
        part["additionalProperties"] = False
    if type is GraphFile:
        constrain(parts)
    for part in parts.values():
        if "description" in part:
            part["description"] = _plain_text(part["description"])
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema",
            "title": f"graphtool {name}", **schema, "$defs": parts}
    return _lines(head, 0) + "\n"


def _plain_text(docstring: str) -> str:
    """A docstring without the indentation and line breaks of the source: one line a paragraph."""
    paragraphs = inspect.cleandoc(docstring).split("\n\n")
    return "\n\n".join(" ".join(p.split()) for p in paragraphs)


def _lines(x: Any, indent: int) -> str:
    """JSON with an object or array on one line if it fits."""
    line = files.compact(x)
    if len(line) + indent <= _WIDTH or not isinstance(x, (dict, list)):
        return line
    margin = "\n" + " " * (indent + 1)
    items = [f"{files.compact(k)}: {_lines(v, indent + 1)}" for k, v in x.items()
             ] if isinstance(x, dict) else [_lines(v, indent + 1) for v in x]
    first, last = "{}" if isinstance(x, dict) else "[]"
    return f"{first}{margin}{f',{margin}'.join(items)}\n{' ' * indent}{last}"
