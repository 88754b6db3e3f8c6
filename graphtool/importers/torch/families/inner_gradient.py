"""Gradients that a model computes inside its forward: penalties of gradients, physics-informed
losses. Our own reverse mode gives them, as ops that can be differentiated again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from graphtool import ops as o
from graphtool.front import Array, Front, Refused
from graphtool.importers.torch.driver.context import Context
from graphtool.importers.torch.driver.table import aten
from graphtool.ir.graph import Graph, Node, Value
from graphtool.ir.replay import replay
from graphtool.transforms import vjp


@aten("inner_gradient", namespace="graphtool")
def inner_gradient(c: Context, outputs: Sequence[Array], inputs: Sequence[Array],
                   seeds: Sequence[Array], kept: bool) -> Any:
    """The gradient of Σ outputs·seeds by each input, in the input's type, by our vjp.

    `kept` is torch's `create_graph`; without it no gradient flows through the results.
    """
    if not all(x.dtype.is_float for x in (*outputs, *inputs)):
        raise Refused("a gradient is supported only of floats by floats, not of or by integers")
    found = _gradients(c, [y.value for y in outputs], [x.value for x in inputs], seeds)
    return tuple(found) if kept else tuple(o.stop_gradient(g) for g in found)


def _gradients(b: Front, ys: list[Value], xs: list[Value],
               seeds: Sequence[Array]) -> list[Array]:
    nodes = _between(b.nodes, xs)
    made = {v for n in nodes for v in n.outputs}
    read = dict.fromkeys((*xs, *(v for n in nodes for v in n.inputs
                                 if isinstance(v, Value) and v not in made), *ys))
    free = [v for v in read if v not in made]
    joint = vjp(Graph(tuple(free), nodes, tuple(ys)), xs)
    return _appended(b, joint, [*map(b.traced, free), *seeds], set(nodes))[len(ys):]


def _between(nodes: Sequence[Node], xs: Sequence[Value]) -> tuple[Node, ...]:
    """The nodes that depend on xs, without those that compute xs."""
    reached, found = set(xs), []
    for n in nodes:
        if any(v in reached for v in n.inputs) and not any(v in xs for v in n.outputs):
            reached.update(n.outputs)
            found.append(n)
    return tuple(found)


def _appended(b: Front, joint: Graph, args: Sequence[Array], there: set[Node]) -> list[Array]:
    """The results of `joint`, emitted into the builder; its nodes in `there` are not repeated."""
    def apply(node: Node, *operands: Any) -> Sequence[Any]:
        if node in there:
            return [*map(b.traced, node.outputs)]
        results = b.emit(node.op, operands, dict(node.attrs))
        return results if isinstance(results, tuple) else (results,)
    return replay(joint, args, apply)
