"""The driver: runs the nodes of a model through their handlers and collects what is refused.

A value is an Array, a tuple (a sequence), None (an omitted input), or REFUSED. A node whose inputs
are all constant is evaluated on the numbers.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from graphtool import dtypes
from graphtool.errors import (
    GraphtoolError,
    InputError,
    InternalError,
    Undecided,
    UndecidedOrder,
)
from graphtool.escaping import line
from graphtool.front import REFUSED, Array, Refused
from graphtool.front.assumptions import Bounds, Facts
from graphtool.importers.limits import Limits
from graphtool.importers.onnx.driver import boundary, functions, reader
from graphtool.importers.onnx.driver.authored import recorded
from graphtool.importers.onnx.driver.claims import bounded
from graphtool.importers.onnx.driver.context import Context, Frame, Session
from graphtool.importers.onnx.driver.demands import (
    DEMANDS,
    OperatorCall,
    check_demands,
    check_operands,
    check_outputs,
    check_results,
    declared_types,
)
from graphtool.importers.onnx.driver.inputs import Parts
from graphtool.importers.onnx.driver.node_order import graph_title, ordered, title
from graphtool.importers.onnx.driver.registry import Handler, find
from graphtool.importers.onnx.driver.schemas import Operator, operator, version_of
from graphtool.importers.onnx.driver.values import as_row
from graphtool.importers.onnx.families.sequence_rows import SequenceRows
from graphtool.importers.onnx.validate import check_model
from graphtool.ir.graph import Graph, Module, Value
from graphtool.ir.replay import prune
from graphtool.ir.rounded_once import settle
from graphtool.ir.trace import Tracer
from graphtool.symbolic import Poly, symbols

_BROADCAST = 1 << 24  # elements that a folded node may make of two arrays
_DEPTH = 64
_BAD_MODEL = (ValueError, IndexError, TypeError, KeyError, ZeroDivisionError, OverflowError,
              MemoryError, AttributeError, RecursionError, StopIteration)

_LICENCE = ("license", "licence", "spdx")  # a key of metadata_props, in lower case


class OnnxConversion(Session):
    """The conversion of one ONNX model into one module."""

    def __init__(self, model: Any, base_dir: Path | None, dynamic: Mapping[str, Bounds],
                 fixed: Mapping[str, Any], made_of: Mapping[str, Parts] | None = None,
                 limits: Limits | None = None, facts: Facts | None = None,
                 records: bool = False) -> None:
        super().__init__(model, base_dir, dynamic, fixed, made_of, limits, facts, records)
        self.functions = functions.table(model)
        self.types = declared_types(model.graph)

    # ---- graphs --------------------------------------------------------------------------------

    def run(self) -> Module | None:
        """The module, or None if anything was refused."""
        graph = self.model.graph
        opsets = check_model(self.model, self.strictness)
        self.limits.check_nodes(functions.expanded(self.model), graph_title(graph))
        frame = Frame(ChainMap(), opsets)
        for name, reason, place in functions.missing(self.model, opsets):
            self.refuse(name, reason, place)
        given = self._initializers(graph, frame)
        inputs = [v for v in graph.input if v.name not in given]
        boundary.check_parts(self, inputs)
        tracers = [t for v in inputs for t in boundary.entered(self, v, frame)]
        self.knowledge.settle(self.inputs.symbols)
        for v in inputs:
            frame.env[v.name] = self.knowledge.entered(frame.env[v.name])
        self.nodes(graph.node, frame)
        results = [self._output(v.name, frame) for v in graph.output]
        if self.refusals:
            return None
        flat = [row for x, v in zip(results, graph.output, strict=True)
                for row in boundary.flat(v.name, x)]
        return self._module(tracers, flat)

    def _module(self, inputs: list[Tracer], outputs: list[tuple[str, Any]]) -> Module:
        donations: tuple[tuple[int, int], ...] = ()
        if self.seed is not None:
            donations = ((len(outputs), len(inputs)),)
            inputs, outputs = [*inputs, self.seed], [*outputs, (self.seed.value.hint, self.state)]
        values = tuple(self._value(x, name) for name, x in outputs)
        nodes = bounded(self.builder.nodes, dict(outputs), self.declared)
        graph = prune(Graph(tuple(t.value for t in inputs), tuple(nodes), values))
        self.examples.fit(graph, self.inputs.symbols)
        return Module(graph, tuple(name for name, _ in outputs), self.inputs.symbols,
                      self.places.table, donations, self._meta(), requires=self.knowledge.required,
                      modules=self.places.modules)

    def _meta(self) -> dict[str, Any]:
        m = self.model
        licence = next((p.value[:200] for p in m.metadata_props if p.key.lower() in _LICENCE), "")
        more = {"licence": licence, **self.examples.meta(), "always": self.filled,
                "warnings": self.strictness.warnings}
        return {"source": "onnx", "producer": f"{m.producer_name} {m.producer_version}".strip(),
                "name": m.graph.name, **{key: row for key, row in more.items() if row}}

    def _initializers(self, graph: Any, frame: Frame) -> set[str]:
        """Define the initializers of the graph; unused initializers are not decoded."""
        read = {name for n in graph.node for name in functions.all_reads(n)}
        read |= {v.name for v in graph.output}
        untrained = {name for n in graph.node for name in _untrained(n)}
        names = set()
        for t in (*graph.initializer, *graph.sparse_initializer):
            name = t.values.name if hasattr(t, "values") else t.name
            names.add(name)
            if name in read:
                frame.env[name] = self._initializer(t, name, frame.prefix)
                if name in untrained and isinstance(frame.env[name], Array):
                    frame.env[name].param = False
        return names

    def _initializer(self, tensor: Any, name: str, prefix: str) -> Any:
        try:
            sparse = hasattr(tensor, "values")
            dense = reader.dense(tensor, self.base_dir, self.limits, f"initializer {name}") \
                if sparse else reader.array(tensor, self.base_dir)
        except Refused as refused:
            self.refuse("initializer", str(refused), name)
            return REFUSED
        known = self.builder.constant(dense, prefix + name)
        known.param = known.dtype.is_float
        return known

    def _output(self, name: str, frame: Frame) -> Any:
        if name not in frame.env:
            raise InputError("GT1011", f"no node, input or initializer defines the output {name!r}")
        return frame.env[name]

    def _value(self, x: Any, name: str) -> Value:
        if x.known is not None and not x.hint:
            x.hint = name
        return x.value  # type: ignore[no-any-return]

    def nodes(self, nodes: Sequence[Any], frame: Frame) -> None:
        """Run nodes in dependency order and store their outputs under their names in the frame."""
        for node in ordered(nodes, frame.env):
            self.node(node, frame)

    def subgraph(self, graph: Any, inputs: Sequence[Any], frame: Frame, label: str) -> list[Any]:
        """Run the nodes of a subgraph in a child frame, so that they see the names around it.

        Returns its outputs. Raises Refused if one of them was refused.
        """
        inner = replace(frame, env=frame.env.new_child(), depth=frame.depth + 1,
                        prefix=f"{frame.prefix}{label}.")
        if inner.depth > _DEPTH:
            raise Refused(f"graphs nested more than {_DEPTH} deep are not supported")
        self._initializers(graph, inner)
        for info, x in zip(graph.input, inputs, strict=True):
            inner.env[info.name] = as_row(x, info)
        self.nodes(graph.node, inner)
        results = [inner.env[v.name] for v in graph.output]
        if any(r is REFUSED for r in results):
            raise Refused("")
        return results

    # ---- nodes ---------------------------------------------------------------------------------

    def node(self, node: Any, frame: Frame) -> None:
        """Run one node. If it is refused, that is recorded, and its outputs become REFUSED."""
        self.visited += 1
        self.limits.check_nodes(self.visited, title(node))
        if not self.visited % 256:
            self.limits.check_seconds(self.started, title(node))
        inputs = [frame.env[name] if name else None for name in node.input]
        while inputs and not node.input[len(inputs) - 1]:
            inputs.pop()
        results: Sequence[Any] = [REFUSED] * len(node.output)
        before, state = len(self.builder.nodes), self.state
        hint = frame.prefix + next((n for n in node.output if n), node.op_type)
        where = self.places.key(node) if not frame.prefix else self.builder.where
        if not any(x is REFUSED for x in inputs):
            with self.builder.scope(hint, where, self.places.layer(node) or self.builder.of):
                results = self._results(node, inputs, frame)
            if not frame.prefix:
                check_results(node, results, self.types, self.strictness)
        self._record(node, results, frame, before)
        self.examples.note(node, inputs, results, partial(self.attributes, node, frame))
        if self.records and self._local(node) is None:
            self.operations += recorded(self, node, frame, inputs, before, state)

    def _record(self, node: Any, results: Sequence[Any], frame: Frame, before: int) -> None:
        """Bind the node's outputs to its results, which get the names of the outputs."""
        hints: dict[int, tuple[Any, str]] = {}  # of two outputs that are one value, the first's
        for i, name in enumerate(node.output):
            if name and i >= len(results):
                raise InputError("GT1016", f"{node.op_type} has no output {i}", where=title(node))
            if name:
                hints.setdefault(id(results[i]), (results[i], frame.prefix + name))
        named = dict(zip(hints, self._named(list(hints.values()), before), strict=True))
        frame.env.update((name, named[id(results[i])])
                         for i, name in enumerate(node.output) if name)

    def _results(self, node: Any, inputs: list[Any], frame: Frame) -> Sequence[Any]:
        try:
            return self._apply(node, inputs, frame)
        except Refused as refused:
            if str(refused):
                self.refuse(functions.full_name(node), str(refused), title(node))
            return [REFUSED] * len(node.output)
        except InternalError as error:  # no handler hands such an operand on of itself
            raise InputError("GT1015", f"{node.op_type} cannot be read: {error.message}",
                             where=title(node)) from error
        except GraphtoolError as error:
            if isinstance(error, Undecided | UndecidedOrder):
                if self.inputs.computed & {s.name for pair in error.pairs for d in pair
                                           for s in symbols(d)}:
                    self.refuse(functions.full_name(node), error.message, title(node))
                    return [REFUSED] * len(node.output)
                error.hint = error.hint or "bound the sizes: --dynamic NAME=LOW..HIGH"
            if line(title(node)) not in error.where:
                error.within(title(node))
            raise
        except _BAD_MODEL as error:
            raise InputError("GT1015", f"{node.op_type} cannot be read: {error}",
                             where=title(node), hint=self._shown(inputs)) from error

    def _shown(self, inputs: Sequence[Any]) -> str:
        rows = [str(x) for x in inputs if isinstance(x, Array) and x.known is None]
        return "its operands: " + ", ".join(rows) if rows else ""

    def _local(self, node: Any) -> Any:
        """The model's own function that the node calls, or None."""
        return self.functions.get((node.domain, node.op_type, getattr(node, "overload", "")))

    def _apply(self, node: Any, inputs: list[Any], frame: Frame) -> Sequence[Any]:
        local = self._local(node)
        if local is not None:
            return functions.expand(self, local, node, inputs, frame)
        domain = "" if node.domain == "ai.onnx" else node.domain
        version = version_of(node, frame.opsets)
        known = operator(domain, node.op_type, version)
        if known is not None:
            check_operands(node, known, inputs, self.strictness)
            if domain == "" and node.op_type in DEMANDS:
                check_demands(node.op_type, OperatorCall(
                    inputs, self.attributes(node, frame), len(node.output), version))
        handler = find(domain, node.op_type, version)
        before = len(self.builder.nodes)
        results = self._handle(handler, known, node, inputs, frame) if handler is not None else \
            self.by_body(node, inputs, frame)
        results = settle(self.builder, before, results)
        if known is not None:
            check_outputs(node, known, results, self.strictness)
        return results

    def by_body(self, node: Any, inputs: Sequence[Any], frame: Frame) -> Sequence[Any]:
        """The node's outputs, computed by the function body that onnx defines for its operator."""
        body = functions.standard_body(node, inputs, frame.opsets)
        if body is None:
            counted = any(name == functions.full_name(node) for name, _ in self.refusals)
            raise Refused("" if counted else "not supported for these operands")
        return functions.expand(self, body, node, inputs, frame)

    def _handle(self, handler: Handler, known: Operator | None, node: Any, inputs: list[Any],
                frame: Frame) -> Sequence[Any]:
        attrs = self.attributes(node, frame)
        for name, value in list(attrs.items()):
            if name not in handler.attrs:
                if name == "consumed_inputs":  # before opset 6: memory that may be written over
                    del attrs[name]
                    continue
                if known is not None and name not in known.attributes:
                    del attrs[name]  # the check of the model took it
                    continue
                raise Refused(f"the attribute {name!r} is not supported")
            if handler.wrong_kind(name, value):
                raise InputError("GT1018", f"{node.op_type}.{name} must be {handler.attrs[name]}, "
                                           f"got {type(value).__name__}", where=title(node))
        if not handler.accepts(len(inputs)):
            if len(inputs) < handler.least:
                raise InputError("GT1014", f"{node.op_type} takes {handler.least} inputs at "
                                           f"least, {len(inputs)} given", where=title(node))
            raise Refused(f"{len(inputs)} inputs are not supported; the operator has fewer")
        if not handler.sequences and any(isinstance(x, (tuple, SequenceRows)) for x in inputs):
            raise InputError("GT1015", f"{node.op_type} takes tensors, not a sequence",
                             where=title(node))
        if handler.context:
            attrs["ctx"] = Context(self, frame, node, inputs)
        with self.builder.folding(handler.fold):
            out = handler.fn(*inputs, **attrs)
        several = len(node.output) > 1 or not handler.sequences  # else a tuple is a sequence
        many = isinstance(out, list) or (isinstance(out, tuple) and several)
        return [self._lift(x) for x in out] if many else [self._lift(out)]

    def _lift(self, x: Any) -> Any:
        """A handler's result as a value of the importer: arrays of numbers or dimensions too."""
        if isinstance(x, (np.generic, Poly)):  # numpy turns arrays of no axes into their element
            x = np.asarray(x)
        if isinstance(x, np.ndarray):
            return self.builder.entries(x, dtypes.int64) if x.dtype == object \
                else self.builder.constant(x)
        return tuple(map(self._lift, x)) if isinstance(x, tuple) else x

    def _named(self, results: Sequence[tuple[Any, str]], before: int) -> list[Any]:
        """The results; values that this node made have the ONNX names that are given with them."""
        hints: dict[Value, str] = {}
        for x, hint in results:
            if isinstance(x, Array) and x.known is not None:
                x.hint = x.hint or hint
            elif isinstance(x, Array) and x.value.hint != hint:
                hints.setdefault(x.value, hint)
        if hints:
            fresh = self.builder.nodes[before:]
            read = {v for n in fresh for v in n.inputs}
            unread = {v for n in fresh for v in n.outputs} - read
            hints = {v: hint for v, hint in hints.items() if v in unread}
            self.builder.rename_all(hints)
        renamed = self.builder.renamed
        return [self.builder.traced(renamed[x.value]) if isinstance(x, Array) and x.known is None
                and x.value in hints else x for x, _ in results]


def _untrained(node: Any) -> Sequence[str]:
    """The inputs of a node that training does not change: running means and variances, and the
    scales of quantised numbers, which two nodes share."""
    match node.op_type:
        case "BatchNormalization":
            return node.input[3:5]  # type: ignore[no-any-return]
        case "QuantizeLinear" | "DequantizeLinear":
            return node.input[1:2]  # type: ignore[no-any-return]
        case str(name) if name.startswith("QLinear"):
            return node.input  # type: ignore[no-any-return]
        case _:
            return ()
