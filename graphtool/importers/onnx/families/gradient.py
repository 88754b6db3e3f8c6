"""`ai.onnx.preview.training.Gradient`: the derivatives of one value of the model by others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from graphtool.front import Refused
from graphtool.importers.onnx.driver.registry import onnx_op
from graphtool.importers.onnx.families.training import DOMAIN
from graphtool.ir.graph import Graph, Node, Value
from graphtool.ir.replay import inline
from graphtool.ir.trace import Tracer
from graphtool.transforms import grad


@onnx_op("Gradient", domain=DOMAIN, fold=False)
def gradient(*inputs: Any, xs: Any, y: str, zs: Any = None, ctx: Any) -> Any:
    """dy/dx for each of `xs`. The inputs are the values for `xs`, then those for `zs`.

    The nodes between them are differentiated by `grad` and inlined.
    """
    names, env = (*xs, *(zs or ())), ctx.frame.env
    if missing := [n for n in (*names, y) if not isinstance(env.get(n), Tracer)]:
        raise Refused(f"the gradient needs tensors of this graph, and {missing[0]!r} is not one")
    if len(inputs) != len(names):
        raise ValueError(f"{len(names)} inputs are named, {len(inputs)} are given")
    at = [env[n].value for n in names]
    graph = _between(ctx.builder.nodes, at, env[y].value)
    others = [Tracer(v, ctx.builder) for v in graph.inputs[len(at):]]
    made = grad(graph, 0, at[:len(xs)])
    results = inline(ctx.builder, made, [*inputs, *others])[1:]
    same = {x.value: x for x in reversed(results)}
    return [same[x.value] for x in results]


def _between(nodes: Sequence[Node], inputs: Sequence[Value], output: Value) -> Graph:
    """The nodes by which the output depends on the inputs, as a closed graph.

    Any other value that they read becomes an input behind the given ones.
    """
    wanted, kept = {output} - set(inputs), []
    for node in reversed(nodes):
        if wanted.isdisjoint(node.outputs):
            continue
        kept.append(node)
        wanted.difference_update(node.outputs)
        wanted |= {x for x in node.inputs if isinstance(x, Value) and x not in inputs}
    return Graph((*inputs, *sorted(wanted, key=lambda v: v.hint)), tuple(reversed(kept)),
                 (output,))
