"""Whether a graph computes the very terms that another one computes: the same ops with the same
attributes on the same operands, whatever is shared, named, grouped or unused.

A pass that only merges, removes or groups nodes is checked so, each time it runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from graphtool.io.weights import Weight
from graphtool.ir.facets import Trait
from graphtool.ir.graph import Graph, Operand, Value


def keeps_terms(before: Graph, after: Graph) -> bool:
    """Whether the outputs of both graphs are the same terms of the same inputs."""
    table: dict[Any, int] = {}
    inputs = tuple(("input", i) for i in range(len(before.inputs)))
    return len(before.inputs) == len(after.inputs) and (
        _numbers(before, inputs, table) == _numbers(after, inputs, table))


def _numbers(graph: Graph, inputs: Sequence[Any], table: dict[Any, int]) -> list[int]:
    """A number for each output: equal numbers are equal terms. `table` has the terms so far."""
    def number(term: Any) -> int:
        return table.setdefault(term, len(table))

    of: dict[Operand, int] = dict(zip(graph.inputs, map(number, inputs), strict=True))
    for node in graph.nodes:
        operands = [("value", of[x]) if isinstance(x, Value) else (type(x).__name__, repr(x))
                    for x in node.inputs]
        if Trait.COMMUTATIVE in node.op.traits:
            operands.sort(key=str)
        attrs = tuple((k, _attribute(a, table)) for k, a in node.attrs.items())
        term = (node.op.name, tuple(operands), attrs)
        for i, v in enumerate(node.outputs):
            of[v] = number((term, i, str(v.type)))
    return [of[v] for v in graph.outputs]


def _attribute(x: Any, table: dict[Any, int]) -> Any:
    """An attribute as a part of a term; a region counts as the terms of its outputs."""
    match x:
        case Graph():
            inputs = [("argument", i, str(v.type)) for i, v in enumerate(x.inputs)]
            return "region", len(inputs), tuple(_numbers(x, inputs, table))
        case tuple():
            return tuple(_attribute(a, table) for a in x)
        case Weight():
            return x.digest, x.shape
        case _:
            return type(x).__name__, repr(x)
