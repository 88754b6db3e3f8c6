"""The layers of a graph that can be quantised: products with a constant weight, tables, and
products of two activations.

A layer reads one activation and one constant float weight. Its name is that of its weight, that of
a product of two activations the name of the product. Which operand of an op can be a weight is told
by the op's record (`weighing`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, Literal

import numpy as np

from graphtool import dtypes
from graphtool import ops as o
from graphtool.errors import InputError, near
from graphtool.ir.facets import Movement, Trait, Weighing
from graphtool.ir.graph import Graph, Node, Value, is_constant, producers, readers_of, use_counts
from graphtool.passes.recognise import recognise
from graphtool.rewrite.patterns import bindings, pattern
from graphtool.symbolic import bounds, product

Array = np.ndarray[Any, Any]
Kind = Literal["conv", "product", "table", "activations"]
_ROWS = 4  # rows from which on kernels multiply two activations as integers


@dataclass(frozen=True, eq=False)
class Layer:
    """A node with a weight: `axis` is the axis of the weight with one index for each output channel
    (row of a table), `bias` the node that adds a constant to the result, if there is one.

    A product of two activations has no weight; `other` is the right one.
    """

    name: str
    node: Node
    kind: Kind
    x: Value
    weight: Node | None
    axis: int = 0
    bias: Node | None = None
    other: Value | None = None

    @property
    def w(self) -> Array:
        """The weight, as it is stored."""
        assert self.weight is not None
        return np.asarray(self.weight.attrs["data"].source)

    @property
    def nbytes(self) -> int:
        """Bytes of the weight."""
        return 0 if self.weight is None else int(self.weight.attrs["data"].nbytes)

    @property
    def read(self) -> tuple[Value, ...]:
        """The activations that it multiplies."""
        return (self.x,) if self.other is None else (self.x, self.other)

    @property
    def rows(self) -> Array:
        """The weight of a product as [outputs, inputs]; that of a convolution with the channels of
        each tap side by side."""
        if self.kind == "conv":
            return np.moveaxis(self.w, 1, -1).reshape(len(self.w), -1)
        return self.w if self.axis == 0 else self.w.T

    @property
    def deep(self) -> bool:
        """Whether each output channel is a sum over the channels of one row or pixel alone."""
        one = self.kind == "conv" and self.node.attrs["groups"] == 1 and (
            product(self.w.shape[2:]) == 1)
        return one or self.kind == "product"

    @property
    def hint(self) -> str:
        """The name of the weight in the graph."""
        assert self.weight is not None
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


def reading(v: Value) -> Layer:
    """A value whose range is wanted, as a layer without a weight. Its node is none of the graph:
    an input of the model has none."""
    node = Node(o.assume, (v,), {"shape": v.type.shape}, (v,))
    return Layer(v.hint, node, "activations", v, None, other=v)


def layers(graph: Graph) -> list[Layer]:
    """The layers with a weight, in order. A weight that two layers read gives the second a name
    with #2."""
    made_by, uses = producers(graph), use_counts(graph)
    readers = readers_of(graph)
    out: list[Layer] = []
    taken: dict[str, int] = {}
    for node in graph.nodes:
        operands = _operands(node, made_by)
        if operands is None:
            continue
        way, x, weight = operands
        name = weight.outputs[0].hint.lstrip("@")
        taken[name] = taken.get(name, 0) + 1
        name = f"{name}#{taken[name]}" if taken[name] > 1 else name
        y = node.outputs[0]
        after = readers.get(y, [])
        bias = after[0] if len(after) == 1 and uses[y] == 1 and _adds(
            after[0], y, made_by, way.kind, bool(node.attrs.get("channels_last"))) else None
        out.append(Layer(name, node, way.kind, x, weight, way.axis(node.attrs), bias))
    return out


def _operands(node: Node, made_by: Mapping[Value, Node]) -> tuple[Weighing, Value, Node] | None:
    """How the node weighs, its data and its constant weight; None if it is no layer."""
    way = node.op.weighing
    if way is None or not way.holds(node.attrs) or (way.across and node.attrs[way.across]):
        return None
    x, w = node.inputs[way.data], node.inputs[way.weight]
    weight = made_by.get(w) if isinstance(w, Value) else None
    if not isinstance(x, Value) or weight is None or not _is_weight(weight) or is_constant(
            made_by.get(x)):
        return None
    rank = weight.outputs[0].type.rank
    fits = rank in (3, 4) if way.kind == "conv" else rank == 2
    real = way.kind == "table" or x.type.dtype is dtypes.float32
    return (way, x, weight) if fits and real else None


def pairs(graph: Graph) -> list[Layer]:
    """The products of two activations that are not parts of attention, in order.

    The kernel of attention keeps its scores in the nearest cache; in three parts, with products of
    bytes, it took longer wherever that was measured (1.07 to 1.5 times on a Xeon with AMX).
    """
    made_by = producers(graph)
    products = [n for n in graph.nodes if _multiplies(n, made_by)]
    alone = {n.outputs[0].hint for n in (recognise(graph).nodes if products else ())
             if n.op.weighing is not None}
    return [Layer(n.outputs[0].hint, n, "activations", x, None, other=w) for n in products
            if n.outputs[0].hint in alone and not any(
                isinstance(v, Value) and is_constant(made_by.get(v)) for v in n.inputs)
            for x, w in [n.inputs[:2]] if isinstance(x, Value) and isinstance(w, Value)]


def _multiplies(node: Node, made_by: Mapping[Value, Node]) -> bool:
    """Whether the node multiplies two matrices of float32 for which there are integer kernels."""
    way = node.op.weighing
    if way is None or way.kind != "product" or not way.turned or not way.holds(node.attrs):
        return False
    x, w = node.inputs[:2]
    if not isinstance(x, Value) or not isinstance(w, Value) or x.type.dtype is not dtypes.float32:
        return False
    *lead, m, k = x.type.shape
    m, k = (k, m) if node.attrs[way.across] else (m, k)
    rows = m if w.type.rank > 2 else product((*lead, m))
    known = all(isinstance(d, int) and d for d in (k, *w.type.shape[-2:]))
    return known and x.type.rank >= w.type.rank and (bounds(rows)[1] or _ROWS) >= _ROWS


def _is_weight(node: Node) -> bool:
    return is_constant(node) and node.outputs[0].type.dtype is dtypes.float32 and (
        product(node.outputs[0].type.shape) > 0)


_SUM = pattern(lambda y, term: o.add(y, term))


def _adds(node: Node, y: Value, made_by: Mapping[Value, Node], kind: Kind, last: bool) -> bool:
    """Whether the node adds a constant with one number for each channel."""
    term = next((env["term"] for env in bindings(_SUM, node.outputs[0], made_by.get)
                 if env["y"] is y and node.outputs[0].type.shape == y.type.shape), None)
    if not isinstance(term, Value) or not is_constant(made_by.get(term)):
        return False
    axis = y.type.rank - 1 if kind == "product" or last else 1
    shape = (1,) * (y.type.rank - term.type.rank) + term.type.shape
    return len(shape) == y.type.rank and all(
        d == (y.type.shape[a] if a == axis else 1) for a, d in enumerate(shape))


def named(all_layers: Sequence[Layer], only: Sequence[str], skip: Sequence[str]) -> list[Layer]:
    """The layers whose names fit one of `only` (all if it is empty) and none of `skip`.

    Raises InputError GT0640 for a pattern that fits no layer, GT0642 if a weight is not finite.
    """
    names = [layer.name for layer in all_layers]
    for wanted in (*only, *skip):
        if not any(fnmatchcase(n, wanted) for n in names):
            raise InputError("GT0640", f"no layer is called {wanted!r}", hint=near(
                wanted, names, f"the layers are {', '.join(names[:12])}"))
    chosen = [layer for layer in all_layers
              if (not only or any(fnmatchcase(layer.name, p) for p in only))
              and not any(fnmatchcase(layer.name, p) for p in skip)]
    for layer in chosen:
        if layer.weight is not None and not np.isfinite(layer.w).all():
            raise InputError("GT0642", f"the weight {layer.name} has infinities or NaN",
                             hint=f"--skip {layer.name!r} leaves it as it is")
    return chosen


def stays(node: Node) -> bool:
    """Whether the results are elements of the operands, or the largest of them."""
    return bool(node.op.movement & (Movement.ONCE | Movement.SEVERAL)
                or node.op.traits & Trait.LARGEST)


def moved(v: Value, made_by: Mapping[Value, Node]) -> list[Value]:
    """v and the values that have its elements, or the largest of them, down to the values that are
    computed: an element on their grid stays on it."""
    node = made_by.get(v)
    if node is None or v.type.dtype is not dtypes.float32:
        return [v]
    if stays(node) and all(isinstance(x, Value) for x in node.inputs):
        return [v, *(u for x in node.inputs if isinstance(x, Value) for u in moved(x, made_by))]
    return [v]


def origins(v: Value, made_by: Mapping[Value, Node]) -> list[Value]:
    """Those of the values in `moved` that are computed."""
    return [u for u in moved(v, made_by) if moved(u, made_by) == [u]]
