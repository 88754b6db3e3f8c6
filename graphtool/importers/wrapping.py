"""Casts and indices as ONNX and torch have them both.

A float cast to a short integer is truncated, then wrapped around.

Neither ONNX nor torch defines such a cast out of range. numpy, torch and onnxruntime agree on
wrapping around within int32 (for 32 bits without sign: within int64), so −1.5 becomes the uint8 255
and 300 becomes 44. Beyond that they differ by processor; here the wider integer is clamped first,
so that the evaluator and C agree everywhere. NaN is 0.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from graphtool import dtypes
from graphtool import ops as o
from graphtool.dtypes import DType


def wrapped(x: Any, source: DType, to: DType) -> Any:
    """x of type `source` cast to `to`; out of range a short integer wraps around."""
    if source is to:
        return x
    if not (source.is_float and to.is_integer) or to.is_packed or to in (
            dtypes.int32, dtypes.int64, dtypes.bool_):
        return o.cast(x, dtype=to)
    if to is dtypes.uint64:  # its upper half has no wider type: only negative numbers wrap
        below = o.cast(o.cast(x, dtype=dtypes.int64), dtype=to)
        return o.select(o.lt(x, 0.0), below, o.cast(x, dtype=to))
    wide = dtypes.int32 if to.bits <= 16 else dtypes.int64
    return o.cast(o.cast(x, dtype=wide), dtype=to)


# ---- indices ------------------------------------------------------------------------------------

def from_end(i: Any, size: Any) -> Any:
    """i + size where −size ≤ i < 0, else i: an index out of range stays as the user gave it, which
    is what an error should name."""
    if isinstance(i, np.ndarray):
        return np.where((i < 0) & (i >= -size), i + size, i)
    front = o.select(o.lt(i, 0), o.add(i, size), i)
    return o.select(o.lt(front, 0), i, front)
