"""Moves gates of channels to the weights: (x ⊙ g)·w = x·(g ⊙ w) if one gate applies to all rows.

Squeeze-and-excite multiplies each channel of an image by a number before a product reads it. If the
image is larger than the weights, the weights are multiplied instead, after they were packed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from graphtool import ops as o
from graphtool.ir.graph import Graph, Node, Operand, Value
from graphtool.ir.replay import rebuild
from graphtool.ir.trace import Builder, Tracer
from graphtool.kernels.choice.machine import gate
from graphtool.passes.select.goal import Goal, is_constant
from graphtool.rewrite.patterns import bindings, pattern
from graphtool.symbolic import product, typical_size

_SCALED = pattern(lambda image, gate: o.mul(image, gate))


@dataclass(frozen=True)
class Gated:
    """An image, and the factor of each of its channels."""

    image: Value
    gate: Value


def gates(goal: Goal, graph: Graph) -> Graph:
    """The graph in which gates multiply weights, if that moves fewer bytes."""
    read = Counter(x for n in graph.nodes for x in n.inputs)
    read.update(graph.outputs)

    def rewrite(node: Node, inputs: tuple[Operand, ...], b: Builder) -> Sequence[Any] | None:
        if node.op is not o.gemm or read[node.inputs[0]] != 1:
            return None
        gated, packed = _gated(inputs[0], b), inputs[1]
        assert isinstance(packed, Value)
        # an image without other readers need not be stored before it is multiplied
        if gated is None or read[gated.image] < 2 or not _constant(packed, b):
            return None
        sizes = [4 * typical_size(product(v.type.shape)) for v in (gated.image, packed)]
        alone, scaled = gate(goal.target, *sizes)
        if scaled >= alone:
            return None
        goal.note(Tracer(gated.image, b), f"its weights are scaled by {gated.gate.hint}, "
                  f"{scaled:.3g} µs: {alone:.3g} for the image, by the cost model")
        column = o.reshape(Tracer(gated.gate, b), shape=(1, gated.gate.type.shape[-1], 1))
        return (o.gemm(Tracer(gated.image, b), Tracer(packed, b) * column,
                                **node.attrs),)
    return rebuild(graph, rewrite)


def _gated(x: Operand, b: Builder) -> Gated | None:
    """The image and the gate, if x is the product of an image and a computed gate."""
    for env in bindings(_SCALED, x, b.made_by.get):
        image, gate = env["image"], env["gate"]
        if isinstance(x, Value) and isinstance(image, Value) and isinstance(gate, Value) and (
                gate.type.rank and image.type == x.type and _one_row(gate)
                and gate.type.shape[-1] == image.type.shape[-1]
                and not is_constant(Tracer(gate, b))):
            return Gated(image, gate)
    return None


def _one_row(v: Value) -> bool:
    return all(d == 1 for d in v.type.shape[:-1])


def _constant(packed: Value, b: Builder) -> bool:
    node = b.made_by.get(packed)
    return node is not None and node.op.category == "memory" and isinstance(
        node.inputs[0], Value) and is_constant(Tracer(node.inputs[0], b))
