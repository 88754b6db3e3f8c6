"""Builds one ONNX graph: names, initializers, nodes. Has no knowledge of single operators.

Constants are protos with elements below 8 bits packed.

Each region has its own writer, which can read every earlier value of the outer graphs. Constants
are written once, in the outermost graph.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from onnx import NodeProto, TensorProto, ValueInfoProto, helper

from graphtool.dtypes import DType, string
from graphtool.errors import Unsupported, UnsupportedError
from graphtool.exporters.definitions import defined
from graphtool.exporters.forms import Declined, Ref
from graphtool.exporters.onnx.registry import FORMS
from graphtool.front.authored import AUTHORED
from graphtool.io.weights import Weight, weight
from graphtool.ir.graph import Graph, Location, Node, TensorType, Value, is_constant
from graphtool.ir.run_sizes import bare
from graphtool.symbolic import Dim, Poly, symbols, text

# ---- protos -------------------------------------------------------------------------------------

def element_type(dtype: DType) -> int:
    """ONNX's number of an element type. Raises UnsupportedError GT1040 if ONNX does not have it."""
    if not dtype.onnx:
        raise UnsupportedError("GT1040", f"ONNX has no element type {dtype.name}")
    return dtype.onnx


def value_info(name: str, type: TensorType) -> ValueInfoProto:
    """A named tensor type; a symbolic dim becomes its name, or text such as `2*B + 1`."""
    dims: list[Any] = [d if isinstance(d, int) else text(d) if (s := bare(d)) is None else s.name
                       for d in type.shape]
    return helper.make_tensor_value_info(name, element_type(type.dtype), dims)


def packed_bytes(w: Weight) -> bytes:
    """The raw data of a TensorProto: little-endian; types below 8 bits are packed, low bits
    first."""
    return w.stored.tobytes()


def tensor(name: str, w: Weight) -> TensorProto:
    """A constant with its data in the proto."""
    if w.dtype is string:
        return TensorProto(name=name, data_type=string.onnx, dims=w.shape,
                           string_data=[s.encode() for s in w.source.reshape(-1).tolist()])
    return TensorProto(name=name, data_type=element_type(w.dtype), dims=w.shape,
                       raw_data=packed_bytes(w))


def external_tensor(name: str, w: Weight, location: str, offset: int, length: int) -> TensorProto:
    """A constant with its data in another file beside the model."""
    t = TensorProto(name=name, data_type=element_type(w.dtype), dims=w.shape,
                    data_location=TensorProto.EXTERNAL)
    for key, value in (("location", location), ("offset", offset), ("length", length)):
        t.external_data.add(key=key, value=str(value))
    return t


# ---- the writer ---------------------------------------------------------------------------------

_FEW = 16  # numbers up to which a constant is a node; initializers may be trained
Source = tuple[str, int]  # a tensor and the axis whose size gives a symbol


@dataclass
class Shared:
    """The state that all writers of one model share: names in use, constants, refused nodes."""

    locations: Mapping[str, Location]
    opset: int
    taken: set[str] = field(default_factory=set)
    counters: dict[str, int] = field(default_factory=dict)
    initializers: dict[str, Weight] = field(default_factory=dict)
    constants: list[NodeProto] = field(default_factory=list)
    literals: dict[tuple[str, tuple[int, ...]], str] = field(default_factory=dict)
    refused: dict[tuple[str, str], list[str]] = field(default_factory=dict)
    domains: dict[str, int] = field(default_factory=dict)  # besides ONNX's own, with their opset
    of_sizes: set[str] = field(default_factory=set)  # results of nodes that compute sizes

    def name(self, wish: str) -> str:
        """A unique name: `wish`, or `wish#2` and so on if it is in use."""
        name = wish
        while not name or name in self.taken:
            self.counters[wish] = self.counters.get(wish, 1) + 1
            name = f"{wish}#{self.counters[wish]}"
        self.taken.add(name)
        return name

    def unsupported(self) -> tuple[Unsupported, ...]:
        """What could not be written, with its reason and places, for one error."""
        return tuple(Unsupported(name, reason, tuple(places))
                     for (name, reason), places in self.refused.items())


class Writer:
    """Collects the nodes of one graph; called with an operator's name it writes a node."""

    def __init__(self, shared: Shared, outer: Writer | None = None) -> None:
        self.shared, self.outer = shared, outer
        self.nodes: list[NodeProto] = []
        self.infos: list[tuple[str, TensorType]] = []
        self.sizes: dict[Any, str] = {}
        self.sources: dict[str, tuple[Source, Poly]] = {}
        self.shapes: dict[tuple[Dim, ...], str] = {}  # a tensor of each shape
        self.shaped: dict[str, tuple[Dim, ...]] = {}  # the other way round
        self.axes: dict[Poly, tuple[tuple[Dim, ...], int]] = {}  # where to read compound sizes
        self.hint, self.where = "", ""

    # ---- names and constants -------------------------------------------------------------------

    def array(self, x: Any, dtype: DType | None = None) -> str:
        """A small constant of the exporter; equal ones are written once. Integers are int64."""
        data = np.asarray(x, dtype.numpy if dtype else None)
        if dtype is None and data.dtype.kind in "iuf" and not isinstance(x, np.ndarray):
            data = data.astype(np.int64)
        w = weight(data)
        key = (w.digest, w.shape)
        if key not in self.shared.literals:
            text = str(data.tolist()) if data.size <= _FEW else f"{self.hint}.table"
            name = self.shared.name(f"{w.dtype.short}:{text}")
            self.shared.literals[key] = name
            if data.size > _FEW:
                self.shared.initializers[name] = w
            else:
                self.shared.constants.append(helper.make_node("Constant", [], [name], name=name,
                                                              value=tensor("", w)))
        return self.shared.literals[key]

    # ---- nodes ---------------------------------------------------------------------------------

    def __call__(self, op: str, *inputs: Ref | str | None, outputs: int = 1, domain: str = "",
                 since: int = 1, **attrs: Any) -> Any:
        """Write one node; returns the name of its output, or a tuple of them.

        `domain` is that of the operator where it is not ONNX's own; it may also stand before the
        name, as in `com.microsoft.Gelu`. `since` is the opset of it.
        """
        before, _, op = op.rpartition(".")
        domain = domain or before
        names = [x.name if isinstance(x, Ref) else x or "" for x in inputs]
        while names and not names[-1]:
            names.pop()
        results = [self.shared.name(f"{self.hint}.{op}" if self.hint else op)
                   for _ in range(outputs)]
        node = helper.make_node(op, names, results, domain=domain or None, **{
            k: v for k, v in attrs.items() if v is not None})
        if domain:
            self.shared.domains[domain] = max(since, self.shared.domains.get(domain, 1))
        self.nodes.append(node)
        return results[0] if outputs == 1 else tuple(results)

    def graph(self, graph: Graph, given: Sequence[Ref]) -> list[Ref]:
        """Writes the nodes of a closed graph with the given inputs; returns its outputs."""
        env: dict[Value, Ref] = dict(zip(graph.inputs, given, strict=True))
        for node in graph.nodes:
            self.write(node, env, prefix=self.hint)
        return [env[v] for v in graph.outputs]

    def write(self, node: Node, env: dict[Value, Ref], names: Mapping[Value, str] | None = None,
              prefix: str = "") -> None:
        """Writes one of our nodes and adds its results to `env`. `names` has the names of the
        outermost graph's values; without it a value is named by its hint."""
        def wish(v: Value) -> str:
            return names[v] if names else f"{prefix}.{v.hint}" if prefix else v.hint
        if is_constant(node):
            v = node.outputs[0]
            name = names[v] if names else self.shared.name(wish(v))
            self.shared.initializers[name] = node.attrs["data"]
            env[v] = Ref(name, v.type)
            return
        saved = self.hint, self.where
        self.hint, self.where = wish(node.outputs[0]), node.where or self.where
        before = len(self.nodes)
        operands = [env[x] if isinstance(x, Value) else x for x in node.inputs]
        results = self._results(node, operands)
        fresh = {name: n for n in self.nodes[before:] for name in n.output}
        for n in self.nodes[before:]:
            n.doc_string = n.doc_string or self._place()
        for v, result in zip(node.outputs, results, strict=True):
            name = result.name if isinstance(result, Ref) else result
            if name in fresh:
                new = names[v] if names else name if name == wish(v) else self.shared.name(wish(v))
                name = self._renamed(before, name, new)
                self.infos.append((name, v.type))
            env[v] = Ref(name, v.type)
            self.define(name, v.type, anew=node.op is AUTHORED)
        for n in self.nodes[before:]:
            n.name = n.name or next(o for o in n.output if o)
        self.hint, self.where = saved

    def _results(self, node: Node, operands: list[Any]) -> Sequence[Any]:
        form, reason = FORMS.get(node.op.name), "has neither a form in ONNX nor a decomposition"
        if form is not None:
            before, sizes = len(self.nodes), dict(self.sizes)
            try:
                out = form(self, node, *operands)
                return out if isinstance(out, tuple) else (out,)
            except Declined as declined:
                reason = str(declined) or "cannot be expressed in ONNX with these operands"
                del self.nodes[before:]
                self.sizes = sizes
        if node.op.decompose is not None:
            body = node.op.decompose
            return self.restate(lambda *xs: body(*xs, **node.attrs), operands)
        self.shared.refused.setdefault((node.op.name, reason), []).append(
            self._place() or self.hint)
        return [self.shared.name(self.hint) for _ in node.outputs]

    def restate(self, fn: Callable[..., Any], operands: Sequence[Any]) -> tuple[Ref, ...]:
        """Writes the nodes that `fn` builds from our ops on the operands; returns its results."""
        given = [x for x in operands if isinstance(x, Ref)]
        graph = defined(fn, [x.type if isinstance(x, Ref) else x for x in operands],
                        [x.name for x in given], self.hint)
        return tuple(self.graph(graph, given))

    def _renamed(self, before: int, old: str, new: str) -> str:
        """Rename a value that was computed since `before`."""
        if old == new:
            return old
        for node in self.nodes[before:]:
            for names in (node.input, node.output):
                for i, name in enumerate(names):
                    if name == old:
                        names[i] = new
            _rename_captures(node, old, new)
        self.infos = [(new if n == old else n, t) for n, t in self.infos]
        for symbol, ((name, axis), dim) in list(self.sources.items()):
            if name == old:
                self.sources[symbol] = (new, axis), dim
        if (shape := self.shaped.pop(old, None)) is not None:
            self._has_shape(new, shape)
        return new

    def _place(self) -> str:
        location = self.shared.locations.get(self.where)
        return f"{location.at} {location.text}".strip() if location else ""

    # ---- symbols -------------------------------------------------------------------------------

    def define(self, name: str, type: TensorType, anew: bool = False) -> None:
        """Records `name` as the place to read the symbols in its type, if they have none yet;
        `anew` also those that nodes have computed: then nothing may need these nodes."""
        if type.shape not in self.shapes:
            self._has_shape(name, type.shape)
        for axis, d in enumerate(type.shape):
            if isinstance(d, Poly) and bare(d) is None:
                self.axes.setdefault(d, (type.shape, axis))
            if anew and (size := bare(d)) is not None and self.sizes.pop(size.name, ""):
                self.sources[size.name] = (name, axis), d  # type: ignore[assignment]
            free = symbols(d) if isinstance(d, Poly) else ()
            for s in free if len(free) == 1 else ():
                had = self.source(s.name)
                if had is None or (len(d.terms) == 1 and len(had[0][1].terms) > 1):  # type: ignore[union-attr]
                    self.sources[s.name] = (name, axis), d  # type: ignore[assignment]

    def _has_shape(self, name: str, shape: tuple[Dim, ...]) -> None:
        self.shapes[shape], self.shaped[name] = name, shape

    def read(self, symbol: str) -> str:
        """The name of the i64[1] with a symbol's value, of this graph or an outer one, else "".
        """
        if symbol in self.sizes or self.outer is None:
            return self.sizes.get(symbol, "")
        return self.outer.read(symbol)

    def source(self, symbol: str) -> tuple[tuple[Source, Poly], Writer] | None:
        """The axis from which a symbol can be read, and the writer whose graph has it."""
        if symbol in self.sources:
            return self.sources[symbol], self
        return None if self.outer is None else self.outer.source(symbol)


def _rename_captures(node: NodeProto, old: str, new: str) -> None:
    for a in node.attribute:
        for inner in a.g.node if a.HasField("g") else ():
            for i, name in enumerate(inner.input):
                if name == old:
                    inner.input[i] = new
            _rename_captures(inner, old, new)


# ---- nodes of a proto ---------------------------------------------------------------------------

def all_nodes(nodes: Iterable[NodeProto]) -> Iterator[NodeProto]:
    """The nodes, and those of their subgraphs."""
    for node in nodes:
        yield node
        for a in node.attribute:
            if a.HasField("g"):
                yield from all_nodes(a.g.node)


def reads(nodes: Iterable[NodeProto]) -> Iterator[str]:
    """The names that the nodes read, those in their subgraphs too."""
    for node in all_nodes(nodes):
        yield from node.input
        for a in node.attribute:
            if a.HasField("g"):
                yield from (v.name for v in a.g.output)


def needed(nodes: Sequence[NodeProto], outputs: Sequence[str]) -> list[NodeProto]:
    """The nodes that an output depends on: a size may have been read elsewhere since."""
    read, kept = set(outputs), list[NodeProto]()
    for node in reversed(nodes):
        if not read.isdisjoint(node.output):
            read.update(reads([node]))
            kept.append(node)
    return kept[::-1]
