"""The ops that quantise numbers to bytes, and those that turn bytes back into real numbers.

This module finds the chains in a graph. Which scales and zero points fit is for its readers to say.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from graphtool import ops as o
from graphtool.analysis.ranges import BYTES, maker_in
from graphtool.ir.graph import Node, Operand, Value

_FORMS = ((), (o.add,), (o.clamp,), (o.clamp, o.add))  # between a cast and a round, last first


@dataclass(frozen=True)
class Chain:
    """clamp(round(x / scale) + zero, *bounds), or (cast(x) - zero)·scale; a zero that is left out
    is None, a clamp that is left out has no bounds."""

    x: Value
    scale: Operand
    zero: Operand
    bounds: tuple[Operand, ...] = ()


def to_bytes(node: Node) -> bool:
    """Whether the node is a cast to bytes: the last op of a chain that quantises."""
    return node.op is o.cast and node.outputs[0].type.dtype in BYTES


def quantising(x: Operand, made: Mapping[Value, Node]) -> Chain | None:
    """The chain that computes x, the operand of a cast to bytes; None if it is of another form."""
    rounded, after = rounding(x, made)
    divided = maker_in(rounded.inputs[0], made) if rounded is not None else None
    terms = {n.op: n.inputs[1:] for n in after}
    if divided is None or divided.op is not o.div or tuple(n.op for n in after) not in _FORMS or (
            not isinstance(real := divided.inputs[0], Value)):
        return None
    zero, *_ = terms.get(o.add, (None,))
    return Chain(real, divided.inputs[1], zero, terms.get(o.clamp, ()))


def rounding(x: Operand, made: Mapping[Value, Node]) -> tuple[Node | None, list[Node]]:
    """The `round` that x is computed from, and the sums and clamps that follow it, last first."""
    after = []
    while (node := maker_in(x, made)) is not None and node.op in (o.add, o.clamp):
        after.append(node)
        x = node.inputs[0]
    return node if node is not None and node.op is o.round else None, after


def dequantising(node: Node, made: Mapping[Value, Node]) -> Iterator[Chain]:
    """Each way to read the node as a product of a number that was cast and of its scale."""
    for steps, scale in (node.inputs, node.inputs[::-1]) if node.op is o.mul else ():
        inner, zero = maker_in(steps, made), None
        if inner is not None and inner.op is o.sub:
            steps, zero = inner.inputs
            inner = maker_in(steps, made)
        if inner is not None and inner.op is o.cast and isinstance(q := inner.inputs[0], Value):
            yield Chain(q, scale, zero)
