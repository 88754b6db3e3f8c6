"""The difference of two builds: their kernels side by side, with plans, bytes and times.

Kernels are paired by the author's names of the values that they compute. Times are the expected or
tuned times in the builds, unless profiles of both are given.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from difflib import SequenceMatcher
from pathlib import Path

import msgspec

from graphtool.io.manifest_rows import Manifest, StepRow
from graphtool.report.artifacts import interfaces
from graphtool.report.diff import Delta
from graphtool.report.diff_text import numbers
from graphtool.report.findings import Finding, Outcome, outcome
from graphtool.report.summary import summed
from graphtool.report.table import Column, Size, Table, aligned, human, optional, table
from graphtool.report.table import markdown as page_table


class KernelCall(msgspec.Struct):
    """One call of a kernel. `us`: microseconds, measured in a profile, or as the build records
    them; null where neither knows."""

    kernel: str
    plan: str
    flops: Size
    bytes: Size
    us: float | None


class CallPair(msgspec.Struct):
    """Two calls that compute the same values. A side without such a call is null. `entry`: the
    function, in a build that has several."""

    what: str
    before: KernelCall | None
    after: KernelCall | None
    entry: str = ""


class BuildDiff(msgspec.Struct):
    """`diff BUILD BUILD --json`; schemas/build-diff.schema.json is made from it. `rows` are all
    calls in the order of a run, equal ones too. `measured`: the times are of profiles."""

    equal: bool
    rows: list[CallPair]
    facts: list[tuple[str, str, str]]
    totals: list[Delta]
    measured: bool = False


Times = Mapping[str, float]
"""Microseconds of each kernel, as a profile has them."""


def build_diff(a: Manifest, b: Manifest, times: tuple[Times, Times] | None = None) -> BuildDiff:
    """The difference of two builds by their manifests; `times` are those of their profiles."""
    ours, theirs = ({m.entry: m for m in interfaces(x)} for x in (a, b))
    rows = [row for entry in dict.fromkeys((*ours, *theirs))
            for row in _rows(ours.get(entry), theirs.get(entry), entry, times)]
    facts = [(name, x, y) for name, x, y in zip(_FACTS, _facts(a), _facts(b), strict=True)
             if x != y] + _flags(a, b) + _contents(a, b)
    totals = [d for d in _totals(a, b) if d.before != d.after]
    same = not facts and not totals and not any(map(changed, rows))
    return BuildDiff(same, rows, facts, totals, times is not None)


def changed(row: CallPair) -> bool:
    """Whether one side has no such call, or another kernel, or other bytes."""
    x, y = row.before, row.after
    return x is None or y is None or (x.plan, x.bytes, x.flops) != (y.plan, y.bytes, y.flops)


def _rows(a: Manifest | None, b: Manifest | None, entry: str,
          times: tuple[Times, Times] | None) -> list[CallPair]:
    left, right = (m.steps if m is not None else [] for m in (a, b))
    ours, theirs = times or ({}, {})
    return [CallPair(next(s.label for s in (y, x) if s), _call(x, ours) if x else None,
                     _call(y, theirs) if y else None, entry) for x, y in _paired(left, right)]


def _paired(left: Sequence[StepRow], right: Sequence[StepRow]
            ) -> list[tuple[StepRow | None, StepRow | None]]:
    """The calls in order: calls with equal labels are paired, and between these pairs calls that
    share a name. One side at most is None."""
    out: list[tuple[StepRow | None, StepRow | None]] = []
    ours, theirs = ([(s.label, s.choice is not None) for s in side] for side in (left, right))
    for tag, i0, i1, j0, j1 in SequenceMatcher(None, ours, theirs, False).get_opcodes():
        if tag == "equal":
            out += zip(left[i0:i1], right[j0:j1], strict=True)
            continue
        rest = list(right[j0:j1])
        for x in left[i0:i1]:
            y = next((y for y in rest if _shares(x, y)), None)
            if y is None:
                out.append((x, None))
                continue
            at = rest.index(y)
            out += [(None, z) for z in rest[:at]]
            out.append((x, y))
            rest = rest[at + 1:]
        out += [(None, y) for y in rest]
    return out


def _shares(x: StepRow, y: StepRow) -> bool:
    """Whether both, or neither, had a choice, and something that the author named is in both."""
    return (x.choice is None) == (y.choice is None) and bool(
        {*x.label.split(" + ")} & {*y.label.split(" + ")})


def _call(s: StepRow, times: Times) -> KernelCall:
    plan, us = next(iter(s.choice.us.items())) if s.choice is not None else ("", 0.0)
    return KernelCall(s.kernel, plan, s.flops, s.bytes, times.get(s.kernel, us or None))


_FACTS = ("target", "compiler", "precision", "assumes", "threads")


def _facts(m: Manifest) -> tuple[str, ...]:
    threads = str(m.threads.most) if m.threads is not None else ""
    return m.target, m.compiler, m.precision, m.assumes, threads


def _flags(a: Manifest, b: Manifest) -> list[tuple[str, str, str]]:
    """Those that only one side has."""
    ours, theirs = ([f for f in m.flags if f not in other.flags] for m, other in ((a, b), (b, a)))
    return [("flags", " ".join(ours) or "none", " ".join(theirs) or "none")] \
        if ours or theirs else []


def _contents(a: Manifest, b: Manifest) -> list[tuple[str, str, str]]:
    """The weights, if they have the same size and other numbers; C that differs follows from the
    rest."""
    x, y = _weights(a), _weights(b)
    return [("weights", f"sha256 {x[:12]}", y[:12])] if x and y and x != y \
        and a.weights_mode == b.weights_mode and a.weights_bytes == b.weights_bytes else []


def _weights(m: Manifest) -> str:
    """The hash of the weights' file, or, if the library has them, of its source."""
    if m.weights_mode == "file":
        return m.files.get(m.weights, "")
    parts = re.compile(rf"{re.escape(m.weights.removesuffix('.safetensors'))}_weights\d+\.c")
    hashes = [h for name, h in sorted(m.files.items()) if parts.fullmatch(name)]
    return hashlib.sha256("".join(hashes).encode()).hexdigest() if hashes else ""


def _totals(a: Manifest, b: Manifest) -> list[Delta]:
    (steps, flops, moved), (new_steps, new_flops, new_moved) = _run(a), _run(b)
    return [Delta("kernels", steps, new_steps), Delta("FLOPs", flops, new_flops),
            Delta("bytes moved", moved, new_moved),
            Delta("weight bytes", a.weights_bytes, b.weights_bytes),
            Delta("arena bytes", a.arena, b.arena)]


def _run(m: Manifest) -> tuple[int, Size, Size]:
    """The calls, FLOPs and bytes of a run; of several entry points, of the first."""
    one = interfaces(m)[0]
    return (len(one.steps), summed(one, (s.flops for s in one.steps)),
            summed(one, (s.bytes for s in one.steps)))


def _both(head: str, cell: Callable[[KernelCall], str], missing: str = "") -> Column[CallPair]:
    """A column of calls: what both sides have, where they differ."""
    def sides(row: CallPair) -> str:
        x, y = (cell(c) if c is not None else missing for c in (row.before, row.after))
        return f"{x} → {y}" if x != y and x and y else x or y
    return Column(head, sides)


CALLS: tuple[Column[CallPair], ...] = (
    Column("what", lambda row: (f"{row.entry}: " if row.entry else "") + row.what),
    _both("kernels", lambda c: c.kernel, "none"), _both("plan", lambda c: c.plan),
    _both("bytes", lambda c: human(c.bytes, "B")), _both("µs", lambda c: optional(".3g", c.us)))


def calls(d: BuildDiff, whole: bool = False) -> Table:
    """The calls that differ, or all."""
    return table(CALLS, [row for row in d.rows if whole or changed(row)])


def summary(d: BuildDiff, a: str, b: str) -> str:
    """One line: how many calls differ."""
    if d.equal:
        return f"equal: {a} and {b} have the same {len(d.rows)} kernels"
    rows = [r for r in d.rows if changed(r)]
    parts = [(sum(r.before is None for r in rows), "added"),
             (sum(r.after is None for r in rows), "removed"),
             (sum(r.before is not None and r.after is not None for r in rows), "changed")]
    text = ", ".join(f"{n} {word}" for n, word in parts if n) or "no kernel differs"
    return f"{text}; {len(d.rows)} calls in all"


def lines(d: BuildDiff, a: str, b: str) -> list[str]:
    """The report as text: the summary, the calls that differ, the facts and totals that do."""
    differ = calls(d)
    return [summary(d, a, b), *(("", *aligned(differ, left=True)) if differ.rows else ()),
            *fact_lines(d)]


def fact_lines(d: BuildDiff) -> list[str]:
    """How both were compiled and what a run costs, as far as that differs."""
    pairs = [*((name, f"{x} → {y}") for name, x, y in d.facts),
             *((x.name, numbers(x)) for x in d.totals)]
    wide = max((len(name) for name, _ in pairs), default=0)
    return [*([""] if pairs else []), *(f"{name:<{wide}}  {text}" for name, text in pairs)]


def build_outcome(d: BuildDiff, a: str, b: str, text: Sequence[str]) -> Outcome:
    """A finding for each call and each fact that differs."""
    findings = [Finding("diff/kernel", name, "error", ", ".join(filter(None, cells)), "", b)
                for name, *cells in (map(str, row) for row in calls(d).rows)]
    findings += [Finding("diff/fact", name, "error", f"{x} → {y}", "", b) for name, x, y in d.facts]
    names = Path(a).name, Path(b).name
    line = summary(d, *names)
    return outcome("diff", " → ".join(names), line, findings, text, markdown(d, *names))


def markdown(d: BuildDiff, a: str, b: str) -> list[str]:
    """The report as markdown, for a comment on a change request."""
    out = [f"### `{a}` → `{b}`", "", f"{summary(d, a, b)}."]
    facts = [*((name, f"{x} → {y}") for name, x, y in d.facts),
             *((x.name, numbers(x)) for x in d.totals)]
    for t in (calls(d), Table(("", "before → after"), facts)):
        out += ["", *page_table(t)] if t.rows else []
    return out
