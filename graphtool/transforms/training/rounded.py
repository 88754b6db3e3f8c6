"""Quantised graphs for training: integers become the real numbers that they stand for.

A weight is a real parameter that is rounded to its grid in each step; the gradient passes straight
through the rounding, where the number was not cut off (Bengio, Léonard and Courville 2013). What no
gradient passes, as the frozen body below a head that is trained, stays in integers.
`integers` is the way back.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from graphtool import dtypes
from graphtool import ops as o
from graphtool.analysis.ranges import BYTES, maker_in, rounding, to_bytes
from graphtool.ir.facets import Movement, Trait
from graphtool.ir.graph import (
    Graph,
    Node,
    Operand,
    Value,
    is_constant,
    is_parameter,
    producers,
    readers_of,
)
from graphtool.ir.replay import prune, rebuild
from graphtool.ir.text import value_names
from graphtool.ir.trace import Builder, Tracer
from graphtool.transforms.training.wrt import selected

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class IntWeight:
    """A parameter of integers q, which stand for q·scale: the node that multiplies, the operand
    that is the scale, and the scale's values."""

    weight: Node
    scaled: Node
    operand: int
    scale: Array


def held(graph: Graph) -> dict[Node, IntWeight]:
    """The parameters of integers by their nodes; a parameter with other uses is left out."""
    made_by = producers(graph)
    readers = readers_of(graph)
    result: dict[Node, list[IntWeight]] = {}
    for node in graph.nodes:
        if node.op is o.mul and node.outputs[0].type.dtype is dtypes.float32:
            for i, x in enumerate(node.inputs):
                weight, scale = _parameter(x, made_by), _array(node.inputs[1 - i], made_by)
                if weight is not None and scale is not None and (scale > 0).all():
                    result.setdefault(weight, []).append(IntWeight(weight, node, 1 - i, scale))
    return {weight: uses[0] for weight, uses in result.items()
            if len(uses) == 1 and len(readers[weight.outputs[0]]) == 1}


def _parameter(x: Operand, made_by: Mapping[Value, Node]) -> Node | None:
    """The parameter whose integers x has, as floats; its zero point must be 0."""
    node = maker_in(x, made_by)
    while node is not None and not is_constant(node):
        if node.op is o.sub:
            zero = _array(node.inputs[1], made_by)
            if zero is None or zero.any():
                return None
        elif Trait.CONVERTS not in node.op.traits:
            return None
        node = maker_in(node.inputs[0], made_by)
    if not is_parameter(node) or node.outputs[0].type.dtype not in (*BYTES, dtypes.int32):
        return None
    return node


def _array(x: Operand, made_by: Mapping[Value, Node]) -> Array | None:
    """The values of a literal or a constant, which may have been cast or reshaped."""
    if not isinstance(x, Value):
        return None if x is None else np.asarray(x)
    node = made_by.get(x)
    if is_constant(node):
        return np.asarray(node.attrs["data"].source)
    if node is None or not (Trait.CONVERTS in node.op.traits or Movement.KEEPS in node.op.movement):
        return None
    inner = _array(node.inputs[0], made_by)
    if inner is None:
        return None
    return inner.astype(x.type.dtype.numpy).reshape(
        tuple(d for d in x.type.shape if isinstance(d, int)))


def integers(h: IntWeight, real: Array) -> Array:
    """The integers nearest to real numbers; numbers beyond the grid become its ends."""
    row = h.weight.outputs[0].type.dtype
    steps = np.rint(real.astype(np.float64) / h.scale)
    return np.asarray(np.clip(steps, row.low, row.high).astype(row.numpy))


def as_reals(graph: Graph, wrt: Sequence[str]) -> Graph:
    """The graph in which quantisation has gradients where those by `wrt` pass; what they do not
    pass stays in integers. The same object if nothing is quantised there.

    `wrt` is a list as `selected` takes it; integers that training can make reals count as floats.
    """
    weights, casts = held(graph), _casts(graph)
    if not weights and not casts:
        return graph
    everything = prune(rebuild(graph, _Reals(weights, casts).node))
    names = value_names(everything)
    chosen = {names[v] for v in selected(everything, names, wrt)}
    passed = _downstream(graph, {v for v, name in value_names(graph).items() if name in chosen})
    weights = {n: h for n, h in weights.items() if n.outputs[0] in passed}
    casts = {n: rounded for n, rounded in casts.items() if n.inputs[0] in passed}
    return prune(rebuild(graph, _Reals(weights, casts).node)) if weights or casts else graph


def _casts(graph: Graph) -> dict[Node, Node]:
    """The casts of floats to bytes, and the node of each that rounds."""
    made_by = producers(graph)
    return {n: rounded for n in graph.nodes if to_bytes(n)
            and (rounded := rounding(n.inputs[0], made_by)[0]) is not None
            and rounded.outputs[0].type.dtype is dtypes.float32}


def _downstream(graph: Graph, values: set[Value]) -> set[Operand]:
    """The values, and all that are computed from them."""
    found: set[Operand] = set(values)
    for node in graph.nodes:
        if not found.isdisjoint(node.inputs):
            found.update(node.outputs)
    return found


class _Reals:
    """One rebuilding: `reals` has the floats that stand for values of integers."""

    def __init__(self, weights: Mapping[Node, IntWeight], casts: Mapping[Node, Node]) -> None:
        self.scaled = {h.scaled: h for h in weights.values()}
        self.casts, self.rounds = casts, set(casts.values())
        self.reals: dict[Value, Any] = {}

    def node(self, node: Node, xs: tuple[Operand, ...], b: Builder) -> Any:
        """The results for a node, or None to keep it."""
        wide: list[Any] = [Tracer(x, b) if isinstance(x, Value) else x for x in xs]
        if node in self.scaled:
            return (self.weight(self.scaled[node], wide, b),)
        if node in self.rounds:
            return (through(wide[0]),)
        if node in self.casts:
            row = node.outputs[0].type.dtype
            self.reals[node.outputs[0]] = o.clamp(wide[0], float(row.low), float(row.high))
            return None
        first = node.inputs[0] if node.inputs else None
        real = self.reals.get(first) if isinstance(first, Value) else None
        if real is not None and node.op is o.sub:
            zero = wide[1]
            self.reals[node.outputs[0]] = o.sub(real, o.cast(zero, dtype=dtypes.float32)
                                                if isinstance(zero, Tracer) else float(zero))
        elif real is not None and Trait.CONVERTS in node.op.traits:
            if node.outputs[0].type.dtype is dtypes.float32:
                return (real,)
            if node.outputs[0].type.dtype.is_integer:
                self.reals[node.outputs[0]] = real
        return None

    @staticmethod
    def weight(h: IntWeight, wide: list[Any], b: Builder) -> Any:
        """The real parameter on its grid; one of int32 has so many steps that it is not rounded."""
        node, row = h.weight, h.weight.outputs[0].type.dtype
        real = np.asarray(node.attrs["data"].source.astype(np.float32) * h.scale, np.float32)
        w = b.constant(real, node.outputs[0].hint, True, node.of)
        if row is dtypes.int32:
            return w
        scale = wide[h.operand]
        steps = o.clamp(through(o.div(w, scale)), float(row.low), float(row.high))
        return o.mul(steps, scale)


def through(x: Any) -> Any:
    """round(x), with the gradient of x."""
    return o.add(x, o.stop_gradient(o.sub(o.round(x), x)))
