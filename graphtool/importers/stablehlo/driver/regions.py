"""Regions of control flow as closed graphs: what they read from outside becomes an input."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from graphtool.importers import captures
from graphtool.importers.stablehlo.driver.parts import Group, Pair
from graphtool.importers.stablehlo.driver.quantised import Quantised
from graphtool.importers.stablehlo.driver.values import Spread, tensor
from graphtool.ir.graph import Graph, Value
from graphtool.ir.prune import prune
from graphtool.ir.trace import Builder, Tracer


class Captures(captures.Captures):
    """The names around a region; the parts of a spread or complex tensor are brought each."""

    def bring(self, x: Any) -> Any:
        """The region's own version of an outside value."""
        match x:
            case Spread(base, shape):
                return Spread(self.bring(base), shape)
            case Pair(real, imag):
                return Pair(self.bring(real), self.bring(imag))
            case Quantised(stored, scale):
                return Quantised(self.bring(stored), scale)
            case Group(inner):
                return Group(tuple(map(self.bring, inner)))
            case _:
                return super().bring(x)


@dataclass
class Closed:
    """A region traced alone: its builder, inputs, results, the outside values it reads, and the
    `wanted` values that stay although nothing reads them."""

    builder: Builder
    inputs: list[Tracer]
    results: list[Any]
    taken: dict[Value, Tracer]
    wanted: Collection[Value] = ()

    def graph(self, outer: Sequence[Value]) -> Graph:
        """The closed graph: its own inputs, then one for each value in `outer`, in that order."""
        own = [self.taken[v].value if v in self.taken else Value(v.type, v.hint) for v in outer]
        outputs = tuple(tensor(x, self.builder).value for x in self.results)
        return prune(Graph((*(t.value for t in self.inputs), *own), tuple(self.builder.nodes),
                           outputs), self.wanted)


def union(*regions: Closed) -> list[Value]:
    """The outside values that any of the regions reads, each once."""
    return list(dict.fromkeys(v for r in regions for v in r.taken))
