"""Marks the values that enter or leave a region of torch.utils.checkpoint, which the backward pass
may compute again. Does not import torch."""

from __future__ import annotations

from typing import Any

from graphtool import ops as o
from graphtool.front import Array
from graphtool.ir.graph import Value, is_constant


class Marks:
    """Adds a checkpoint op for each value that enters or leaves a region."""

    def __init__(self) -> None:
        self.home: dict[Value, int] = {}  # the region that a value is in; none: outside of all
        self.crossed: dict[tuple[Value, int], Array] = {}

    def made(self, x: Any, region: int) -> None:
        """Records that x was computed in a region; 0 is outside of all."""
        if region and isinstance(x, Array) and x.known is None:
            self.home.setdefault(x.value, region)

    def seen(self, x: Any, region: int) -> Any:
        """What calls of this region (0: none) read instead of x; constants need no mark."""
        if isinstance(x, tuple):
            return tuple(self.seen(i, region) for i in x)
        if not isinstance(x, Array) or x.known is not None or is_constant(x.maker) or (
                self.home.get(x.value, 0) == region):
            return x
        key = (x.value, region)
        if key not in self.crossed:
            self.crossed[key] = self._crossing(x, region)
        return self.crossed[key]

    def _crossing(self, x: Array, region: int) -> Array:
        hint = x.value.hint
        if home := self.home.get(x.value, 0):
            x = self._mark(x, home, "out", hint)
        if region:
            x = self._mark(x, region, "in", hint)
            self.home[x.value] = region
        return x

    def _mark(self, x: Array, region: int, edge: str, hint: str) -> Array:
        with x.builder.scope(hint):
            return o.checkpoint(x, region=region, edge=edge)  # type: ignore[no-any-return]
