"""Divides sums over many outer elements into two steps: first the inner of the axes, then the
others.

One running sum of n terms of the same sign loses up to n/2 units in the last place; two steps of √n
terms each lose √n. The parts of the first step can also be computed by several threads. Sums along
the innermost axis already have one partial sum for each lane.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from graphtool import ops as o
from graphtool.ir.trace import Tracer
from graphtool.symbolic import typical_size

# the least number of terms for two steps, and the greatest number of terms in a first step
LONG, PART = 2048, 4096


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
