"""Finds keys and values that are stored in 16 or 8 bits under what widens them, so that the kernel
of attention reads them as they are stored.

Between the stored numbers and attention there may be reshapes, transposes, broadcasts and slices
that leave rows whole; they are applied to the numbers and to the factors of rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from graphtool import dtypes
from graphtool.analysis.ranges import dequantising, wrapped
from graphtool.ir.facets import Movement, Trait
from graphtool.ir.graph import Node, Value
from graphtool.ir.trace import Tracer

_LEAVES_ROWS = Movement.KEEPS | Movement.PERMUTES | Movement.REPEATS | Movement.TAKES


@dataclass(frozen=True)
class Narrow:
    """Rows x of 16 or 8 bits; rows of int8 have `factors`, of the same shape but for a last size
    of 1."""

    x: Tracer
    factors: Tracer | None = None


def narrow_rows(x: Any) -> Narrow | None:
    """The stored rows that x, f32, widens; x itself if it has 16 bits; None if there are none."""
    if not isinstance(x, Tracer) or x.dtype in dtypes.HALVES:
        return Narrow(x) if isinstance(x, Tracer) else None
    node = x.builder.made.get(x.value)
    if node is None or x.dtype is not dtypes.float32:
        return None
    operands = [Tracer(v, x.builder) for v in node.inputs if isinstance(v, Value)]
    if Trait.CONVERTS in node.op.traits:
        return Narrow(operands[0]) if operands[0].dtype in dtypes.HALVES else None
    for found in dequantising(node, x.builder.made):
        stored, factors = Tracer(found.x, x.builder), wrapped(x, found.scale)
        if found.zero is None and stored.dtype is dtypes.int8 and (
                isinstance(factors, Tracer) and factors.shape == (*stored.shape[:-1], 1)):
            return Narrow(stored, factors)  # a factor for each row
    if not node.op.movement & _LEAVES_ROWS:
        return None
    inner = narrow_rows(operands[0])
    return None if inner is None else _moved(inner, node)


def _moved(rows: Narrow, node: Node) -> Narrow | None:
    """The rows where the node moves them; None if it does not leave them whole."""
    old, new, a = rows.x.shape, node.outputs[0].type.shape, dict(node.attrs)
    ones = dict(a)
    if not old or not new or old[-1] != new[-1]:
        return None
    if Movement.PERMUTES in node.op.movement:
        if a["perm"][-1] != len(old) - 1:
            return None
    elif Movement.TAKES in node.op.movement:
        if a["start"][-1] != 0 or a["strides"][-1] != 1:
            return None
        ones["limit"] = (*a["limit"][:-1], 1)
    else:
        ones["shape"] = (*a["shape"][:-1], 1)
    x = rows.x.builder.emit(node.op, (rows.x,), a)
    factors = rows.factors and rows.x.builder.emit(node.op, (rows.factors,), ones)
    assert isinstance(x, Tracer) and not isinstance(factors, tuple)
    return Narrow(x, factors)
