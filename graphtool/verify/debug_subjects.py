"""What the debugger goes through: a graph in the evaluator, or the C that it becomes."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from graphtool import interp, passes
from graphtool.compile.as_is import build
from graphtool.ir.graph import Graph, Module, Node, Value, is_constant, names_of, producers
from graphtool.ir.text import node_text, value_names
from graphtool.kernels.choice.rules import Rules
from graphtool.native import runtime
from graphtool.target import Target
from graphtool.verify.debugger import DebugSubject, On, ValueRow
from graphtool.verify.repro import with_steps

Array = np.ndarray[Any, Any]


def evaluated(module: Module, inputs: Mapping[str, Array]) -> DebugSubject:
    """The graph as it is, each value as the evaluator computes it."""
    graph, names = module.graph, value_names(module.graph)
    rows = tuple(ValueRow(names[v], _text(module, n, names), names_of(n),
                          tuple(names[x] for x in n.inputs if isinstance(x, Value)))
                 for n in graph.nodes if not is_constant(n) for v in n.outputs)
    return DebugSubject("evaluator", rows, lambda on: interp.run(module, inputs, on_value=on),
                        {**_constants(graph), **inputs}, {})


def compiled(module: Module, inputs: Mapping[str, Array], target: Target,
             rules: Rules | None = None) -> DebugSubject:
    """The C of the graph: one value for each kernel, as it is without fusion across kernels.

    A graph that the pass `fuse` has not seen goes through the passes first. The C runs whole
    before its first value is looked at."""
    fused = module if module.graph.groups else passes.run(
        module, supply={"target": target, "rules": rules})
    graph, names = fused.graph, value_names(fused.graph)
    every = with_steps(fused)
    maker = producers(graph)
    members = {g.root: g.members for g in graph.groups}
    rows, hidden = [], dict[str, str]()
    for v in every.graph.outputs:
        inside = members.get(v, (maker[v],))
        rows.append(ValueRow(names[v], _text(fused, maker[v], names), names_of(*inside), tuple(
            dict.fromkeys(names[x] for x in _read(inside, maker, every.graph.outputs)))))
        hidden |= {names[o]: names[v] for n in inside for o in n.outputs if o is not v}

    def run(on: On) -> None:
        with tempfile.TemporaryDirectory(prefix="graphtool-debug-") as folder:
            model = runtime.load(build(every, Path(folder) / "build", target=target))
            outputs = model.run(inputs)
        for name, x in outputs.items():
            on(name, x)
    return DebugSubject("c", tuple(rows), run, {**_constants(graph), **inputs}, hidden)


def _read(nodes: Sequence[Node], maker: Mapping[Value, Node], known: Sequence[Value]
          ) -> Iterator[Value]:
    """What the nodes read of the outside, through the nodes in between that have no kernel."""
    for x in (x for n in nodes for x in n.inputs if isinstance(x, Value)):
        between = maker.get(x)
        if between in nodes:
            continue
        if between is None or x in known or is_constant(between):
            yield x
        else:
            yield from _read((between,), maker, known)


def _text(module: Module, node: Node, names: Mapping[Value, str]) -> str:
    place = module.locations.get(node.where)
    at = place.at if place else node.where
    source = f": {place.text}" if place and place.text else ""
    return node_text(node, names) + (f"  at {at}{source}" if at else "")


def _constants(graph: Graph) -> dict[str, Array]:
    names = value_names(graph)
    return {names[n.outputs[0]]: n.attrs["data"].source for n in graph.nodes if is_constant(n)}
