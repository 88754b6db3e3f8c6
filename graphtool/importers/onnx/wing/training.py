"""`ai.onnx.preview.training`: the derivatives of one value of the model by others, and one step of
Momentum, Adagrad and Adam on any number of tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from graphtool.importers.onnx.kit import Refused, Tracer, dtypes, o, onnx_op
from graphtool.ir.graph import Graph, Node, Value
from graphtool.ir.replay import inline
from graphtool.transforms import grad

DOMAIN = "ai.onnx.preview.training"


def _columns(xs: tuple[Any, ...], each: int) -> list[tuple[Any, ...]]:
    """The operands regrouped by tensor. ONNX lists all tensors, then all gradients, then all
    states."""
    n = len(xs) // each
    return [tuple(xs[k * n + i] for k in range(each)) for i in range(n)]


def _rows(results: list[tuple[Any, ...]]) -> list[Any]:
    return [x for row in zip(*results, strict=True) for x in row]


def _first_step(t: Any, first: Any, later: Any, like: Any) -> Any:
    """`first` at step 0, else `later`, as a constant with the dtype of `like`."""
    return o.select(t > 0, like.number(later), like.number(first))


@onnx_op("Momentum", domain=DOMAIN)
def momentum(rate: Any, t: Any, *xs: Any, alpha: float, beta: float, mode: str,
             norm_coefficient: float) -> Any:
    """The new tensors, then the new velocities, by elementwise ops."""
    out = []
    for x, g, v in _columns(xs, 3):
        g = x * norm_coefficient + g
        adjusted = _first_step(t, 1.0, beta, x)
        new = v * alpha + g * adjusted
        step = g + new * alpha if mode == "nesterov" else new
        out.append((x - step * rate.cast(x.dtype), new))
    return _rows(out)


@onnx_op("Adagrad", domain=DOMAIN)
def adagrad(rate: Any, t: Any, *xs: Any, decay_factor: float = 0.0, epsilon: float = 0.0,
            norm_coefficient: float = 0.0) -> Any:
    """The new tensors, then the new sums of squared gradients, by elementwise ops."""
    out = []
    for x, g, h in _columns(xs, 3):
        r = rate.cast(x.dtype) / (t.cast(x.dtype) * decay_factor + 1.0)
        g = x * norm_coefficient + g
        new = h + g * g
        out.append((x - g * r / (o.sqrt(new) + epsilon), new))
    return _rows(out)


@onnx_op("Adam", domain=DOMAIN)
def adam(rate: Any, t: Any, *xs: Any, alpha: float = 0.9, beta: float = 0.999,
         epsilon: float = 0.0, norm_coefficient: float = 0.0,
         norm_coefficient_post: float = 0.0) -> Any:
    """The new tensors, then both new moments, by elementwise ops."""
    out = []
    for x, g, v, h in _columns(xs, 4):
        g = x * norm_coefficient + g
        v = v * alpha + g * (1 - alpha)
        h = h * beta + g * g * (1 - beta)
        steps = t.cast(dtypes.float32)
        late = o.sqrt(1.0 - steps.number(beta) ** steps) / (1.0 - steps.number(alpha) ** steps)
        factor = o.select(t > 0, late, 1.0).cast(x.dtype)
        r = rate.cast(x.dtype) * factor
        new = x - v * r / (o.sqrt(h) + epsilon)
        out.append((new * (1 - norm_coefficient_post), v, h))
    return _rows(out)


# ---- derivatives --------------------------------------------------------------------------------

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
    derivative = grad(graph, 0, at[:len(xs)])
    results = inline(ctx.builder, derivative, [*inputs, *others])[1:]
    same = {x.value: x for x in reversed(results)}
    return [same[x.value] for x in results]


def _between(nodes: Sequence[Node], inputs: Sequence[Value], output: Value) -> Graph:
    """The nodes between the inputs and the output, as a closed graph.

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
