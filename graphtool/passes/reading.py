"""How a loop nest reads through one of its nodes: element by element, several times, row by row."""

from __future__ import annotations

from collections.abc import Mapping

from graphtool import ops as o
from graphtool.ir.facets import Lowering, Movement, Trait
from graphtool.ir.graph import Node, Value
from graphtool.ops.indexing import reshape_blocks
from graphtool.symbolic import known, product


def trailing(node: Node) -> bool:
    """Whether the reduced axes are the innermost, so that each result is computed once for a row
    of readers."""
    shape = node.inputs[0].type.shape if isinstance(node.inputs[0], Value) else ()
    axes = {a % len(shape) for a in node.attrs["axes"]}
    kept = [i for i, d in enumerate(shape) if i not in axes and d != 1]
    return not kept or all(a > kept[-1] for a in axes if shape[a] != 1)


def transposes(node: Node) -> bool:
    """Whether it is a transpose that makes another axis of several elements the innermost one,
    or packs panels of columns."""
    x = node.inputs[0]
    if Movement.PERMUTES not in node.op.movement or not isinstance(x, Value):
        return node.op.category == "memory"
    order = [p for p in node.attrs["perm"] if x.type.shape[p] != 1]
    return bool(order) and order[-1] != max(order)


def repeats(v: Value, reader: Node) -> bool:
    """Whether the reader reads each element of v several times."""
    return known(product(v.type.shape), "<", product(reader.outputs[0].type.shape)) is True


def moves_freely(node: Node) -> bool:
    """Whether reading through it needs no division: true for all movement but reshapes that join
    axes."""
    if node.op is not o.reshape:
        return True
    x = node.inputs[0]
    if not isinstance(x, Value):
        return False
    before, after = x.type.shape, node.outputs[0].type.shape
    return all(sum(d != 1 for d in before[xs]) <= 1
               for xs, _ in reshape_blocks(before, after))


def writes_by_indices(node: Node) -> bool:
    """Whether its loops store elements at places that indices name."""
    return node.op.indexing is not None and node.op.lowering is Lowering.STATEMENTS


def widens_integers(node: Node) -> bool:
    """Whether the node costs a loop next to nothing and would be stored in more bytes than what it
    reads: it widens whole numbers, or takes a zero point from them."""
    x, *others = node.inputs or (None,)
    if not isinstance(x, Value) or not node.outputs[0].type.dtype.is_integer:
        return False
    if Trait.CONVERTS in node.op.traits:
        return x.type.dtype.is_integer and x.type.dtype.bytes < node.outputs[0].type.dtype.bytes
    return node.op is o.sub and not isinstance(others[0], Value)


def widens_operands(node: Node, made_by: Mapping[Value, Node]) -> bool:
    """Whether it is a product of whole numbers whose loops can widen them."""
    return Trait.CONTRACTION in node.op.traits and node.op.lower is not None and any(
        widens_integers(made_by[x]) for x in node.inputs if isinstance(x, Value) and x in made_by)


def joins_columns(maker: Node, reader: Node) -> bool:
    """Whether it joins the columns of the reader's indices, of which each is read by itself."""
    indexing = reader.op.indexing
    return indexing is not None and maker.outputs[0] is reader.inputs[indexing.indices] and (
        Movement.JOINS in maker.op.movement and maker.attrs["axis"] % maker.outputs[0].type.rank
        == maker.outputs[0].type.rank - 1) and all(
        isinstance(x, Value) and x.type.shape[-1] == 1 for x in maker.inputs)
