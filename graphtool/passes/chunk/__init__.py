"""chunk: computes the first layers of a network for a few examples of the batch at a time.

The first layers of a network have the largest activations and the smallest weights. The
activations of a whole batch no longer fit a cache when the next layer reads them; those of a few
examples do. The loop is a scan. The cost model decides where it ends and how many examples one
iteration computes. Examples are blocks along axis 0. A node may mix them unless the op's record or
a rule here says that it does not.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import isqrt
from typing import Any

from graphtool import ops as o
from graphtool.analysis.costs import flops
from graphtool.ir.facets import Align, Trait, leaves_first
from graphtool.ir.graph import Graph, Node, Operand, TensorType, Value, is_constant
from graphtool.ir.op import Op
from graphtool.ir.replay import prune, replay
from graphtool.ir.trace import Builder, Tracer, trace
from graphtool.kernels.choice.machine import layer
from graphtool.ops.costs import nbytes
from graphtool.target import Target, named

Attrs = Mapping[str, Any]
Rule = Callable[[Node, Sequence[bool]], bool]
WORTH = 0.95  # a loop must take less than this part of the time without it


@dataclass(frozen=True)
class ChunkedPart:
    """The nodes before `end`, which compute each example separately, in chunks of `size`
    examples."""

    end: int
    size: int


def chunk(graph: Graph, *, target: Target | None = None, size: int = 0) -> Graph:
    """The graph with a loop over parts of its batch, if the cost model expects it to be faster.

    `size` fixes the number of examples per iteration; a batch that it does not divide is not
    changed.
    """
    batch = _batch(graph)
    if batch is None:
        return graph
    target = target or named("native")
    nodes, batched = _one_by_one(graph, batch)
    front = _best(graph, nodes, batched, batch, target, size)
    cut = _read_behind(graph, front.end, batched) if front else []
    return prune(_looped(graph, front, cut, batched, batch)) if front and cut else graph


def examples(graph: Graph) -> set[Value]:
    """The values with examples along axis 0, all of one count, if no node mixes any; else none."""
    batch = _batch(graph)
    last, batched = _one_by_one(graph, batch) if batch is not None else (0, set())
    same = all(v.type.shape[0] == batch for v in batched)
    return batched if same and last == len(graph.nodes) else set()


def _batch(graph: Graph) -> int | None:
    """The size of axis 0 if all inputs have the same one, and it is a number above 1; else None."""
    first = {v.type.shape[0] if v.type.rank else 1 for v in graph.inputs}
    batch = first.pop() if len(first) == 1 else None
    return batch if isinstance(batch, int) and batch > 1 else None


def _one_by_one(graph: Graph, batch: int) -> tuple[int, set[Value]]:
    """How many nodes from the start compute each example separately, and the values that hold
    examples."""
    batched = set(graph.inputs)
    for i, node in enumerate(graph.nodes):
        of = [isinstance(x, Value) and x in batched for x in node.inputs]
        if not any(of):
            continue
        count = node.outputs[0].type.shape[:1]
        whole = bool(count) and isinstance(count[0], int) and count[0] % batch == 0
        if len(node.outputs) != 1 or not whole or not apart(node, of):
            return i, batched
        batched.add(node.outputs[0])
    return len(graph.nodes), batched


# ---- the choice --------------------------------------------------------------------------------

def _best(graph: Graph, most: int, batched: set[Value], batch: int, target: Target,
          fixed: int) -> ChunkedPart | None:
    """The end of the loop and its chunk size with the least cost; None if no loop is worth it."""
    whole = _sums(_costs(graph, most, batched, 1, target))
    leaving = _leaving(graph, most, batched, target)
    best, least = None, WORTH * whole[-1]
    for size in [fixed] if fixed else _divisors(batch):
        if batch % size or size >= batch:
            continue
        now = _sums(_costs(graph, most, batched, batch // size, target))
        for end, crossing in leaving.items():
            cost = now[end] + crossing + whole[-1] - whole[end]
            if cost < least or (fixed and end == most):
                best, least = ChunkedPart(end, size), cost
    return best


def _divisors(n: int) -> list[int]:
    """The divisors of n but n itself, in order; a batch may have billions of examples."""
    small = [d for d in range(1, isqrt(n) + 1) if n % d == 0]
    return sorted({*small, *(n // d for d in small)} - {n})


def _sums(costs: list[float]) -> list[float]:
    """The running sums of costs: of no node, the first, the first two, and so on."""
    return list(accumulate(costs, initial=0.0))


def _costs(graph: Graph, most: int, batched: set[Value], chunks: int,
           target: Target) -> list[float]:
    """Microseconds of each node for the whole batch, computed in so many chunks."""
    costs = []
    for node in graph.nodes[:most]:
        if not _anchor(node, batched):
            costs.append(0.0)
            continue
        reads = [x for x in node.inputs if isinstance(x, Value)]
        moved = sum(_bytes(v) for v in (*(x for x in reads if x in batched), *node.outputs))
        weights = sum(_bytes(v) for v in reads if v not in batched)
        costs.append(layer(target, _count(flops(node)), moved, weights, chunks))
    return costs


def _leaving(graph: Graph, most: int, batched: set[Value], target: Target) -> dict[int, float]:
    """The nodes before which the loop may end, and the microseconds to store and read again the
    values that are used after it.

    A loop may end before each kernel, because nodes that follow a kernel are computed with it. The
    values that leave the loop are stored in the layout of the graph.
    """
    last = {x: i for i, node in enumerate(graph.nodes) for x in node.inputs}
    last |= dict.fromkeys(graph.outputs, len(graph.nodes))
    live = 0
    dying: dict[int, int] = {}
    costs: dict[int, float] = {}
    for i, node in enumerate(graph.nodes[:most]):
        if i and _anchor(node, batched):
            costs[i] = layer(target, 0, 2 * live, 0, 1)
        for v in node.outputs:
            if v in batched:
                live += _bytes(v)
                dying[last.get(v, i)] = dying.get(last.get(v, i), 0) + _bytes(v)
        live -= dying.get(i, 0)
    at_end = most == len(graph.nodes)
    return {**costs, most: 0.0 if at_end else layer(target, 0, 2 * live, 0, 1)}


def _anchor(node: Node, batched: set[Value]) -> bool:
    """Whether the node is a kernel; other nodes are computed with the kernel before them, or are
    views."""
    return node.outputs[0] in batched and not (
        Trait.ELEMENTWISE in node.op.traits or node.op.movement)


def _bytes(v: Value) -> int:
    return _count(nbytes(v.type))


def _count(n: Any) -> int:
    return n if isinstance(n, int) else 0


# ---- the loop ----------------------------------------------------------------------------------

def _looped(graph: Graph, front: ChunkedPart, cut: list[Value], batched: set[Value],
            batch: int) -> Graph:
    """The front as a scan over chunks that gives the values `cut`, and the other nodes after it
    on the whole batch."""
    head, tail = graph.nodes[:front.end], graph.nodes[front.end:]
    body = trace(lambda *xs: _run(graph.inputs, head, xs, cut, batched, front.size, batch),
                 [_fewer(v, front.size, batch) for v in graph.inputs],
                 [v.hint for v in graph.inputs])
    builder = Builder()
    count = batch // front.size
    xs = [Tracer(v, builder) for v in graph.inputs]
    rows = [o.reshape(x, shape=(count, *_fewer(x.value, front.size, batch).shape)) for x in xs]
    with builder.scope(cut[0].hint):
        stacked = o.scan(*rows, body=body, carries=0, xs=len(rows), length=count)
    wholes = [o.reshape(y, shape=v.type.shape) for y, v in zip(
        stacked if isinstance(stacked, tuple) else (stacked,), cut, strict=True)]
    shared = [n for n in head if not any(v in batched for v in n.outputs)]
    outputs = _run((*graph.inputs, *cut), (*shared, *tail), [*xs, *wholes], graph.outputs, batched,
                   batch, batch)
    return Graph(graph.inputs, tuple(builder.nodes), tuple(y.value for y in outputs))


def _read_behind(graph: Graph, end: int, batched: set[Value]) -> list[Value]:
    """The values of the front that hold examples and are read after it."""
    wanted = {*graph.outputs, *(x for n in graph.nodes[end:] for x in n.inputs)}
    return [v for n in graph.nodes[:end] for v in n.outputs if v in batched and v in wanted]


def _fewer(v: Value, size: int, batch: int) -> TensorType:
    return TensorType(v.type.dtype, (v.type.shape[0] // batch * size, *v.type.shape[1:]))


def _run(inputs: Sequence[Value], nodes: Sequence[Node], xs: Sequence[Tracer],
         results: Sequence[Value], batched: set[Value], size: int, batch: int) -> list[Any]:
    """The nodes, computed for `size` examples."""
    builder = xs[0].builder

    def apply(node: Node, *operands: Any) -> Sequence[Any]:
        name = node.outputs[0].hint
        if is_constant(node):
            return (builder.constant(node.attrs["data"], name, node.attrs["param"]),)
        of = any(v in batched for v in node.outputs)
        attrs = for_fewer(node, size, batch) if of else node.attrs
        with builder.scope("", node.where):
            out = builder.emit(node.op, operands, dict(attrs), name)
        return out if isinstance(out, tuple) else (out,)
    return replay(Graph(tuple(inputs), tuple(nodes), tuple(results)), xs, apply)


# ---- examples apart ------------------------------------------------------------------------------

def apart(node: Node, batched: Sequence[bool]) -> bool:
    """Whether the node computes each example separately; `batched` says which operands hold
    examples."""
    return _RULES.get(node.op, _derived)(node, batched)


def for_fewer(node: Node, fewer: int, batch: int) -> Attrs:
    """The attributes of the node for `fewer` of its examples."""
    def sized(shape: tuple[Any, ...]) -> tuple[Any, ...]:
        return (shape[0] // batch * fewer, *shape[1:])
    names = node.op.axes.sizes if node.op.axes else ()
    return {**node.attrs, **{name: sized(node.attrs[name]) for name in names}}


def _rank(x: Operand) -> int:
    return x.type.rank if isinstance(x, Value) else 0


def _same_for_all(x: Operand, rank: int) -> bool:
    """Whether an operand without examples broadcasts over axis 0 of a result of this rank."""
    return not isinstance(x, Value) or x.type.rank < rank or x.type.shape[0] == 1


def _derived(node: Node, batched: Sequence[bool]) -> bool:
    """Whether examples stay separate, derived from what the op's record says about attributes
    and axes."""
    axes, rank = node.op.axes, node.outputs[0].type.rank
    if axes is None or axes.align not in (Align.SAME, Align.TRAILING):
        return False
    fits = all(_rank(x) == rank if of else (axes.align is Align.TRAILING and _same_for_all(x, rank))
               for x, of in zip(node.inputs, batched, strict=True))
    first = node.inputs[0]
    count = first.type.shape[0] if isinstance(first, Value) and first.type.rank else 1
    return fits and leaves_first(axes, node.attrs, rank, count)


def _conv(node: Node, batched: Sequence[bool]) -> bool:
    return list(batched) == [True, False] and node.attrs["batch_groups"] == 1


def _matmul(node: Node, batched: Sequence[bool]) -> bool:
    a, b = node.inputs
    if all(batched):
        return _rank(a) == _rank(b) > 2
    rows = _rank(a) > 2 or not node.attrs["transpose_a"]
    return batched[0] and rows and (_rank(b) == 2 or _same_for_all(b, _rank(a)))


def _attention(node: Node, batched: Sequence[bool]) -> bool:
    rank = _rank(node.inputs[0])
    mask = all(of or _same_for_all(x, rank)
               for x, of in zip(node.inputs[3:], batched[3:], strict=True))
    return all(batched[:3]) and rank > 3 and mask


_RULES: dict[Op, Rule] = {
    o.conv: _conv, o.matmul: _matmul, o.attention: _attention,
    o.reshape: lambda node, _: node.outputs[0].type.rank > 0,
    o.gather: lambda node, of: list(of) == [False, True] and node.attrs["batch"] == 0}
