"""The frame of names in which a node runs, the context that its handler can query, and subgraphs as
regions: each is traced alone, and the outside values that it reads become its inputs."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections import ChainMap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from graphtool import dtypes
from graphtool.errors import Unsupported
from graphtool.front import Refused
from graphtool.front import regions as shared
from graphtool.front.assumptions import Bounds, Facts, SizeKnowledge
from graphtool.front.authored import Operation
from graphtool.front.regions import Closed
from graphtool.importers.limits import Limits, Strictness
from graphtool.importers.onnx.driver import reader
from graphtool.importers.onnx.driver.computed import EACH, Recorder
from graphtool.importers.onnx.driver.examples import ExampleValues
from graphtool.importers.onnx.driver.inputs import Inputs, Parts, declared_dims, declared_shapes
from graphtool.importers.onnx.driver.places import SourceLocations
from graphtool.importers.onnx.driver.schemas import version_of
from graphtool.importers.onnx.families.sequence_rows import SequenceRows
from graphtool.ir.graph import Graph, TensorType
from graphtool.ir.run_sizes import limits
from graphtool.ir.trace import Tracer
from graphtool.symbolic import Dim, symbols


@dataclass(frozen=True)
class Frame:
    """What names mean at one place of the model: values by name, opset versions by domain, the
    prefix of value names, and the attributes of the function call around it."""

    env: ChainMap[str, Any]
    opsets: Mapping[str, int]
    prefix: str = ""
    attrs: Mapping[str, Any] | None = None
    depth: int = 0


class Session(ABC):
    """The state that all parts of one import share; `convert.py` implements how nodes run."""

    def __init__(self, model: Any, base_dir: Path | None, dynamic: Mapping[str, Bounds],
                 fixed: Mapping[str, Any], made_of: Mapping[str, Parts] | None = None,
                 limits: Limits | None = None, facts: Facts | None = None,
                 records: bool = False) -> None:
        self.records, self.operations = records, list[Operation]()
        self.limits, self.visited = limits or Limits(), 0
        self.strictness = Strictness(self.limits.strict)
        self.started = time.monotonic()
        self.model, self.base_dir, self.fixed = model, base_dir, fixed
        self.made_of = made_of or {}
        self.filled: dict[str, list[Any]] = {}  # type, sizes and number of constant inputs
        self.places = SourceLocations()
        self.knowledge = SizeKnowledge(facts or Facts.given(dynamic), broadcasts=True)
        self.inputs = Inputs(dynamic, self.knowledge)
        self.builder: Recorder = Recorder(self.inputs, most=EACH * self.limits.nodes)
        self.declared = declared_shapes(model.graph)
        self.dims = declared_dims(model.graph)
        self.seed: Tracer | None = None  # the state of the random ops, once there is one
        self.state: Any = None
        self.examples = ExampleValues()
        self.refusals: dict[tuple[str, str], list[str]] = {}

    def refuse(self, name: str, reason: str, place: str) -> None:
        """Record that operator `name` at `place` is not supported, with the reason."""
        self.refusals.setdefault((name, reason), []).append(place)

    def unsupported(self) -> list[Unsupported]:
        """Everything refused so far, one entry for each name and reason."""
        return [Unsupported(name, reason, tuple(places))
                for (name, reason), places in self.refusals.items()]

    def random_state(self) -> Any:
        """The current state of the random generator, u64[2]. The first call adds a graph input for
        it."""
        if self.seed is None:
            taken = {v.name for v in (*self.model.graph.input, *self.model.graph.output)}
            name = next(n for n in ("rng", *(f"rng{i}" for i in range(2, 1000))) if n not in taken)
            self.seed = self.state = self.builder.input(TensorType(dtypes.uint64, (2,)), name)
        return self.state

    def attributes(self, node: Any, frame: Frame) -> dict[str, Any]:
        """The node's attributes by name as Python values. In a function body an attribute may refer
        to one of the caller, whose value is used."""
        out = {}
        for a in node.attribute:
            if not a.ref_attr_name:
                out[a.name] = reader.attribute(a, self.base_dir, self.limits)
            elif frame.attrs and a.ref_attr_name in frame.attrs:
                out[a.name] = frame.attrs[a.ref_attr_name]
        return out

    @abstractmethod
    def nodes(self, nodes: Sequence[Any], frame: Frame) -> None:
        """Run nodes in dependency order and store their outputs under their names in the frame."""

    @abstractmethod
    def subgraph(self, graph: Any, inputs: Sequence[Any], frame: Frame, label: str) -> list[Any]:
        """Run a subgraph here, with access to all names around it; returns its outputs."""

    @abstractmethod
    def by_body(self, node: Any, inputs: Sequence[Any], frame: Frame) -> Sequence[Any]:
        """The node's outputs, computed by the function body that onnx defines for its operator."""


@dataclass(frozen=True)
class Context:
    """What a handler can query beyond its inputs and attributes."""

    importer: Session
    frame: Frame
    node: Any
    inputs: Sequence[Any]

    @property
    def builder(self) -> Recorder:
        """The builder that the node's ops are added to."""
        return self.importer.builder

    @property
    def outputs(self) -> int:
        """How many outputs the node lists, those without a name included."""
        return len(self.node.output)

    @property
    def opset(self) -> int:
        """The opset version of the node's domain; 1 if the model gives none."""
        return version_of(self.node, self.frame.opsets)

    def declared(self, what: str) -> tuple[int, ...]:
        """The static shape that the model declares for output 0.

        Raises Refused, with `what` in the message, if it declares none.
        """
        shape = self.importer.declared.get(self.node.output[0]) if not self.frame.prefix else None
        if shape is None:
            raise Refused(f"{what} is computed from the model's inputs, so the shape of the result "
                          f"is not known; declare the shape of {self.node.output[0]!r} in the "
                          f"model, or make {what} a constant")
        return shape

    def room(self, i: int = 0) -> tuple[int, ...] | None:
        """The static shape that the model declares for output i, or None."""
        if self.frame.prefix or i >= len(self.node.output):
            return None
        return self.importer.declared.get(self.node.output[i])

    def dims(self) -> tuple[int | None, ...] | None:
        """What the model declares of the shape of output 0: None for a size that is no number, and
        instead of all for an unknown rank."""
        return None if self.frame.prefix else self.importer.dims.get(self.node.output[0])

    def most(self, axis: int, i: int = 0) -> int | None:
        """The size of one axis in the declared shape of output i, or None. It is an upper bound for
        a size that is computed at run time."""
        room = self.room(i)
        return None if room is None or axis >= len(room) else room[axis]

    def wanted(self, i: int) -> bool:
        """Whether output i of the node has a name, so that something may read it."""
        return i < len(self.node.output) and bool(self.node.output[i])

    def drawn(self, op: Any, *operands: Any, **attrs: Any) -> Any:
        """Apply a random op to the current generator state, and store the state after it. Returns
        the op's other results."""
        *values, after = op(*operands, self.importer.random_state(), **attrs)
        self.importer.state = after
        return values[0] if len(values) == 1 else values

    def body(self) -> list[Any]:
        """The node's outputs, computed by the function body that onnx defines for it."""
        return list(self.importer.by_body(self.node, self.inputs, self.frame))

    def subgraph(self, graph: Any, inputs: Sequence[Any], label: str = "") -> list[Any]:
        """Run a subgraph here, with access to all names around it; returns its outputs."""
        return self.importer.subgraph(graph, inputs, self.frame, label or self.node.output[0])


# ---- subgraphs ----------------------------------------------------------------------------------

class SequenceCaptures(shared.OuterNames):
    """The names around a region, which may be sequences."""

    def bring(self, x: Any) -> Any:
        """The region's own version of an outside value."""
        match x:
            case tuple():
                return tuple(map(self.bring, x))
            case SequenceRows():
                return replace(x, table=self.bring(x.table), count=self.bring(x.count))
            case _:
                return super().bring(x)


class TracedRegion(Closed):
    """A traced subgraph, and the sizes that it defines."""

    @property
    def limits(self) -> dict[str, Dim | None]:
        """The bounds of the sizes that the region defines."""
        return limits(Graph((), tuple(self.builder.nodes), ()))

    def own(self, d: Dim) -> bool:
        """Whether a dimension depends on sizes that the region defines. Such a dimension has no
        meaning outside."""
        return not self.limits.keys().isdisjoint(s.name for s in symbols(d))


Pack = Callable[[list[Any]], list[Any]]


def region(ctx: Context, graph: Any, types: Sequence[TensorType], label: str,
           pack: Pack = list, unpack: Pack = list) -> TracedRegion:
    """The subgraph traced on inputs of these types.

    `pack` turns the traced inputs into the subgraph's inputs, and `unpack` turns its results into
    tensors. Raises Refused if a result is not a tensor or if it draws random numbers.
    """
    importer = ctx.importer
    builder = Recorder(importer.inputs, True, EACH * importer.limits.nodes)
    captures = SequenceCaptures(ctx.frame.env, builder)
    names = [v.name for v in graph.input] if len(types) == len(graph.input) else [""] * len(types)
    inputs = [builder.input(t, name) for t, name in zip(types, names, strict=True)]
    frame = replace(ctx.frame, env=ChainMap(captures))
    outside, state = importer.builder, importer.state
    importer.builder = builder
    try:
        with builder.scope(label, outside.where, outside.of):
            results = unpack(importer.subgraph(graph, pack(list(inputs)), frame, label))
    finally:
        importer.builder = outside
    if importer.state is not state:
        raise Refused("random numbers inside a branch or a loop are not supported; draw them "
                      "outside and pass them in")
    if not all(isinstance(x, Tracer) for x in results):
        raise Refused("a branch, or a loop that is not unrolled, must not return sequences or "
                      "optionals")
    return TracedRegion(builder, inputs, results, captures.taken)
