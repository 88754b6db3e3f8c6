"""The cost of a node: floating-point operations and bytes moved, as functions of its shapes; and
the peak memory of the intermediates when nodes run in order, each freed after its last use.

Nominal numbers for comparing graphs, in the dims' own symbols; nothing is measured. Peak memory is
an estimate from liveness alone: reshapes share their operand's bytes, and no op works in place.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from graphtool import ops as o
from graphtool.errors import GraphtoolError
from graphtool.ir.facets import Trait
from graphtool.ir.graph import Graph, Node, Operand, TensorType, Value, is_constant
from graphtool.ir.op import Op
from graphtool.ir.replay import last_uses, replay
from graphtool.ir.trace import trace
from graphtool.ops.costs import elements, nbytes
from graphtool.symbolic import Dim, at_least_sizes

Cost = Callable[[Node], Dim]


# ---- floating-point operations -----------------------------------------------------------------

def flops(node: Node) -> Dim:
    """The floating-point operations of one node; a composite costs what its decomposition does."""
    op = node.op
    if op.cost is not None:
        return op.cost(*_types(node), **node.attrs)
    if inner := list(regions(node)):
        return sum((total(flops, g) for g in inner), 0) * trip_count(node)
    if op.category in ("shape", "data", "memory"):
        return 0
    if op.decompose is not None:
        return _composite(op, *signature(node))
    return elements(node.outputs[0].type)


def _types(node: Node) -> tuple[Any, ...]:
    """The first result's type and those of the operands, literals as they are."""
    return (node.outputs[0].type, *signature(node)[0])


Attrs = tuple[tuple[str, Any], ...]


def signature(node: Node) -> tuple[tuple[Any, ...], Attrs]:
    """Operand types (literals unchanged) and attributes: everything on which a composite's cost
    depends."""
    return (tuple(x.type if isinstance(x, Value) else x for x in node.inputs),
            tuple(node.attrs.items()))


def decomposed(op: Op, types: tuple[Any, ...], attrs: Attrs) -> Graph:
    """The decomposition of an op on operands of these types, one level deep."""
    def run(*args: Any) -> Any:
        rest = iter(args)
        operands = [next(rest) if isinstance(t, TensorType) else t for t in types]
        return op.decompose(*operands, **dict(attrs))  # type: ignore[misc]
    return trace(run, [t for t in types if isinstance(t, TensorType)])


@lru_cache(maxsize=4096)
def _composite(op: Op, types: tuple[Any, ...], attrs: Attrs) -> Dim:
    try:
        return total(flops, decomposed(op, types, attrs))
    # symbolic sizes can make this fail: then count one operation for each element
    except GraphtoolError:
        return sum((elements(t) for t in types[:1] if isinstance(t, TensorType)), 0)


def multiply_adds(node: Node) -> Dim:
    """The multiply-adds of one node: those of the products and convolutions that it is, or that
    its decomposition has. Elementwise work is none."""
    if inner := list(regions(node)):
        return sum((total(multiply_adds, g) for g in inner), 0) * trip_count(node)
    return _products(node.op, _types(node)[0], *signature(node))


@lru_cache(maxsize=4096)
def _products(op: Op, result: TensorType, types: tuple[Any, ...], attrs: Attrs) -> Dim:
    if op.cost is not None and Trait.CONTRACTION in op.traits:
        return op.cost(result, *types, **dict(attrs)) // 2
    if op.decompose is not None:
        with suppress(GraphtoolError):  # symbolic sizes can make this fail
            return total(multiply_adds, decomposed(op, types, attrs))
    return 0


# ---- bytes moved -------------------------------------------------------------------------------

def bytes_moved(node: Node) -> Dim:
    """Bytes read and written when the node runs alone, each operand once."""
    if node.op.traffic is not None:
        return node.op.traffic(*_types(node), **node.attrs)
    read = [x.type for x in dict.fromkeys(node.inputs) if isinstance(x, Value)]
    return sum((nbytes(t) for t in (*(v.type for v in node.outputs), *read)), 0)


# ---- sums --------------------------------------------------------------------------------------

def regions(node: Node) -> Iterator[Graph]:
    """The closed graphs among a node's attributes."""
    for a in node.attrs.values():
        if isinstance(a, Graph):
            yield a


def trip_count(node: Node) -> Dim:
    """The trip count of a node's regions: the length of a scan; 1 if it depends on data."""
    length: Dim = node.attrs.get("length", 1)
    return length


def executions(graph: Graph, times: Dim = 1) -> Iterator[tuple[Node, Dim]]:
    """The nodes with those of their regions, and how often each runs."""
    for node in graph.nodes:
        yield node, times
        for inner in regions(node):
            yield from executions(inner, times * trip_count(node))


def total(cost: Cost, graph: Graph) -> Dim:
    """The sum over all executions; a node with regions costs what they cost, and nothing itself."""
    return sum((cost(n) * times for n, times in executions(graph) if not any(regions(n))), 0)


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
