"""The programs of a training graph: step, loss, predict and init, cut out of the joint graph."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

import numpy as np

from graphtool import ops as o
from graphtool.errors import InputError
from graphtool.ir.graph import Graph, Module, Node, Value
from graphtool.ir.replay import prune
from graphtool.ir.run_sizes import mentioned
from graphtool.ir.trace import Builder
from graphtool.symbolic import symbols


def programs(module: Module) -> dict[str, Module]:
    """The programs step, loss, predict and init: parts of the joint graph, each with the results
    that it gives.

    Raises InputError GT0617 for a graph that `grad --optimizer` did not make.
    """
    roles = module.meta.get("training")
    if not isinstance(roles, dict):
        raise InputError("GT0617", "the graph is not a training graph",
                         hint="make one with graphtool grad MODEL --loss … --optimizer adam")
    state = range(1, 1 + len(module.donations))
    predict = [i for i, n in enumerate(module.output_names) if n.startswith("predict.")]
    last = len(module.output_names) - 1
    return {"step": _cut(module, [0, *state], keep=True), "loss": _cut(module, [last]),
            "predict": _cut(module, predict), "init": _initial(module)}


def _cut(module: Module, outputs: Sequence[int], keep: bool = False) -> Module:
    """The module with some of its outputs, and only the inputs that these need, unless `keep`."""
    graph = module.graph
    results = tuple(graph.outputs[i] for i in outputs)
    nodes = prune(Graph(graph.inputs, graph.nodes, results)).nodes
    needed = {*results, *(x for n in nodes for x in n.inputs)}
    needed |= _telling(graph, nodes, needed)
    kept = [i for i, v in enumerate(graph.inputs) if keep or v in needed]
    at = {o: i for i, o in enumerate(outputs)}
    names = tuple(module.output_names[i].removeprefix("predict.") if not keep
                  else module.output_names[i] for i in outputs)
    inputs = tuple(graph.inputs[i] for i in kept)
    used = _sizes(inputs)
    return replace(
        module, graph=Graph(inputs, nodes, results), output_names=names,
        symbols={n: s for n, s in module.symbols.items() if keep or n in used},
        requires=tuple(e for e in module.requires if keep or used.issuperset(
            s.name for d in (e.left, e.right) for s in symbols(d))),
        donations=tuple((at[out], kept.index(i)) for out, i in module.donations if out in at),
        initial={kept.index(i): w for i, w in module.initial.items() if i in kept})


def _sizes(values: Iterable[Value]) -> set[str]:
    return {s.name for v in values for d in v.type.shape for s in symbols(d)}


def _telling(graph: Graph, nodes: Sequence[Node], needed: Collection[object]) -> set[Value]:
    """Further inputs that tell the sizes which the nodes mention: if the graph requires that N is
    M, the rows of an input of M rows can be called N."""
    inputs = [v for v in graph.inputs if v in needed]
    missing = {name for n in nodes for name in mentioned(n)} - _sizes(inputs)
    return {next(v for v in graph.inputs if name in _sizes([v]))
            for name in missing & _sizes(graph.inputs)}


def _initial(module: Module) -> Module:
    """A module without inputs; its outputs are the state before the first step, in the order of
    the donations."""
    builder = Builder()
    outputs = []
    for _, i in module.donations:
        v = module.graph.inputs[i]
        w = module.initial.get(i)
        shape = tuple(d for d in v.type.shape if isinstance(d, int))
        if w is None:
            zero = np.zeros((1,) * len(shape), v.type.dtype.numpy)
            outputs.append(o.broadcast(builder.constant(zero), shape=shape).value)
        else:
            outputs.append(builder.constant(w, v.hint, True).value)
    names = tuple(module.output_names[out] for out, _ in module.donations)
    return replace(module, graph=Graph((), tuple(builder.nodes), tuple(outputs)), symbols={},
                   requires=(),
                   output_names=names, donations=(), initial={}, locations={}, modules={})
