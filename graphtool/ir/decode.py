"""JSON text → Module: rows are checked for shape, then for meaning; a fault gives one error."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, get_args, get_origin

import msgspec
import numpy as np

from graphtool.dtypes import DType, dtype
from graphtool.errors import InputError
from graphtool.escaping import line
from graphtool.io import files, versions, weights
from graphtool.io.manifest_rows import Choice
from graphtool.io.values import SPECIAL
from graphtool.io.weights import Weight
from graphtool.ir.attributes import as_float
from graphtool.ir.decode_values import fits, plan_of, split_dims, values_of
from graphtool.ir.graph import (
    Graph,
    Group,
    Location,
    Module,
    Node,
    Operand,
    TensorType,
    Value,
    producers,
)
from graphtool.ir.op import Op, complete_attrs, named
from graphtool.ir.plan import Plan
from graphtool.ir.records import GraphFile, GroupRow, InputRow, NodeRow, ParamRow
from graphtool.ir.requires import satisfied
from graphtool.ir.trace import infer
from graphtool.symbolic import Dim, Equation, Poly, Symbol, dim_of
from graphtool.symbolic.parse import parse as parse_dim

Place = Callable[[str, str], str]


def parse(data: bytes | str, where: str) -> GraphFile:
    """The rows of a JSON file, checked for shape and version, not yet for meaning."""
    return rows(files.read_json(data, where), where)


def rows(raw: Any, where: str) -> GraphFile:
    """The rows of a graph as JSON gives them, checked for shape and version."""
    try:
        return msgspec.convert(versions.checked(versions.GRAPH, raw, where), GraphFile)
    except msgspec.ValidationError as error:
        raise InputError("GT0342", f"malformed graph: {error}", where=where) from error


def module_of(file: GraphFile, store: Mapping[str, Weight], where: str,
              place: Place | None = None) -> Module:
    """The module that the rows describe, with its large constants from `store`, by digest.

    `place(region, name)` gives the position of a row in a text; the types of a text are inferred at
    once, so that a fault has its line. Raises InputError GT0344 to GT0356, GT04xx.
    """
    reader = _Reader(file, store, where, place)
    with reader.row(""):
        return reader.module()


def attributes(op: Op, raw: Mapping[str, Any], sizes: Mapping[str, Dim], where: str = ""
               ) -> dict[str, Any]:
    """The attributes of an op from JSON values, without regions; `sizes` has the open sizes by
    name.

    Raises InputError GT0350 for a value that does not fit.
    """
    empty = GraphFile("", 0, "", {}, "", {}, [], [], [], [])
    reader = _Reader(empty, {}, where, None)
    reader.table = dict(sizes)
    return reader.attrs(op, raw)


class _Reader:
    def __init__(self, file: GraphFile, store: Mapping[str, Weight], where: str,
                 place: Place | None) -> None:
        self.file, self.store, self.where = file, store, where
        self.place = place or (lambda region, label: line(label))
        self.inferred = place is not None
        self.symbols: dict[str, Symbol] = {}
        self.table: dict[str, Dim] = {}
        self.regions = {r.id: r for r in file.regions}
        self.types: dict[str, TensorType] = {}
        self.open: list[str] = []
        self.located: InputError | None = None
        self.known = {r.id: Choice(r.site, r.by, r.us) for r in file.choices}
        self.choices: dict[Value, Choice] = {}
        self.meta = satisfied(file.meta, where)

    @contextmanager
    def row(self, label: str) -> Iterator[None]:
        """A context that adds the place of this row to an error, unless an inner row has given
        one."""
        try:
            yield
        except InputError as error:
            if error is not self.located:
                place = self.place(self.open[-1] if self.open else "", label)
                file = [] if place.startswith(self.where) else [self.where]
                error.within(*file, *place.split("\n"))
                self.located = error
            raise

    def module(self) -> Module:
        file = self.file
        for name, row in file.symbols.items():
            if row.min is not None and row.max is not None and row.max < row.min:
                raise InputError("GT0356", f"the dim {name} is at least {row.min} and at most "
                                           f"{row.max}")
            if not 0 <= row.offset < row.step:
                raise InputError("GT0356", f"the dim {name} cannot have the step {row.step} and "
                                           f"the offset {row.offset}")
            size = Symbol(name, row.min, row.max, None, row.step, row.offset)
            self.table[name] = dim_of(size)
            if not row.defined:
                self.symbols[name] = size
        graph, by_name = self.body(file.inputs, file.params, file.nodes,
                                   [o.value for o in file.outputs])
        made_by = producers(graph)
        groups = tuple(self.group(g, made_by, by_name) for g in file.groups)
        initial = {}
        for i, r in enumerate(file.inputs):
            if r.data is not None or r.value is not None:
                with self.row(f"input {r.id}"):
                    initial[i] = self.constant(r)
        kept = {}
        for p in file.kept:
            with self.row(f"kept {p.id}"):
                kept[p.id] = self.constant(p)
        return Module(Graph(graph.inputs, graph.nodes, graph.outputs, groups),
                      tuple(o.name for o in file.outputs), self.symbols,
                      {r.id: Location(r.at, r.text) for r in file.locations},
                      tuple(self.donations(graph, by_name)), self.meta, initial,
                      {r.id: tuple(r.rules) for r in file.history}, self.choices,
                      tuple(Equation(*map(self.size, pair)) for pair in file.requires), kept,
                      tuple(file.assumes), {r.id: r.kind for r in file.modules})

    def size(self, d: str | int) -> Dim:
        with self.row("requires"):
            return d if isinstance(d, int) else parse_dim(d, self.table)

    def donations(self, graph: Graph, by_name: Mapping[str, Value]) -> Iterator[tuple[int, int]]:
        position = {v: i for i, v in enumerate(graph.inputs)}
        for i, o in enumerate(self.file.outputs):
            if o.donates:
                with self.row("outputs"):
                    donor = by_name.get(o.donates)
                    if donor not in position:
                        raise InputError("GT0344", f"the donor {o.donates!r} of the output "
                                                   f"{o.name!r} is not an input")
                yield i, position[donor]

    def type(self, source: str) -> TensorType:
        if source not in self.types:
            name, bracket, rest = source.partition("[")
            if not bracket or not rest.endswith("]"):
                raise InputError("GT0345", f"cannot read the type {source!r}")
            inner = rest[:-1]
            dims = tuple(parse_dim(d, self.table) for d in split_dims(inner)) if inner else ()
            if any(isinstance(d, int) and d < 0 for d in dims):
                raise InputError("GT0345", f"a size below 0 in the type {source!r}")
            self.types[source] = TensorType(dtype(name), dims)
        return self.types[source]

    def body(self, inputs: list[InputRow], params: list[ParamRow], nodes: list[NodeRow],
             outputs: list[str]) -> tuple[Graph, dict[str, Value]]:
        by_name: dict[str, Value] = {}

        def define(name: str, type: TensorType) -> Value:
            if name in by_name:
                raise InputError("GT0346", f"{name!r} is defined twice")
            by_name[name] = Value(type, name)
            return by_name[name]

        ins, body = [], []
        for r in inputs:
            with self.row(f"input {r.id}"):
                ins.append(define(r.id, self.type(r.type)))
        for p in params:
            with self.row(f"param {p.id}"):
                w = self.constant(p)
                attrs = complete_attrs(named("constant"), {"data": w, "param": p.trainable})
                body.append(Node(named("constant"), (), attrs,
                                 (define(p.id, TensorType(w.dtype, w.shape)),), p.at,
                                 tuple(p.of)))
        for row in nodes:
            body.append(self.node(row, by_name, define))
        with self.row("outputs"):
            if missing := [o for o in outputs if o not in by_name]:
                raise InputError("GT0347", f"the output {missing[0]!r} is not defined")
        return Graph(tuple(ins), tuple(body), tuple(by_name[o] for o in outputs)), by_name

    def node(self, row: NodeRow, by_name: dict[str, Value],
             define: Callable[[str, TensorType], Value]) -> Node:
        ids = [row.id] if isinstance(row.id, str) else row.id
        texts = [row.type] if isinstance(row.type, str) else row.type
        with self.row(f"node {ids[0] if ids else ''}"):
            if len(ids) != len(texts) or not ids:
                raise InputError("GT0348", f"{len(ids)} outputs, {len(texts)} types")
            op = named(row.op)
            inputs = tuple(self.operand(x, by_name) for x in row.inputs)
            attrs = complete_attrs(op, self.attrs(op, row.attrs))
            types = [self.type(t) if t else None for t in texts]
            kinds = (self.infer(op, inputs, attrs, types) if self.inferred
                     else [self.type(t) for t in texts])
            outputs = tuple(define(i, t) for i, t in zip(ids, kinds, strict=True))
        if choice := self.known.get(f"{self.open[-1]}/{ids[0]}" if self.open else ids[0]):
            self.choices[outputs[0]] = choice
        return Node(op, inputs, attrs, outputs, row.at, tuple(row.of))

    def infer(self, op: Op, inputs: tuple[Operand, ...], attrs: dict[str, Any],
              written: Sequence[TensorType | None]) -> Sequence[TensorType]:
        """The types that the op gives. Raises an error if the file has others."""
        types = infer(op, inputs, attrs)
        types = types if isinstance(types, tuple) else (types,)
        if len(types) != len(written):
            raise InputError("GT0348", f"{op.name} gives {len(types)} values, {len(written)} named")
        for have, want in zip(written, types, strict=True):
            if have not in (None, want):
                raise InputError("GT0355", f"{op.name} gives {want}, {have} is written")
        return types

    def operand(self, x: Any, by_name: Mapping[str, Value]) -> Operand:
        if isinstance(x, str):
            if x not in by_name:
                raise InputError("GT0349", f"{x!r} is used before it is defined (or in a cycle)")
            return by_name[x]
        if isinstance(x, dict) and (
                x.keys() != {"value"} or x["value"] not in SPECIAL):
            raise InputError("GT0349", f"{x!r} is not an operand",
                             hint="an operand is a value's name, a number, or {\"value\": \"nan\"}")
        return float(x["value"]) if isinstance(x, dict) else x

    def attrs(self, op: Op, raw: Mapping[str, Any]) -> dict[str, Any]:
        out = {}
        for name, value in raw.items():
            annotation = op.schema[name].annotation if name in op.schema else Any
            try:
                out[name] = self.attr(value, annotation)
            except (TypeError, ValueError, LookupError, ArithmeticError) as error:
                raise InputError("GT0350", f"{op.name}.{name} cannot be {value!r}") from error
        return out

    def attr(self, x: Any, annotation: Any) -> Any:
        """An attribute's value, decoded by the annotation that the op's `infer` gives it."""
        origin, args = get_origin(annotation), get_args(annotation)
        if x is None and (annotation in (Any, None) or type(None) in args):
            return None
        if annotation is DType:
            return dtype(x)
        if annotation is Graph:
            return self.region(x)
        if annotation is Plan:
            return plan_of(x)
        if annotation is Weight:
            shape = self.type(x["type"])
            return weights.weight(values_of(x["value"], shape.dtype).reshape(shape.shape))
        if origin is tuple and isinstance(x, list):
            item = args[0] if len(args) == 2 and args[1] is ... else None
            return tuple(self.attr(i, item or args[k]) for k, i in enumerate(x))
        if args and origin is not tuple:  # a union: the member that fits
            fitting = next((a for a in args if fits(x, a)), None)
            if fitting is None:
                raise TypeError(annotation)
            return self.attr(x, fitting)
        if annotation is Poly:
            return parse_dim(x, self.table)
        if annotation is float:
            return as_float(x) if isinstance(x, int) else float(x)
        if annotation is Any or (isinstance(annotation, type) and isinstance(x, annotation)):
            return x
        raise TypeError(annotation)

    def region(self, name: str) -> Graph:
        row = self.regions[name]
        if name in self.open:
            raise InputError("GT0351", f"the region {name!r} contains itself")
        self.open.append(name)
        graph, _ = self.body(row.inputs, row.params, row.nodes, row.outputs)
        self.open.pop()
        return graph

    def constant(self, row: ParamRow | InputRow) -> Weight:
        declared = self.type(row.type)
        try:
            if row.value is not None:
                values = values_of(row.value, declared.dtype)
                w = weights.weight(values.reshape(declared.shape))
            elif (row.data or "").startswith("base64:"):
                raw = np.frombuffer(base64.b64decode((row.data or "")[7:]), np.uint8)
                w = weights.weight(weights.elements(raw, declared.dtype, declared.shape))
            else:
                w = self.stored(row.data or "")
        except (KeyError, ValueError, TypeError, ArithmeticError) as error:
            raise InputError("GT0352", f"the data of {row.id} is missing or does not fit "
                                       f"{row.type}", where=(row.data or "")[:71],
                             hint="`graphtool show --full` prints a listing that needs no other "
                                  "file" if self.inferred else "") from error
        if (w.dtype, w.shape) != (declared.dtype, declared.shape):
            raise InputError("GT0353", f"{row.id} is {w.dtype.short}{list(w.shape)} in the weights "
                                       f"file, {row.type} in the graph")
        return w

    def stored(self, digest: str) -> Weight:
        """The weight of this digest; a listing may give only its start. Raises KeyError."""
        if digest in self.store:
            return self.store[digest]
        matches = [w for key, w in self.store.items() if key.startswith(digest)]
        if len(matches) != 1 or len(digest) < len("sha256:") + 8:
            raise KeyError(digest)
        return matches[0]

    def group(self, row: GroupRow, made_by: Mapping[Value, Node],
              by_name: Mapping[str, Value]) -> Group:
        with self.row(f"group {row.root}"):
            if missing := [m for m in (row.root, *row.members) if by_name.get(m) not in made_by]:
                raise InputError("GT0354", f"group {row.id}: {missing[0]!r} is not a node")
        return Group(by_name[row.root], tuple(made_by[by_name[m]] for m in row.members), row.kind)
