"""vmap: a graph over examples from a graph for one. The examples' axis stands first.

A table has a rule for the ops whose batched form is the op itself; a composite is taken apart, and
what is left runs as a scan over the examples, which means the same for every op.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from graphtool import ops  # noqa: F401  (fills the registry)
from graphtool.ir.facets import Trait
from graphtool.ir.graph import Graph, Node, TensorType, Value
from graphtool.ir.op import Op
from graphtool.ir.op import ops as o
from graphtool.ir.trace import Builder, Tracer, replay, trace
from graphtool.symbolic import Dim

Rule = Callable[..., Any]
RULES: dict[str, Rule] = {}


class Declined(Exception):
    """A rule does not cover this form of its op."""


def vmap(graph: Graph, axes: Sequence[int | None], size: Dim) -> Graph:
    """The graph whose inputs have an axis of `size` more where `axes` is not None, and whose
    outputs have it first."""
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
                if node.op.name == "constant":
                    return [(builder.constant(node.attrs["data"], node.outputs[0].hint,
                                              node.attrs["param"]), False)]
                out = builder.emit(node.op, [x for x, _ in pairs], dict(node.attrs))
                return [(y, False) for y in (out if isinstance(out, tuple) else (out,))]
            return [(y, True) for y in _batched(builder, node, pairs, size)]
    return replay(graph, given, apply)


def _batched(builder: Builder, node: Node, pairs: Sequence[Any], size: Dim) -> tuple[Any, ...]:
    rule = RULES.get(node.op.name) or (
        _elementwise if Trait.ELEMENTWISE in node.op.traits else None)
    if rule is not None:
        before = len(builder.nodes)
        try:
            return _tuple(rule(node, pairs, size))
        except Declined:
            del builder.nodes[before:]
    if node.op.decompose is not None and Trait.COMPOSITE in node.op.traits:
        inner = _opened(node.op, pairs, node)
        tensors = [p for p in pairs if isinstance(p[0], Tracer)]
        return tuple(whole(x, b, size) for x, b in batch(builder, inner, tensors, size))
    return _scanned(node, pairs, size)


def _opened(op: Op, pairs: Sequence[Any], node: Node) -> Graph:
    """The decomposition as a graph over the operands that are tensors."""
    def fn(*xs: Any) -> Any:
        rest = iter(xs)
        return op.decompose(*[next(rest) if isinstance(x, Tracer) else x  # type: ignore[misc]
                              for x, _ in pairs], **node.attrs)
    return trace(fn, [v.type for v in node.inputs if isinstance(v, Value)])


def _scanned(node: Node, pairs: Sequence[Any], size: Dim) -> tuple[Any, ...]:
    """One example after the other."""
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
    """x with the examples' axis, the same for each where it had none."""
    return x if batched else o.broadcast(x, shape=(size, *x.shape))


def _tuple(x: Any) -> tuple[Any, ...]:
    return x if isinstance(x, tuple) else (x,)


def ranked(pairs: Sequence[Any]) -> list[Any]:
    """Operands that broadcast from the right, the batched ones brought to one rank."""
    most = max(x.ndim - b for x, b in pairs if isinstance(x, Tracer))
    return [o.reshape(x, shape=(x.shape[0], *(1,) * (most + 1 - x.ndim), *x.shape[1:]))
            if b and x.ndim <= most else x for x, b in pairs]


def _rank(node: Node, i: int = 0) -> int:
    x = node.inputs[i]
    assert isinstance(x, Value)
    return x.type.rank


# ---- the table ---------------------------------------------------------------------------------

def rule(*names: str) -> Callable[[Rule], Rule]:
    def add(function: Rule) -> Rule:
        RULES.update(dict.fromkeys(names, function))
        return function
    return add


@rule("detach", "barrier", "checkpoint", "relu", "gelu", "silu", "mish", "softplus", "elu",
      "selu", "celu", "leaky_relu", "hard_sigmoid", "hard_swish", "hardtanh", "softsign",
      "log_sigmoid", "thresholded_relu")
def _elementwise(node: Node, pairs: Any, _size: Dim) -> Any:
    return node.op(*ranked(pairs), **node.attrs)


@rule("reduce_sum", "reduce_prod", "reduce_max", "reduce_min", "reduce_and", "reduce_or",
      "reduce_mean", "reduce_var", "reverse", "logsumexp")
def _over_axes(node: Node, pairs: Any, _size: Dim) -> Any:
    axes = tuple(a % _rank(node) + 1 for a in node.attrs["axes"])
    return node.op(pairs[0][0], **{**node.attrs, "axes": axes})


@rule("arg_reduce", "cumulative", "sort", "top_k", "softmax", "log_softmax")
def _along_axis(node: Node, pairs: Any, _size: Dim) -> Any:
    if not _rank(node):
        raise Declined
    return node.op(pairs[0][0], **{**node.attrs, "axis": node.attrs["axis"] % _rank(node) + 1})


@rule("reshape")
def _reshape(node: Node, pairs: Any, size: Dim) -> Any:
    return o.reshape(pairs[0][0], shape=(size, *node.outputs[0].type.shape))


@rule("transpose")
def _transpose(node: Node, pairs: Any, _size: Dim) -> Any:
    return o.transpose(pairs[0][0], perm=(0, *(p + 1 for p in node.attrs["perm"])))


@rule("broadcast")
def _broadcast(node: Node, pairs: Any, size: Dim) -> Any:
    x, shape = pairs[0][0], node.attrs["shape"]
    wide = o.reshape(x, shape=(size, *(1,) * (len(shape) + 1 - x.ndim), *x.shape[1:]))
    return o.broadcast(wide, shape=(size, *shape))


@rule("slice")
def _slice(node: Node, pairs: Any, size: Dim) -> Any:
    a = node.attrs
    return o.slice(pairs[0][0], start=(0, *a["start"]), limit=(size, *a["limit"]),
                   strides=(1, *(a["strides"] or (1,) * _rank(node))))


@rule("pad")
def _pad(node: Node, pairs: Any, _size: Dim) -> Any:
    a = node.attrs
    return o.pad(pairs[0][0], lo=(0, *a["lo"]), hi=(0, *a["hi"]), value=a["value"],
                 interior=(0, *(a["interior"] or (0,) * _rank(node))))


@rule("concat")
def _concat(node: Node, pairs: Any, size: Dim) -> Any:
    return o.concat(*(whole(x, b, size) for x, b in pairs),
                    axis=node.attrs["axis"] % _rank(node) + 1)


@rule("matmul")
def _matmul(node: Node, pairs: Any, _size: Dim) -> Any:
    return o.matmul(*ranked(pairs), **node.attrs)


@rule("gather", "scatter")
def _indexed(node: Node, pairs: Any, size: Dim) -> Any:
    a = node.attrs
    axes = tuple(i % _rank(node) + 1 for i in a["axes"])
    return node.op(*(whole(x, b, size) for x, b in pairs),
                   **{**a, "axes": axes, "batch": a["batch"] + 1})


@rule("reduce_window")
def _window(node: Node, pairs: Any, _size: Dim) -> Any:
    a = dict(node.attrs)
    first = {"window": 1, "strides": 1, "padding": (0, 0), "base_dilation": 1,
             "window_dilation": 1}
    return o.reduce_window(pairs[0][0], **{k: v if k not in first or v is None
                                           else (first[k], *v) for k, v in a.items()})


@rule("conv")
def _conv(node: Node, pairs: Any, size: Dim) -> Any:
    """Examples join the batch; with weights of their own they become groups."""
    (x, in_x), (w, in_w) = pairs
    a = node.attrs
    if a["batch_groups"] != 1 or (in_w and a["channels_last"]):
        raise Declined
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


@rule("attention")
def _attention(node: Node, pairs: Any, size: Dim) -> Any:
    """More leading axes are its own way; a mask aligns from the right."""
    if _rank(node) < 3:
        raise Declined
    mask = pairs[3][0] if len(pairs) > 3 else None
    if mask is not None:
        if pairs[3][1]:
            missing = _rank(node) - _rank(node, 3)
            mask = o.reshape(mask, shape=(size, *(1,) * missing, *mask.shape[1:]))
        mask = (mask,)
    return o.attention(*(whole(x, b, size) for x, b in pairs[:3]), *(mask or ()), **node.attrs)


