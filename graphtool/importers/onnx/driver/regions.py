"""Subgraphs as regions of control flow: each is traced alone, and the outside values it reads are
collected."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from graphtool.front import Refused
from graphtool.front import regions as shared
from graphtool.front.regions import Closed
from graphtool.importers.onnx.driver.computed import EACH, Recorder
from graphtool.importers.onnx.families.sequence_rows import Rows
from graphtool.ir.graph import Graph, TensorType
from graphtool.ir.run_sizes import limits
from graphtool.ir.trace import Tracer
from graphtool.symbolic import Dim, symbols

if TYPE_CHECKING:
    from graphtool.importers.onnx.driver.context import Context


class Captures(shared.Captures):
    """The names around a region, which may be sequences."""

    def bring(self, x: Any) -> Any:
        """The region's own version of an outside value."""
        match x:
            case tuple():
                return tuple(map(self.bring, x))
            case Rows():
                return replace(x, table=self.bring(x.table), count=self.bring(x.count))
            case _:
                return super().bring(x)


class Region(Closed):
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
