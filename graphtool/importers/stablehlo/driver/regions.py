"""Regions of control flow as closed graphs: what they read from outside becomes an input."""

from __future__ import annotations

from collections.abc import MutableMapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from graphtool.importers.stablehlo.driver.pairs import Pair
from graphtool.importers.stablehlo.driver.values import Asked, Sizes, Spread, tensor
from graphtool.ir.graph import Graph, Value
from graphtool.ir.prune import prune
from graphtool.ir.trace import Builder, Tracer


class Captures(dict[str, Any]):
    """The names around a region. A constant is copied into it; another value becomes an input of
    the region when it is first read."""

    def __init__(self, outer: MutableMapping[str, Any], builder: Builder) -> None:
        super().__init__()
        self.outer, self.builder = outer, builder
        self.taken: dict[Value, Tracer] = {}

    def __missing__(self, name: str) -> Any:
        found = self[name] = self.bring(self.outer[name])
        return found

    def __contains__(self, name: object) -> bool:
        return super().__contains__(name) or name in self.outer

    def bring(self, x: Any) -> Any:
        """The region's own version of an outside value."""
        match x:
            case Tracer():
                if x.value not in self.taken:
                    self.taken[x.value] = self.builder.input(x.type, x.value.hint)
                return self.taken[x.value]
            case Spread(base, shape):
                return Spread(self.bring(base), shape)
            case Pair(real, imag):
                return Pair(self.bring(real), self.bring(imag))
            case Sizes() | Asked() | np.ndarray():
                return x
        return x


@dataclass
class Closed:
    """A region traced alone: its builder, inputs, results, and the outside values it reads."""

    builder: Builder
    inputs: list[Tracer]
    results: list[Any]
    taken: dict[Value, Tracer]

    def graph(self, outer: Sequence[Value]) -> Graph:
        """The closed graph: its own inputs, then one for each value in `outer`, in that order."""
        own = [self.taken[v].value if v in self.taken else Value(v.type, v.hint) for v in outer]
        outputs = tuple(tensor(x, self.builder).value for x in self.results)
        return prune(Graph((*(t.value for t in self.inputs), *own), tuple(self.builder.nodes),
                           outputs))


def union(*regions: Closed) -> list[Value]:
    """The outside values that any of the regions reads, each once."""
    return list(dict.fromkeys(v for r in regions for v in r.taken))
