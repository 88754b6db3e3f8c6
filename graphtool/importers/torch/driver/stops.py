"""Where gradients end: values that leave a stretch of calls which has no gradient (`detach`,
`no_grad`), or one whose gradient capture cannot see. Knows no torch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from graphtool import ops as o
from graphtool.importers.torch.driver.records import STOPPED
from graphtool.ir.graph import Node, Value
from graphtool.ir.trace import Tracer


class Stops:
    """Puts an op where a value leaves such a stretch; inside of it there is nothing to mark.

    A stretch is `STOPPED`, or the reason why its gradient is unknown.
    """

    def __init__(self) -> None:
        self.home: dict[Value, str] = {}
        self.marked: dict[Value, Tracer] = {}

    def made(self, results: tuple[Any, ...], stretch: str,
             nodes: Sequence[Node]) -> tuple[Any, ...]:
        """The results of a call in the stretch, which has made these nodes.

        A call that hands on its operand gets the op at once: others read that operand too.
        """
        fresh = {v for n in nodes for v in n.outputs} if stretch else set()
        return tuple(self._made(x, stretch, fresh) for x in results)

    def _made(self, x: Any, stretch: str, fresh: set[Value]) -> Any:
        if not stretch or not isinstance(x, Tracer) or not x.dtype.is_float:
            return x
        if x.value not in fresh:
            return x if x.value in self.home else _mark(x, stretch)
        self.home.setdefault(x.value, stretch)
        return x

    def seen(self, x: Any, stretch: str) -> Any:
        """x as a call of this stretch reads it; empty for calls of none."""
        if isinstance(x, tuple):
            return tuple(self.seen(i, stretch) for i in x)
        home = self.home.get(x.value) if isinstance(x, Tracer) else None
        if home is None or stretch in (home, STOPPED):
            return x
        if x.value not in self.marked:
            self.marked[x.value] = _mark(x, home)
        return self.marked[x.value]


def _mark(x: Tracer, stretch: str) -> Tracer:
    with x.builder.scope(x.value.hint):
        return (o.detach(x) if stretch == STOPPED  # type: ignore[no-any-return]
                else o.unknown_gradient(x, reason=stretch))
