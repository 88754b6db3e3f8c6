"""layout: convolutions and pooling run channels-last, and so does everything between them.

Each convolution becomes one on transposed operands. What follows it (elementwise, pooling, concat,
reductions …) is rebuilt on the channels-last twin of its operand, so that transposes are left only
where the graph leaves that region.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from graphtool.ir.facets import Trait
from graphtool.ir.graph import Graph, Node, Operand, Value
from graphtool.ir.op import OPS
from graphtool.ir.trace import Builder, Tracer, rebuild
from graphtool.symbolic import product


def layout(graph: Graph) -> Graph:
    """The graph with convolutions, pooling and what lies between them channels last."""
    return rebuild(graph, Layout(_wanted(graph)).rewrite)


def to_last(rank: int) -> tuple[int, ...]:
    """N C … → N … C"""
    return (0, *range(2, rank), 1)


def to_first(rank: int) -> tuple[int, ...]:
    """N … C → N C …"""
    return (0, rank - 1, *range(1, rank - 1))


class Layout:
    """One run: remembers which values it made channels last, and what is read so."""

    def __init__(self, wanted: set[Value]) -> None:
        self.last: set[Value] = set()
        self.wanted = wanted

    def rewrite(self, node: Node, inputs: tuple[Operand, ...],
                builder: Builder) -> Sequence[Any] | None:
        if len(node.outputs) != 1 or node.attrs.get("channels_last"):
            return None
        if node.op.name == "matmul":
            return self.flattened(node, inputs, builder)
        if node.op.name == "reshape":
            return self.pixels(node, inputs, builder)
        if node.op.name == "transpose" and tuple(node.attrs["perm"]) == to_last(3):
            source = self.twin(builder, inputs[0])
            return None if source is None else (source,)
        if self.keeps(node, inputs):
            self.last.add(node.outputs[0])
            return None
        handler = _SOURCES.get(node.op.name)
        if handler is None and any(self.twin(builder, x) is not None for x in inputs):
            handler = _FOLLOWERS.get(node.op.name) or (
                _elementwise if Trait.ELEMENTWISE in node.op.traits else None)
        rank = len(node.outputs[0].type.shape)
        if handler is None or rank < 3 or (handler is not _elementwise and any(
                x.type.rank != rank for x in inputs if isinstance(x, Value))):
            return None
        last = handler(lambda x: self.last_of(builder, x), builder, node, inputs)
        self.last.add(last.value)
        return (OPS["transpose"](last, perm=to_first(rank)),)

    def keeps(self, node: Node, inputs: tuple[Operand, ...]) -> bool:
        """Whether lines that the graph itself turned channels last stay so: known as such, they are
        still when it turns them back, before the next convolution.
        """
        shape = node.outputs[0].type.shape
        return len(shape) == 3 and node.op.name not in ("conv", "transpose") and any(
            x in self.last and x.type.shape == shape for x in inputs if isinstance(x, Value))

    def pixels(self, node: Node, inputs: tuple[Operand, ...], b: Builder) -> Sequence[Any] | None:
        """Rows of features as the pixels of an image, and back: neither moves what lies channels
        last. What nothing reads so is left as it was written.
        """
        if node.outputs[0] not in self.wanted:
            return None
        shape = node.outputs[0].type.shape
        image, turned = self.twin(b, inputs[0]), _made(b, inputs[0], "transpose")
        source: Operand
        if image is not None and len(shape) == 3:
            source, (n, *spatial, c) = image, image.type.shape
            whole = shape == (n, c, product(spatial))
        elif turned is not None and len(shape) > 3:
            source, (n, c, *spatial) = turned.inputs[0], shape
            whole = turned.outputs[0].type.shape == (n, c, product(spatial)) and (
                tuple(turned.attrs["perm"]) == to_last(3))
        else:
            return None
        if not whole or not isinstance(source, Value):
            return None
        last = OPS["reshape"](Tracer(source, b), shape=tuple(shape[p] for p in to_last(len(shape))))
        self.last.add(last.value)
        return (OPS["transpose"](last, perm=to_first(len(shape))),)

    def flattened(self, node: Node, inputs: tuple[Operand, ...],
                  b: Builder) -> Sequence[Any] | None:
        """A product of an image's flat features: its constant weights are reordered instead."""
        flat, w = _made(b, inputs[0], "reshape"), inputs[1]
        image = None if flat is None else flat.inputs[0]
        source = self.twin(b, image)
        made = _made(b, w, "constant")
        if flat is None or source is None or made is None or made.attrs["param"] or (
                not isinstance(image, Value) or not isinstance(w, Value)):
            return None
        n, *features = image.type.shape
        if flat.outputs[0].type.shape != (n, product(features)) or node.attrs["transpose_a"] or (
                w.type.rank != 2 or not all(isinstance(d, int) for d in features)):
            return None
        rows = OPS["transpose"](Tracer(w, b), perm=(1, 0)) if node.attrs["transpose_b"] else (
            Tracer(w, b))
        last = OPS["transpose"](OPS["reshape"](rows, shape=(*features, rows.shape[1])),
                                perm=(*range(1, len(features)), 0, len(features)))
        return (node.op(OPS["reshape"](Tracer(source, b), shape=(n, product(features))),
                        OPS["reshape"](last, shape=rows.shape),
                        **{**node.attrs, "transpose_b": False}),)

    def twin(self, builder: Builder, x: Operand) -> Value | None:
        """The channels-last value that x is the channels-first transpose of.

        With three axes the two permutations are the same: only what this run made counts.
        """
        node = builder.made.get(x) if isinstance(x, Value) else None
        if node is None or node.op.name != "transpose":
            return None
        perm, source = node.attrs["perm"], node.inputs[0]
        if not isinstance(source, Value) or len(perm) < 3 or perm != to_first(len(perm)):
            return None
        return source if len(perm) > 3 or source in self.last else None

    def last_of(self, builder: Builder, x: Operand) -> Any:
        """The channels-last form of an operand: its twin, else a transpose."""
        if not isinstance(x, Value):
            return x
        source = self.twin(builder, x)
        if source is not None:
            return Tracer(source, builder)
        return OPS["transpose"](Tracer(x, builder), perm=to_last(len(x.type.shape)))


def _wanted(graph: Graph) -> set[Value]:
    """The values that are read channels last, at once or behind what runs so with its reader."""
    found: set[Value] = set()
    for node in reversed(graph.nodes):
        follows = node.op.name in _FOLLOWERS or Trait.ELEMENTWISE in node.op.traits
        if _turns(node) or (follows and any(y in found for y in node.outputs)):
            found |= {x for x in node.inputs if isinstance(x, Value)}
    return found


def _turns(node: Node) -> bool:
    """Whether the node reads what lies channels first as if it lay channels last."""
    match node.op.name:
        case "transpose":
            return tuple(node.attrs["perm"]) == to_last(len(node.attrs["perm"]))
        case "matmul":
            return bool(node.attrs["transpose_a"])
        case name:
            return name in _SOURCES and not node.attrs.get("channels_last")


def _made(b: Builder, x: Operand, op: str) -> Node | None:
    """The node that made x, if it is of the op."""
    node = b.made.get(x) if isinstance(x, Value) else None
    return node if node is not None and node.op.name == op else None


LastOf = Callable[[Operand], Any]
Handler = Callable[[LastOf, Builder, Node, tuple[Operand, ...]], Any]


def _conv(last_of: LastOf, b: Builder, node: Node, inputs: tuple[Operand, ...]) -> Any:
    x, w = inputs
    assert isinstance(w, Value)
    return node.op(last_of(x), Tracer(w, b), **{**node.attrs, "channels_last": True})


def _pool(last_of: LastOf, b: Builder, node: Node, inputs: tuple[Operand, ...]) -> Any:
    return node.op(last_of(inputs[0]), **{**node.attrs, "channels_last": True})


def _elementwise(last_of: LastOf, b: Builder, node: Node, inputs: tuple[Operand, ...]) -> Any:
    rank = len(node.outputs[0].type.shape)
    out = []
    for x in inputs:
        if isinstance(x, Value) and (missing := rank - len(x.type.shape)):
            # NumPy's leading ones are made explicit before axes move
            x = OPS["reshape"](Tracer(x, b), shape=(*(1,) * missing, *x.type.shape)).value
        out.append(last_of(x))
    return node.op(*out, **node.attrs)


def _axis(axis: int, rank: int) -> int:
    """Where a channels-first axis lies channels last."""
    return to_last(rank).index(axis % rank)


def _reduce(last_of: LastOf, b: Builder, node: Node, inputs: tuple[Operand, ...]) -> Any:
    rank = len(node.outputs[0].type.shape)
    axes = tuple(sorted(_axis(a, rank) for a in node.attrs["axes"]))
    return node.op(last_of(inputs[0]), **{**node.attrs, "axes": axes})


def _one_axis(last_of: LastOf, b: Builder, node: Node, inputs: tuple[Operand, ...]) -> Any:
    rank = len(node.outputs[0].type.shape)
    return node.op(*(last_of(x) for x in inputs),
                   **{**node.attrs, "axis": _axis(node.attrs["axis"], rank)})


def _permuted(*names: str) -> Handler:
    """For ops whose attributes have one entry an axis."""
    def handler(last_of: LastOf, b: Builder, node: Node, inputs: tuple[Operand, ...]) -> Any:
        order = to_last(len(node.outputs[0].type.shape))
        attrs = dict(node.attrs)
        for name in names:
            if attrs.get(name):
                attrs[name] = tuple(attrs[name][p] for p in order)
        return node.op(*map(last_of, inputs), **attrs)
    return handler


def _resize(last_of: LastOf, b: Builder, node: Node, inputs: tuple[Operand, ...]) -> Any:
    rank = len(node.outputs[0].type.shape)
    roi = node.attrs["roi"]
    if roi is not None:  # a start for each axis, then an end for each
        ends = tuple(rank + p for p in to_last(rank))
        roi = tuple(roi[p] for p in (*to_last(rank), *ends))
    return _permuted("sizes", "scales")(
        last_of, b, Node(node.op, node.inputs, {**node.attrs, "roi": roi}, node.outputs,
                         node.where), inputs)


_SOURCES: dict[str, Handler] = {"conv": _conv}
_FOLLOWERS: dict[str, Handler] = {
    "max_pool": _pool, "avg_pool": _pool,
    **{f"reduce_{k}": _reduce for k in ("sum", "prod", "max", "min", "mean")},
    "softmax": _one_axis, "log_softmax": _one_axis, "concat": _one_axis, "cumulative": _one_axis,
    "pad": _permuted("lo", "hi", "interior"), "slice": _permuted("start", "limit", "strides"),
    "broadcast": _permuted("shape"), "resize": _resize,
    "reduce_window": _permuted("window", "strides", "padding", "base_dilation",
                               "window_dilation"),
    "extreme_tap": _permuted("window", "strides", "padding"),
    "unpool": _permuted("shape", "window", "strides", "padding"),
}
