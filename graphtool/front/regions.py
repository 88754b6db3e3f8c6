"""Regions of control flow as closed graphs: what they read from outside becomes an input."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from graphtool.front.array import Array
from graphtool.ir.graph import Graph, Value
from graphtool.ir.replay import prune
from graphtool.ir.trace import Builder, Tracer


class OuterNames(dict[str, Any]):
    """The names around a region. A value becomes an input of the region when it is first read,
    unless import knows it; each importer says in `bring` what becomes of what else its names stand
    for."""

    def __init__(self, outer: Mapping[str, Any], builder: Builder) -> None:
        super().__init__()
        self.outer, self.builder = outer, builder
        self.taken: dict[Value, Tracer] = {}

    def __missing__(self, name: str) -> Any:
        value = self[name] = self.bring(self.outer[name])
        return value

    def __contains__(self, name: object) -> bool:
        return super().__contains__(name) or name in self.outer

    def bring(self, x: Any) -> Any:
        """The region's own version of an outside value; what is no tensor stays as it is."""
        if isinstance(x, Array) and x.known is not None:
            return Array(self.builder, x.type, known=x.known, hint=x.hint, param=x.param)
        if isinstance(x, Array) and x.base is not None:
            return Array(self.builder, x.type, base=self.bring(x.base))
        if not isinstance(x, Tracer):
            return x
        if x.value not in self.taken:
            self.taken[x.value] = self.builder.input(x.type, x.value.hint)
        return self.taken[x.value]


@dataclass
class Closed:
    """A region traced alone: its builder, inputs, results, the outside values it reads, and the
    `wanted` values that stay although nothing reads them."""

    builder: Builder
    inputs: Sequence[Tracer]
    results: list[Any]
    taken: dict[Value, Tracer]
    wanted: Collection[Value] = ()

    def graph(self, outer: Sequence[Value]) -> Graph:
        """The closed graph: its own inputs, then one for each value in `outer`, in that order."""
        captured = [self.taken[v].value if v in self.taken else Value(v.type, v.hint)
                    for v in outer]
        outputs = tuple(x.value for x in self.results)
        return prune(Graph((*(t.value for t in self.inputs), *captured), tuple(self.builder.nodes),
                           outputs), self.wanted)


def union(*regions: Closed) -> list[Value]:
    """The outside values that any of the regions reads, each once."""
    return list(dict.fromkeys(v for r in regions for v in r.taken))
