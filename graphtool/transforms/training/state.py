"""The state of a training graph, which is its donated inputs; and small changes to graphs for
it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from graphtool.io.weights import Weight, weight
from graphtool.ir.graph import Graph, TensorType, Value, is_constant
from graphtool.ir.trace import Builder, Tracer


class State:
    """The donated inputs in order, by name, and the new value of each."""

    def __init__(self, builder: Builder, named: Mapping[str, Value]) -> None:
        self.builder = builder
        self.named = dict(named)
        self.new: dict[Value, Value] = {}
        self.initial: dict[Value, Weight] = {}

    @property
    def inputs(self) -> tuple[Value, ...]:
        """The inputs of the state, in the order in which they were added."""
        return tuple(self.named.values())

    def add(self, name: str, type: TensorType, start: float) -> Tracer:
        """Add an input to the state; `start` has its initial values if they are not 0."""
        t = self.builder.input(type, name)
        self.named[name] = t.value
        if start:
            shape = tuple(d for d in type.shape if isinstance(d, int))
            self.initial[t.value] = weight(np.full(shape, start, type.dtype.numpy))
        return t


def opened(graph: Graph, values: tuple[Value, ...]) -> Graph:
    """The graph with some of its constants as further inputs."""
    chosen = set(values)
    nodes = tuple(n for n in graph.nodes if not (is_constant(n)
                                                 and n.outputs[0] in chosen))
    return Graph((*graph.inputs, *values), nodes, graph.outputs)


def renamed(graph: Graph, names: Mapping[Value, str]) -> Graph:
    """The graph with these names for its inputs (constants are marked with an @, which inputs do
    not have)."""
    fresh = {v: Value(v.type, names[v]) for v in graph.inputs if v in names and v.hint != names[v]}
    if not fresh:
        return graph

    def swapped(x: Any) -> Any:
        return fresh.get(x, x) if isinstance(x, Value) else x
    nodes = tuple(n if not any(x in fresh for x in n.inputs if isinstance(x, Value)) else
                  replace(n, inputs=tuple(map(swapped, n.inputs)))
                  for n in graph.nodes)
    return Graph(tuple(map(swapped, graph.inputs)), nodes,
                 tuple(map(swapped, graph.outputs)))


def holding(graph: Graph) -> Builder:
    """A builder that already has the nodes of the graph."""
    builder = Builder()
    for node in graph.nodes:
        builder.add(node)
    return builder
