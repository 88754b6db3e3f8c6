"""What a node sees: the frame of names it stands in, and the context its handler may ask."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from graphtool.importers.onnx.driver.registry import Refused
from graphtool.ir.trace import Builder

if TYPE_CHECKING:
    from graphtool.importers.onnx.driver.convert import Importer

REFUSED = object()  # the value of an output whose node was refused


@dataclass(frozen=True)
class Frame:
    """What names mean at one place: values, opsets, the name prefix, a function's attributes."""

    env: ChainMap[str, Any]
    opsets: Mapping[str, int]
    prefix: str = ""
    attrs: Mapping[str, Any] | None = None
    depth: int = 0


@dataclass(frozen=True)
class Context:
    """What a handler may ask beyond its inputs and attributes."""

    importer: Importer
    frame: Frame
    node: Any
    inputs: Sequence[Any]

    @property
    def builder(self) -> Builder:
        return self.importer.builder

    @property
    def outputs(self) -> int:
        return len(self.node.output)

    @property
    def opset(self) -> int:
        return self.frame.opsets.get(self.node.domain, 1)

    def declared(self, what: str) -> tuple[int, ...]:
        """The static shape that the model gives for output 0, where `what` is not known."""
        shape = self.importer.declared.get(self.node.output[0]) if not self.frame.prefix else None
        if shape is None:
            raise Refused(f"{what} is computed from the inputs")
        return shape

    def room(self, i: int = 0) -> tuple[int, ...] | None:
        """The static shape that the model gives for output i, if it gives one."""
        if self.frame.prefix or i >= len(self.node.output):
            return None
        return self.importer.declared.get(self.node.output[i])

    def most(self, axis: int, i: int = 0) -> int | None:
        """The bound that the model's own shape of output i is for a computed size."""
        room = self.room(i)
        return None if room is None or axis >= len(room) else room[axis]

    def wanted(self, i: int) -> bool:
        """Whether the node's output i has a name."""
        return i < len(self.node.output) and bool(self.node.output[i])

    def drawn(self, op: Any, *operands: Any, **attrs: Any) -> Any:
        """What a random op gives; the state that it draws from moves on."""
        *values, after = op(*operands, self.importer.random_state(), **attrs)
        self.importer.state = after
        return values[0] if len(values) == 1 else values

    def body(self) -> list[Any]:
        """The outputs by the body that onnx gives the operator."""
        return list(self.importer.by_body(self.node, self.inputs, self.frame))

    def subgraph(self, graph: Any, inputs: Sequence[Any], label: str = "") -> list[Any]:
        """The outputs of a subgraph run here, in view of all names around it."""
        return self.importer.subgraph(graph, inputs, self.frame, label or self.node.output[0])
