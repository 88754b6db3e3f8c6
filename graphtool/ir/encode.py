"""Module → the lines of its JSON text: fixed key order, one node on a line, always the same."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from graphtool.dtypes import DType, string
from graphtool.io import files
from graphtool.io.values import number, size_text, symbol_bounds, table
from graphtool.io.versions import GRAPH
from graphtool.io.weights import Weight
from graphtool.ir.graph import (
    Graph,
    Group,
    Module,
    Node,
    Operand,
    TensorType,
    Value,
    is_constant,
    own_names,
)
from graphtool.ir.plan import Plan
from graphtool.ir.requires import meta_with_plugins
from graphtool.ir.run_sizes import defined, definitions
from graphtool.ir.text import shown_attrs, value_names
from graphtool.symbolic import Poly, text

INLINE = 16  # elements up to which a constant stands in the JSON itself


def inline(w: Weight) -> bool:
    """Whether the constant is written in the JSON text itself, as strings always are."""
    return w.size <= INLINE or w.dtype is string


def data_row(w: Weight, embed: bool) -> dict[str, Any]:
    """A constant's elements; for a large one its digest, or with `embed` its bytes as base64."""
    if inline(w):
        return {"value": [number(x) for x in w.source.reshape(-1)]}
    if embed:
        return {"data": "base64:" + base64.b64encode(w.stored.tobytes()).decode()}
    return {"data": w.digest}


def dumps(module: Module, weights_name: str = "", embed: bool = False) -> str:
    """The module as text. With `embed`, large constants stand in it as base64."""
    writer = _Writer(module, embed)
    names = value_names(module.graph)
    params, nodes = writer.body(module.graph, names)
    donated = {out: names[module.graph.inputs[i]] for out, i in module.donations}
    outputs = [{"name": name, "value": names[v]} | ({"donates": donated[i]} if i in donated else {})
               for i, (name, v) in enumerate(zip(module.output_names, module.graph.outputs,
                                                 strict=True))]
    head = [
        *(f'"{k}": {files.compact(v)}' for k, v in GRAPH.head.items()),
        f'"meta": {files.compact(meta_with_plugins(module))}',
        f'"weights": {files.compact(weights_name)}',
        '"symbols": ' + files.compact({s.name: symbol_bounds(s) for s in module.symbols.values()}
                                      | _sizes(module.graph)),
    ]
    initial = {i: data_row(w, embed) for i, w in module.initial.items()}
    inputs = [_input_row(v, names) | initial.get(i, {})
              for i, v in enumerate(module.graph.inputs)]
    tables: list[tuple[str, list[Any]]] = [
        ("inputs", inputs), ("params", params), ("nodes", nodes), ("outputs", outputs),
        ("regions", writer.regions),
        ("groups", [_group_row(g, names) for g in module.graph.groups]),
        ("locations", [{"id": k, "at": v.at} | ({"text": v.text} if v.text else {})
                       for k, v in module.locations.items()])]
    if module.history:
        tables.append(("history", [{"id": k, "rules": list(v)}
                                   for k, v in module.history.items()]))
    if writer.choices:
        tables.append(("choices", writer.choices))
    if module.requires:
        tables.append(("requires", [[size_text(e.left), size_text(e.right)]
                                    for e in module.requires]))
    if module.kept:
        tables.append(("kept", [{"id": n, "type": str(TensorType(w.dtype, w.shape))}
                                | data_row(w, embed) for n, w in module.kept.items()]))
    if module.assumes:
        tables.append(("assumes", [*map(asdict, module.assumes)]))
    if module.modules:
        tables.append(("modules", [{"id": k, "class": v} for k, v in module.modules.items()]))
    head += [f'"{name}": {table([*map(files.compact, rows)])}' for name, rows in tables]
    return "{" + ",\n".join(head) + "\n}\n"


def _sizes(graph: Graph) -> dict[str, Any]:
    """The symbols that nodes define."""
    defined_sizes = [s for n in definitions(graph).values() if (s := defined(n)) is not None]
    return {s.name: {"min": s.lo, "max": s.hi, "defined": True} for s in defined_sizes}


def _input_row(v: Value, names: Mapping[Value, str]) -> dict[str, Any]:
    return {"id": names[v], "type": str(v.type)}


def _group_row(g: Group, names: Mapping[Value, str]) -> dict[str, Any]:
    return {"id": f"fuse.{names[g.root]}", "root": names[g.root],
            "members": [names[n.outputs[0]] for n in g.members], "kind": g.kind}


class _Writer:
    def __init__(self, module: Module, embed: bool) -> None:
        self.module, self.embed = module, embed
        self.regions: list[dict[str, Any]] = []
        self.choices: list[dict[str, Any]] = []

    def body(self, graph: Graph, names: Mapping[Value, str], region: str = ""
             ) -> tuple[list[Any], list[Any]]:
        params = [self.param(n, names) for n in graph.nodes if is_constant(n)]
        nodes = [self.node(n, names, region) for n in graph.nodes if not is_constant(n)]
        return params, nodes

    def param(self, node: Node, names: Mapping[Value, str]) -> dict[str, Any]:
        w: Weight = node.attrs["data"]
        row: dict[str, Any] = {"id": names[node.outputs[0]], "type": str(node.outputs[0].type)}
        row |= data_row(w, self.embed)
        if node.attrs["param"]:
            row["trainable"] = True
        return row | _origin(node)

    def node(self, node: Node, names: Mapping[Value, str], region: str) -> dict[str, Any]:
        ids = [names[v] for v in node.outputs]
        choice = self.module.choices.get(node.outputs[0]) if node.outputs else None
        if choice is not None:
            self.choices.append({"id": region + ids[0], **asdict(choice)})
        types = [str(v.type) for v in node.outputs]
        row: dict[str, Any] = {
            "id": ids[0] if len(ids) == 1 else ids, "op": node.op.name,
            "in": [names[x] if isinstance(x, Value) else _literal(x) for x in node.inputs]}
        place = f"{region}{ids[0]}"
        if attrs := {k: self.attr(v, f"{place}.{k}") for k, v in shown_attrs(node).items()}:
            row["attrs"] = attrs
        row["type"] = types[0] if len(types) == 1 else types
        return row | _origin(node)

    def attr(self, x: Any, place: str) -> Any:
        match x:
            case Graph():
                names = value_names(x)
                row: dict[str, Any] = {"id": place,
                                       "inputs": [_input_row(v, names) for v in x.inputs]}
                self.regions.append(row)
                row["params"], row["nodes"] = self.body(x, names, f"{place}/")
                row["outputs"] = [names[v] for v in x.outputs]
                return place
            case tuple():
                return [self.attr(i, place) for i in x]
            case Weight():
                return {"type": str(TensorType(x.dtype, x.shape)),
                        "value": [number(i) for i in x.source.reshape(-1)]}
            case _:
                return plain(x)


def plain_attrs(node: Node) -> dict[str, Any] | None:
    """The attributes that differ from their defaults, as JSON has them, without regions; None if
    one of them is an array."""
    out = {k: plain(v) for k, v in shown_attrs(node).items() if not isinstance(v, Graph)}
    return None if any(v is None for v in out.values()) else out


def plain(x: Any) -> Any:
    """An attribute or a literal as JSON has it; None for what is more than a value."""
    match x:
        case DType():
            return x.short
        case float():
            return files.tagged_float(x)
        case Plan():
            return {"kind": x.kind, **dict(x.parameters)}
        case tuple():
            items = [plain(i) for i in x]
            return None if any(i is None for i in items) else items
        case Poly():
            return text(x)
        case bool() | int() | str():
            return x
    return None


def _origin(node: Node) -> dict[str, Any]:
    of = {"of": list(node.of)} if own_names(node) else {}
    return of | ({"at": node.where} if node.where else {})


def _literal(x: Operand) -> Any:
    if isinstance(x, float) and isinstance(tagged := files.tagged_float(x), str):
        return {"value": tagged}
    return x
