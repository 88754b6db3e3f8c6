"""step: a graph over a window of frames becomes one that takes the new frames, and the state.

The window is the last T frames of a signal. When it moves on, the rows that a layer has computed
move with it: a step computes the new ones, and keeps those that a later window needs again. What
reads all rows at once, as a mean over time does, reads the kept ones and the new ones. The results
are those of the whole window, element by element, once T frames were seen.

The state of a type is one array, which is donated: what a run writes replaces what it reads.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from graphtool import ops as o
from graphtool.analysis.rows import for_rows
from graphtool.dtypes import DType
from graphtool.errors import UsageError, near
from graphtool.ir.graph import Graph, Module, Node, TensorType, Value, is_constant, names_of
from graphtool.ir.replay import prune, replay
from graphtool.ir.trace import Builder, Tracer
from graphtool.passes.step.plan import Plan, planned
from graphtool.symbolic import product

STATE = "state"


def step(module: Module, *, axis: int, frames: int = 0, input: str = "",
         notes: dict[str, str] | None = None) -> Module:
    """The module that takes `frames` new frames along the axis of the input, and the state of the
    frames before them.

    Without `frames` a step has as few as the strides allow. `input` names the input where there are
    several. A result that has frames too has those that are new. Raises UsageError GT0627 for an
    axis or a number of frames without such a step, GT0630 for layers that pad the axis.
    """
    source = _source(module, axis, input)
    plan = planned(prune(module.graph), source, axis % source.type.rank, frames)
    if notes is not None:
        notes.update((v.hint, "reads the whole window") for n in plan.whole for v in n.outputs)
    return _Step(plan).module(module)


def _source(module: Module, axis: int, name: str) -> Value:
    """The input whose frames are new. Raises UsageError GT0627."""
    inputs = dict(zip(module.inputs, module.graph.inputs, strict=True))
    if name not in inputs if name else len(inputs) != 1:
        raise UsageError("GT0627", f"step: there is no input {name!r}" if name else
                         f"step: the graph has {len(inputs)} inputs",
                         hint=near(name, inputs, f"input=NAME, of {', '.join(inputs)}"))
    source = inputs[name or next(iter(inputs))]
    if not -source.type.rank <= axis < source.type.rank or not all(
            isinstance(d, int) for n in module.nodes for v in n.outputs for d in v.type.shape):
        raise UsageError("GT0627", f"step: {source.hint}: {source.type} has no axis {axis} of a "
                                   "known size, or other sizes are open",
                         hint="opt --passes 'specialize{batch=1}' fixes a size")
    return source


class _Step:
    """A step on its way: of each value with rows, the rows that it has."""

    def __init__(self, plan: Plan) -> None:
        self.p, self.builder = plan, Builder()
        self.had: dict[DType, int] = {}  # elements of each state that have their place
        self.given: dict[DType, Tracer] = {}
        self.later: dict[DType, list[Any]] = {}
        size: dict[DType, int] = {}
        for v in plan.kept:
            size[v.type.dtype] = size.get(v.type.dtype, 0) + _count(self.shape(v))
        for dtype, n in size.items():
            name = STATE if len(size) == 1 else f"{STATE}_{dtype.short}"
            self.given[dtype] = self.builder.input(TensorType(dtype, (n,)), name)

    def shape(self, v: Value) -> list[int]:
        """The rows of a value that are kept: with channels last, as kernels want them."""
        shape: list[Any] = list(v.type.shape)
        shape[self.p.axis[v]] = self.p.back[v]
        return [shape[a] for a in self.order(v)]

    def order(self, v: Value) -> tuple[int, ...]:
        """The order of axes in which rows are kept."""
        rank = v.type.rank
        channels_first = self.p.axis[v] >= 2 and not any(
            n.attrs.get("channels_last") for n in self.p.graph.nodes)
        return (0, *range(2, rank), 1) if channels_first else tuple(range(rank))

    def module(self, old: Module) -> Module:
        """The module of the step."""
        p, source = self.p, self.p.source
        shape = list(source.type.shape)
        shape[p.axis[source]] = p.new[source]
        inputs = [self.builder.input(TensorType(v.type.dtype, tuple(shape)) if v is source
                                     else v.type, v.hint) for v in p.graph.inputs]
        args = [self.with_kept(v, x) if v is source else x
                for v, x in zip(p.graph.inputs, inputs, strict=True)]
        outputs = [self.last(v, x) for v, x in zip(
            p.graph.outputs, replay(p.graph, args, self.node), strict=True)]
        states = []
        for dtype, parts in self.later.items():
            with self.builder.scope(self.given[dtype].value.hint):
                states.append(parts[0] if len(parts) == 1 else o.concat(*parts, axis=0))
        graph = Graph((*(x.value for x in inputs), *(x.value for x in self.given.values())),
                      tuple(self.builder.nodes),
                      (*(y.value for y in outputs), *(y.value for y in states)))
        pairs = [(len(outputs) + i, len(inputs) + i) for i in range(len(states))]
        names = (x.value.hint for x in self.given.values())
        return dataclasses.replace(
            old, graph=graph, output_names=(*old.output_names, *names),
            donations=(*old.donations, *pairs))

    def node(self, node: Node, *operands: Any) -> Sequence[Any]:
        """The rows of its result that a step has; a node without rows once more."""
        if is_constant(node):
            return (self.builder.constant(node.attrs["data"], node.outputs[0].hint,
                                          node.attrs["param"], node.of),)
        found = self.p.nodes.get(node)
        of, attrs = list(operands), dict(node.attrs)
        if found is not None:
            y = node.outputs[0]
            rows = self.p.computed(y)
            for i, s in found.seen.items():
                x = node.inputs[i]
                assert isinstance(x, Value)
                given = s.count(rows)
                of[i] = self.part(of[i], self.p.axis[x], s.first(self.p.rows(y) - rows)
                                  - self.p.first(x), given)
            attrs = for_rows(node, found.axis, rows, given)
        with self.builder.scope("", node.where, names_of(node)):
            out = self.builder.emit(node.op, of, attrs, node.outputs[0].hint)
        out = out if isinstance(out, tuple) else (out,)
        return (self.with_kept(node.outputs[0], out[0]),) if found is not None else out

    def part(self, x: Any, axis: int, first: int, rows: int) -> Any:
        """Some rows of a value."""
        return x if rows == x.shape[axis] else x.take(axis, first, first + rows)

    def with_kept(self, v: Value, new: Any) -> Any:
        """The kept rows of a value and the new ones; the last of them are kept for the next
        step."""
        if v not in self.p.kept:
            return new
        order, dtype, shape = self.order(v), v.type.dtype, self.shape(v)
        axis, count = order.index(self.p.axis[v]), _count(shape)
        start = self.had.get(dtype, 0)
        self.had[dtype] = start + count
        with self.builder.scope(v.hint):
            before = self.given[dtype].take(0, start, start + count).reshape(shape)
            rows = o.concat(before, _permuted(new, order), axis=axis)
            kept = rows.take(axis, self.p.new[v], rows.shape[axis]).reshape((count,))
            self.later.setdefault(dtype, []).append(kept)
            return _permuted(rows, tuple(order.index(a) for a in range(len(order))))

    def last(self, v: Value, x: Any) -> Any:
        """Of a result with rows, those that are new."""
        if v not in self.p.axis:
            return x
        with self.builder.scope(v.hint):
            return self.part(x, self.p.axis[v], self.p.back[v], self.p.new[v])


def _count(shape: Sequence[int]) -> int:
    n = product(shape)
    assert isinstance(n, int)
    return n


def _permuted(x: Any, order: tuple[int, ...]) -> Any:
    return x if order == tuple(range(len(order))) else x.transpose(order)
