"""The JSON Schema of a graph file: its head, the names of the ops, and each op's attributes."""

from __future__ import annotations

from types import NoneType, UnionType
from typing import Any, Literal, get_args, get_origin

from graphtool.dtypes import TABLE, DType
from graphtool.io.versions import GRAPH
from graphtool.io.weights import Weight
from graphtool.ir.graph import Graph
from graphtool.ir.op import OPS, Op
from graphtool.ir.plan import Plan
from graphtool.symbolic import Poly

Schema = dict[str, Any]
_PLAIN: dict[Any, Schema] = {
    int: {"type": "integer"}, bool: {"type": "boolean"}, str: {"type": "string"},
    NoneType: {"type": "null"}, Any: {},
    float: {"anyOf": [{"type": "number"}, {"enum": ["nan", "inf", "-inf"]}]},
    Poly: {"type": "string", "description": "a size such as 2*batch + 1"},
    Graph: {"type": "string", "description": "the id of a region"},
    DType: {"$ref": "#/$defs/dtype"}, Plan: {"$ref": "#/$defs/plan"},
    Weight: {"type": "object"}}


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
