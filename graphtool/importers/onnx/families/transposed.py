"""Transposed convolution tap by tap, for weights that hold NaN or infinity.

As a convolution it would multiply the zeros between and around the elements of x, and 0 · ∞ is NaN.
Here each tap is one product of matrices, whose results are spread over the output and added.
"""

from __future__ import annotations

from functools import reduce
from typing import Any

import numpy as np

from graphtool import ops as o
from graphtool.importers.onnx.driver.values import reshape, transpose
from graphtool.ops.geometry import Pairs
from graphtool.symbolic import floordiv, product


def by_taps(x: Any, w: Any, strides: Any, dilations: Any, padding: Pairs, group: int) -> Any:
    """y[n, o, i·stride + k·dilation − lo] = Σ x[n, c, i]·w[c, o, k] of x [N, C, …] and w
    [C, out/group, …], without `lo` elements at the start and `hi` at the end of each axis."""
    n, c, *space = x.shape
    m, *window = w.shape[1:]
    rows = reshape(x, (n, group, floordiv(c, group), product(space)))
    taps = transpose(reshape(w, (group, floordiv(c, group), m, *window)),
                     (*range(3, 3 + len(window)), 0, 2, 1))  # [window…, group, out, in]
    parts = []
    for at in np.ndindex(*window):
        tap = reshape(o.slice(taps, start=(*at, 0, 0, 0), strides=(1,) * taps.ndim, limit=(
            *(k + 1 for k in at), *taps.shape[-3:])), tuple(taps.shape[-3:]))
        own = reshape(o.matmul(tap, rows), (n, group * m, *space))
        before = [k * d for k, d in zip(at, dilations, strict=True)]
        after = [(k - 1) * d - b for k, d, b in zip(window, dilations, before, strict=True)]
        parts.append(o.pad(own, lo=(0, 0, *(b - lo for b, (lo, _) in zip(
            before, padding, strict=True))), hi=(0, 0, *(a - hi for a, (_, hi) in zip(
                after, padding, strict=True))), interior=(0, 0, *(s - 1 for s in strides))))
    return reduce(o.add, parts)
