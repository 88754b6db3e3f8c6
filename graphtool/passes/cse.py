"""Common subexpressions: equal ops on equal operands are computed once, the first time."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from graphtool import dtypes
from graphtool.io.weights import Weight
from graphtool.ir.facets import Trait
from graphtool.ir.graph import Graph, Node, Operand, Value, is_parameter
from graphtool.ir.replay import prune, rebuild
from graphtool.ir.trace import Builder


def cse(graph: Graph) -> Graph:
    """The graph with equal nodes merged.

    Trainable parameters with equal values are not merged. 16-bit numbers that are widened are not
    merged either: each reader widens them, because that costs less than storing the result.
    """
    merging = _Merging()
    new = rebuild(graph, merging.visit)
    return prune(new) if merging.changed else graph


class _Merging:
    """The nodes so far, by what they compute.

    `widened` are widened values, each with one reader; `light` are values that cost less to compute
    from these than to keep.
    """

    def __init__(self) -> None:
        self.first: dict[Any, Node] = {}
        self.number: dict[Value, int] = {}
        self.widened: set[Value] = set()
        self.light: set[Value] = set()
        self.changed = False

    def visit(self, node: Node, given: tuple[Operand, ...], builder: Builder) -> Any:
        inputs = tuple(self.own(x, builder) for x in given)
        for x in inputs:
            if isinstance(x, Value):
                self.number[x] = self.class_of(builder.made_by[x].inputs[0] if x in self.widened
                                               else x)
        if not (is_parameter(node) or widens(node)):
            earlier = self.first.setdefault(_key(node, inputs, self.number), node)
            if self.is_light(node, inputs):
                self.light.update(node.outputs)
            if earlier is not node:
                for v, same in zip(node.outputs, earlier.outputs, strict=True):
                    self.number[v] = self.class_of(same)
                if node.outputs[0] not in self.light:
                    self.changed = True
                    return earlier.outputs
        if inputs == given:
            return None
        self.changed = True
        builder.add(replace(node, inputs=inputs))
        return node.outputs

    def class_of(self, x: Operand) -> int:
        assert isinstance(x, Value)
        return self.number.setdefault(x, len(self.number))

    def own(self, x: Operand, builder: Builder) -> Operand:
        """x itself; but if x is a widened value that already has a reader, a new widening of the
        same numbers."""
        maker = builder.made_by.get(x) if isinstance(x, Value) else None
        if maker is None or not isinstance(x, Value) or not widens(maker):
            return x
        if x in self.widened:
            again: Value = builder.emit(maker.op, maker.inputs, dict(maker.attrs),
                                        hint=x.hint).value
            x = again
        self.widened.add(x)
        return x

    def is_light(self, node: Node, inputs: tuple[Operand, ...]) -> bool:
        return Trait.LIGHT in node.op.traits and any(
            (x in self.widened or x in self.light) and x.type.shape == node.outputs[0].type.shape
            for x in inputs if isinstance(x, Value))


def widens(node: Node) -> bool:
    """Whether the node only converts 16-bit numbers to a wider float."""
    return Trait.CONVERTS in node.op.traits and node.attrs["dtype"] is dtypes.float32 and any(
        x.type.dtype in dtypes.HALVES for x in node.inputs if isinstance(x, Value))


def _key(node: Node, inputs: tuple[Operand, ...], number: dict[Value, int]) -> Any:
    """Two nodes with equal keys compute the same. Operands of a commutative op are in the order
    of their definition. A value and its widening have one number, so the element types of the
    results count too."""
    operands = [("v", number[x]) if isinstance(x, Value) else (type(x).__name__, repr(x))
                for x in inputs]
    if Trait.COMMUTATIVE in node.op.traits:
        operands.sort(key=str)
    types = tuple(v.type.dtype for v in node.outputs)
    return node.op, tuple(operands), types, tuple(_hashable(a) for a in node.attrs.values())


def _hashable(x: Any) -> Any:
    match x:
        case tuple():
            return tuple(map(_hashable, x))
        case Weight():
            return x.digest
        case float():
            return repr(x)
        case bool() | int():
            return type(x).__name__, x
        case _:
            return x  # a region is equal only to itself
