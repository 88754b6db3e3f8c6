"""cond, while and scan → branches and loops over steps.

A region is lowered like a graph whose inputs and outputs are views of buffers outside it. Each
carried value has a buffer; the results of an iteration are copied there at its end. A row of a
scanned operand is a view whose offset depends on the loop counter, and so is a row of a stacked
result.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from graphtool import ops as o
from graphtool.ir.facets import Movement
from graphtool.ir.graph import (
    Graph,
    Node,
    Operand,
    TensorType,
    Value,
    joined_names,
    producers,
    readers_of,
)
from graphtool.loops.program import Branch, Repeat, Step, Times
from graphtool.loops.pull import View, dense, iterator
from graphtool.lower.views import Assignment, Copy, Edge, Storage, slice_view
from graphtool.symbolic import Dim, product, symbol_of


@dataclass
class RegionLowering:
    """What lowering a region needs: functions that lower a graph and a copy, and the counters so
    far."""

    graph: Callable[[Graph, Edge], tuple[Step, ...]]
    copy: Callable[[Copy, Assignment], Step]
    taken: frozenset[str]  # names of dims
    counters: list[str] = field(default_factory=list)

    def counter(self) -> str:
        """A new name for a loop counter that no dim and no other counter has."""
        n = len(self.counters)
        name = next(c for c in (f"iteration{i}" for i in range(n, n + len(self.taken) + 1))
                    if c not in self.taken and c not in self.counters)
        self.counters.append(name)
        return name


def control_steps(node: Node, assignment: Assignment, around: RegionLowering) -> list[Step]:
    """The steps of a control node; they write its results to the views of the buffer assignment."""
    lowering = _Control(node, assignment, around)
    match node.op:
        case o.cond:
            lowering.cond()
        case o.while_:
            lowering.while_()
        case _:
            lowering.scan()
    return lowering.steps


class _Control:
    def __init__(self, node: Node, assignment: Assignment, around: RegionLowering) -> None:
        self.node, self.assignment, self.around = node, assignment, around
        self.label = joined_names(node)
        self.steps: list[Step] = []

    # ---- places ----------------------------------------------------------------------------

    def fresh(self, v: Value) -> View:
        name = f"b{len(self.assignment.buffers)}"
        t = v.type
        self.assignment.buffers[name] = Storage(name, t.dtype, product(t.shape), "arena",
                                               label=f"{v.hint} of {self.label}")
        return dense(name, t.dtype, t.shape)

    def fill(self, source: Value | View, target: View) -> list[Step]:
        """The copy of a value, or of the elements at a view; none of what is there."""
        where = source if isinstance(source, View) else self.assignment.views[source]
        if where == target or any(d == 0 for d in target.shape):
            return []
        if isinstance(source, View):
            self.assignment.views[place := _value(source, self.label)] = source
            source = place
        return [self.around.copy(Copy(source, target, source.hint), self.assignment)]

    def operands(self, xs: Sequence[object]) -> list[View]:
        """The operands as dense views, which a region can read."""
        views = []
        for x in xs:
            assert isinstance(x, Value)
            view = self.assignment.views[x]
            if not view.contiguous:
                copy = self.fresh(x)
                self.steps += self.fill(x, copy)
                view = copy
            views.append(view)
        return views

    def result(self, n: int) -> View | None:
        """The view required for output n; None if nothing reads it."""
        return self.assignment.views.get(self.node.outputs[n])

    def region(self, graph: Graph, inputs: Sequence[View], outputs: Sequence[View | None]) -> tuple[
            Step, ...]:
        return self.around.graph(graph, Edge(tuple(inputs), tuple(outputs),
                                             self.assignment.buffers))

    # ---- ops -------------------------------------------------------------------------------

    def cond(self) -> None:
        pred, *operands = self.operands(self.node.inputs)
        a = self.node.attrs
        outputs = [self.result(n) for n in range(len(self.node.outputs))]
        sides = [self.region(a[k], operands, outputs) for k in ("then", "orelse")]
        self.steps.append(Branch(self.flag(pred), sides[0], sides[1], self.label))

    def flag(self, pred: View) -> str:
        """The buffer whose first element is the predicate."""
        if pred.offset == 0:
            return pred.buffer
        copy = self.fresh(_value(pred, "flag"))
        self.steps += self.fill(pred, copy)
        return copy.buffer

    def carry(self, count: int) -> tuple[list[View], list[tuple[View, View]]]:
        """A filled buffer for each carried value, and the buffers to be copied out at the end."""
        held, late = [], []
        for n, x in enumerate(self.node.inputs[:count]):
            assert isinstance(x, Value)
            wanted = self.result(n)
            storage = wanted if wanted is not None and wanted.contiguous else self.fresh(x)
            if wanted is not None and wanted is not storage:
                late.append((storage, wanted))
            self.steps += self.fill(x, storage)
            held.append(storage)
        return held, late

    def iteration(self, body: Graph, held: Sequence[View], inputs: Sequence[View],
                  rows: Sequence[View | None]) -> tuple[Step, ...]:
        """One run of a body, and the copies of its results to the carried values' buffers."""
        moved = _moved_on(body)
        new = [None if v is x else place if (x, v) in moved else self.fresh(v)
               for v, x, place in zip(body.outputs, body.inputs, held, strict=False)]
        steps = list(self.region(body, inputs, [*new, *rows]))
        for source, target in zip(new, held, strict=True):
            if source not in (None, target):
                steps += self.fill(source, target)
        return tuple(steps)

    def while_(self) -> None:
        a = self.node.attrs
        count = a["carries"]
        fixed = self.operands(self.node.inputs[count:])
        held, late = self.carry(count)
        flag = self.fresh(a["cond"].outputs[0])
        inputs = [*held, *fixed]
        self.steps.append(Repeat(flag.buffer, self.region(a["cond"], inputs, [flag]),
                                 self.iteration(a["body"], held, inputs, []), self.label))
        self.finish(late)

    def scan(self) -> None:
        a = self.node.attrs
        count, cut, length = a["carries"], a["carries"] + a["xs"], a["length"]
        xs = self.operands(self.node.inputs[count:])
        held, late = self.carry(count)
        counter = iterator(self.around.counter(), length)
        at: Dim = symbol_of(counter)
        at = length - 1 - at if a["reverse"] else at
        rows = [_row(x, at) for x in xs[:cut - count]]
        stacked = [self.result(n) for n in range(count, len(self.node.outputs))]
        targets = [None if y is None else _row(y, at) for y in stacked]
        body = self.iteration(a["body"], held, [*held, *rows, *xs[cut - count:]], targets)
        self.steps.append(Times(counter, length, body, self.label))
        self.finish(late)

    def finish(self, late: Sequence[tuple[View, View]]) -> None:
        for source, target in late:
            self.steps += self.fill(source, target)


def _moved_on(body: Graph) -> set[tuple[Operand, Value]]:
    """Inputs of a body that one node reads, once, each with the result that may replace it: what
    a loop carries on from it, or a part of what it is joined to. It is copied before that."""
    readers, made = readers_of(body), producers(body)
    fused = {n for g in body.groups for n in g.members}
    out = set[tuple[Operand, Value]]()
    for x, v in zip(body.inputs, body.outputs, strict=False):
        part, around = made.get(v), readers.get(x, [])
        if part is None or x in body.outputs or len(around) != 1 or around[0].inputs.count(x) != 1:
            continue
        joins = Movement.JOINS in around[0].op.movement and Movement.TAKES in part.op.movement and (
            part.inputs[0] is around[0].outputs[0] and fused.isdisjoint((part, around[0])))
        n = around[0].inputs.index(x)
        if joins or (around[0] is part and n < part.attrs.get("carries", 0)
                     and part.outputs[n] is v):
            out.add((x, v))
    return out


def _row(x: View, at: Dim) -> View:
    """The view x[at]."""
    rank = len(x.shape)
    one = slice_view(x, (at, *(0,) * (rank - 1)), (1, *x.shape[1:]), (1,) * rank)
    return View(one.buffer, one.dtype, one.shape[1:], one.strides[1:], one.offset)


def _value(view: View, hint: str) -> Value:
    """A new value that stands for the contents of a view."""
    return Value(TensorType(view.dtype, view.shape), hint)
