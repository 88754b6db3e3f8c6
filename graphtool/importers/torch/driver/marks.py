"""Marks where values cross the edges of regions that are to be computed again, which are those of
torch.utils.checkpoint. Knows no torch."""

from __future__ import annotations

from typing import Any

from graphtool import ops as o
from graphtool.ir.graph import Value, is_constant
from graphtool.ir.trace import Tracer


class Marks:
    """Puts an op where a value crosses the edge of a region."""

    def __init__(self) -> None:
        self.home: dict[Value, int] = {}  # the region that a value is in; none: outside of all
        self.crossed: dict[tuple[Value, int], Tracer] = {}

    def made(self, x: Any, region: int) -> None:
        """x was made in a region."""
        if region and isinstance(x, Tracer):
            self.home.setdefault(x.value, region)

    def seen(self, x: Any, region: int) -> Any:
        """x as calls of this region, 0 for those of none, read it; constants are everywhere."""
        if isinstance(x, tuple):
            return tuple(self.seen(i, region) for i in x)
        if not isinstance(x, Tracer) or self.home.get(x.value, 0) == region:
            return x
        node = x.builder.made.get(x.value)
        if is_constant(node):
            return x
        key = (x.value, region)
        if key not in self.crossed:
            self.crossed[key] = self._crossing(x, region)
        return self.crossed[key]

    def _crossing(self, x: Tracer, region: int) -> Tracer:
        hint = x.value.hint
        if home := self.home.get(x.value, 0):
            x = self._mark(x, home, "out", hint)
        if region:
            x = self._mark(x, region, "in", hint)
            self.home[x.value] = region
        return x

    def _mark(self, x: Tracer, region: int, edge: str, hint: str) -> Tracer:
        with x.builder.scope(hint):
            out: Tracer = o.checkpoint(x, region=region, edge=edge)
        return out
