"""Marks of values that the backward pass must know: the border of a region of
torch.utils.checkpoint, and the places where gradients end (`detach`, `no_grad`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from graphtool import ops as o
from graphtool.front import Array
from graphtool.importers.torch.driver.captured import STOPPED
from graphtool.ir.graph import Node, Value, is_constant

# ---- regions of torch.utils.checkpoint ----------------------------------------------------------

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


# ---- where gradients end ------------------------------------------------------------------------

class Stops:
    """Adds an op for each value that leaves such a stretch; inside it no op is needed.

    A stretch is `STOPPED`, or the reason why its gradient is unknown.
    """

    def __init__(self) -> None:
        self.home: dict[Value, str] = {}
        self.marked: dict[Value, Array] = {}

    def made(self, results: tuple[Any, ...], stretch: str,
             nodes: Sequence[Node]) -> tuple[Any, ...]:
        """The results of a call in the stretch; `nodes` are the nodes of the call.

        A result that is an operand of the call gets the op at once: others read it too.
        """
        fresh = {v for n in nodes for v in n.outputs} if stretch else set()
        return tuple(self._made(x, stretch, fresh) for x in results)

    def _made(self, x: Any, stretch: str, fresh: set[Value]) -> Any:
        if not stretch or not isinstance(x, Array) or x.known is not None or not x.dtype.is_float:
            return x
        if x.value not in fresh:
            return x if x.value in self.home else _mark(x, stretch)
        self.home.setdefault(x.value, stretch)
        return x

    def seen(self, x: Any, stretch: str) -> Any:
        """The value that a call of this stretch ("": none) reads instead of x."""
        if isinstance(x, tuple):
            return tuple(self.seen(i, stretch) for i in x)
        home = self.home.get(x.value) if isinstance(x, Array) and x.known is None else None
        if home is None or stretch in (home, STOPPED):
            return x
        if x.value not in self.marked:
            self.marked[x.value] = _mark(x, home)
        return self.marked[x.value]


def _mark(x: Array, stretch: str) -> Array:
    with x.builder.scope(x.value.hint):
        return (o.stop_gradient(x) if stretch == STOPPED  # type: ignore[no-any-return]
                else o.unknown_gradient(x, reason=stretch))
