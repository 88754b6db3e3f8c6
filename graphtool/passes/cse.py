"""Common subexpressions: equal ops on equal operands are computed once, the first time."""

from __future__ import annotations

from typing import Any

from graphtool.ir.graph import Graph, Node, Operand, Value
from graphtool.ir.trace import Builder, rebuild
from graphtool.passes.dce import dce
from graphtool.weights import Weight


def cse(graph: Graph) -> Graph:
    """The graph with equal nodes merged. Trainable parameters stay apart though equal today."""
    first: dict[Any, Node] = {}
    number: dict[Value, int] = {}
    merged = False

    def visit(node: Node, inputs: tuple[Operand, ...], _: Builder) -> Any:
        nonlocal merged
        for x in inputs:
            if isinstance(x, Value):
                number.setdefault(x, len(number))
        if node.op.name == "constant" and node.attrs["param"]:
            return None
        earlier = first.setdefault(_key(node, inputs, number), node)
        if earlier is node:
            return None
        merged = True
        return earlier.outputs

    new = rebuild(graph, visit)
    return dce(new) if merged else graph


def _key(node: Node, inputs: tuple[Operand, ...], number: dict[Value, int]) -> Any:
    """What makes two nodes equal; operands of a commutative op in the order of their definition."""
    operands = [("v", number[x]) if isinstance(x, Value) else (type(x).__name__, repr(x))
                for x in inputs]
    if "commutative" in node.op.traits:
        operands.sort(key=str)
    return node.op.name, tuple(operands), tuple(_hashable(a) for a in node.attrs.values())


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
            return x  # regions are equal only to themselves
