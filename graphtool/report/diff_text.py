"""A diff as text, as Markdown, as findings, and as a picture in Mermaid."""

from __future__ import annotations

from pathlib import Path

from graphtool.escaping import markdown as cell
from graphtool.escaping import markdown_code as code
from graphtool.escaping import mermaid
from graphtool.ir.graph import Module
from graphtool.report.align import align
from graphtool.report.diff import SIGNS, Change, Delta, Diff, Kind
from graphtool.report.findings import Finding, Outcome, outcome
from graphtool.report.flat import Item, flatten
from graphtool.report.table import Column, Table, human, table
from graphtool.report.table import markdown as page_table

CHANGES: tuple[Column[Change], ...] = (
    Column("", "kind"), Column("node", "name", code=True), Column("op"),
    Column("change", "detail"), Column("from", "where"))
MOST = 60
"""Boxes; GitHub draws some hundreds, but nobody reads them."""
_CLASSES: dict[Kind | str, str] = {
    "added": "fill:#dafbe1,stroke:#1a7f37,color:#000",
    "removed": "fill:#ffebe9,stroke:#cf222e,color:#000,stroke-dasharray:4",
    "changed": "fill:#fff8c5,stroke:#9a6700,color:#000",
    "moved": "fill:#ddf4ff,stroke:#0969da,color:#000",
    "retyped": "fill:#fbefff,stroke:#8250df,color:#000",
    "kept": "fill:#f6f8fa,stroke:#8c959f,color:#000"}


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
    in_detail = c.detail.partition(",")[0].endswith(f" → {c.op}")  # relu → tanh
    return c.detail if in_detail else f"{c.op} {c.detail}".rstrip()


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
    findings = [Finding(f"diff/{c.kind}", c.name, "error", f"{c.kind}: {_what(c)}", c.where,
                        a if c.kind == "removed" else b) for c in d.changes]
    line = f"equal: {d.nodes[0]} nodes" if d.equal else summary(d)
    names = Path(a).name, Path(b).name
    return outcome("diff", " → ".join(names), line, findings, text(d, *names), markdown(d, *names))


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


def diff_picture(d: Diff, a: Module, b: Module) -> list[str]:
    """The lines of a flowchart: each change in the colour of its kind, removed nodes with dashed
    lines, and in grey what they read and what reads them. Empty if there is nothing to draw."""
    return _Picture(d, flatten(a.graph), flatten(b.graph)).lines()


class _Picture:
    def __init__(self, d: Diff, left: list[Item], right: list[Item]) -> None:
        self.left, self.right = left, right
        pairs = align(left, right, bridged=True)
        kinds = {(c.kind == "removed", c.name): c.kind for c in d.changes}
        # an id for each box: (0, i) of a removed item, (1, j) of one of the second graph
        self.here = {i: (1, pairs[i]) if i in pairs else (0, i) for i in range(len(left))}
        self.kinds = {(0, i): kinds[True, x.name] for i, x in enumerate(left)
                      if i not in pairs and (True, x.name) in kinds}
        self.kinds |= {(1, j): kinds[False, x.name] for j, x in enumerate(right)
                       if (False, x.name) in kinds}
        self.edges = dict.fromkeys([
            *(((1, x[0]), (1, j)) for j, item in enumerate(right) for x in item.args
              if isinstance(x, tuple)),
            *((self.here[x[0]], self.here[i]) for i, item in enumerate(left) for x in item.args
              if isinstance(x, tuple) and 0 in (self.here[x[0]][0], self.here[i][0]))])

    def item(self, box: tuple[int, int]) -> Item:
        return (self.left, self.right)[box[0]][box[1]]

    def lines(self) -> list[str]:
        changed = [box for box in self.kinds if self.item(box).op != "constant"]
        shown = dict.fromkeys(changed[:MOST])
        near = [box for edge in self.edges if shown.keys() & edge for box in edge
                if self.item(box).op != "constant"]
        shown |= dict.fromkeys(near[:4 * MOST])
        if not changed:
            return []
        ids = {box: f"n{k}" for k, box in enumerate(sorted(shown, reverse=True))}
        kinds = {box: self.kinds.get(box, "kept") for box in ids}
        out = ["flowchart TB", *(f"  {self.box(box, name)}:::{kinds[box]}"
                                 for box, name in ids.items())]
        out += [f"  {ids[x]} {'-.->' if 0 in (x[0], y[0]) else '-->'} {ids[y]}"
                for x, y in self.edges if x in ids and y in ids]
        out += [f"  classDef {k} {_CLASSES[k]}" for k in dict.fromkeys(kinds.values())]
        left = len(changed) - MOST
        return out + ([f"  %% and {left} more changes"] if left > 0 else [])

    def box(self, box: tuple[int, int], name: str) -> str:
        item = self.item(box)
        lines = [item.name] if item.op == "return" else [
            item.op, item.name, *(f"{k}={v}" for k, v in item.attrs.items()),
            ", ".join(map(str, item.types))]
        text = "<br/>".join(mermaid(t if len(t) <= 40 else f"{t[:39]}…") for t in lines)
        left, right = ("([", "])") if item.op in ("input", "return") else ("[", "]")
        return f'{name}{left}"{text}"{right}'
