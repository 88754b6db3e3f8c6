"""The part of a training step to which a node belongs: forward, backward or optimizer.

It is found by reachability in the graph as `grad` wrote it. Nodes that passes make from a node have
names derived from it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from graphtool.analysis.composites import gradients
from graphtool.ir.graph import Graph, Module, Value
from graphtool.ir.text import value_names

PHASES = ("forward", "backward", "optimizer")


def phases(step: Module) -> dict[str, str]:
    """The phase of each name in the step of a training graph, without ordinals.

    Forward is what the loss and the running statistics need; backward is what the gradients need in
    addition; the rest is the optimizer.
    """
    roles = step.meta["training"]
    marks = gradients(step.graph)
    inputs = {p for parts in roles["model"].values() for p in parts}
    kept = {v for v, n in zip(step.graph.outputs, step.output_names, strict=True)
            if n == "loss" or (n in inputs and n not in marks)}
    members = (behind(step.graph, kept), behind(step.graph, marks.values()),
               value_names(step.graph))
    out: dict[str, str] = {}
    for phase, values in zip(PHASES, members, strict=True):
        for v in values:
            out.setdefault(v.hint, phase)
    return out


def behind(graph: Graph, wanted: Iterable[Value]) -> set[Value]:
    """These values and all values from which they are computed."""
    needed = set(wanted)
    for node in reversed(graph.nodes):
        if any(v in needed for v in node.outputs):
            needed.update(x for x in node.inputs if isinstance(x, Value))
    return needed


def phase_of(label: str, known: Mapping[str, str]) -> str:
    """The phases of a kernel's nodes, joined by +; empty for names of other origin."""
    phases_ = {_phase(word, known) for word in label.split(" + ")}
    return "+".join(p for p in PHASES if p in phases_)


def _phase(name: str, known: Mapping[str, str]) -> str:
    """The phase of the longest known name from which this name is derived."""
    name = re.sub(r"#\d+", "", name)
    while name not in known and "." in name:
        name = name.rpartition(".")[0]
    return known.get(name, "")
