"""`NAME.graph.json`: the module as canonical JSON, one node a line. Read ∘ write is the identity.

Constants of up to a few elements stand inline, larger ones by sha256 in a safetensors file beside.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from pathlib import Path
from typing import Any, get_args, get_origin

import msgspec
import numpy as np

from graphtool import files, weights
from graphtool.dim_parser import parse as parse_dim
from graphtool.dtypes import DType, dtype
from graphtool.errors import InputError
from graphtool.ir.graph import (
    Graph,
    Group,
    Location,
    Module,
    Node,
    Operand,
    TensorType,
    Value,
)
from graphtool.ir.op import Op, complete_attrs, named
from graphtool.ir.text import shown_attrs, value_names
from graphtool.symbolic import Dim, Poly, Symbol, symbol, symbol_of, symbols, text
from graphtool.weights import Weight

FORMAT, VERSION = "graphtool/graph", 1
INLINE = 16  # elements up to which a constant stands in the JSON itself


class SymbolRow(msgspec.Struct, forbid_unknown_fields=True):
    min: int | None = None
    max: int | None = None


class InputRow(msgspec.Struct, forbid_unknown_fields=True):
    """`data` or `value` say what a donated input holds at first, where that is not zero."""

    id: str
    type: str
    data: str | None = None
    value: list[Any] | None = None


class ParamRow(msgspec.Struct, forbid_unknown_fields=True):
    id: str
    type: str
    data: str | None = None
    value: list[Any] | None = None
    trainable: bool = False
    at: str = ""


class NodeRow(msgspec.Struct, forbid_unknown_fields=True):
    id: str | list[str]
    op: str
    inputs: list[str | int | float | bool | dict[str, Any] | None] = msgspec.field(name="in")
    type: str | list[str]
    attrs: dict[str, Any] = {}
    at: str = ""


class OutputRow(msgspec.Struct, forbid_unknown_fields=True):
    name: str
    value: str
    donates: str = ""


class GroupRow(msgspec.Struct, forbid_unknown_fields=True):
    id: str
    root: str
    members: list[str]
    kind: str


class RegionRow(msgspec.Struct, forbid_unknown_fields=True):
    id: str
    inputs: list[InputRow]
    params: list[ParamRow]
    nodes: list[NodeRow]
    outputs: list[str]


class LocationRow(msgspec.Struct, forbid_unknown_fields=True):
    id: str
    at: str
    text: str = ""


class GraphFile(msgspec.Struct, forbid_unknown_fields=True):
    """The file's shape; schemas/graph.schema.json is made from it."""

    format: str
    version: int
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


# ---- writing -----------------------------------------------------------------------------------

def save(module: Module, path: Path) -> None:
    """Write `path` and, if it has large constants, the `.safetensors` file of the same stem."""
    side = path.with_name(path.name.removesuffix(".json").removesuffix(".graph") + ".safetensors")
    large = collect_weights(module.graph) + [
        w for w in module.initial.values() if w.source.size > INLINE]
    if large:
        with files.atomic(side) as file:
            weights.save(large, file)
    files.write_bytes(path, dumps(module, side.name if large else "").encode())


def collect_weights(graph: Graph) -> list[Weight]:
    """The constants, regions included, that are too large to stand inline."""
    return [w for w in collect_all(graph) if w.source.size > INLINE]


def collect_all(graph: Graph) -> list[Weight]:
    """Every constant of the graph and its regions."""
    found = [n.attrs["data"] for n in graph.nodes if n.op.name == "constant"]
    for node in graph.nodes:
        for a in node.attrs.values():
            if isinstance(a, Graph):
                found += collect_all(a)
    return found


def dumps(module: Module, weights_name: str = "", embed: bool = False) -> str:
    """The module as text. With `embed`, large constants stand in it as base64."""
    writer = _Writer(embed)
    names = value_names(module.graph)
    params, nodes = writer.body(module.graph, names)
    donated = {out: names[module.graph.inputs[i]] for out, i in module.donations}
    outputs = [{"name": name, "value": names[v]} | ({"donates": donated[i]} if i in donated else {})
               for i, (name, v) in enumerate(zip(module.output_names, module.graph.outputs,
                                                 strict=True))]
    head = [
        f'"format": {files.compact(FORMAT)}', f'"version": {VERSION}',
        f'"meta": {files.compact(dict(module.meta))}', f'"weights": {files.compact(weights_name)}',
        '"symbols": ' + files.compact({s.name: {"min": s.lo, "max": s.hi}
                                       for s in module.symbols.values()}),
    ]
    inputs = [_input_row(v, names) | (writer.data(module.initial[i]) if i in module.initial else {})
              for i, v in enumerate(module.graph.inputs)]
    tables = [("inputs", inputs), ("params", params),
              ("nodes", nodes), ("outputs", outputs), ("regions", writer.regions),
              ("groups", [_group_row(g, names) for g in module.graph.groups]),
              ("locations", [{"id": k, "at": v.at} | ({"text": v.text} if v.text else {})
                             for k, v in module.locations.items()])]
    head += [f'"{name}": {_table(rows)}' for name, rows in tables]
    return "{" + ",\n".join(head) + "\n}\n"


def _table(rows: list[dict[str, Any]]) -> str:
    return "[\n " + ",\n ".join(map(files.compact, rows)) + "\n]" if rows else "[]"


def _input_row(v: Value, names: Mapping[Value, str]) -> dict[str, Any]:
    return {"id": names[v], "type": str(v.type)}


def _group_row(g: Group, names: Mapping[Value, str]) -> dict[str, Any]:
    return {"id": f"fuse.{names[g.root]}", "root": names[g.root],
            "members": [names[n.outputs[0]] for n in g.members], "kind": g.kind}


class _Writer:
    def __init__(self, embed: bool) -> None:
        self.embed = embed
        self.regions: list[dict[str, Any]] = []

    def body(self, graph: Graph, names: Mapping[Value, str]) -> tuple[list[Any], list[Any]]:
        params = [self.param(n, names) for n in graph.nodes if n.op.name == "constant"]
        nodes = [self.node(n, names) for n in graph.nodes if n.op.name != "constant"]
        return params, nodes

    def param(self, node: Node, names: Mapping[Value, str]) -> dict[str, Any]:
        w: Weight = node.attrs["data"]
        row: dict[str, Any] = {"id": names[node.outputs[0]], "type": str(node.outputs[0].type)}
        row |= self.data(w)
        if node.attrs["param"]:
            row["trainable"] = True
        return row | ({"at": node.where} if node.where else {})

    def data(self, w: Weight) -> dict[str, Any]:
        if w.source.size <= INLINE:
            return {"value": [_plain(x) for x in w.source.reshape(-1)]}
        if self.embed:
            return {"data": "base64:" + base64.b64encode(w.source.tobytes()).decode()}
        return {"data": w.digest}

    def node(self, node: Node, names: Mapping[Value, str]) -> dict[str, Any]:
        ids = [names[v] for v in node.outputs]
        types = [str(v.type) for v in node.outputs]
        row: dict[str, Any] = {
            "id": ids[0] if len(ids) == 1 else ids, "op": node.op.name,
            "in": [names[x] if isinstance(x, Value) else _literal(x) for x in node.inputs]}
        if attrs := {k: self.attr(v, f"{ids[0]}.{k}") for k, v in shown_attrs(node).items()}:
            row["attrs"] = attrs
        row["type"] = types[0] if len(types) == 1 else types
        return row | ({"at": node.where} if node.where else {})

    def attr(self, x: Any, place: str) -> Any:
        match x:
            case Graph():
                names = value_names(x)
                row: dict[str, Any] = {"id": place,
                                       "inputs": [_input_row(v, names) for v in x.inputs]}
                self.regions.append(row)
                row["params"], row["nodes"] = self.body(x, names)
                row["outputs"] = [names[v] for v in x.outputs]
                return place
            case DType():
                return x.short
            case Poly():
                return text(x)
            case float():
                return files.tagged_float(x)
            case tuple():
                return [self.attr(i, place) for i in x]
            case Weight():
                return {"type": str(TensorType(x.dtype, x.shape)),
                        "value": [_plain(i) for i in x.source.reshape(-1)]}
            case _:
                return x


def _plain(x: Any) -> Any:
    item = x.item() if x.dtype.kind in "biuf" else float(x)
    return files.tagged_float(item) if isinstance(item, float) else item


def _literal(x: Operand) -> Any:
    if isinstance(x, float) and isinstance(tagged := files.tagged_float(x), str):
        return {"value": tagged}
    return x


# ---- reading -----------------------------------------------------------------------------------

def load(path: Path) -> Module:
    """Read a graph file and map its weights. Raises InputError GT033x or GT034x."""
    file = parse(files.read_bytes(path), str(path))
    store: Mapping[str, Weight] = {}
    if file.weights:
        if "/" in file.weights or "\\" in file.weights or file.weights in (".", ".."):
            raise InputError("GT0343", f"the weights file {file.weights!r} is not beside the graph",
                             where=str(path))
        store = weights.load(path.with_name(file.weights))
    return module_of(file, store, str(path))


def loads(data: bytes | str, where: str = "-") -> Module:
    """Read a graph whose constants stand in the text itself."""
    return module_of(parse(data, where), {}, where)


def parse(data: bytes | str, where: str) -> GraphFile:
    """The file's rows, checked for shape and version, not yet for meaning."""
    raw = files.read_json(data, where)
    found = raw.get("format") if isinstance(raw, dict) else None
    if found != FORMAT:
        raise InputError("GT0340", f"expected a {FORMAT} artifact, got {found or 'something else'}",
                         where=where)
    if raw.get("version") != VERSION:
        raise InputError("GT0341", f"graph version {raw.get('version')!r}, this tool reads "
                                   f"{VERSION}", where=where)
    try:
        return msgspec.convert(raw, GraphFile)
    except msgspec.ValidationError as error:
        raise InputError("GT0342", f"malformed graph: {error}", where=where) from error


def module_of(file: GraphFile, store: Mapping[str, Weight], where: str) -> Module:
    reader = _Reader(file, store, where)
    graph, by_name = reader.body(file.inputs, file.params, file.nodes,
                                 [o.value for o in file.outputs])
    groups = tuple(reader.group(g, graph, by_name) for g in file.groups)
    graph = Graph(graph.inputs, graph.nodes, graph.outputs, groups)
    position = {v: i for i, v in enumerate(graph.inputs)}
    donations = []
    for i, o in enumerate(file.outputs):
        if o.donates:
            donor = by_name.get(o.donates)
            if donor not in position:
                raise reader.fault("GT0344", f"the donor {o.donates!r} is not an input", o.name)
            donations.append((i, position[donor]))
    return Module(graph, tuple(o.name for o in file.outputs), reader.declared,
                  {r.id: Location(r.at, r.text) for r in file.locations}, tuple(donations),
                  file.meta, {i: reader.constant(r) for i, r in enumerate(file.inputs)
                              if r.data is not None or r.value is not None})


class _Reader:
    def __init__(self, file: GraphFile, store: Mapping[str, Weight], where: str) -> None:
        self.file, self.store, self.where = file, store, where
        self.declared = {name: Symbol(name, row.min, row.max)
                         for name, row in file.symbols.items()}
        self.table: dict[str, Dim] = {n: symbol(n, s.lo, s.hi) for n, s in self.declared.items()}
        self.regions = {r.id: r for r in file.regions}
        self.types: dict[str, TensorType] = {}
        self.open: list[str] = []

    def fault(self, code: str, message: str, place: str = "") -> InputError:
        return InputError(code, message, where="\n".join(s for s in (self.where, place) if s))

    def type(self, source: str) -> TensorType:
        if source not in self.types:
            name, bracket, rest = source.partition("[")
            if not bracket or not rest.endswith("]"):
                raise self.fault("GT0345", f"cannot read the type {source!r}")
            inner = rest[:-1]
            dims = tuple(parse_dim(d, self.table) for d in split_dims(inner)) if inner else ()
            self.types[source] = TensorType(dtype(name), dims)
        return self.types[source]

    def body(self, inputs: list[InputRow], params: list[ParamRow], nodes: list[NodeRow],
             outputs: list[str]) -> tuple[Graph, dict[str, Value]]:
        by_name: dict[str, Value] = {}

        def define(name: str, v: Value) -> Value:
            if name in by_name:
                raise self.fault("GT0346", f"{name!r} is defined twice")
            by_name[name] = v
            return v

        ins = tuple(define(r.id, Value(self.type(r.type), r.id)) for r in inputs)
        made = []
        for p in params:
            w = self.constant(p)
            v = define(p.id, Value(TensorType(w.dtype, w.shape), p.id))
            attrs = complete_attrs(named("constant"), {"data": w, "param": p.trainable})
            made.append(Node(named("constant"), (), attrs, (v,), p.at))
        for row in nodes:
            made.append(self.node(row, by_name, define))
        missing = [o for o in outputs if o not in by_name]
        if missing:
            raise self.fault("GT0347", f"the output {missing[0]!r} is not defined")
        return Graph(ins, tuple(made), tuple(by_name[o] for o in outputs)), by_name

    def node(self, row: NodeRow, by_name: dict[str, Value], define: Any) -> Node:
        ids = [row.id] if isinstance(row.id, str) else row.id
        types = [row.type] if isinstance(row.type, str) else row.type
        if len(ids) != len(types) or not ids:
            raise self.fault("GT0348", f"{len(ids)} outputs, {len(types)} types", str(row.id))
        try:
            op = named(row.op)
            inputs = tuple(self.operand(x, by_name, ids[0]) for x in row.inputs)
            attrs = complete_attrs(op, self.attrs(op, row.attrs))
        except InputError as error:
            error.where = error.where or f"{self.where}\nnode {ids[0]}"
            raise
        outputs = tuple(define(i, Value(self.type(t), i)) for i, t in zip(ids, types, strict=True))
        for t in types:  # symbols that a node defines (nonzero and its kin) are declared too
            for d in self.type(t).shape:
                for s in symbols(d):
                    self.table.setdefault(s.name, symbol_of(s))
        return Node(op, inputs, attrs, outputs, row.at)

    def operand(self, x: Any, by_name: Mapping[str, Value], place: str) -> Operand:
        if isinstance(x, str):
            if x not in by_name:
                raise self.fault("GT0349", f"{x!r} is used before it is defined (or in a cycle)",
                                 f"node {place}")
            return by_name[x]
        return float(x["value"]) if isinstance(x, dict) else x

    def attrs(self, op: Op, raw: Mapping[str, Any]) -> dict[str, Any]:
        out = {}
        for name, value in raw.items():
            annotation = op.schema[name].annotation if name in op.schema else Any
            try:
                out[name] = self.attr(value, annotation)
            except (TypeError, ValueError, KeyError) as error:
                raise self.fault("GT0350", f"{op.name}.{name} cannot be {value!r}") from error
        return out

    def attr(self, x: Any, annotation: Any) -> Any:
        """Decode one attribute by the annotation that the op's `infer` gives it."""
        origin, args = get_origin(annotation), get_args(annotation)
        if x is None:
            return None
        if annotation is DType:
            return dtype(x)
        if annotation is Graph:
            return self.region(x)
        if annotation is Weight:
            shape = self.type(x["type"])
            return weights.weight(np.array([_number(i) for i in x["value"]],
                                           shape.dtype.numpy).reshape(shape.shape))
        if origin is tuple and isinstance(x, list):
            item = args[0] if len(args) == 2 and args[1] is ... else None
            return tuple(self.attr(i, item or args[k]) for k, i in enumerate(x))
        if args and origin is not tuple:  # a union: the member that fits
            return self.attr(x, next(a for a in args if _fits(x, a)))
        if annotation is Poly:
            return parse_dim(x, self.table)
        if annotation is float:
            return float(x)
        if annotation is Any or (isinstance(annotation, type) and isinstance(x, annotation)):
            return x
        raise TypeError(annotation)

    def region(self, name: str) -> Graph:
        row = self.regions[name]
        if name in self.open:
            raise self.fault("GT0351", f"the region {name!r} contains itself")
        self.open.append(name)
        graph, _ = self.body(row.inputs, row.params, row.nodes, row.outputs)
        self.open.pop()
        return graph

    def constant(self, row: ParamRow | InputRow) -> Weight:
        declared = self.type(row.type)
        try:
            if row.value is not None:
                values = np.array([_number(x) for x in row.value], declared.dtype.numpy)
                w = weights.weight(values.reshape(declared.shape))
            elif (row.data or "").startswith("base64:"):
                raw = np.frombuffer(base64.b64decode((row.data or "")[7:]), np.uint8)
                w = weights.weight(raw.view(declared.dtype.numpy).reshape(declared.shape))
            else:
                w = self.store[row.data or ""]
        except (KeyError, ValueError, TypeError, OverflowError) as error:
            raise self.fault("GT0352", f"the data of {row.id} is missing or does not fit "
                                       f"{row.type}", row.data or "") from error
        if (w.dtype, w.shape) != (declared.dtype, declared.shape):
            raise self.fault("GT0353", f"{row.id} is {w.dtype.short}{list(w.shape)} in the weights "
                                       f"file, {row.type} in the graph")
        return w

    def group(self, row: GroupRow, graph: Graph, by_name: Mapping[str, Value]) -> Group:
        made = {v: n for n in graph.nodes for v in n.outputs}
        try:
            return Group(by_name[row.root], tuple(made[by_name[m]] for m in row.members), row.kind)
        except KeyError as error:
            raise self.fault("GT0354", f"group {row.id}: {error} is not a node") from error


def _number(x: Any) -> Any:
    return float(x) if isinstance(x, str) else x


def _fits(x: Any, annotation: Any) -> bool:
    origin = get_origin(annotation) or annotation
    if annotation is DType or annotation is Poly:
        return isinstance(x, str)
    if annotation is float:
        return isinstance(x, (int, float)) or x in ("nan", "inf", "-inf")
    if isinstance(x, list):
        return origin is tuple
    return isinstance(origin, type) and isinstance(x, origin)


def split_dims(source: str) -> list[str]:
    """Split at the commas that are not inside parentheses."""
    parts, depth, start = [], 0, 0
    for i, c in enumerate(source):
        depth += (c == "(") - (c == ")")
        if c == "," and depth == 0:
            parts.append(source[start:i])
            start = i + 1
    return [*parts, source[start:]]
