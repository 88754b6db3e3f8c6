"""stream: computes the first layers of a network on bytes for a few rows of the image at a time.

The images between the first layers are the largest values of a network, and a window sees a few
rows of them. The loop is a scan. One iteration computes a band of rows of each image, and carries
the last rows of a band where windows will see them again. Where strides make an image shorter, the
rows before it may be computed one by one, by a scan in the scan. Rows outside of the image are
computed too, before the first and after the last, and a mask makes them padding where a window
sees them. The sum over an image is carried, in the order of the whole sum. If least RAM is the
objective, the loop ends where the fewest bytes are live at once.
"""

from __future__ import annotations

import math
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
from graphtool.passes.stream.choice import best_plan
from graphtool.passes.stream.plan import (
    COLUMN,
    ROW,
    Plan,
    padding_of,
    rows_of,
    seen,
    without_rows,
)

State = tuple[int, Value] | Node  # what is carried: of a loop the rows of an image, or the sum
Table = Value | Node


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
        result = _scanned(p, 0, _begin(p, builder), _tables(p, builder), xs)[
            p.end if p.sums else p.last]
        if not p.sums:
            late = p.late[p.last]
            result = result.take(ROW, late, late + rows_of(p.last))
    gone = {*p.nodes, p.end}
    tail = Graph((*graph.inputs, p.end.outputs[0]),
                 tuple(n for n in graph.nodes if n not in gone), graph.outputs)
    outputs = replay(tail, [*xs, result], lambda node, *of: _again(builder, node, of))
    return Graph(graph.inputs, tuple(builder.nodes), tuple(y.value for y in outputs))


def _begin(p: Plan, builder: Builder) -> dict[State, Any]:
    """What is carried before the first iteration: rows above the images, and a sum of 0."""
    out, made = dict[State, Any](), producers(p.graph)
    for (loop, v), rows in p.carried().items():
        with _scope(builder, made[v]):
            out[loop, v] = _filled(builder, v, rows, _zero(p, v))
    if p.sums:
        out[p.end] = _filled(builder, p.end.outputs[0], 1, 0)
    return out


def _tables(p: Plan, builder: Builder) -> dict[Table, Any]:
    """What the iterations read, by the image: the rows of the input that are seen, and the
    masks."""
    masks: dict[Table, Any] = {v: builder.constant(_mask(p, v), f"{v.hint}.rows")
                              for v in p.late if isinstance(v, Value) and p.masked(v)}
    return {p.source: builder.constant(_source_rows(p), "rows"), **masks}


def _scanned(p: Plan, loop: int, state: dict[State, Any], tables: dict[Table, Any],
             inputs: Sequence[Any]) -> dict[Any, Any]:
    """What a loop carries at its end, and the rows that it gives of the images that are read
    outside."""
    given = [p.last] if loop == 0 and not p.sums else p.leaving(loop)
    k, n = len(state), len(state) + len(tables)
    operands = [*state.values(), *tables.values(), *inputs]
    types = [x.type for x in operands]
    types[k:n] = [TensorType(x.dtype, x.shape[1:]) for x in operands[k:n]]

    def body(*of: Tracer) -> tuple[Any, ...]:
        out = _Iteration(p, loop, dict(zip(state, of[:k], strict=True)),
                         dict(zip(tables, of[k:n], strict=True)), of[n:]).results()
        return tuple(out[key] for key in (*state, *given))
    count = p.counts(loop)[-1]
    out = o.scan(*operands, body=trace(body, types, [x.value.hint for x in operands]),
                 carries=k, xs=n - k, length=count)
    ends = dict(zip((*state, *given), out if isinstance(out, tuple) else (out,), strict=True))
    return ends | {v: ends[v].reshape((1, count * ends[v].shape[1 + ROW], *v.type.shape[2:]))
                   for v in given}


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


def _filled(builder: Builder, v: Value, rows: int, value: float) -> Any:
    """Some rows of an image before its first one."""
    t = v.type
    one = builder.constant(np.full((1,) * t.rank, value, t.dtype.numpy), f"{v.hint}.padding")
    return one.broadcast((1, rows, *t.shape[2:]))


def _zero(p: Plan, v: Value) -> float:
    """What windows see outside of an image."""
    return next(iter(p.outside(v)), 0)


def _mask(p: Plan, v: Value) -> np.ndarray[Any, Any]:
    """For each iteration which of its rows are inside of the image."""
    at = np.arange(p.length * p.band[v]) - p.late[v]
    loop = p.loop(v)
    return ((at >= 0) & (at < rows_of(v))).reshape(*p.counts(loop), 1, p.rows(v, loop), 1, 1)


def _source_rows(p: Plan) -> np.ndarray[Any, Any]:
    """For each iteration the rows of the input that are seen."""
    of, y = seen(p.source), p.source.outputs[0]
    counts, rows = p.counts(p.loop(y)), p.rows(y, p.loop(y))
    first = of.stride * (rows * np.arange(math.prod(counts)) - p.late[y]) - of.above
    seen_rows = first[:, None] + np.arange(p.reached(p.source))
    return seen_rows.astype(np.int32).reshape(*counts, -1, 1)


class _Iteration:
    """One iteration of a loop, from the rows that are carried, the tables and the inputs; some are
    those of the loops in it."""

    def __init__(self, p: Plan, loop: int, state: dict[State, Tracer],
                 tables: dict[Table, Tracer], inputs: Sequence[Tracer]) -> None:
        self.p, self.loop, self.tables, self.inputs = p, loop, tables, inputs
        self.builder, self.made = next(iter(tables.values())).builder, producers(p.graph)
        self.state: dict[State, Any] = dict(state)
        self.known: dict[Operand, Any] = dict(zip(p.graph.inputs, inputs, strict=True))
        self.band: dict[Value, Any] = {}
        self.first = dict.fromkeys(p.late, 0)  # the place of the first new row in what is known

    def results(self) -> dict[Any, Any]:
        """What is carried on, and the rows of each image."""
        self.inside()
        for node in self.p.nodes:
            v = node.outputs[0]
            if self.p.loop(v) == self.loop:
                with _scope(self.builder, node):
                    self.join(v, self.computed(node))
        if self.p.end in self.state:
            with _scope(self.builder, self.p.end):
                self.state[self.p.end] = self.sum(self.state[self.p.end])
        return self.state | self.band

    def inside(self) -> None:
        """The loop in this one."""
        if self.loop + 1 == len(self.p.units):
            return
        state: dict[State, Any] = {k: x for k, x in self.state.items()
                 if isinstance(k, tuple) and k[0] > self.loop}
        tables = {k: x for k, x in self.tables.items() if self.p.loop(
            k if isinstance(k, Value) else k.outputs[0]) > self.loop}
        ends = _scanned(self.p, self.loop + 1, state, tables, self.inputs)
        self.state |= {k: ends[k] for k in state}
        for v in self.p.leaving(self.loop + 1):
            with _scope(self.builder, self.made[v]):
                self.join(v, ends[v])

    def join(self, v: Value, y: Any) -> None:
        """Set the rows of an image: those that are carried, and the new ones if they are seen."""
        self.band[v] = self.known[v] = y
        key = self.loop, v
        if before := self.state.get(key):
            self.first[v] = rows = before.shape[ROW]
            self.known[v] = y = before if self.waits(v, rows) else o.concat(before, y, axis=ROW)
            y = self.band[v] if y is before else y
            count = y.shape[ROW]
            self.state[key] = y if rows == count else y.take(ROW, count - rows, count)

    def waits(self, v: Value, rows: int) -> bool:
        """Whether all readers see the rows that are carried, and none of the new ones."""
        return rows <= self.p.rows(v, self.loop) and all(
            self.p.back(n, v) == rows and self.p.reached(n) <= rows
            for n, images in self.p.images.items()
            if v in images and self.p.loop(n.outputs[0]) == self.loop)

    def computed(self, node: Node) -> Any:
        """The rows of an image that the iteration computes."""
        of, v = [self.operand(node, x) for x in node.inputs], node.outputs[0]
        (y,) = _again(self.builder, node, of, **without_rows(node))
        if v in self.tables and self.p.outside(v):
            y = o.select(self.tables[v], y, y.number(_zero(self.p, v)))
        return y

    def operand(self, node: Node, x: Operand) -> Any:
        """What the node sees of an operand."""
        if x in self.p.whole:
            return self.source(self.value(x), padding_of(node) or 0)
        if x not in self.p.late:
            return self.value(x)
        assert isinstance(x, Value)
        band, count = self.known[x], self.p.reached(node)
        first = self.first[x] - self.p.back(node, x)
        return band if count == band.shape[ROW] else band.take(ROW, first, first + count)

    def source(self, x: Any, zero: float) -> Any:
        """The rows of the input that are seen; outside of it are zeros."""
        rows = self.tables[self.p.source]
        at = o.min(o.max(rows, rows.number(0)), rows.number(x.shape[ROW] - 1))
        taken = o.gather(x.reshape(x.shape[1:]), at, axes=(0,))
        return o.select(o.eq(rows, at).reshape((1, *at.shape, 1)),
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
                if last in self.tables:
                    x = o.select(self.tables[last].take(ROW, r, r + 1), x, x.number(0))
                total = total + x
        return total

    def pixel(self, x: Operand, r: int, c: int) -> Any:
        """The elements of a pixel, computed from those of the last bytes."""
        if x not in self.p.late:
            return self.value(x)
        assert isinstance(x, Value)
        node = self.made[x]
        if Trait.ELEMENTWISE in node.op.traits and x.type.dtype.bytes > 1 and not self.first[x]:
            return _again(self.builder, node, [self.pixel(y, r, c) for y in node.inputs])[0]
        r += self.first[x] + self.p.late[x] - self.p.late[self.p.last]
        return self.known[x].take(ROW, r, r + 1).take(COLUMN, c, c + 1)
