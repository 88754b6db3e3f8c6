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


def narrowed(x: Any, joins: int = 1) -> Any:
    """x in bfloat16. Ops that only move elements move the converted elements, so that the kernels
    that compute them can do so: of a padded image, the image inside is converted, and the parts of
    a value that joins them, but of joined channels not the parts of parts."""
    node = x.builder.made_by.get(x.value)
    if x.dtype is dtypes.bfloat16:
        return x
    if node is None or not node.inputs or not all(isinstance(v, Value) for v in node.inputs):
        return o.cast(x, dtype=dtypes.bfloat16)
    joined = Movement.JOINS in node.op.movement
    channels = joined and node.attrs["axis"] == x.ndim - 1
    moves = Movement.FILLS in node.op.movement or _moves_most(node)
    if moves or (joins if channels else joined):
        return node.op(*(narrowed(Tracer(v, x.builder), joins - channels) for v in node.inputs),
                       **node.attrs)
    return o.cast(x, dtype=dtypes.bfloat16)


def _moves_most(node: Node) -> bool:
    """Whether the result holds each element of the one operand once at most, and many of them."""
    if node.op.movement == Movement.NONE or node.op.movement not in Movement.ONCE:
        return False
    x, y = node.inputs[0], node.outputs[0]
    taken = product(y.type.shape) * PART
    return isinstance(x, Value) and known(product(x.type.shape), "<=", taken) is True


def widened(x: Any) -> Any:
    """x in float32 if it has 16 bits: products of such numbers are exact in float32."""
    return o.cast(x, dtype=dtypes.float32) if x.dtype in dtypes.HALVES else x


def packed(w: Any, nr: int, pairs: bool, transpose: bool = False) -> Any:
    """A right-hand side in panels of nr columns, with single rows or with pairs of rows."""
    if not pairs:
        return o.pack(w, nr=nr, transpose=transpose)
    words = o.pack_pairs(w, nr=nr, transpose=transpose)
    return o.reshape(words, shape=(*words.shape[:-2], nr * 2))
