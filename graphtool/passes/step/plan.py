"""What a step computes of each value: the rows that are new, those before them that are needed
again, and where these are kept."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import lcm

from graphtool.analysis.rows import ByRows, by_rows
from graphtool.errors import UsageError
from graphtool.ir.facets import Trait
from graphtool.ir.graph import Graph, Node, Value, names_of, producers


@dataclass
class Plan:
    """A step over the rows of `source`.

    `axis` has the axis of rows of each value with rows, `per` the frames of the source for each
    row, `nodes` the nodes that compute their rows alike, `whole` those that read all rows of a
    window. The last `new` rows of a window are new in each step; the `back` rows before them are
    there too, and the state has them where the value is in `kept`.
    """

    graph: Graph
    source: Value
    axis: dict[Value, int]
    per: dict[Value, int]
    nodes: dict[Node, ByRows] = field(default_factory=dict)
    whole: list[Node] = field(default_factory=list)
    new: dict[Value, int] = field(default_factory=dict)
    back: dict[Value, int] = field(default_factory=dict)
    kept: list[Value] = field(default_factory=list)

    def rows(self, v: Value) -> int:
        """The rows of a value in a window."""
        rows = v.type.shape[self.axis[v]]
        assert isinstance(rows, int)
        return rows

    def first(self, v: Value) -> int:
        """The first row of the window that a step has."""
        return self.rows(v) - self.new[v] - self.back[v]

    def computed(self, v: Value) -> int:
        """How many rows of a value its node computes in a step."""
        return self.new[v] + (0 if v in self.kept else self.back[v])


def planned(graph: Graph, source: Value, axis: int, frames: int) -> Plan:
    """The plan of a step that takes `frames` frames; 0: as few as there can be.

    Raises UsageError GT0627 where no step computes less than the window, or not so many frames,
    GT0630 for windows that reach over the ends.
    """
    plan = Plan(graph, source, {source: axis}, {source: 1})
    _find_rows(plan)
    if not any(node.op.weighing or node.op.traits & (Trait.WINDOWED | Trait.CONTRACTION)
               for node in plan.nodes):
        why = f"{_named(plan.whole[0])} needs the whole window" if plan.whole else (
            "no product and no window is computed along it")
        raise UsageError("GT0627", f"step: axis {axis} of {source.hint} has no new part that could "
                                   f"be computed alone: {why}", hint="name the axis of time")
    hop = lcm(*plan.per.values())
    frames = frames or hop
    if frames % hop or frames > plan.rows(source):
        raise UsageError("GT0627", f"step: {frames} frames cannot be a step, {plan.rows(source)} "
                                   f"are a window", hint=f"a multiple of {hop}, the product of "
                                                         "the strides")
    plan.new = {v: min(frames // n, plan.rows(v)) for v, n in plan.per.items()}
    _find_kept(plan)
    return plan


def _named(node: Node) -> str:
    return " and ".join(names_of(node)) or node.op.name


def _find_rows(p: Plan) -> None:
    """Find the values that have rows, and how they are computed. What other inputs decide may
    differ from step to step, so that no row of it can be kept."""
    live = set(p.graph.inputs)
    for node in p.graph.nodes:
        inputs = [x if isinstance(x, Value) else None for x in node.inputs]
        axes = [p.axis.get(x) if x else None for x in inputs]
        if live.isdisjoint(inputs):
            continue
        live.update(node.outputs)
        if not any(a is not None for a in axes):
            continue
        other = any(x in live and a is None for x, a in zip(inputs, axes, strict=True))
        found = None if other else by_rows(node, axes)
        rates = {p.per[x] * found.seen[i].stride for i, x in enumerate(inputs)  # type: ignore[index]
                 if i in found.seen} if found else set[int]()
        if found is None or len(rates) != 1:
            p.whole.append(node)
            continue
        (y,) = node.outputs
        p.axis[y], p.per[y], p.nodes[node] = found.axis, rates.pop(), found
        _refuse_padding(p, node, found)


def _refuse_padding(p: Plan, node: Node, found: ByRows) -> None:
    """Raise UsageError GT0630 if the node sees rows outside of the window."""
    for i, s in found.seen.items():
        x = node.inputs[i]
        assert isinstance(x, Value)
        if s.first(0) < 0 or s.first(0) + s.count(p.rows(node.outputs[0])) > p.rows(x):
            raise UsageError(
                "GT0630", f"step: {_named(node)} pads axis {p.axis[x]}, along which the window "
                          "moves: its first and last rows change with every step",
                where=node.where, hint="train the model without padding along time (`valid`), and "
                "cut off what a branch past such layers has more")


def _find_kept(p: Plan) -> None:
    """Find the rows before the new ones that readers need, and the values that keep them: before
    elementwise nodes, if there they have fewer bytes."""
    made_by, p.back = producers(p.graph), dict.fromkeys(p.axis, 0)

    def need(x: object, first: int) -> None:
        if isinstance(x, Value) and x in p.axis:
            p.back[x] = max(p.back[x], p.rows(x) - p.new[x] - first)
    for node in reversed(p.graph.nodes):
        if node in p.whole:
            for x in node.inputs:
                need(x, 0)
        elif node in p.nodes:
            (y,) = node.outputs
            if p.back[y] and not _narrower(p, y, made_by):
                p.kept.insert(0, y)
            for i, s in p.nodes[node].seen.items():
                need(node.inputs[i], s.first(p.rows(y) - p.computed(y)))
    if p.back[p.source]:
        p.kept.insert(0, p.source)


def _narrower(p: Plan, y: Value, made_by: Mapping[Value, Node]) -> bool:
    """Whether y is computed, element by element, from one value with rows of fewer bytes."""
    x, most = y, y.type.dtype.bytes
    while (node := made_by.get(x)) in p.nodes:
        assert node is not None
        of = p.nodes[node].seen
        if Trait.ELEMENTWISE not in node.op.traits or len(of) != 1:
            return False
        (i,) = of
        x = node.inputs[i]  # type: ignore[assignment]
        if x.type.dtype.bytes < most:
            return True
    return False
