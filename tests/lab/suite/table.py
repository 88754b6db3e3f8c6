"""The outcomes as tables: by class, by operator where something is left, and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from benchmarks import tables, work
from tests.lab.suite.cases import Case
from tests.lab.suite.evaluated import PASS, PINNED, Outcome
from tests.lab.suite.exceptions import EXCEPTIONS, EXCEPTIONS_C, reason

MODES = {"eval": "evaluator", "c": "compiled C"}
Results = Mapping[str, Mapping[str, Outcome]]


def report(cases: Sequence[Case], results: Results, seconds: Mapping[str, float],
           command: str) -> str:
    """The whole page in Markdown."""
    stamp = work.stamp()
    took = ", ".join(f"{MODES[m]} {s / 60:.1f} min" for m, s in seconds.items())
    return "\n".join([
        "# ONNX's own backend suite", "",
        f"{stamp['date']}, {stamp['cpu']}, {stamp['cores']} cores; command: `{command}`; {took}. "
        "A case counts as pinned where it passes only once inputs that say sizes are folded in as "
        "constants.", "",
        *_by_class(cases, results), "", "## By operator, where something is left", "",
        *_by_operator(cases, results), "", "## What does not pass, and why", "",
        *_why(cases, results), ""])


def _by_class(cases: Sequence[Case], results: Results) -> list[str]:
    head = ["class", "cases"]
    for mode in results:
        head += [MODES[mode], "of these pinned"]
    kinds = list(dict.fromkeys(c.kind for c in cases))
    rows = [_row(kind, [c for c in cases if c.kind == kind], results) for kind in kinds]
    return [tables.markdown(head, [*rows, _row("all", cases, results)])]


def _row(name: str, cases: Sequence[Case], results: Results) -> list[str]:
    row = [name, str(len(cases))]
    for found in results.values():
        count = Counter(found[c.name][0] for c in cases)
        row += [str(count[PASS] + count[PINNED]), str(count[PINNED])]
    return row


def _by_operator(cases: Sequence[Case], results: Results) -> list[str]:
    """Single operators by name; cases of several nodes under the first."""
    groups: dict[str, list[Case]] = {}
    for c in cases:
        groups.setdefault(c.ops[0] if len(c.ops) == 1 else "several", []).append(c)
    head = ["operator", "cases"]
    for mode in results:
        head += [MODES[mode], "of these pinned"]
    rows = [_row(op, mine, results) for op, mine in sorted(groups.items())]
    left = [r for r in rows if any(r[i] != r[1] or r[i + 1] != "0" for i in range(2, len(r), 2))]
    return [tables.markdown(head, left)] if left else ["Nothing is left."]


def _why(cases: Sequence[Case], results: Results) -> list[str]:
    """The cases under the reason that the list of exceptions gives."""
    under: dict[str, list[str]] = {}
    for c in cases:
        failed = [MODES[m] for m, found in results.items()
                  if found[c.name][0] not in (PASS, PINNED)]
        if failed:
            text = reason(c.name, {**EXCEPTIONS, **EXCEPTIONS_C}) or "not listed"
            where = "" if len(failed) == len(results) else f" ({failed[0]} only)"
            under.setdefault(text, []).append(f"{c.name}{where}")
    return [f"* {why} ({len(names)}): {', '.join(names)}" for why, names in sorted(under.items())]
