"""Where two runs part: the error of each value along a graph, as a plot, as a table, and on the
graph itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from graphtool.report.page.charts import decades, plot

FLOOR = 1e-9  # of the plot; smaller errors, and none, are drawn here
CEILING = 1e3
HEAD = ("value", "in the other run", "error", "largest difference", "out of tolerance", "elements")
_LABELS = (f"datum.value <= {1.5 * FLOOR} ? '≤ ' + format(datum.value, '~e') : "
           "format(datum.value, '~e')")
_VERDICTS = {"match": "#4c78a8", "first to part": "#cf222e", "parts": "#f58518"}


class Apart(msgspec.Struct):
    """One value of the first run and of the second. `error` is the root of the mean square of the
    difference over that of the first run's value; infinite if one side has NaN where the other has
    not. `ok`: within the tolerance."""

    name: str
    other: str
    error: float
    ok: bool
    max_abs: float
    out: int
    elements: int


def of_numbers(name: str, rows: Sequence[Apart]) -> dict[str, Any]:
    """The section of a comparison. A value is within the tolerance, the first one out of it, or a
    later one."""
    first = next((r.name for r in rows if not r.ok), "")
    told = (f"The first value that parts is {first}, {_error(next(r for r in rows if not r.ok))}."
            if first else f"All {len(rows)} values match." if rows else
            "The two graphs have no value in common.")
    return {"name": f"numbers: {name}", "kind": "numbers", "lines": [told],
            "charts": [_plot(name, rows, first)] if rows else [],
            "table": {"head": HEAD, "rows": [
                (r.name, "" if r.other == r.name else r.other, f"{r.error:.3g}",
                 f"{r.max_abs:.3g}", str(r.out or ""), str(r.elements)) for r in rows]}}


def marked(section: dict[str, Any], rows: Sequence[Apart], other: bool) -> None:
    """Tell the section of a graph about its values; `other`: it is the second run."""
    first = True
    for r in rows:
        name = r.other if other else r.name
        section.setdefault("errors", {})[name] = _error(r)
        if not r.ok:
            section.setdefault("parts", {})[name] = "first" if first else "later"
            first = False


def _error(r: Apart) -> str:
    return (f"{r.error:.3g} of its size, at most {r.max_abs:.3g}, "
            f"{r.out} of {r.elements} elements out of tolerance")


def _drawn(r: Apart) -> float:
    return min(max(r.error, FLOOR), CEILING)


def _plot(name: str, rows: Sequence[Apart], first: str) -> str:
    values = [{"place": i, "value": r.name, "error": _drawn(r),
               "verdict": "match" if r.ok else "first to part" if r.name == first else "parts",
               "told": f"{r.name}: {_error(r)}"} for i, r in enumerate(rows, 1)]
    shown = [v for v in _VERDICTS if any(row["verdict"] == v for row in values)]
    x = {"field": "place", "type": "quantitative", "title": "value, in the order of the graph",
         "axis": {"tickMinStep": 1, "format": "d"}, "scale": {"nice": True}}
    y = {"field": "error", "type": "quantitative", "scale": {"type": "log", "nice": True},
         "title": "error, of the value's size", "axis": {
             "values": decades([_drawn(r) for r in rows]), "labelExpr": _LABELS}}
    return plot({
        "width": 860, "height": 280, "title": name, "data": {"values": values}, "layer": [
            {"mark": {"type": "line", "color": "#9a9aa0", "strokeWidth": 1},
             "encoding": {"x": x, "y": y}},
            {"mark": {"type": "circle", "opacity": 1}, "encoding": {
                "x": x, "y": y, "description": {"field": "told"},
                "size": {"condition": {"test": "datum.verdict == 'first to part'", "value": 140},
                         "value": 36},
                "color": {"field": "verdict", "type": "nominal", "title": None, "scale": {
                    "domain": shown, "range": [_VERDICTS[v] for v in shown]}}}},
            {"transform": [{"filter": "datum.verdict == 'first to part'"}],
             "mark": {"type": "text", "dy": -12, "color": "currentColor", "align": {
                 "expr": f"datum.place > {len(rows) / 2} ? 'right' : 'left'"}},
             "encoding": {"x": x, "y": y, "text": {"field": "value"}}}]})
