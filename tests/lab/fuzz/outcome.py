"""What became of some seeds: counts by outcome, by operator and dtype, and what differed."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, fields
from typing import Any


@dataclass(frozen=True)
class Finding:
    """A difference or a failure of one seed; equal `cause`s are one group."""

    seed: int
    cause: str
    text: str = ""


@dataclass
class Outcome:
    """Sums over seeds. `seconds` are those of the workers, by stage."""

    statuses: Counter[str] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)
    ops: Counter[str] = field(default_factory=Counter)  # "Relu float32"
    compiled: Counter[str] = field(default_factory=Counter)  # by variant
    seconds: dict[str, float] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)

    @property
    def tried(self) -> int:
        """How many seeds there were."""
        return sum(self.statuses.values())

    def add(self, other: Outcome) -> None:
        """Sum up."""
        for f in fields(self):
            mine, others = getattr(self, f.name), getattr(other, f.name)
            if isinstance(mine, list):
                mine += others
            else:
                grow(mine, others)


def grow(mine: dict[str, Any], others: dict[str, Any]) -> None:
    """Add the numbers of the other dict to those of the first."""
    for k, n in others.items():
        mine[k] = mine.get(k, 0) + n
