"""Constant folding: evaluates nodes whose operands are all constant, within a limit of bytes.

The evaluator computes them. Trainable parameters are not constants until `freeze` has run.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from graphtool import ops as o
from graphtool.errors import InputError
from graphtool.interp import evaluate_op
from graphtool.io.weights import Weight, let_go
from graphtool.ir.bind import bind
from graphtool.ir.facets import Movement, Trait
from graphtool.ir.graph import (
    Graph,
    Node,
    Operand,
    Value,
    is_constant,
    names_of,
    producers,
    readers_of,
    use_counts,
)
from graphtool.ir.replay import prune, rebuild
from graphtool.ir.run_sizes import size_in_result
from graphtool.ir.trace import Builder
from graphtool.kernels.record import has_kernels
from graphtool.passes.reading import widens_integers
from graphtool.symbolic import Poly, Symbol
from graphtool.target import Target

_MAX_BYTES = 1 << 20
_MOVES = Movement.KEEPS | Movement.TAKES | Movement.REPEATS
# a table may grow by this number of bytes if a run reads only rows of it
_TABLE = 1 << 12
# constants of at most so many bytes do not join nodes to groups: 0.5 is read everywhere
_SHARED = 1 << 12


def fold(graph: Graph, *, max_bytes: int = _MAX_BYTES, target: Target | None = None) -> Graph:
    """The graph with every node evaluated whose operands are constant.

    `max_bytes` limits how much larger the constants may become by one node: the bytes of its
    results, minus those of the constants that only it reads, and of a constant that it only moves.
    Nodes that compute one weight from others count together. Packing weights for a kernel is folded
    at any size, and so is rounding them for that. A table keeps its narrow type if a run reads
    single rows of it, because widening those rows at run time is little work. So do whole numbers
    that a product multiplies, if the `target` has no kernel for it: a loop widens what it reads.
    """
    uses, drawn, whole = use_counts(graph), _drawn(graph), together(graph, max_bytes)
    packing = _packing(graph)
    narrow = _multiplied(graph) if target and not has_kernels(target.language) else set()
    folded = False

    def visit(node: Node, inputs: tuple[Operand, ...], builder: Builder) -> Any:
        nonlocal folded
        operands = None if node in narrow else _constants(node, inputs, builder)
        if operands is None:
            return None
        freed = sum(builder.made_by[v].attrs["data"].nbytes
                    for v, old in zip(inputs, node.inputs, strict=True)
                    if isinstance(v, Value) and isinstance(old, Value) and uses[old] == 1)
        size = sum(_nbytes(v) for v in node.outputs)
        if node.op.category == "shape":  # a part or another order of a constant is no larger
            size -= max((x.nbytes for x in operands if isinstance(x, np.ndarray)), default=0)
        grown = size - freed
        packs = node in packing  # packed weights must not be computed at run time
        most = min(_TABLE, max_bytes) if drawn.issuperset(node.outputs) else max_bytes
        few = packs or grown <= most or (node in whole and drawn.isdisjoint(node.outputs))
        results = _evaluated(node, operands) if few else None
        if results is None:
            return None
        folded = True
        for x in operands if packs else ():
            if isinstance(x, np.ndarray):
                let_go(x)  # else a large model is in memory twice
        of = _sources(inputs, builder)
        names = [f"{of[0]}.{node.op.name}{i or ''}" if of else v.hint
                 for i, v in enumerate(node.outputs)]
        return [builder.constant(r, name, of=of) for r, name in zip(results, names, strict=True)]

    new = rebuild(graph, visit)
    return _with_sizes(prune(new) if folded else graph, max_bytes, target)


def _packing(graph: Graph) -> set[Node]:
    """The nodes that pack operands for a kernel, and the casts that only they read."""
    packs = {n for n in graph.nodes if n.op.category == "memory"}
    others = {x for n in graph.nodes if n not in packs for x in n.inputs} | set(graph.outputs)
    read = {x for n in packs for x in n.inputs}
    return packs | {n for n in graph.nodes if Trait.CONVERTS in n.op.traits
                    and n.outputs[0] in read and n.outputs[0] not in others}


def _multiplied(graph: Graph) -> set[Node]:
    """The nodes that widen whole numbers for products, and for nothing else."""
    readers = readers_of(graph)

    def multiplies(node: Node) -> bool:
        return Trait.CONTRACTION in node.op.traits or bool(
            node.op.movement and all(map(multiplies, readers.get(node.outputs[0], ()))))
    return {n for n in graph.nodes if widens_integers(n)
            and all(map(multiplies, readers.get(n.outputs[0], ())))}


def _sources(inputs: tuple[Operand, ...], builder: Builder) -> tuple[str, ...]:
    """The author's names of the constants that are operands; those of the largest constant come
    first."""
    nodes = [builder.made_by[x] for x in inputs if isinstance(x, Value)]
    return names_of(*sorted(nodes, key=lambda n: -_nbytes(n.outputs[0])))


def _drawn(graph: Graph) -> set[Value]:
    """Widened tables whose readers all read rows, by indices computed at run time, or pass the
    table to such readers."""
    fixed: set[Operand] = set()
    for node in graph.nodes:
        if (node.inputs or is_constant(node)) and all(
                not isinstance(x, Value) or x in fixed for x in node.inputs):
            fixed.update(node.outputs)
    held, drawn = set(graph.outputs), set[Value]()
    for node in reversed(graph.nodes):
        widening = bool(node.op.movement & _MOVES) or (
            Trait.CONVERTS in node.op.traits or node.op in (o.sub, o.mul))
        if widening:
            drawn.update(v for v in node.outputs if v not in held and v in fixed)
        passes = widening and drawn.issuperset(node.outputs)
        table = node.op.indexing
        rows = table is not None and table.draws and node.inputs[table.indices] not in fixed
        held.update(x for i, x in enumerate(node.inputs) if isinstance(x, Value) and not (
            passes or (rows and i == 0)))
    return drawn


def together(graph: Graph, max_bytes: int) -> set[Node]:
    """Constant nodes that are worth folding as a group, though single ones would exceed
    `max_bytes`.

    A group is joined by values and large constants. It is folded if the values that others read are
    at most `max_bytes` larger than the constants that nothing else reads. An example is a weight
    that is scaled to a norm: its square is an intermediate value.
    """
    made_by = producers(graph)
    readers: dict[Value, list[Node]] = {}
    constant: set[Node] = set()
    for node in graph.nodes:
        values = [x for x in node.inputs if isinstance(x, Value)]
        for x in values:
            readers.setdefault(x, []).append(node)
        if is_constant(node):
            if not node.attrs["param"]:
                constant.add(node)
        elif values and _timeless(node) and all(made_by.get(x) in constant for x in values):
            constant.add(node)
    out: set[Node] = set()
    for group in _joined(constant, made_by, readers):
        grown, freed, most = 0, 0, 0
        for v in (v for n in group for v in n.outputs):
            data = is_constant(made_by[v])
            inside = v not in graph.outputs and constant.issuperset(readers.get(v, ()))
            grown += 0 if data or inside else _nbytes(v)
            freed += _nbytes(v) if data and inside else 0
            most = max(most, 0 if data else _nbytes(v))
        if grown - freed <= max_bytes and most <= freed:
            out |= group
    return out


def _joined(nodes: set[Node], made_by: Mapping[Value, Node],
            readers: Mapping[Value, list[Node]]) -> list[set[Node]]:
    """The nodes in groups; two groups have no value in common except small constants."""
    groups: list[set[Node]] = []
    left = {n for n in nodes if not is_constant(n)}
    while left:
        group, pending = set[Node](), [left.pop()]
        while pending:
            node = pending.pop()
            group.add(node)
            near = [v for v in (*node.inputs, *node.outputs) if isinstance(v, Value) and (
                not is_constant(made_by[v]) or _nbytes(v) > _SHARED)]
            beside = {made_by[v] for v in near} | {n for v in near for n in readers.get(v, ())}
            new = beside & nodes - group
            left -= new
            pending += new
        groups.append(group)
    return groups


def _timeless(node: Node) -> bool:
    """Whether the node gives the same result in every run and every process, and its sizes are
    known."""
    return bool(node.outputs) and Trait.WORLD not in node.op.traits and not (
        _open(node.attrs) or any(isinstance(d, Poly) for v in node.outputs for d in v.type.shape))


def _with_sizes(graph: Graph, max_bytes: int, target: Target | None) -> Graph:
    """The graph with numbers in place of sizes that are now known to be constant."""
    made_by, counts = producers(graph), dict[str, int]()
    for node in graph.nodes:
        size = size_in_result(node)
        if size is not None:
            source = made_by.get(node.inputs[0]) if isinstance(node.inputs[0], Value) else None
            if is_constant(source) and (
                    _fits(n := int(source.attrs["data"].source), size)):
                counts[size.name] = n
    return fold(bind(graph, counts), max_bytes=max_bytes, target=target) if counts else graph


def _fits(n: int, size: Symbol) -> bool:
    return (size.lo is None or n >= size.lo) and (size.hi is None or n <= size.hi)


def _constants(node: Node, inputs: tuple[Operand, ...], builder: Builder) -> list[Any] | None:
    """The operands as arrays and literals, if all of them and all sizes are known; else None."""
    if is_constant(node) or not _timeless(node):
        return None
    out: list[Any] = []
    for x in inputs:
        if isinstance(x, Value):
            source = builder.made_by.get(x)
            if not is_constant(source) or source.attrs["param"]:
                return None
            data: Weight = source.attrs["data"]
            out.append(data.source)
        else:
            out.append(x)
    return out


def _open(x: Any) -> bool:
    """Whether an attribute contains a size that is not yet known."""
    match x:
        case Poly():
            return True
        case tuple():
            return any(map(_open, x))
        case Mapping():
            return any(map(_open, x.values()))
        case Graph():
            return any(_open(n.attrs) for n in x.nodes)
    return False


def _nbytes(v: Value) -> int:
    count = 1
    for d in v.type.shape:
        count *= d if isinstance(d, int) else 0
    return count * v.type.dtype.bytes


def _evaluated(node: Node, operands: list[Any]) -> list[np.ndarray[Any, Any]] | None:
    """The results, or None if the op fails on these operands: then the error must come at run
    time. None too of an op that only an exporter knows."""
    if node.op.eval is None and node.op.decompose is None:
        return None
    try:
        with np.errstate(all="ignore"):
            results = evaluate_op(node.op, operands, node.attrs)
    except (InputError, ValueError, TypeError, LookupError, ArithmeticError, MemoryError):
        return None
    fit = all(r.shape == v.type.shape and r.dtype == v.type.dtype.numpy
              for r, v in zip(results, node.outputs, strict=True))
    return results if fit else None
