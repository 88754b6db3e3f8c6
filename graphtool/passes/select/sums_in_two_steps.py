"""Sums in two steps: over many outer elements first the inner of the axes, over images first the
rows.

One running sum of n terms of the same sign loses up to n/2 units in the last place; two steps of
√n terms each lose √n. The parts of the first step can also be computed by several threads. Sums
along the innermost axis already have one partial sum for each lane. The kernel that computes an
image sums its rows while they are in the first cache: `fuse` puts the first step into that kernel.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from graphtool import dtypes
from graphtool import ops as o
from graphtool.ir.facets import Trait
from graphtool.ir.graph import Value
from graphtool.ir.trace import Tracer
from graphtool.kernels.record import sums
from graphtool.passes.fuse import INLINE
from graphtool.symbolic import typical_size

# the least number of terms for two steps, and the greatest number of terms in a first step
LONG, PART = 2048, 4096
ROWS = (2,)  # the axis along the rows of an image [N, H, W, C]


def long_sum(x: Tracer, attrs: Mapping[str, Any]) -> Any:
    """The sum in two steps; None if it is short, or cannot be divided into parts.

    Open sizes count as their typical ones.
    """
    if not x.dtype.is_float:
        return None
    axes = sorted(a % x.ndim for a in attrs["axes"])
    sizes = [typical_size(x.shape[a]) for a in axes]
    kept = [a for a, d in enumerate(x.shape) if a not in axes and d != 1]
    if math.prod(sizes) < LONG or not kept or axes[-1] > kept[-1]:
        return None
    cuts = [i for i in range(1, len(axes)) if 1 < math.prod(sizes[i:]) <= PART
            and math.prod(sizes[:i]) > 1]
    if not cuts:
        return None
    first = o.reduce_sum(x, **{**attrs, "axes": tuple(axes[cuts[0]:])})
    return o.reduce_sum(first, **{**attrs, "axes": tuple(axes[:cuts[0]])})


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
        node = x.builder.made_by.get(pending.pop())
        if node is None:
            continue
        if sums(node.op) == ROWS:
            return True
        if Trait.ELEMENTWISE in node.op.traits:
            more = {v for v in node.inputs if isinstance(v, Value) and v.type.shape == x.shape}
            pending += more - seen
            seen |= more
    return False
