"""The report of the operators of a model that cannot be imported."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from graphtool.errors import Unsupported
from graphtool.report.findings import Finding, Outcome, outcome


class Missing(msgspec.Struct):
    """An operator that cannot be imported: why, how often it occurs, and where."""

    name: str
    reason: str
    count: int
    places: list[str]


class Support(msgspec.Struct):
    """`support --json`; schemas/support.schema.json is made from it."""

    supported: bool
    missing: list[Missing]


def of_items(items: Iterable[Unsupported]) -> Support:
    """The report of these items, the most frequent first."""
    rows = [Missing(i.name, i.reason, len(i.places) or 1, list(i.places)) for i in items]
    rows.sort(key=lambda r: (-r.count, r.name))
    return Support(not rows, rows)


def support_lines(s: Support) -> list[str]:
    """The report as lines of text."""
    if s.supported:
        return ["supported: every node of the model"]
    out = []
    for row in s.missing:
        out.append(f"{row.count} × {row.name}: {row.reason}")
        out += [f"    {place}" for place in row.places]
    return out


def support_outcome(s: Support, model: str) -> Outcome:
    """A finding for each place of each operator that cannot be imported."""
    findings = [Finding("support/missing", row.name, "error", row.reason, place, model)
                for row in s.missing for place in row.places or [""]]
    text = "every node is supported" if s.supported else (
        f"{len(s.missing)} operators are not supported, at {len(findings)} places")
    return outcome("support", model, text, findings, support_lines(s))
