"""`compare-captures`: compares the graphs that several capture methods make of one model.

Each row counts the ops of one graph. The evaluator's outputs are compared with the framework's.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import numpy as np

from graphtool import interp
from graphtool.errors import GraphtoolError
from graphtool.ir.facets import Movement, Trait
from graphtool.ir.graph import Module, Node, is_constant, is_parameter
from graphtool.ir.run_sizes import all_nodes
from graphtool.ir.text import value_names
from graphtool.report.findings import Finding, Level, Outcome, outcome

Array = np.ndarray[Any, Any]


class CaptureRow(msgspec.Struct):
    """One capture method. `difference` is the largest error against the framework's outputs,
    relative to their largest magnitude; null without a graph, or if the graph draws its own random
    numbers."""

    way: str
    nodes: int = 0
    own: dict[str, int] = {}  # the capture's own ops, before they became those of the graph
    ops: dict[str, int] = {}
    parameters: int = 0
    constants: int = 0
    shapes: int = 0
    casts: int = 0
    views: int = 0
    difference: float | None = None
    error: str = ""
    where: str = ""
    hint: str = ""


class Captures(msgspec.Struct):
    """All of the report; schemas/captures.schema.json is made from it."""

    source: str
    agree: bool
    captures: list[CaptureRow]


def compare(source: str, graphs: Mapping[str, Module | GraphtoolError],
            ops: Mapping[str, Mapping[str, int]], inputs: Sequence[Array],
            wanted: Sequence[Array], rtol: float) -> Captures:
    """The report for the graph, or the error, of each method, with the ops that the method
    captured. `inputs` and `wanted` are the framework's arrays, in the model's order."""
    rows = [_row(way, x, inputs, wanted) for way, x in graphs.items()]
    for row in rows:
        row.own = dict(ops.get(row.way, {}))
    known = [r.difference for r in rows if r.difference is not None]
    return Captures(source, bool(known) and all(d <= rtol for d in known), rows)


def _row(way: str, x: Module | GraphtoolError, inputs: Sequence[Array],
         wanted: Sequence[Array]) -> CaptureRow:
    if isinstance(x, GraphtoolError):
        return CaptureRow(way, error=f"[{x.code}] {x.message}", where=x.where, hint=x.hint)
    nodes = list(all_nodes(x.graph))
    counts = Counter(n.op.name for n in nodes if not is_constant(n))

    row = CaptureRow(way, sum(counts.values()), {}, dict(sorted(counts.items())),
                     sum(map(is_parameter, nodes)),
                     sum(is_constant(n) and not is_parameter(n) for n in nodes),
                     counts["dim"] + counts["size"] + counts["iota"], counts["cast"],
                     sum(map(_is_view, nodes)))
    try:
        row.difference = _difference(x, inputs, wanted)
    except GraphtoolError as error:
        row.error, row.where, row.hint = f"[{error.code}] {error.message}", error.where, error.hint
    return row


def _is_view(node: Node) -> bool:
    moves = bool(node.op.movement & (Movement.ONCE | Movement.REPEATS))
    return moves or (node.op.category == "data" and Trait.BITS in node.op.traits)


def _difference(module: Module, inputs: Sequence[Array], wanted: Sequence[Array]) -> float | None:
    names = value_names(module.graph)
    ports = [names[v] for v in module.graph.inputs]
    feeds = dict(zip(ports, inputs, strict=False))
    for i, data in module.initial.items():
        feeds.setdefault(ports[i], data.source)
    if "rng" in ports:
        return None
    outputs = list(interp.run(module, feeds).values())[:len(wanted)]
    worst = 0.0
    for got, want in zip(outputs, wanted, strict=True):
        if got.shape != want.shape:
            return float("inf")
        a, b = got.astype(np.float64), want.astype(np.float64)
        differ = (a != b) & ~(np.isnan(a) & np.isnan(b))
        gap, size = np.abs(a - b)[differ], np.abs(b)
        if not np.isfinite(gap).all():
            return float("inf")
        scale = max(float(size[np.isfinite(size)].max(initial=0)), 1e-30)
        worst = max(worst, float(gap.max(initial=0)) / scale)
    return worst


def captures_lines(report: Captures) -> list[str]:
    """A table with one column for each method: the totals, then every op that occurs."""
    rows = report.captures
    ops = sorted({op for r in rows for op in r.ops})
    table = [["", *(r.way for r in rows)], ["nodes", *(_cell(r, r.nodes) for r in rows)]]
    table += [[name, *(_cell(r, getattr(r, name)) for r in rows)]
              for name in ("parameters", "constants", "shapes", "casts", "views")]
    table.append(["difference", *("–" if r.difference is None else f"{r.difference:.1e}"
                                  for r in rows)])
    table += [[f"  {op}", *(_cell(r, r.ops.get(op, 0)) for r in rows)] for op in ops]
    table += _own_table(rows)
    widths = [max(len(row[i]) for row in table) for i in range(len(rows) + 1)]
    lines = [(row[0].ljust(widths[0]) + "".join(f"  {c:>{w}}" for c, w in zip(
        row[1:], widths[1:], strict=True))).rstrip() for row in table]
    for r in rows:
        if r.error:
            lines += [f"{r.way}: {r.error}", *(f"  {part}" for part in (*r.where.splitlines(),
                                                                       r.hint) if part)]
    verdict = "all that were captured compute the same" if report.agree else (
        "they do not compute the same")
    return [*lines, verdict]


def _own_table(rows: Sequence[CaptureRow]) -> list[list[str]]:
    """What each capture calls its ops, as lists side by side, the most frequent first."""
    lists = [[f"{n} × {op}" for op, n in sorted(r.own.items(), key=lambda x: (-x[1], x[0]))]
             for r in rows]
    height = max(map(len, lists), default=0)
    filled = [[*cells, *[""] * (height - len(cells))] for cells in lists]
    return [["own ops" if i == 0 else "", *line] for i, line in enumerate(zip(*filled,
                                                                             strict=True))]


def _cell(row: CaptureRow, count: int) -> str:
    return str(count) if count or not row.error else "–"


def captures_outcome(report: Captures, rtol: float) -> Outcome:
    """A finding for each method: an error where it differs by more than `rtol`, or no method
    captures the model; a warning where this one does not."""
    missing: Level = "error" if all(r.error for r in report.captures) else "warning"

    def level(r: CaptureRow) -> Level:
        far = r.difference is not None and r.difference > rtol
        return missing if r.error else "error" if far else "ok"
    rows = [Finding("compare-captures", r.way, level(r), r.error or (
        "draws its own random numbers" if r.difference is None else
        f"largest error {r.difference:.1e}"), r.where) for r in report.captures]
    lines = captures_lines(report)
    return outcome("compare-captures", report.source, lines[-1], rows, lines)
