"""Peak memory of the intermediates when nodes run in order, each freed after its last use.

It is an estimate from liveness alone: reshapes share their operand's bytes, and no op works in
place.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from graphtool import ops as o
from graphtool.analysis.costs import regions
from graphtool.ir.facets import Trait
from graphtool.ir.graph import Graph, Node, Operand, Value, is_constant
from graphtool.ir.replay import last_uses, replay
from graphtool.ops.costs import nbytes
from graphtool.symbolic import Dim, at_least_sizes


@dataclass(frozen=True)
class Peak:
    """The largest sum of live intermediates, and the node during which it is reached."""

    bytes: Dim
    node: Node | None


def peak(graph: Graph, without: Collection[Value] = ()) -> Peak:
    """The peak. Inputs and constants are not counted, because they belong to the caller and to the
    file; values in `without` are not counted either.

    If dimensions are symbolic, the node is the one with the largest sum at the least sizes.
    """
    tally = _Tally(without)
    replay(graph, graph.inputs, tally.define, last_uses(graph), tally.drop)
    return tally.best


@dataclass
class _Tally:
    """The values that are live now. `owner` says whose bytes a value uses; `users` how many
    values share them."""

    without: Collection[Value] = ()
    live: Dim = 0
    best: Peak = Peak(0, None)
    owner: dict[Value, Value] = field(default_factory=dict)
    users: dict[Value, int] = field(default_factory=dict)

    def define(self, node: Node, *operands: Operand) -> Sequence[Value]:
        if is_constant(node):
            return node.outputs
        for v in node.outputs:
            if v in self.without:
                continue
            alias = node.op in (o.reshape, o.barrier)
            root = self.owner.get(node.inputs[0]) if alias else v  # type: ignore[arg-type]
            if root is None:  # a view of an input or a constant
                continue
            self.owner[v] = root
            self.users[root] = self.users.get(root, 0) + 1
            if root is v:
                self.live = self.live + nbytes(v.type)
        inner = max((peak(g).bytes for g in regions(node)), key=at_least_sizes, default=0)
        if at_least_sizes(self.live + inner) > at_least_sizes(self.best.bytes):
            self.best = Peak(self.live + inner, node)
        return node.outputs

    def drop(self, v: Value) -> None:
        root = self.owner.get(v)
        if root is None:
            return
        self.users[root] -= 1
        if self.users[root] == 0:
            self.live = self.live - nbytes(root.type)


def placeless(graph: Graph) -> set[Value]:
    """The values of a step that need no memory in its arena.

    These are its outputs, which belong to the caller or are updated in place, and the result of one
    elementwise node for one other, which stays inside a kernel.
    """
    readers: dict[Value, list[Node]] = {}
    for node in graph.nodes:
        for x in node.inputs:
            if isinstance(x, Value):
                readers.setdefault(x, []).append(node)
    inner = {v for node in graph.nodes if Trait.ELEMENTWISE in node.op.traits for v in node.outputs
             if len(readers.get(v, ())) == 1 and Trait.ELEMENTWISE in readers[v][0].op.traits}
    return inner | set(graph.outputs)
