"""Structures in a graph: residual connections, and chains of nodes that one kernel can compute."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from graphtool import ops as o
from graphtool.analysis.composites import relus
from graphtool.analysis.costs import decomposed, signature
from graphtool.errors import GraphtoolError
from graphtool.ir.facets import Movement, Trait
from graphtool.ir.graph import Graph, Node, Value, is_constant, producers, readers_of, use_counts
from graphtool.ir.op import Op

_ANCHORS = Trait.CONTRACTION | Trait.REDUCTION | Trait.WINDOWED
_PROJECTION = 3


@dataclass(frozen=True)
class Residual:
    """`add` joins `skip` with a branch of `length` nodes that starts from it."""

    add: Node
    skip: Value
    length: int


def residuals(graph: Graph) -> list[Residual]:
    """The additions in which one operand, or the input of its projection, is also used to compute
    the other."""
    made_by, order = producers(graph), {n: i for i, n in enumerate(graph.nodes)}
    result = []
    for node in graph.nodes:
        match node.op, node.inputs:
            case o.add, (Value() as a, Value() as b) if a.type == b.type:
                sources = [(skip, end) for x, end in ((a, b), (b, a))
                           for skip in _projected(x, made_by)]
                for skip, end in sorted(sources, key=lambda s: -_position(s[0], made_by, order)):
                    length = _between(skip, end, made_by, order)
                    if length:
                        result.append(Residual(node, skip, length))
                        break
    return result


def _position(v: Value, made_by: dict[Value, Node], order: dict[Node, int]) -> int:
    return order[made_by[v]] if v in made_by else -1


def _projected(v: Value, made_by: dict[Value, Node]) -> list[Value]:
    """The value and its ancestors along first operands, as far as a projection can reach."""
    out = [v]
    for _ in range(_PROJECTION):
        node = made_by.get(out[-1])
        first = node.inputs[0] if node and node.inputs else None
        if not isinstance(first, Value):
            break
        out.append(first)
    return out


def _between(skip: Value, end: Value, made_by: dict[Value, Node], order: dict[Node, int]) -> int:
    """The number of nodes from `skip` to `end`; 0 if none of them is a contraction."""
    start = _position(skip, made_by, order)
    depends: dict[Value, bool] = {skip: True}
    count: set[Node] = set()
    stack: list[tuple[Value, bool]] = [(end, False)]
    while stack:
        v, visited = stack.pop()
        node = made_by.get(v)
        if not visited and (v in depends or node is None or order[node] <= start):
            depends.setdefault(v, False)
            continue
        assert node is not None
        operands = [x for x in node.inputs if isinstance(x, Value)]
        if not visited:
            stack.append((v, True))
            stack += [(x, False) for x in operands if x not in depends]
            continue
        depends[v] = any(depends.get(x, False) for x in operands)
        if depends[v]:
            count.add(node)
    contracts = any(_shows(n, Trait.CONTRACTION) for n in count)
    return len(count) if depends.get(end) and contracts else 0


def chains(graph: Graph) -> list[tuple[Node, ...]]:
    """Chains of nodes that can be fused: a contraction, reduction or window, then elementwise
    nodes.

    Each node is the only reader of the one before, and has its shape.
    """
    readers = readers_of(graph)
    uses = use_counts(graph)
    out = []
    for node in graph.nodes:
        if len(node.outputs) != 1 or not _shows(node, _ANCHORS):
            continue
        chain = [node]
        while True:
            v = chain[-1].outputs[0]
            after = readers.get(v, [])
            if uses.get(v) != 1 or not after or not _follows(after[0], v):
                break
            chain.append(after[0])
        if len(chain) > 1:
            out.append(tuple(chain))
    return out


def _shows(node: Node, wanted: Trait) -> bool:
    """Whether the op, or an op of its decomposition, has one of the traits."""
    return bool(node.op.traits & wanted) or (
        Trait.COMPOSITE in node.op.traits and _contains(node.op, *signature(node), wanted))


@lru_cache(maxsize=1024)
def _contains(op: Op, types: tuple[Any, ...], attrs: tuple[tuple[str, Any], ...],
              wanted: Trait) -> bool:
    try:
        inner = decomposed(op, types, attrs)
    except GraphtoolError:
        return False
    return any(_shows(n, wanted) for n in inner.nodes)


def _follows(node: Node, v: Value) -> bool:
    if len(node.outputs) != 1 or node.outputs[0].type.shape != v.type.shape:
        return False
    return Trait.ELEMENTWISE in node.op.traits or (
        Trait.COMPOSITE in node.op.traits and _pointwise(node.op, *signature(node)))


@lru_cache(maxsize=1024)
def _pointwise(op: Op, types: tuple[Any, ...], attrs: tuple[tuple[str, Any], ...]) -> bool:
    """Whether a composite decomposes into elementwise ops and views of its operands only."""
    try:
        inner = decomposed(op, types, attrs)
    except GraphtoolError:
        return False
    return all(Trait.ELEMENTWISE in n.op.traits or Movement.KEEPS in n.op.movement or is_constant(n)
               or (Trait.COMPOSITE in n.op.traits and _pointwise(n.op, *signature(n)))
               for n in inner.nodes)


def patterns(groups: list[tuple[Node, ...]]) -> list[tuple[str, int]]:
    """The chains as text, such as `conv → relu`, with their number; the most frequent first."""
    counted = Counter(" → ".join(_readable(g)) for g in groups)
    return sorted(counted.items(), key=lambda item: (-item[1], item[0]))


def _readable(group: tuple[Node, ...]) -> Iterator[str]:
    """The ops of a group; a relu that was taken apart is one again."""
    relu_of = relus(group)
    for node in group:
        if node in relu_of:
            yield "relu"
        elif not is_constant(node) and node not in relu_of.values():
            yield node.op.name
