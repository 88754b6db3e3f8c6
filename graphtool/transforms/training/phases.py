"""Which part of a training step a node belongs to: forward, backward or optimizer.

By reachability in the graph as `grad` wrote it; what passes make of a node is called after it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from graphtool.ir.graph import Graph, Module, Value
from graphtool.ir.text import value_names

PHASES = ("forward", "backward", "optimizer")


def phases(step: Module) -> dict[str, str]:
    """The phase of each name in the step of a training graph, without ordinals.

    Forward is what the loss and the running statistics need, backward what the gradients need
    besides, and the optimizer all that is left.
    """
    roles = step.meta["training"]
    names = value_names(step.graph)
    marks = {v for v, n in names.items() if n in set(roles.get("gradients", ()))}
    learnt = {n.removeprefix("grad.") for n in roles.get("gradients", ())}
    kept = {v for v, n in zip(step.graph.outputs, step.output_names, strict=True)
            if n == "loss" or (n in roles["model"] and n not in learnt)}
    forward, backward = _behind(step.graph, kept), _behind(step.graph, marks)
    out: dict[str, str] = {}
    for phase, members in zip(PHASES, (forward, backward, set(names)), strict=True):
        for v in members:
            out.setdefault(v.hint, phase)
    return out


def _behind(graph: Graph, wanted: Iterable[Value]) -> set[Value]:
    """The values that these are computed from, and they themselves."""
    needed = set(wanted)
    for node in reversed(graph.nodes):
        if any(v in needed for v in node.outputs):
            needed.update(x for x in node.inputs if isinstance(x, Value))
    return needed


def phase_of(label: str, known: Mapping[str, str]) -> str:
    """The phases of a kernel's nodes, joined by +; empty for names that come from elsewhere."""
    found = {_phase(word, known) for word in label.split(" + ")}
    return "+".join(p for p in PHASES if p in found)


def _phase(name: str, known: Mapping[str, str]) -> str:
    """That of the longest known name that this one is made of."""
    name = re.sub(r"#\d+", "", name)
    while name not in known and "." in name:
        name = name.rpartition(".")[0]
    return known.get(name, "")
