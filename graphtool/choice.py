"""The record of a choice among kernels, which graphs, programs and builds keep.

It is history: no computation depends on it. Reading a build needs only this part of plans; the rest
is in ir/plan.py.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Choice:
    """The candidates from which a plan was chosen: microseconds by plan, the chosen one first.

    `site` says what is computed, for example `product{m=8,n=64,k=64}`; `by` is "cost" if the times
    were estimated, "tuned" if they were measured.
    """

    site: str
    by: str
    us: dict[str, float]
