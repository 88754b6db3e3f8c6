"""What a kernel was chosen over: a record that graphs, programs and builds keep.

It is history: nothing that is computed depends on it. Reading a build needs this and no more of
plans, which stand in plan.py.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Choice:
    """What a plan was chosen over: microseconds by plan, the chosen one first.

    `site` says what is computed, as `product{m=8,n=64,k=64}`; `by` is "cost" where the times were
    expected, "tuned" where they were measured.
    """

    site: str
    by: str
    us: dict[str, float]
