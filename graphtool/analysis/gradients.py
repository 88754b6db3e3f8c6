"""The gradients of a training step: the values that the op `gradient` marks."""

from __future__ import annotations

from graphtool import ops as o
from graphtool.errors import InputError
from graphtool.ir.graph import Graph, Value


def gradients(graph: Graph) -> dict[str, Value]:
    """The gradients that the optimizer reads, by the names of the parameters."""
    found = _marked(graph)
    found.pop("", None)
    return found


def need_gradients(graph: Graph) -> list[Value]:
    """Those gradients. Raises InputError GT0628 if a pass has dropped the marks."""
    found = gradients(graph)
    if not found:
        raise InputError("GT0628", "the graph has no marked gradients",
                         hint="run this pass before freeze, on what `graphtool grad` wrote")
    return list(found.values())


def seed(graph: Graph) -> Value | None:
    """Where the backward pass starts, if that is marked: the gradient of the loss with respect to
    itself, which is 1."""
    return _marked(graph).get("")


def _marked(graph: Graph) -> dict[str, Value]:
    return {n.attrs["of"]: n.outputs[0] for n in graph.nodes if n.op is o.gradient}
