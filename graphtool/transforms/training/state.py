"""The state of a training graph, which is its donated inputs; and small changes to graphs for
it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from graphtool.io.weights import Weight, weight
from graphtool.ir.graph import Graph, Module, TensorType, Value, is_constant
from graphtool.ir.replay import prune
from graphtool.ir.text import value_names
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


def closed(module: Module, values: Collection[Value]) -> Module:
    """The module with some of its donated inputs as the constants that they start from; what no
    node reads is kept."""
    graph, builder = module.graph, Builder()
    at = {i: v for i, v in enumerate(graph.inputs) if v in values}
    names = value_names(graph)
    fixed = {v: builder.constant(module.initial[i], f"@{names[v]}", alone=True).value
             for i, v in at.items()}
    gone = {out for out, i in module.donations if i in at}
    left = [i for i in range(len(graph.inputs)) if i not in at]
    kept = [i for i in range(len(graph.outputs)) if i not in gone]
    nodes = tuple(replace(n, inputs=tuple(fixed.get(x, x) if isinstance(x, Value) else x
                                          for x in n.inputs)) for n in graph.nodes)
    small = prune(Graph(tuple(graph.inputs[i] for i in left), (*builder.nodes, *nodes),
                        tuple(graph.outputs[i] for i in kept)))
    read = {x for n in small.nodes for x in n.inputs}
    unread = {names[v]: module.initial[i] for i, v in at.items() if fixed[v] not in read}
    return replace(
        module, graph=small, kept={**module.kept, **unread},
        output_names=tuple(module.output_names[i] for i in kept),
        donations=tuple((kept.index(out), left.index(i)) for out, i in module.donations
                        if out not in gone),
        initial={left.index(i): w for i, w in module.initial.items() if i not in at})


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
