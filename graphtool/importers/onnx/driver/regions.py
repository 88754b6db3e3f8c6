"""Subgraphs as regions of control flow: each is traced alone, and the outside values it reads are
collected."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from graphtool.front import regions as captures
from graphtool.importers.onnx.driver.computed import EACH, Recorder
from graphtool.importers.onnx.driver.registry import Refused
from graphtool.importers.onnx.driver.values import Known
from graphtool.importers.onnx.families.sequence_rows import Rows
from graphtool.ir.graph import Graph, TensorType, Value
from graphtool.ir.run_sizes import limits
from graphtool.ir.trace import Builder, Tracer
from graphtool.symbolic import Dim, symbols

if TYPE_CHECKING:
    from graphtool.importers.onnx.driver.context import Context


class Captures(captures.Captures):
    """The names around a region; a constant is copied into it."""

    def bring(self, x: Any) -> Any:
        """The region's own version of an outside value."""
        match x:
            case tuple():
                return tuple(map(self.bring, x))
            case Rows():
                return replace(x, table=self.bring(x.table), count=self.bring(x.count))
            case Known():
                return Known(x.array, self.builder, x.hint, x.param, x.row)
            case _:
                return super().bring(x)


@dataclass
class Region:
    """A traced subgraph: its inputs, its results, and the outside values that it reads."""

    builder: Builder
    inputs: list[Tracer]
    results: list[Tracer]
    taken: dict[Value, Tracer]

    @property
    def limits(self) -> dict[str, Dim | None]:
        """The bounds of the sizes that the region defines."""
        return limits(Graph((), tuple(self.builder.nodes), ()))

    def own(self, d: Dim) -> bool:
        """Whether a dimension depends on sizes that the region defines. Such a dimension has no
        meaning outside."""
        return not self.limits.keys().isdisjoint(s.name for s in symbols(d))

    def graph(self, outer: Sequence[Value]) -> Graph:
        """The closed graph: its own inputs, then one input for each value in `outer`, in that
        order."""
        own = [self.taken[v].value if v in self.taken else Value(v.type, v.hint) for v in outer]
        outputs = tuple(x.value for x in self.results)  # first: a constant is made on demand
        return Graph((*(t.value for t in self.inputs), *own), tuple(self.builder.nodes), outputs)


Pack = Callable[[list[Any]], list[Any]]


def region(ctx: Context, graph: Any, types: Sequence[TensorType], label: str,
           pack: Pack = list, unpack: Pack = list) -> Region:
    """The subgraph traced on inputs of these types.

    `pack` turns the traced inputs into the subgraph's inputs, and `unpack` turns its results into
    tensors. Raises Refused if a result is not a tensor or if it draws random numbers.
    """
    importer = ctx.importer
    builder = Recorder(importer.inputs, True, EACH * importer.limits.nodes)
    captures = Captures(ctx.frame.env, builder)
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
    return Region(builder, inputs, results, captures.taken)


def union(*regions: Region) -> list[Value]:
    """The outside values that any of the regions reads, each once."""
    return list(dict.fromkeys(v for r in regions for v in r.taken))
