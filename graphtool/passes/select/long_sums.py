"""Sums over many outer elements in two steps, first over the inner of the axes, then over the rest.

One running sum of n terms of a sign loses up to n/2 units in the last place, two steps of √n each
lose √n; and the parts of the first step are work for several threads. Sums along the innermost axis
have a partial sum a lane already.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from graphtool import ops as o
from graphtool.ir.trace import Tracer

LONG, PART = 2048, 4096  # terms that are worth it, and what a first step takes at most


def long_sum(x: Tracer, attrs: Mapping[str, Any]) -> Any:
    """The sum in two steps; None where it is short, or its parts cannot be told apart."""
    if not x.dtype.is_float or not all(isinstance(d, int) for d in x.shape):
        return None
    axes = sorted(a % x.ndim for a in attrs["axes"])
    sizes = [int(x.shape[a]) for a in axes]
    kept = [a for a, d in enumerate(x.shape) if a not in axes and d != 1]
    if math.prod(sizes) < LONG or not kept or axes[-1] > kept[-1]:
        return None
    cuts = [i for i in range(1, len(axes)) if 1 < math.prod(sizes[i:]) <= PART
            and math.prod(sizes[:i]) > 1]
    if not cuts:
        return None
    first = o.reduce_sum(x, **{**attrs, "axes": tuple(axes[cuts[0]:])})
    return o.reduce_sum(first, **{**attrs, "axes": tuple(axes[:cuts[0]])})
