"""layout: convolutions and pooling run channels last, and so do the ops between them.

Each convolution becomes one on transposed operands. The ops that follow it (elementwise, pooling,
concat, reductions …) are rebuilt on the channels-last twin of their operand. So transposes remain
only where values leave that region of the graph.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from graphtool import ops as o
from graphtool.ir.facets import Align, Movement, Trait, permuted
from graphtool.ir.graph import Graph, Node, Operand, Value
from graphtool.ir.op import Op
from graphtool.ir.replay import rebuild
from graphtool.ir.trace import Builder, Tracer
from graphtool.symbolic import product


def layout(graph: Graph) -> Graph:
    """The graph with convolutions, pooling and the ops between them channels last."""
    return rebuild(graph, Layout(_wanted(graph)).rewrite)


def to_last(rank: int) -> tuple[int, ...]:
    """The permutation N C … → N … C."""
    return (0, *range(2, rank), 1)


def to_first(rank: int) -> tuple[int, ...]:
    """The permutation N … C → N C …."""
    return (0, rank - 1, *range(1, rank - 1))


class Layout:
    """One run of the pass: the values it made channels last, and the values that are read so."""

    def __init__(self, wanted: set[Value]) -> None:
        self.last: set[Value] = set()
        self.wanted = wanted

    def rewrite(self, node: Node, inputs: tuple[Operand, ...],
                builder: Builder) -> Sequence[Any] | None:
        """The node in channels-last form, followed by a transpose back; None if it stays as it
        is."""
        if len(node.outputs) != 1 or node.attrs.get("channels_last"):
            return None
        if node.op.weighing is not None and node.op.weighing.across:
            return self.flattened(node, inputs, builder)
        if _turns(node):
            source = self.twin(builder, inputs[0])
            if source is None and node.outputs[0] in self.wanted:  # transposed back by a reader
                self.last.add(inputs[0])  # type: ignore[arg-type]
            return None if source is None else (source,)
        if Movement.KEEPS in node.op.movement:
            return self.pixels(node, inputs, builder)
        if self.keeps(node, inputs):
            self.last.add(node.outputs[0])
            return None
        changes = _convolves(node) or any(self.twin(builder, x) is not None for x in inputs)
        handler = _handler(node.op) if changes else None
        rank = len(node.outputs[0].type.shape)
        if handler is None or rank < 3 or (handler is not _elementwise and any(
                x.type.rank != rank for x in inputs if isinstance(x, Value))):
            return None
        last = handler(lambda x: self.last_of(builder, x), builder, node, inputs)
        self.last.add(last.value)
        return (o.transpose(last, perm=to_first(rank)),)

    def keeps(self, node: Node, inputs: tuple[Operand, ...]) -> bool:
        """Whether a sequence stays channels last because the graph itself transposed it so.

        The transpose back before the next convolution will then cancel it. A join of sequences is
        a longer one.
        """
        shape, joins = node.outputs[0].type.shape, Movement.JOINS in node.op.movement
        return len(shape) == 3 and not _convolves(node) and (
            Movement.PERMUTES not in node.op.movement) and any(
            x in self.last and (joins or x.type.shape == shape)
            for x in inputs if isinstance(x, Value))

    def pixels(self, node: Node, inputs: tuple[Operand, ...], b: Builder) -> Sequence[Any] | None:
        """Rows of features become the pixels of an image, or the other way: with channels last this
        moves no element.

        If nothing reads the result channels last, the node is not changed.
        """
        if node.outputs[0] not in self.wanted:
            return None
        shape = node.outputs[0].type.shape
        image, transposed = self.twin(b, inputs[0]), _maker(b, inputs[0], o.transpose)
        source: Operand
        if image is not None and len(shape) == 3:
            source, (n, *spatial, c) = image, image.type.shape
            whole = shape == (n, c, product(spatial))
        elif transposed is not None and len(shape) > 3:
            source, (n, c, *spatial) = transposed.inputs[0], shape
            whole = transposed.outputs[0].type.shape == (n, c, product(spatial)) and (
                tuple(transposed.attrs["perm"]) == to_last(3))
        else:
            return None
        if not whole or not isinstance(source, Value):
            return None
        last = o.reshape(Tracer(source, b), shape=tuple(shape[p] for p in to_last(len(shape))))
        self.last.add(last.value)
        return (o.transpose(last, perm=to_first(len(shape))),)

    def flattened(self, node: Node, inputs: tuple[Operand, ...],
                  b: Builder) -> Sequence[Any] | None:
        """A product of an image's flattened features: its constant weights are reordered instead
        of the image."""
        flat, w = _maker(b, inputs[0], o.reshape), inputs[1]
        image = None if flat is None else flat.inputs[0]
        source = self.twin(b, image)
        constant = _maker(b, w, o.constant)
        if flat is None or source is None or constant is None or constant.attrs["param"] or (
                not isinstance(image, Value) or not isinstance(w, Value)):
            return None
        n, *features = image.type.shape
        if flat.outputs[0].type.shape != (n, product(features)) or node.attrs["transpose_a"] or (
                w.type.rank != 2 or not all(isinstance(d, int) for d in features)):
            return None
        rows = o.transpose(Tracer(w, b), perm=(1, 0)) if node.attrs["transpose_b"] else (
            Tracer(w, b))
        last = o.transpose(o.reshape(rows, shape=(*features, rows.shape[1])),
                           perm=(*range(1, len(features)), 0, len(features)))
        return (node.op(o.reshape(Tracer(source, b), shape=(n, product(features))),
                        o.reshape(last, shape=rows.shape),
                        **{**node.attrs, "transpose_b": False}),)

    def twin(self, builder: Builder, x: Operand) -> Value | None:
        """The channels-last value whose channels-first transpose is x.

        With three axes the two permutations are the same, so only values that this run made count.
        """
        node = builder.made_by.get(x) if isinstance(x, Value) else None
        if node is None or Movement.PERMUTES not in node.op.movement:
            return None
        perm, source = node.attrs["perm"], node.inputs[0]
        if not isinstance(source, Value) or len(perm) < 3 or perm != to_first(len(perm)):
            return None
        return source if len(perm) > 3 or source in self.last else None

    def last_of(self, builder: Builder, x: Operand) -> Any:
        """The channels-last form of an operand: its twin, or else a transpose of it."""
        if not isinstance(x, Value):
            return x
        source = self.twin(builder, x)
        if source is not None:
            return Tracer(source, builder)
        return o.transpose(Tracer(x, builder), perm=to_last(len(x.type.shape)))


def _wanted(graph: Graph) -> set[Value]:
    """The values that are read channels last, either directly or through ops that can run
    channels last."""
    wanted: set[Value] = set()
    for node in reversed(graph.nodes):
        follows = any(y in wanted for y in node.outputs) and _handler(node.op) is not None
        if _reads_last(node) or follows:
            wanted |= {x for x in node.inputs if isinstance(x, Value)}
    return wanted


def _reads_last(node: Node) -> bool:
    """Whether the node reads a channels-first operand in channels-last order."""
    if Movement.PERMUTES in node.op.movement:
        return tuple(node.attrs["perm"]) == to_last(len(node.attrs["perm"]))
    across = node.op.weighing.across if node.op.weighing else ""
    return bool(across and node.attrs[across]) or (
        _convolves(node) and not node.attrs["channels_last"])


def _turns(node: Node) -> bool:
    """Whether the node exchanges the last two of three axes; if one of them has the size 1, this
    may be written as a reshape."""
    x = node.inputs[0] if node.inputs else None
    if not isinstance(x, Value) or x.type.rank != 3:
        return False
    n, a, b = x.type.shape
    return (Movement.PERMUTES in node.op.movement and node.attrs["perm"] == to_last(3)) or (
        Movement.KEEPS in node.op.movement and a != b and 1 in (a, b)
        and node.outputs[0].type.shape == (n, b, a))


def _convolves(node: Node) -> bool:
    return node.op.weighing is not None and node.op.weighing.kind == "conv"


def _maker(b: Builder, x: Operand, op: Op) -> Node | None:
    """The node that made x, if its op is this one; else None."""
    node = b.made_by.get(x) if isinstance(x, Value) else None
    return node if node is not None and node.op is op else None


LastOf = Callable[[Operand], Any]
Handler = Callable[[LastOf, Builder, Node, tuple[Operand, ...]], Any]


def _channels_last(last_of: LastOf, b: Builder, node: Node, inputs: tuple[Operand, ...]) -> Any:
    """Convolutions and pooling: an attribute gives the layout of x; weights are not changed."""
    x, *weights = inputs
    return node.op(last_of(x), *(Tracer(w, b) for w in weights if isinstance(w, Value)),
                   **{**node.attrs, "channels_last": True})


def _elementwise(last_of: LastOf, b: Builder, node: Node, inputs: tuple[Operand, ...]) -> Any:
    rank = len(node.outputs[0].type.shape)
    out = []
    for x in inputs:
        if isinstance(x, Value) and (missing := rank - len(x.type.shape)):
            # the leading axes of size 1 that NumPy adds are made explicit before axes are moved
            x = o.reshape(Tracer(x, b), shape=(*(1,) * missing, *x.type.shape)).value
        out.append(last_of(x))
    return node.op(*out, **node.attrs)


def _moved(last_of: LastOf, b: Builder, node: Node, inputs: tuple[Operand, ...]) -> Any:
    """Ops whose record says what their attributes mean for axes."""
    assert node.op.axes is not None
    order = to_last(len(node.outputs[0].type.shape))
    return node.op(*map(last_of, inputs), **permuted(node.op.axes, node.attrs, order))


def _handler(op: Op) -> Handler | None:
    """The function that rebuilds the op channels last when its operand is; None if it cannot run
    so."""
    if Trait.ELEMENTWISE in op.traits:
        return _elementwise
    if "channels_last" in op.schema:
        return _channels_last
    axes = op.axes
    follows = axes is not None and not axes.order and (
        axes.align is Align.SAME or (axes.align is Align.TRAILING and bool(axes.sizes)))
    return _moved if follows else None
