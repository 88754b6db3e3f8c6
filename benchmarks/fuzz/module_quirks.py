"""Where torch's eager results are no judge: known differences, each with its reason."""

from __future__ import annotations

import re
from dataclasses import dataclass

from benchmarks.fuzz.modules import ModuleCase


@dataclass(frozen=True)
class Quirk:
    """A difference of this kind that is expected of modules with a line of these rows."""

    rows: tuple[str, ...]
    kind: str  # a regular expression
    reason: str


QUIRKS: tuple[Quirk, ...] = ()


def quirk(made: ModuleCase, kind: str) -> str:
    """The reason why a difference says nothing; empty if it does."""
    return next((q.reason for q in QUIRKS if re.search(q.kind, kind)
                 and set(q.rows) & set(made.ops)), "")
