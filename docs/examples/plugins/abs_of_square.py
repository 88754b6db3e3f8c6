"""A rule of simplify: |x·x| = x·x."""

from __future__ import annotations

from typing import Any

from graphtool.extend import add_rule, ops, rule

__version__ = "1.0"


@rule(lambda x: ops.abs(ops.mul(x, x)))
def abs_of_square(x: Any) -> Any:
    """|x·x| = x·x, also for infinities; NaN stays NaN."""
    return ops.mul(x, x)


add_rule(abs_of_square)
