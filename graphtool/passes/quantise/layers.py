"""The layers of a graph that can be quantised: products with a constant weight, and tables.

A layer reads one activation and one constant float weight. Its name is that of its weight.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, Literal

import numpy as np

from graphtool import dtypes
from graphtool import ops as o
from graphtool.errors import InputError, near
from graphtool.ir.facets import Movement
from graphtool.ir.graph import Graph, Node, Value, is_constant, producers, use_counts
from graphtool.symbolic import product

Array = np.ndarray[Any, Any]
Kind = Literal["conv", "product", "table"]


@dataclass(frozen=True, eq=False)
class Layer:
    """A node with a weight: `axis` is the axis of the weight with one index for each output channel
    (row of a table), `bias` the node that adds a constant to the result, if there is one."""

    name: str
    node: Node
    kind: Kind
    x: Value
    weight: Node
    axis: int
    bias: Node | None = None

    @property
    def w(self) -> Array:
        """The weight, as it is stored."""
        return np.asarray(self.weight.attrs["data"].source)

    @property
    def rows(self) -> Array:
        """The weight of a product as [outputs, inputs]."""
        return self.w if self.axis == 0 else self.w.T

    @property
    def hint(self) -> str:
        """The name of the weight in the graph."""
        return self.weight.outputs[0].hint

    @property
    def channels(self) -> int:
        """The number of output channels."""
        return int(self.w.shape[self.axis])

    @property
    def input_axis(self) -> int:
        """The axis of x along which the channels that the layer sums over stand."""
        return self.x.type.rank - 1 if self.kind == "product" or (
            self.node.attrs.get("channels_last")) else 1


def layers(graph: Graph) -> list[Layer]:
    """The layers in order. A weight that two layers read gives the second a name with #2."""
    made, uses = producers(graph), use_counts(graph)
    readers: dict[Value, list[Node]] = {}
    for node in graph.nodes:
        for x in node.inputs:
            if isinstance(x, Value):
                readers.setdefault(x, []).append(node)
    out: list[Layer] = []
    taken: dict[str, int] = {}
    for node in graph.nodes:
        found = _layer(node, made)
        if found is None:
            continue
        kind, x, weight, axis = found
        name = weight.outputs[0].hint.lstrip("@")
        taken[name] = taken.get(name, 0) + 1
        name = f"{name}#{taken[name]}" if taken[name] > 1 else name
        y = node.outputs[0]
        after = readers.get(y, [])
        bias = after[0] if len(after) == 1 and uses[y] == 1 and _adds(
            after[0], y, made, kind, bool(node.attrs.get("channels_last"))) else None
        out.append(Layer(name, node, kind, x, weight, axis, bias))
    return out


def _layer(node: Node, made: dict[Value, Node]) -> tuple[Kind, Value, Node, int] | None:
    if node.op not in (o.conv, o.linear, o.matmul, o.embedding, o.gather):
        return None
    operands = [x for x in node.inputs[:2] if isinstance(x, Value)]
    if len(operands) < 2:
        return None
    if node.op in (o.embedding, o.gather):
        table, ids = operands
        weight = made.get(table)
        rows = node.op is o.embedding or (node.attrs["axes"] == (0,) and not node.attrs["batch"])
        wide = table.type.rank == 2 and rows and not is_constant(made.get(ids))
        if not wide or not _is_weight(weight):
            return None
        assert weight is not None
        return "table", ids, weight, 0
    x, w = operands
    weight = made.get(w)
    if not _is_weight(weight) or x.type.dtype is not dtypes.float32 or is_constant(made.get(x)):
        return None
    assert weight is not None
    if node.op is o.conv:
        plain = node.attrs["batch_groups"] == 1 and not node.attrs["dtype"]
        return ("conv", x, weight, 0) if plain and x.type.rank in (3, 4) else None
    if w.type.rank != 2:
        return None
    if node.op is o.linear:
        return "product", x, weight, 0
    if node.attrs["transpose_a"] or x.type.rank < 2:
        return None
    return "product", x, weight, 0 if node.attrs["transpose_b"] else 1


def _is_weight(node: Node | None) -> bool:
    return is_constant(node) and node.outputs[0].type.dtype is dtypes.float32 and (
        product(node.outputs[0].type.shape) > 0)


def _adds(node: Node, y: Value, made: dict[Value, Node], kind: Kind, last: bool) -> bool:
    """Whether the node adds a constant with one number for each channel."""
    if node.op is not o.add or node.outputs[0].type.shape != y.type.shape:
        return False
    (term,) = [x for x in node.inputs if x is not y] or [None]
    if not isinstance(term, Value) or not is_constant(made.get(term)):
        return False
    axis = y.type.rank - 1 if kind == "product" or last else 1
    shape = (1,) * (y.type.rank - term.type.rank) + term.type.shape
    return len(shape) == y.type.rank and all(
        d == (y.type.shape[a] if a == axis else 1) for a, d in enumerate(shape))


def named(found: Sequence[Layer], only: Sequence[str], skip: Sequence[str]) -> list[Layer]:
    """The layers whose names fit one of `only` (all if it is empty) and none of `skip`.

    Raises InputError GT0640 for a pattern that fits no layer, GT0642 if a weight is not finite.
    """
    names = [layer.name for layer in found]
    for pattern in (*only, *skip):
        if not any(fnmatchcase(n, pattern) for n in names):
            raise InputError("GT0640", f"no layer is called {pattern!r}", hint=near(
                pattern, names, f"the layers are {', '.join(names[:12])}"))
    chosen = [layer for layer in found
              if (not only or any(fnmatchcase(layer.name, p) for p in only))
              and not any(fnmatchcase(layer.name, p) for p in skip)]
    for layer in chosen:
        if not np.isfinite(layer.w).all():
            raise InputError("GT0642", f"the weight {layer.name} has infinities or NaN",
                             hint=f"--skip {layer.name!r} leaves it as it is")
    return chosen


def moved(v: Value, made: dict[Value, Node]) -> list[Value]:
    """v and the values that have its elements, or the largest of them, down to those that are
    computed: what is on their grid stays on it."""
    node = made.get(v)
    if node is None or v.type.dtype is not dtypes.float32:
        return [v]
    if node.op.movement & Movement.ONCE or node.op is o.max_pool or (
            node.op is o.concat and all(isinstance(x, Value) for x in node.inputs)):
        return [v, *(u for x in node.inputs if isinstance(x, Value) for u in moved(x, made))]
    return [v]


def origins(v: Value, made: dict[Value, Node]) -> list[Value]:
    """Those of the values in `moved` that are computed."""
    return [u for u in moved(v, made) if moved(u, made) == [u]]
