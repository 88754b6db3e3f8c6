"""Operands in the form that kernels read: weights in panels, numbers rounded to bfloat16."""

from __future__ import annotations

from typing import Any

from graphtool import dtypes
from graphtool import ops as o
from graphtool.ir.facets import Movement
from graphtool.ir.graph import Node, Value
from graphtool.ir.trace import Tracer
from graphtool.symbolic import known, product

PART = 4  # what takes a smaller part of a value is converted after that, not before


def narrowed(x: Any) -> Any:
    """x in bfloat16. What only moves elements moves those that are converted, so that the kernel
    that computes them can do so; of a padded image, the image inside is converted."""
    if x.dtype is dtypes.bfloat16:
        return x
    node = x.builder.made.get(x.value)
    if node is not None and len(node.inputs) == 1 and isinstance(node.inputs[0], Value) and (
            node.op is o.pad or _moves_most(node)):
        return node.op(narrowed(Tracer(node.inputs[0], x.builder)), **node.attrs)
    return o.cast(x, dtype=dtypes.bfloat16)


def _moves_most(node: Node) -> bool:
    """Whether the result holds each element of the operand once at most, and many of them."""
    taken, whole = (product(v.type.shape) for v in (node.outputs[0], *node.inputs)
                    if isinstance(v, Value))
    once = node.op.movement != Movement.NONE and node.op.movement in Movement.ONCE
    return once and known(whole, "<=", taken * PART) is True


def widened(x: Any) -> Any:
    """x in float32 if it has 16 bits: products of such numbers are exact in float32."""
    return o.cast(x, dtype=dtypes.float32) if x.dtype in dtypes.HALVES else x


def packed(w: Any, nr: int, pairs: bool, transpose: bool = False) -> Any:
    """A right-hand side in panels of nr columns, with single rows or with pairs of rows."""
    if not pairs:
        return o.pack(w, nr=nr, transpose=transpose)
    made = o.pack_pairs(w, nr=nr, transpose=transpose)
    return o.reshape(made, shape=(*made.shape[:-2], nr * 2))
