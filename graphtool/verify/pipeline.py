"""A report of the passes: seconds, nodes and rules of each, the graph before and after, and with
remat the peaks of memory that can be reached.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import msgspec

from graphtool.analysis import costs
from graphtool.ir.graph import Module
from graphtool.passes import PassReport
from graphtool.passes.remat import Arena, curve
from graphtool.report.findings import Finding, Outcome, outcome
from graphtool.report.stats import Stats, basis, bounded, stats
from graphtool.report.table import Column, Table, human, table
from graphtool.symbolic import at_least_sizes
from graphtool.verify.check import row_line
from graphtool.verify.compare import Difference, worst

PLANS: tuple[Column[RecomputeRow], ...] = (
    Column("budget", lambda r: human(r.peak, "B")), Column("share", lambda r: f"{r.share:.0%}"),
    Column("computed again", lambda r: f"{r.nodes} nodes"),
    Column("FLOPs", lambda r: human(r.flops)), Column("extra", lambda r: f"{r.extra:.2%}"))
PASS_ROWS: tuple[Column[PassRow], ...] = (
    Column("pass", "name"), Column("ms", lambda r: f"{1000 * r.seconds:.1f}"),
    Column("nodes", lambda r: f"{r.before} → {r.after}" if r.before != r.after else r.after),
    Column("rules fired", lambda r: ", ".join(f"{k} × {n}" for k, n in r.rules.items())))


class RecomputeRow(msgspec.Struct):
    """A plan: its peak in bytes (the arena of the compiled step), that peak relative to the peak
    without recomputation, and the extra work."""

    peak: int
    share: float
    nodes: int
    flops: int
    extra: float


def recompute_rows(module: Module, arena: Arena | None = None) -> list[RecomputeRow]:
    """The plans, from no recomputation to the least memory."""
    plans = curve(module, arena)
    most = max(plans[0].peak, 1)
    total = max(at_least_sizes(costs.total(costs.flops, module.graph)), 1)
    return [RecomputeRow(p.peak, p.peak / most, len(p.again), p.flops, p.flops / total)
            for p in plans]


class PassRow(msgspec.Struct):
    """One pass with its arguments; `rules` counts how often each rule fired; `left_out` is what
    `--proofs` left out: rules, or the pass."""

    name: str
    seconds: float
    before: int
    after: int
    changed: bool
    rules: dict[str, int]
    left_out: list[str] = []


class OptReport(msgspec.Struct):
    """`opt --json`; schemas/opt.schema.json is made from it."""

    passes: list[PassRow]
    before: Stats
    after: Stats
    check: list[Difference] | None
    recompute: list[RecomputeRow] = []


def pass_row(r: PassReport, changed: bool) -> PassRow:
    """The row of one pass: seconds, nodes before and after, and how often each rule fired."""
    fired = Counter(f.rule for f in r.journal)
    return PassRow(str(r.call), r.seconds, r.before, r.after, changed, dict(sorted(fired.items())),
                   list(r.left_out))


def opt_report(passes: list[PassRow], before: Module, after: Module,
               check: list[Difference] | None, arena: Arena | None = None) -> OptReport:
    """The report; if `remat` is among the passes, with the plans that it could choose from."""
    plans = any(p.name.partition("{")[0] == "remat" for p in passes)
    return OptReport(passes, stats(before), stats(after), check,
                     recompute_rows(before, arena) if plans else [])


def opt_outcome(r: OptReport, source: str) -> Outcome:
    """A finding for each output that was compared before and after the passes."""
    rows = r.check or []
    verdict = "the same" if all(d.ok for d in rows) else "DIFFERENT"
    text = f"{verdict} before and after: {worst(rows)}"
    return outcome("opt", source, text, [
        Finding("opt/output", d.name, "ok" if d.ok else "error",
                row_line(d).partition(": ")[2], "", source) for d in rows], [text])


def _groups(s: Stats) -> str:
    return str(sum(f.count for f in s.fusions) if s.fused else 0)


def _kernels(s: Stats) -> str:
    return str(s.calls) if s.compiled else f"at most {s.calls}"


def _workspace(s: Stats) -> str:
    return human(s.workspace, "B") if s.workspace else ""


def counted(r: OptReport) -> str:
    """What the figures of kernels, bytes and memory are those of."""
    a, b = basis(r.before), basis(r.after)
    return f"kernels, bytes and memory: {a}" if a == b else (
        f"kernels, bytes and memory: before, {a}; after, {b}")


def times(r: OptReport) -> Table:
    """How long each pass took, what it did, and the total."""
    done = table(PASS_ROWS, r.passes)
    total = 1000 * sum(row.seconds for row in r.passes)
    return replace(done, rows=[*done.rows, ("total", f"{total:.1f}", "", "")])


def before_after(r: OptReport) -> Table:
    """The totals, then each op whose count changed."""
    a, b = r.before, r.after
    rows: list[tuple[str, str, str]] = [
            ("nodes", str(a.nodes), str(b.nodes)),
            ("weights", human(a.param_bytes + a.constant_bytes, "B"),
             human(b.param_bytes + b.constant_bytes, "B")),
            ("FLOPs", human(a.flops), human(b.flops)),
            ("kernels", _kernels(a), _kernels(b)),
            ("bytes moved", bounded(a, a.bytes), bounded(b, b.bytes)),
            ("peak memory", bounded(a, a.peak), bounded(b, b.peak)),
            *([("workspace in it", _workspace(a), _workspace(b))]
              if a.workspace or b.workspace else []),
            ("groups", _groups(a), _groups(b))]
    ours, theirs = ({o.op: o.count for o in s.ops} for s in (a, b))
    return Table(("", "before", "after"), rows + [
        (op, str(ours.get(op, 0)), str(theirs.get(op, 0)))
        for op in sorted({*ours, *theirs}) if ours.get(op) != theirs.get(op)])
