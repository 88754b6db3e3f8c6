"""tabulate: an elementwise function of one byte becomes a table of its 256 values.

Between a quantisation and the next, an activation such as GELU reads one byte and often makes one:
it depends on nothing else. The evaluator computes the table, so compiled code has its very bits.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from graphtool import dtypes
from graphtool import ops as o
from graphtool.analysis.ranges import BYTES
from graphtool.errors import InputError
from graphtool.interp import evaluate_op
from graphtool.ir.facets import Lowering, Trait
from graphtool.ir.graph import (
    Graph,
    Node,
    Operand,
    TensorType,
    Value,
    is_constant,
    is_parameter,
    producers,
)
from graphtool.ir.replay import prune, rebuild
from graphtool.ir.trace import Builder, Tracer
from graphtool.symbolic import known, product

Array = np.ndarray[Any, Any]

_LEAST = 16  # operations for an element: fewer take less time than to read the table
_BYTES = np.arange(256).astype(np.uint8)
_RESULTS = (*BYTES, dtypes.float32)


def tabulate(graph: Graph) -> Graph:
    """The graph in which costly functions of one byte are read from tables."""
    functions = _Functions(graph)
    tables = {n: table for n in graph.nodes if (table := functions.table(n)) is not None}
    if not tables:
        return graph
    new: dict[Operand, Operand] = {}  # what nodes read, before and now

    def visit(node: Node, inputs: tuple[Operand, ...], builder: Builder) -> Any:
        new.update((x, now) for x, now in zip(node.inputs, inputs, strict=True)
                   if isinstance(x, Value))
        if node not in tables:
            return None
        source = new[functions.source[node.outputs[0]]]
        assert isinstance(source, Value)
        x = Tracer(source, builder)
        x = x if x.dtype is dtypes.uint8 else o.bitcast(x, dtype=dtypes.uint8)
        table = builder.constant(tables[node], f"{node.outputs[0].hint}.table")
        return [o.gather(table, o.reshape(x, shape=(*x.shape, 1)), axes=(0,))]
    return prune(rebuild(graph, visit))


class _Functions:
    """Values that depend on one byte alone, each element on the byte in its place."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.made_by = producers(graph)
        self.source: dict[Value, Value] = {}
        for node in graph.nodes:
            if (x := self.byte(node)) is not None:
                self.source[node.outputs[0]] = x

    def byte(self, node: Node) -> Value | None:
        """The byte that the node's result depends on; None if it depends on more."""
        if Trait.ELEMENTWISE not in node.op.traits or node.op.lowering is not Lowering.PULL:
            return None
        sources = {self.source.get(x, x) for x in node.inputs
                   if isinstance(x, Value) and self.number(x) is None}
        x = sources.pop() if len(sources) == 1 else None
        of_byte = x is not None and x.type.dtype in BYTES and (
            x.type.shape == node.outputs[0].type.shape)
        return x if of_byte else None

    def number(self, x: Value) -> Array | None:
        """The constant, if it is one number that training does not change."""
        maker = self.made_by.get(x)
        if not is_constant(maker) or is_parameter(maker) or product(x.type.shape) != 1:
            return None
        data: Array = maker.attrs["data"].source
        return data.reshape(())

    @cached_property
    def read(self) -> set[Value]:
        """Values that are outputs, or that have a reader which depends on more than their byte."""
        return {*self.graph.outputs, *(
            x for n in self.graph.nodes for x in n.inputs if isinstance(x, Value)
            and x in self.source and not any(self.source.get(y) is self.source[x]
                                             for y in n.outputs))}

    def table(self, node: Node) -> Array | None:
        """The 256 values of the node's result, in the order of the byte's bits; None if it is no
        function of a byte, if only such functions read it, or if it costs little."""
        if len(node.outputs) != 1 or node.outputs[0] not in self.read:
            return None
        v = node.outputs[0]
        if v not in self.source or v.type.dtype not in _RESULTS or (
                known(product(v.type.shape), "<=", _BYTES.size) is True):
            return None
        chain = self.chain(node)
        if sum(_operations(n) for n in chain) < _LEAST:
            return None
        source = self.source[v]
        values: dict[Operand, Any] = {source: _BYTES.view(source.type.dtype.numpy)}
        try:
            with np.errstate(all="ignore"):
                for n in chain:
                    values[n.outputs[0]], = evaluate_op(
                        n.op, [self.value(x, values) for x in n.inputs], n.attrs)
        except (InputError, ValueError, TypeError, ArithmeticError):
            return None  # then the error comes at run time
        table: Array = values[v]
        return table

    def chain(self, last: Node) -> list[Node]:
        """The nodes between the byte and the result, in the order in which they are computed."""
        source = self.source[last.outputs[0]]
        nodes, pending = {last}, [last]
        while pending:
            for x in pending.pop().inputs:
                if isinstance(x, Value) and x in self.source and x is not source and (
                        self.made_by[x] not in nodes):
                    nodes.add(self.made_by[x])
                    pending.append(self.made_by[x])
        return sorted(nodes, key=self.position.__getitem__)

    @cached_property
    def position(self) -> dict[Node, int]:
        """Where each node is in the graph."""
        return {n: i for i, n in enumerate(self.graph.nodes)}

    def value(self, x: Operand, values: dict[Operand, Any]) -> Any:
        """The 256 numbers of an operand; a literal or a constant as it is."""
        if not isinstance(x, Value):
            return x
        return values[x] if x in values else self.number(x)


def _operations(node: Node) -> Any:
    """What one element costs."""
    types = [TensorType(x.type.dtype, ()) if isinstance(x, Value) else x for x in node.inputs]
    one = TensorType(node.outputs[0].type.dtype, ())
    return node.op.cost(one, *types, **node.attrs) if node.op.cost is not None else 0
