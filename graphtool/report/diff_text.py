"""A diff as text, plain or markdown, and as findings."""

from __future__ import annotations

from pathlib import Path

from graphtool.escaping import markdown as cell
from graphtool.escaping import markdown_code as code
from graphtool.report.diff import SIGNS, Change, Delta, Diff
from graphtool.report.findings import Finding, Outcome, outcome
from graphtool.report.sizes import human
from graphtool.report.table import Column, Table, table
from graphtool.report.table import markdown as page_table

CHANGES: tuple[Column[Change], ...] = (
    Column("", "kind"), Column("node", "name", code=True), Column("op"),
    Column("change", "detail"), Column("from", "where"))


def text(d: Diff, a: str, b: str) -> list[str]:
    """One line for each change, then the totals; equal graphs give one line."""
    if d.equal:
        return [f"equal: {d.nodes[0]} nodes"]
    out = [_line(c) for c in d.changes]
    if d.retyped_after:
        out.append(f"  and the types of {d.retyped_after} nodes behind them")
    out += ["", summary(d)]
    width = max((len(x.name) for x in (*d.ops, *d.totals)), default=0)
    out += [f"  {x.name:<{width}}  {numbers(x)}" for x in (*d.ops, *d.totals)
            if x.before != x.after]
    return out


def summary(d: Diff) -> str:
    """The number of changes of each kind, and of nodes before and after, in one line."""
    counts = {kind: sum(c.kind == kind for c in d.changes) for kind in SIGNS}
    parts = ", ".join(f"{n} {kind}" for kind, n in counts.items() if n)
    return f"{parts}; {d.nodes[0]} → {d.nodes[1]} nodes"


def _line(c: Change) -> str:
    where = f"  # {c.where}" if c.where else ""
    return f"{SIGNS[c.kind]} {c.name}: {_what(c)}".rstrip() + where


def _what(c: Change) -> str:
    told = c.detail.partition(",")[0].endswith(f" → {c.op}")  # relu → tanh
    return c.detail if told else f"{c.op} {c.detail}".rstrip()


def numbers(d: Delta) -> str:
    """Both numbers with their units, and the difference where both are known."""
    unit = "B" if "bytes" in d.name or "memory" in d.name else ""
    before, after = (("" if known else "at most ") + human(x, unit)
                     for x, known in zip((d.before, d.after), d.known, strict=True))
    out = f"{before} → {after}"
    if all(d.known) and isinstance(d.before, int) and isinstance(d.after, int):
        share = f", {100 * (d.after - d.before) / d.before:+.1f} %" if unit and d.before else ""
        out += f" ({d.after - d.before:+,}{share})"
    return out


def diff_outcome(d: Diff, a: str, b: str) -> Outcome:
    """A finding for each change; what was removed is in the file `a`, all else in `b`."""
    found = [Finding(f"diff/{c.kind}", c.name, "error", f"{c.kind}: {_what(c)}", c.where,
                     a if c.kind == "removed" else b) for c in d.changes]
    told = f"equal: {d.nodes[0]} nodes" if d.equal else summary(d)
    names = Path(a).name, Path(b).name
    return outcome("diff", " → ".join(names), told, found, text(d, *names), markdown(d, *names))


def markdown(d: Diff, a: str, b: str) -> list[str]:
    """The report as markdown, for a comment on a change request."""
    title = f"### {code(a)} → {code(b)}"
    if d.equal:
        return [title, "", f"Equal: {d.nodes[0]} nodes."]
    out = [title, "", f"{cell(summary(d))}.", "", *page_table(table(CHANGES, d.changes))]
    if d.retyped_after:
        out += ["", f"The types of {d.retyped_after} nodes behind them follow."]
    rows = [x for x in (*d.ops, *d.totals) if x.before != x.after]
    if rows:
        out += ["", *page_table(Table(("", "before → after"),
                                      [(x.name, numbers(x)) for x in rows]))]
    return out
