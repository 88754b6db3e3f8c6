"""Operands in the form that kernels read: weights in panels, numbers rounded to bfloat16."""

from __future__ import annotations

from typing import Any

from graphtool import dtypes
from graphtool import ops as o
from graphtool.ir.graph import Value
from graphtool.ir.trace import Tracer


def narrowed(x: Any) -> Any:
    """x in bfloat16. Of a padded image, the image inside is converted, so that the kernel that
    makes it can do so."""
    if x.dtype is dtypes.bfloat16:
        return x
    node = x.builder.made.get(x.value)
    if node is not None and node.op is o.pad and isinstance(node.inputs[0], Value):
        return o.pad(narrowed(Tracer(node.inputs[0], x.builder)), **node.attrs)
    return o.cast(x, dtype=dtypes.bfloat16)


def widened(x: Any) -> Any:
    """x in float32 if it has 16 bits: products of such numbers are exact in float32."""
    return o.cast(x, dtype=dtypes.float32) if x.dtype in dtypes.HALVES else x


def packed(w: Any, nr: int, pairs: bool, transpose: bool = False) -> Any:
    """A right-hand side in panels of nr columns, with single rows or with pairs of rows."""
    if not pairs:
        return o.pack(w, nr=nr, transpose=transpose)
    made = o.pack_pairs(w, nr=nr, transpose=transpose)
    return o.reshape(made, shape=(*made.shape[:-2], nr * 2))
