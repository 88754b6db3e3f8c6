"""JSON text → Module: rows checked for shape, then for meaning; one error for what is wrong."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any, get_args, get_origin

import msgspec
import numpy as np

from graphtool.dtypes import DType, as_strings, dtype, string
from graphtool.errors import InputError
from graphtool.io import files, versions, weights
from graphtool.io.weights import Weight
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
from graphtool.ir.records import GraphFile, GroupRow, InputRow, NodeRow, ParamRow
from graphtool.symbolic import Dim, Poly, Symbol, symbol
from graphtool.symbolic.parse import parse as parse_dim


def parse(data: bytes | str, where: str) -> GraphFile:
    """The file's rows, checked for shape and version, not yet for meaning."""
    raw = files.read_json(data, where)
    try:
        return msgspec.convert(versions.current(versions.GRAPH, raw, where), GraphFile)
    except msgspec.ValidationError as error:
        raise InputError("GT0342", f"malformed graph: {error}", where=where) from error


def module_of(file: GraphFile, store: Mapping[str, Weight], where: str) -> Module:
    reader = _Reader(file, store, where)
    graph, by_name = reader.body(file.inputs, file.params, file.nodes,
                                 [o.value for o in file.outputs])
    made = {v: n for n in graph.nodes for v in n.outputs}
    groups = tuple(reader.group(g, made, by_name) for g in file.groups)
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
                              if r.data is not None or r.value is not None},
                  {r.id: tuple(r.rules) for r in file.history})


class _Reader:
    def __init__(self, file: GraphFile, store: Mapping[str, Weight], where: str) -> None:
        self.file, self.store, self.where = file, store, where
        for name, row in file.symbols.items():
            if row.min is not None and row.max is not None and row.max < row.min:
                raise self.fault("GT0356", f"the dim {name} is at least {row.min} and at most "
                                           f"{row.max}")
        self.declared = {name: Symbol(name, row.min, row.max)
                         for name, row in file.symbols.items() if not row.defined}
        self.table: dict[str, Dim] = {n: symbol(n, r.min, r.max) for n, r in file.symbols.items()}
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
            try:
                dims = tuple(parse_dim(d, self.table) for d in split_dims(inner)) if inner else ()
                self.types[source] = TensorType(dtype(name), dims)
            except InputError as error:
                error.where = self.where
                raise
            if any(isinstance(d, int) and d < 0 for d in dims):
                raise self.fault("GT0345", f"a size below 0 in the type {source!r}")
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
            attrs = complete_attrs(op, self.attrs(op, row.attrs, ids[0]))
        except InputError as error:
            error.where = error.where or f"{self.where}\nnode {ids[0]}"
            raise
        outputs = tuple(define(i, Value(self.type(t), i)) for i, t in zip(ids, types, strict=True))
        return Node(op, inputs, attrs, outputs, row.at)

    def operand(self, x: Any, by_name: Mapping[str, Value], place: str) -> Operand:
        if isinstance(x, str):
            if x not in by_name:
                raise self.fault("GT0349", f"{x!r} is used before it is defined (or in a cycle)",
                                 f"node {place}")
            return by_name[x]
        return float(x["value"]) if isinstance(x, dict) else x

    def attrs(self, op: Op, raw: Mapping[str, Any], place: str) -> dict[str, Any]:
        out = {}
        for name, value in raw.items():
            annotation = op.schema[name].annotation if name in op.schema else Any
            try:
                out[name] = self.attr(value, annotation)
            except (TypeError, ValueError, KeyError) as error:
                raise self.fault("GT0350", f"{op.name}.{name} cannot be {value!r}",
                                 f"node {place}") from error
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
            return weights.weight(_values(x["value"], shape.dtype).reshape(shape.shape))
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
                values = _values(row.value, declared.dtype)
                w = weights.weight(values.reshape(declared.shape))
            elif (row.data or "").startswith("base64:"):
                raw = np.frombuffer(base64.b64decode((row.data or "")[7:]), np.uint8)
                w = weights.weight(weights.elements(raw, declared.dtype, declared.shape))
            else:
                w = self.store[row.data or ""]
        except (KeyError, ValueError, TypeError, OverflowError) as error:
            raise self.fault("GT0352", f"the data of {row.id} is missing or does not fit "
                                       f"{row.type}", row.data or "") from error
        if (w.dtype, w.shape) != (declared.dtype, declared.shape):
            raise self.fault("GT0353", f"{row.id} is {w.dtype.short}{list(w.shape)} in the weights "
                                       f"file, {row.type} in the graph")
        return w

    def group(self, row: GroupRow, made: Mapping[Value, Node],
              by_name: Mapping[str, Value]) -> Group:
        try:
            return Group(by_name[row.root], tuple(made[by_name[m]] for m in row.members), row.kind)
        except KeyError as error:
            raise self.fault("GT0354", f"group {row.id}: {error} is not a node") from error


def _values(row: list[Any], dtype: DType) -> weights.Array:
    """A row of JSON's values as an array; text stands for NaN and infinities among numbers."""
    if dtype is string:
        return as_strings(np.array(row, object))
    return np.array([float(x) if isinstance(x, str) else x for x in row], dtype.numpy)


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
