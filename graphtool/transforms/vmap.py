"""vmap: a graph over many examples from a graph for one. The examples' axis is axis 0.

An op whose record says what its attributes mean for axes is applied to the larger operands. A
composite is decomposed. Any other op runs as a scan over the examples, which is always right.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from graphtool import ops as o
from graphtool.errors import Signal
from graphtool.ir.facets import Align, Trait, with_leading
from graphtool.ir.graph import Graph, Node, TensorType, Value, is_constant
from graphtool.ir.op import Op
from graphtool.ir.replay import replay
from graphtool.ir.trace import Builder, Tracer, trace
from graphtool.symbolic import Dim

Rule = Callable[..., Any]
RULES: dict[Op, Rule] = {}


class NotCovered(Signal):
    """A rule does not cover this form of its op."""


def vmap(graph: Graph, axes: Sequence[int | None], size: Dim) -> Graph:
    """The graph with one more axis of `size` on each input whose entry in `axes` is not None;
    the outputs have it as axis 0."""
    builder = Builder()
    inputs: list[Value] = []
    given: list[Any] = []
    for v, axis in zip(graph.inputs, axes, strict=True):
        shape = v.type.shape if axis is None else (*v.type.shape[:axis], size,
                                                   *v.type.shape[axis:])
        x = builder.input(TensorType(v.type.dtype, shape), v.hint)
        inputs.append(x.value)
        if axis:
            x = o.transpose(x, perm=(axis, *(a for a in range(len(shape)) if a != axis)))
        given.append((x, axis is not None))
    outs = [whole(x, batched, size) for x, batched in batch(builder, graph, given, size)]
    return Graph(tuple(inputs), tuple(builder.nodes), tuple(x.value for x in outs))


def batch(builder: Builder, graph: Graph, given: Sequence[Any], size: Dim) -> list[Any]:
    """Replay a graph on pairs (tracer, whether it has the examples' axis)."""
    def apply(node: Node, *xs: Any) -> Sequence[Any]:
        pairs = [x if isinstance(x, tuple) else (x, False) for x in xs]
        with builder.scope(node.outputs[0].hint.rpartition(".")[0], node.where):
            if not any(b for _, b in pairs):
                if is_constant(node):
                    return [(builder.constant(node.attrs["data"], node.outputs[0].hint,
                                              node.attrs["param"]), False)]
                out = builder.emit(node.op, [x for x, _ in pairs], dict(node.attrs))
                return [(y, False) for y in (out if isinstance(out, tuple) else (out,))]
            return [(y, True) for y in _batched(builder, node, pairs, size)]
    return replay(graph, given, apply)


def _batched(builder: Builder, node: Node, pairs: Sequence[Any], size: Dim) -> tuple[Any, ...]:
    rule = RULES.get(node.op) or (_derived if node.op.axes else None)
    if rule is not None:
        before = len(builder.nodes)
        try:
            return _tuple(rule(node, pairs, size))
        except NotCovered:
            del builder.nodes[before:]
    if node.op.decompose is not None and Trait.COMPOSITE in node.op.traits:
        inner = _opened(node.op, pairs, node)
        tensors = [p for p in pairs if isinstance(p[0], Tracer)]
        return tuple(whole(x, b, size) for x, b in batch(builder, inner, tensors, size))
    return _scanned(node, pairs, size)


def _opened(op: Op, pairs: Sequence[Any], node: Node) -> Graph:
    """The decomposition as a graph of the operands that are tensors."""
    def fn(*xs: Any) -> Any:
        rest = iter(xs)
        return op.decompose(*[next(rest) if isinstance(x, Tracer) else x  # type: ignore[misc]
                              for x, _ in pairs], **node.attrs)
    return trace(fn, [v.type for v in node.inputs if isinstance(v, Value)])


def _scanned(node: Node, pairs: Sequence[Any], size: Dim) -> tuple[Any, ...]:
    """The node for one example after the other."""
    types = [v.type for v in node.inputs if isinstance(v, Value)]
    tensors = [(x, b) for x, b in pairs if isinstance(x, Tracer)]
    order = sorted(range(len(tensors)), key=lambda i: not tensors[i][1])

    def fn(*rows: Any) -> Any:
        place = dict(zip(order, rows, strict=True))
        tensor = iter(range(len(tensors)))
        return node.op(*[place[next(tensor)] if isinstance(x, Tracer) else x for x, _ in pairs],
                       **node.attrs)
    body = trace(fn, [types[i] for i in order])
    return _tuple(o.scan(*(tensors[i][0] for i in order), body=body, carries=0,
                         xs=sum(b for _, b in tensors), length=size))


def whole(x: Any, batched: bool, size: Dim) -> Any:
    """x with the examples' axis; if it had none, the value is the same for each example."""
    return x if batched else o.broadcast(x, shape=(size, *x.shape))


def _tuple(x: Any) -> tuple[Any, ...]:
    return x if isinstance(x, tuple) else (x,)


def ranked(pairs: Sequence[Any], rank: int) -> list[Any]:
    """Operands that broadcast from the right: those with examples are reshaped to the rank of a
    result."""
    return [o.reshape(x, shape=(x.shape[0], *(1,) * (rank + 1 - x.ndim), *x.shape[1:]))
            if b and x.ndim <= rank else x for x, b in pairs]


def _rank(node: Node, i: int = 0) -> int:
    x = node.inputs[i]
    assert isinstance(x, Value)
    return x.type.rank


# ---- the rules ---------------------------------------------------------------------------------

def _derived(node: Node, pairs: Any, size: Dim) -> Any:
    """The op itself on operands that have one more axis, if its record says what its attributes
    mean for axes."""
    axes, first = node.op.axes, node.inputs[0]
    assert axes is not None
    rank = first.type.rank if isinstance(first, Value) else 0
    if rank == 0 and any(isinstance(node.attrs[n], int) for n in axes.names):
        raise NotCovered
    broadcasts = axes.align in (Align.TRAILING, Align.MATRICES)
    xs = ranked(pairs, node.outputs[0].type.rank) if broadcasts else [
        whole(x, b, size) for x, b in pairs]
    return node.op(*xs, **with_leading(axes, node.attrs, rank, size))


def rule(op: Op) -> Callable[[Rule], Rule]:
    """Declare how an op runs on examples if its record does not say it."""
    def add(function: Rule) -> Rule:
        RULES[op] = function
        return function
    return add


@rule(o.conv)
def _conv(node: Node, pairs: Any, size: Dim) -> Any:
    """Examples become part of the batch; if each has its own weights, they become groups."""
    (x, in_x), (w, in_w) = pairs
    a = node.attrs
    if a["batch_groups"] != 1 or (in_w and a["channels_last"]):
        raise NotCovered
    if not in_w:
        merged = o.reshape(x, shape=(size * x.shape[1], *x.shape[2:]))
        y = o.conv(merged, w, **a)
        return o.reshape(y, shape=(size, *node.outputs[0].type.shape))
    x = whole(x, in_x, size)
    side = o.transpose(x, perm=(1, 0, *range(2, x.ndim)))
    side = o.reshape(side, shape=(x.shape[1], size * x.shape[2], *x.shape[3:]))
    y = o.conv(side, o.reshape(w, shape=(size * w.shape[1], *w.shape[2:])),
               **{**a, "groups": size * a["groups"]})
    out = node.outputs[0].type.shape
    y = o.reshape(y, shape=(out[0], size, *out[1:]))
    return o.transpose(y, perm=(1, 0, *range(2, y.ndim)))


@rule(o.attention)
def _attention(node: Node, pairs: Any, size: Dim) -> Any:
    """Attention supports more leading axes; a mask is aligned at the last axes."""
    if _rank(node) < 3:
        raise NotCovered
    mask = pairs[3][0] if len(pairs) > 3 else None
    if mask is not None:
        if pairs[3][1]:
            missing = _rank(node) - _rank(node, 3)
            mask = o.reshape(mask, shape=(size, *(1,) * missing, *mask.shape[1:]))
        mask = (mask,)
    return o.attention(*(whole(x, b, size) for x, b in pairs[:3]), *(mask or ()), **node.attrs)


