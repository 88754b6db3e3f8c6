"""How often a loop nest computes each node of a fusion group, and what is computed too often.

Loops are the ones of the lowered program: one for each axis of the result, and inside of them one
for each axis of a sum, unless the sum is short and written out. A value is computed in the
innermost loop of those along its axes, so once for each iteration of all loops around it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from graphtool.analysis import costs
from graphtool.ir.facets import Align, Movement, Trait
from graphtool.ir.graph import Node, Value
from graphtool.ops.costs import elements
from graphtool.ops.indexing import reshape_blocks
from graphtool.symbolic import typical_size

WRITTEN_OUT = 32  # a sum of at most so many elements has no loop
DEAR = 8  # operations for an element: from here on, reading it back is cheaper than computing it
LEAST = 16384  # operations: fewer are cheaper than a kernel of their own


@dataclass(frozen=True)
class Loop:
    """One loop: its extent, the loop around it, and what it runs over. A sum that is written out
    has none around it: its elements are computed in the loops of their other axes."""

    extent: int
    around: Loop | None
    over: object
    written_out: bool = False

    @property
    def depth(self) -> int:
        """The loops around it, itself included."""
        return 1 + (self.around.depth if self.around else 0)

    @property
    def runs(self) -> int:
        """How often its body runs."""
        return self.extent * (self.around.runs if self.around else 1)


Along = tuple[tuple[Loop, ...], ...]  # for each axis of a value, the loops that run along it


def too_often(inside: Collection[Node], root: Node) -> Node | None:
    """The last node of the group that is computed so often that storing its elements costs less;
    None if there is none.

    One repetition is free: lowering stores the elements of a sum that the next loop reads again.
    """
    order = _from_root(inside, root)
    times = _times(order, root)
    for node in order[1:]:
        if node.op.movement or node not in times or Trait.REDUCTION in node.op.traits:
            continue
        once = _count(node)
        extra = times[node] - once
        wasted = sum(_each(p) * max(times[p] - _count(p), 0)
                     for p in _only_for(node, inside) if p in times)
        if extra > 0 and wasted >= max(DEAR * max(extra, once), LEAST):
            return node
    return None


def _count(node: Node) -> int:
    return typical_size(elements(node.outputs[0].type))


def _each(node: Node) -> int:
    """Operations for one element; a read at a position that is data counts as one."""
    if Trait.ELEMENTWISE not in node.op.traits:
        return int(node.op.indexing is not None)
    return -(-typical_size(costs.flops(node)) // max(_count(node), 1))


def _from_root(inside: Collection[Node], root: Node) -> list[Node]:
    """The nodes, each after all its readers."""
    made_by = {v: n for n in inside for v in n.outputs}
    out: list[Node] = []
    seen: set[Node] = set()

    def visit(node: Node) -> None:
        seen.add(node)
        for x in node.inputs:
            if isinstance(x, Value) and x in made_by and made_by[x] not in seen:
                visit(made_by[x])
        out.append(node)
    visit(root)
    return out[::-1]


def _only_for(node: Node, inside: Collection[Node]) -> set[Node]:
    """The node, and the members that nothing but it and these read."""
    made_by = {v: n for n in inside for v in n.outputs}
    readers: dict[Node, set[Node]] = {}
    for n in inside:
        for x in n.inputs:
            if isinstance(x, Value) and x in made_by:
                readers.setdefault(made_by[x], set()).add(n)
    out, grown = {node}, True
    while grown:
        new = {n for n in inside if n not in out and readers.get(n) and readers[n] <= out}
        out |= new
        grown = bool(new)
    return out


def _times(order: list[Node], root: Node) -> dict[Node, int]:
    """How often each node is computed; nodes that are read in a way not known here are left
    out."""
    made_by = {v: n for n in order for v in n.outputs}
    outer: Loop | None = None
    first: list[tuple[Loop, ...]] = []
    for i, d in enumerate(root.outputs[0].type.shape):
        if d != 1:
            outer = Loop(max(typical_size(d), 1), outer, i)
        first.append(() if d == 1 or outer is None else (outer,))
    places: dict[Node, set[Along]] = {root: {tuple(first)}}
    for node in order:
        for along in places.get(node, ()):
            for x in node.inputs:
                if isinstance(x, Value) and x in made_by:
                    read = _read(node, x, along)
                    if read is not None:
                        places.setdefault(made_by[x], set()).add(read)
    return {n: _total(counts) for n, counts in places.items()}


def _total(places: set[Along]) -> int:
    runs = [_runs(along) for along in places]
    looped = [r for r, along in zip(runs, places, strict=True)
              if not any(x.written_out for loops in along for x in loops)]
    return sum(runs) - (max(looped) if len(looped) > 1 else 0)


def _runs(along: Along) -> int:
    """How often an element is computed that has these loops along its axes."""
    loops = {x for axis in along for x in axis}
    around = max((x for x in loops if not x.written_out), key=lambda x: x.depth, default=None)
    runs = around.runs if around else 1
    for x in loops:
        runs *= x.extent if x.written_out else 1
    return runs


def _read(node: Node, x: Value, along: Along) -> Along | None:
    """The loops along the axes of an operand; None if the op reads it in another way."""
    op, shape, axes = node.op, x.type.shape, node.op.axes
    if Trait.REDUCTION in op.traits:
        return _summed(node, x, along)
    if op.indexing is not None and op.indexing.draws:
        return _drawn(node, x, along)
    if Movement.KEEPS in op.movement:
        out: list[tuple[Loop, ...]] = [()] * len(shape)
        for before, after in reshape_blocks(shape, node.outputs[0].type.shape):
            loops = tuple(dict.fromkeys(y for axis in along[after] for y in axis))
            for i in range(*before.indices(len(shape))):
                out[i] = () if shape[i] == 1 else loops
        return tuple(out)
    if Movement.PERMUTES in op.movement and axes is not None and axes.order:
        order = node.attrs[axes.order]
        return tuple(along[order.index(i)] for i in range(len(shape)))
    if axes is None or axes.align is Align.NONE or axes.align is Align.MATRICES:
        return None
    if len(shape) > len(along) or op.movement & Movement.SEVERAL:
        return None
    last = along[len(along) - len(shape):]
    return tuple(() if d == 1 else loops for d, loops in zip(shape, last, strict=True))


def _drawn(node: Node, x: Value, along: Along) -> Along | None:
    """The same for an operand whose elements are read at positions that are data: no other op reads
    the same ones in an iteration, so the loops along such axes are told apart by the node."""
    indexing, named = node.op.indexing, dict[str, object](node.attrs)
    assert indexing is not None
    axes = named[indexing.axes] if isinstance(indexing.axes, str) else indexing.axes
    if named.get("batch") or x is not node.inputs[indexing.into] or not isinstance(axes, tuple):
        return None
    rest = [a for a in range(x.type.rank) if a not in axes]
    first = len(along) - len(rest)
    drawn = tuple(replace(y, over=(node, y.over)) for axis in along[:first] for y in axis)
    out = [drawn] * x.type.rank
    for a, loops in zip(rest, along[first:], strict=True):
        out[a] = loops
    return tuple(out)


def _summed(node: Node, x: Value, along: Along) -> Along | None:
    """The same for a sum: its loops stand inside the loops of its result."""
    named: Mapping[str, object] = node.attrs
    axes = named.get("axes", named.get("axis"))
    if axes is None:
        return None
    summed = {a % x.type.rank for a in (axes if isinstance(axes, tuple) else (axes,))}
    extents = {a: max(typical_size(x.type.shape[a]), 1) for a in summed}
    total = 1
    for extent in extents.values():
        total *= extent
    known = all(isinstance(x.type.shape[a], int) for a in summed)
    written_out = known and total <= WRITTEN_OUT
    inner = max((y for i, axis in enumerate(along) if i not in summed for y in axis
                 if not y.written_out), key=lambda y: y.depth, default=None)
    out = list(along)
    for a in sorted(summed):
        if extents[a] == 1:
            out[a] = ()
            continue
        loop = Loop(extents[a], None if written_out else inner,
                    a if written_out else (node.outputs[0].hint, a), written_out)
        out[a] = (loop,)
        inner = inner if written_out else loop
    return tuple(out)
