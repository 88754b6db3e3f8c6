"""What a reader of a graph would name: composites that the passes took apart, and the gradients of
a training step, which the op `gradient` marks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from graphtool import ops as o
from graphtool.analysis.costs import regions
from graphtool.errors import InputError
from graphtool.ir.graph import Graph, Node, Value
from graphtool.ir.text import name_text, value_names


def relus(nodes: Iterable[Node]) -> dict[Node, Node]:
    """The selection that computes a relu, (x ≤ 0 ? 0 : x), with its comparison."""
    result: dict[Node, Node] = {}
    comparisons: dict[Value, Node] = {}
    for node in nodes:
        match node.op, node.inputs:
            case o.le, (Value(), bound) if _zero(bound):
                comparisons[node.outputs[0]] = node
            case o.select, (Value() as mask, zero, Value() as x) if _zero(zero):
                mask_node = comparisons.get(mask)
                if mask_node is not None and mask_node.inputs[0] is x:
                    result[node] = mask_node
    return result


def _zero(x: object) -> bool:
    return isinstance(x, (int, float)) and not isinstance(x, bool) and x == 0


def notes(graph: Graph) -> dict[Value, str]:
    """For the listing: what the values were before the passes, as in `relu(x)`; in regions too."""
    return dict(_notes(graph))


def _notes(graph: Graph) -> Iterator[tuple[Value, str]]:
    names = value_names(graph)
    for node in relus(graph.nodes):
        x = node.inputs[2]
        assert isinstance(x, Value)
        yield node.outputs[0], f"relu({name_text(names[x])})"
    for node in graph.nodes:
        for inner in regions(node):
            yield from _notes(inner)


def gradients(graph: Graph) -> dict[str, Value]:
    """The gradients that the optimizer reads, by the names of the parameters."""
    marked = _marked(graph)
    marked.pop("", None)
    return marked


def need_gradients(graph: Graph) -> list[Value]:
    """Those gradients. Raises InputError GT0628 if a pass has dropped the marks."""
    losses = gradients(graph)
    if not losses:
        raise InputError("GT0628", "the graph has no marked gradients",
                         hint="run this pass before freeze, on what `graphtool grad` wrote")
    return list(losses.values())


def seed(graph: Graph) -> Value | None:
    """Where the backward pass starts, if that is marked: the gradient of the loss with respect to
    itself, which is 1."""
    return _marked(graph).get("")


def _marked(graph: Graph) -> dict[str, Value]:
    return {n.attrs["of"]: n.outputs[0] for n in graph.nodes if n.op is o.gradient}
