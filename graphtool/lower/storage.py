"""What buffer assignment gives the rest of lowering: buffers, views of values, and copies."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from graphtool.dtypes import DType
from graphtool.io.weights import Weight
from graphtool.ir.graph import Node, Value
from graphtool.loops.program import packs
from graphtool.loops.view import View
from graphtool.symbolic import Dim


@dataclass
class Storage:
    """One buffer before the arena is planned."""

    name: str
    dtype: DType
    size: Dim
    space: Literal["input", "output", "weight", "arena", "check"]
    slot: int = 0
    weight: Weight | None = None
    label: str = ""

    @property
    def packed(self) -> bool:
        """Whether elements of less than a byte share bytes, so that only single loads read it."""
        return packs(self.space, self.dtype)


@dataclass
class Copy:
    """A window to fill from a value, from the result of a movement op, or with a number."""

    source: Value | Node | float
    target: View
    label: str


@dataclass
class Assignment:
    """The result: a view for each value, all buffers, and the copies to make before each node."""

    views: dict[Value, View] = field(default_factory=dict)
    buffers: dict[str, Storage] = field(default_factory=dict)
    copies: dict[Node | None, list[Copy]] = field(default_factory=dict)  # None: at the very end


@dataclass
class Edge:
    """The views of a region's inputs, and those required for its outputs, in the buffers outside
    it."""

    inputs: tuple[View, ...]
    outputs: tuple[View | None, ...]
    buffers: dict[str, Storage]
