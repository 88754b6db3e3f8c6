"""Indices that count from the end where they are negative, as ONNX and torch have them."""

from __future__ import annotations

from typing import Any

import numpy as np

from graphtool import ops as o


def from_end(i: Any, size: Any) -> Any:
    """i + size where −size ≤ i < 0, else i: an index out of range stays as the user gave it, which
    is what an error should name."""
    if isinstance(i, np.ndarray):
        return np.where((i < 0) & (i >= -size), i + size, i)
    front = o.select(o.lt(i, 0), o.add(i, size), i)
    return o.select(o.lt(front, 0), i, front)
