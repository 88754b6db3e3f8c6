"""How a loop nest reads through one of its nodes: element by element, several times, row by row."""

from __future__ import annotations

from graphtool import ops as o
from graphtool.ir.facets import Movement
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
