"""Divides means over images into two steps, of which the first is along the rows.

The kernel that computes the image then sums its rows while they are in the first cache: `fuse` puts
the first step into that kernel.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from graphtool import dtypes
from graphtool import ops as o
from graphtool.ir.facets import Trait
from graphtool.ir.graph import Value
from graphtool.ir.trace import Tracer
from graphtool.kernels.record import sums
from graphtool.passes.fuse import INLINE

ROWS = (2,)  # the axis along the rows of an image [N, H, W, C]


def row_sums(x: Tracer, attrs: Mapping[str, Any]) -> Any:
    """The sum over rows and columns in two steps; None if no kernel can sum the rows."""
    if x.ndim != 4 or sorted(a % 4 for a in attrs["axes"]) != [1, 2] or (
            x.dtype is not dtypes.float32 or not _from_kernel(x)):
        return None
    along = o.reduce_sum(x, **{**attrs, "axes": ROWS})
    return o.reduce_sum(along, **{**attrs, "axes": (1,)})


def _from_kernel(x: Tracer) -> bool:
    """Whether x is computed elementwise, in the same shape, from a kernel that can sum rows."""
    pending, seen = [x.value], {x.value}
    while pending and len(seen) <= INLINE:
        node = x.builder.made.get(pending.pop())
        if node is None:
            continue
        if sums(node.op) == ROWS:
            return True
        if Trait.ELEMENTWISE in node.op.traits:
            more = {v for v in node.inputs if isinstance(v, Value) and v.type.shape == x.shape}
            pending += more - seen
            seen |= more
    return False
