"""stream: computes the first layers of a network on bytes for a few rows of the image at a time.

The images between the first layers are the largest values of a network, and a window sees a few
rows of them. The loop is a scan. One iteration computes a band of rows of each image, and carries
the last rows of a band where windows will see them again. Rows outside of the image are computed
too, before the first and after the last, and a mask makes them padding where a window sees them.
The sum over an image is carried, in the order of the whole sum. If least RAM is the objective, the
loop ends where the fewest bytes are live at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from graphtool import ops as o
from graphtool.ir.facets import Trait
from graphtool.ir.graph import (
    Graph,
    Node,
    Operand,
    TensorType,
    Value,
    is_constant,
    names_of,
    producers,
)
from graphtool.ir.replay import prune, replay, stem
from graphtool.ir.trace import Builder, Tracer, trace
from graphtool.kernels.choice.rules import Rules
from graphtool.passes.stream.plan import COLUMN, ROW, Plan, best_plan, rows_of, seen, windowed


def stream(graph: Graph, *, rules: Rules | None = None) -> Graph:
    """The graph with a loop over rows of its images, if least RAM is the objective and the loop
    needs less."""
    plan = best_plan(graph) if rules is not None and rules.objective == "ram" else None
    return prune(looped(plan)) if plan else graph


def looped(p: Plan) -> Graph:
    """The graph with the loop in place of its nodes."""
    graph, builder = p.graph, Builder()
    xs = [Tracer(v, builder) for v in graph.inputs]
    with _scope(builder, p.end):
        result = _scanned(p, builder, xs)
        if not p.sums:
            shape, late = p.last.type.shape, p.late[p.last]
            rows = result.reshape((1, p.length * p.band[p.last], *shape[2:]))
            result = rows.take(ROW, late, late + rows_of(p.last))
    gone = {*p.nodes, p.end}
    tail = Graph((*graph.inputs, p.end.outputs[0]),
                 tuple(n for n in graph.nodes if n not in gone), graph.outputs)
    outputs = replay(tail, [*xs, result], lambda node, *of: _again(builder, node, of))
    return Graph(graph.inputs, tuple(builder.nodes), tuple(y.value for y in outputs))


def _scanned(p: Plan, builder: Builder, xs: Sequence[Tracer]) -> Any:
    """The result of the loop: the bands of the last image, or its sum."""
    carried = [v for v, rows in p.carried.items() if rows]
    masked = [v for v in p.late if isinstance(v, Value) and p.masked(v)]
    held, made = list[Any](), producers(p.graph)
    for v in carried:
        with _scope(builder, made[v]):
            held.append(_filled(builder, v, p.carried[v], _zero(p, v)))
    held += [_filled(builder, p.end.outputs[0], 1, 0)] if p.sums else []
    rows = [builder.constant(_source_rows(p), "rows"),
            *(builder.constant(_mask(p, v), f"{v.hint}.rows") for v in masked)]
    operands = [*held, *rows, *xs]
    types = [*(x.type for x in held), *(TensorType(x.dtype, x.shape[1:]) for x in rows),
             *(x.type for x in xs)]

    def body(*given: Tracer) -> tuple[Any, ...]:
        k, n = len(held), len(held) + len(rows)
        return _Iteration(p, dict(zip(carried, given, strict=False)), given[k],
                          dict(zip(masked, given[k + 1:], strict=False)), given[n:]).results(
                              given[k - 1])
    out = o.scan(*operands, body=trace(body, types, [x.value.hint for x in operands]),
                 carries=len(held), xs=len(rows), length=p.length)
    return out[-1] if isinstance(out, tuple) else out


def _scope(builder: Builder, node: Node) -> Any:
    """The names and the place of what stands for a node."""
    return builder.scope(stem(node), node.where, names_of(node))


def _again(builder: Builder, node: Node, of: Sequence[Any], **more: Any) -> Sequence[Any]:
    """The node once more, with other operands and attributes."""
    name = node.outputs[0].hint
    if is_constant(node):
        return (builder.constant(node.attrs["data"], name, node.attrs["param"], node.of),)
    with builder.scope("", node.where, names_of(node)):
        out = builder.emit(node.op, of, {**node.attrs, **more}, name)
    return out if isinstance(out, tuple) else (out,)


def _filled(builder: Builder, v: Value, rows: int, value: int) -> Any:
    """Some rows of an image before its first one."""
    t = v.type
    one = builder.constant(np.full((1,) * t.rank, value, t.dtype.numpy), f"{v.hint}.padding")
    return one.broadcast((1, rows, *t.shape[2:]))


def _zero(p: Plan, v: Value) -> int:
    """What windows see outside of an image."""
    node = p.padded(v)
    return node.attrs["zero"] if node else 0


def _mask(p: Plan, v: Value) -> np.ndarray[Any, Any]:
    """For each iteration which of its rows are inside of the image."""
    at = np.arange(p.length * p.band[v]) - p.late[v]
    return ((at >= 0) & (at < rows_of(v))).reshape(p.length, 1, p.band[v], 1, 1)


def _source_rows(p: Plan) -> np.ndarray[Any, Any]:
    """For each iteration the rows of the input that are seen."""
    of, y = seen(p.source), p.source.outputs[0]
    first = of.stride * (p.band[y] * np.arange(p.length) - p.late[y]) - of.above
    return (first[:, None] + np.arange(p.reached(p.source))).astype(np.int32)[..., None]


class _Iteration:
    """One iteration, from the rows that are carried, those of the input that are seen, and the
    masks."""

    def __init__(self, p: Plan, before: dict[Value, Tracer], rows: Tracer,
                 masks: dict[Value, Tracer], inputs: Sequence[Tracer]) -> None:
        self.p, self.before, self.rows, self.masks = p, before, rows, masks
        self.builder, self.made = rows.builder, producers(p.graph)
        self.known: dict[Operand, Any] = dict(zip(p.graph.inputs, inputs, strict=True))

    def results(self, total: Tracer) -> tuple[Any, ...]:
        """The rows to carry, and the band of the last image, or the sum so far."""
        later = {}
        for node in self.p.nodes:
            v = node.outputs[0]
            with _scope(self.builder, node):
                y = self.band(node)
                if v in self.before:
                    y = o.concat(self.before[v], y, axis=ROW)
                    later[v] = y.take(ROW, self.p.band[v], y.shape[ROW])
            self.known[v] = y
        with _scope(self.builder, self.p.end):
            last = self.sum(total) if self.p.sums else self.known[self.p.last]
        return *(later[v] for v in self.before), last

    def band(self, node: Node) -> Any:
        """The rows of an image that the iteration computes."""
        v, of = node.outputs[0], [self.operand(node, x) for x in node.inputs]
        if not windowed(node):
            (y,) = _again(self.builder, node, of)
        else:
            (y,) = _again(self.builder, node, of, padding=((0, 0), node.attrs["padding"][1]))
        if v in self.masks and self.p.padded(v):
            y = o.select(self.masks[v], y, y.number(_zero(self.p, v)))
        return y

    def operand(self, node: Node, x: Operand) -> Any:
        """What the node sees of an operand."""
        if x in self.p.whole:
            return self.source(self.value(x), node.attrs.get("zero", 0))
        if x not in self.p.late:
            return self.value(x)
        assert isinstance(x, Value)
        band, count = self.known[x], self.p.reached(node)
        first = self.p.carried[x] - self.p.back(node, x)
        return band if count == band.shape[ROW] else band.take(ROW, first, first + count)

    def source(self, x: Any, zero: int) -> Any:
        """The rows of the input that are seen; outside of it are zeros."""
        at = o.min(o.max(self.rows, self.rows.number(0)), self.rows.number(x.shape[ROW] - 1))
        taken = o.gather(x.reshape(x.shape[1:]), at, axes=(0,))
        return o.select(o.eq(self.rows, at).reshape((1, *at.shape, 1)),
                        taken.reshape((1, *taken.shape)), taken.number(zero))

    def value(self, x: Operand) -> Any:
        """A literal, a constant, or a view of an input."""
        if isinstance(x, Value) and x not in self.known:
            node = self.made[x]
            of = [self.value(y) for y in node.inputs]
            self.known.update(zip(node.outputs, _again(self.builder, node, of), strict=True))
        return self.known[x] if isinstance(x, Value) else x

    def sum(self, total: Any) -> Any:
        """The sum so far and a band of the last image, element by element."""
        last = self.p.last
        for r in range(self.p.band[last]):
            for c in range(int(last.type.shape[COLUMN])):  # type: ignore[arg-type]
                x = self.pixel(last, r, c)
                if last in self.masks:
                    x = o.select(self.masks[last].take(ROW, r, r + 1), x, x.number(0))
                total = total + x
        return total

    def pixel(self, x: Operand, r: int, c: int) -> Any:
        """The elements of a pixel, computed from those of the last bytes."""
        if x not in self.p.late:
            return self.value(x)
        assert isinstance(x, Value)
        node = self.made[x]
        if Trait.ELEMENTWISE in node.op.traits and x.type.dtype.bytes > 1:
            return _again(self.builder, node, [self.pixel(y, r, c) for y in node.inputs])[0]
        return self.known[x].take(ROW, r, r + 1).take(COLUMN, c, c + 1)
