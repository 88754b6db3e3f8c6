"""Composites kept whole as nodes until `decompose`, because speed or numerics would be lost."""

from __future__ import annotations

from typing import Any

from graphtool import ops as o
from graphtool.ops.common import composite


@composite
def softmax(x: Any, *, axis: int) -> Any:
    """exp(x − max) / Σ exp(x − max) along an axis."""
    e = o.exp(x - o.reduce_max(x, axes=(axis,)))
    return e / o.reduce_sum(e, axes=(axis,))


@composite
def relu(x: Any) -> Any:
    """max(x, 0) as a select, so that its gradient at 0 is 0 and NaN stays NaN."""
    return o.select(o.gt(x, 0), x, o.select(o.is_nan(x), x, x * 0.0))
