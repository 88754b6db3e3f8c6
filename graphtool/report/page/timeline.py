"""A run over time, from the trace that `graphtool profile --trace` writes for Perfetto."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import msgspec

from graphtool.report.page.charts import plot
from graphtool.report.table import Table

MOST = 4000  # spans that are drawn, the longest ones
LANE = 44
NAMED = 0.045  # of the whole time: a shorter span has no room for its name
COLOURS = ("#a8d5a2", "#8fb8de", "#f2b279", "#d7b5d8", "#e3d26f", "#c9c9c9")


class Measured(msgspec.Struct):
    """What a span tells of its kernel."""

    kernel: str = ""
    roof: float = msgspec.field(name="of roof", default=0.0)


class Span(msgspec.Struct):
    """One event of a Chrome trace: a span has the phase X, the others name processes and
    threads. Times are in µs."""

    ph: str
    name: str
    tid: int = 0
    ts: float = 0.0
    dur: float = 0.0
    cat: str = ""
    args: Measured = msgspec.field(default_factory=Measured)


class Trace(msgspec.Struct):
    """A Chrome trace."""

    events: list[Span] = msgspec.field(name="traceEvents")


def timeline(trace: Trace, name: str) -> str:
    """The kernels over time as SVG, a lane for each thread, by their share of the machine's roof
    or, in a training step, by their phase. An empty text without spans."""
    spans = [e for e in trace.events if e.ph == "X"]
    if not spans:
        return ""
    shown = sorted(spans, key=lambda e: -e.dur)[:MOST]
    whole = max(e.ts + e.dur for e in spans)
    rows = [_row(e) for e in sorted(shown, key=lambda e: (e.tid, e.ts))]
    groups = dict.fromkeys(str(row["group"]) for row in rows)
    lanes = sorted({e.tid for e in spans})
    x = {"field": "from", "type": "quantitative", "title": "time, µs", "scale": {"nice": True}}
    y = {"field": "thread", "type": "nominal", "title": None,
         "sort": [f"thread {t}" for t in lanes]}
    colour = {"field": "group", "type": "nominal", "title": "phase", "scale": {
        "domain": list(groups), "range": COLOURS}} if set(groups) - {"other"} else {
        "field": "roof", "type": "quantitative", "title": "share of the roof",
        "scale": {"domain": [0, 1], "range": ["#f2a08e", "#f6e3a1", "#a8d8b0"], "clamp": True},
        "legend": {"format": "%"}}
    cut = f", the {MOST} longest of {len(spans)} spans" if len(spans) > MOST else ""
    return plot({
        "width": 980, "height": {"step": LANE}, "data": {"values": rows},
        "title": f"{name}: one run of {whole:.4g} µs on {len(lanes)} "
                 f"thread{'s' * (len(lanes) != 1)}{cut}",
        "layer": [
            {"mark": {"type": "rect", "stroke": "#00000040", "strokeWidth": 0.3},
             "encoding": {"x": x, "x2": {"field": "to"}, "y": y, "color": colour,
                          "description": {"field": "told"}}},
            {"transform": [{"filter": f"datum.to - datum.from > {NAMED * whole}"},
                           {"calculate": "(datum.from + datum.to) / 2", "as": "middle"}],
             "mark": {"type": "text", "color": "#1d1d1f", "fontSize": 10},
             "encoding": {"x": {**x, "field": "middle"}, "y": y, "text": {"field": "kernel"}}}]})


def _row(e: Span) -> dict[str, Any]:
    kernel, roof = e.args.kernel or e.name, e.args.roof
    return {"thread": f"thread {e.tid}", "from": e.ts, "to": e.ts + e.dur, "kernel": kernel,
            "group": e.cat if e.cat != kernel else "other", "roof": roof,
            "told": f"{kernel} {e.name}: {e.dur:.4g} µs from {e.ts:.4g} µs, "
                    f"{100 * roof:.0f} % of the roof"}


def busy(trace: Trace) -> Table:
    """For each thread: its microseconds of work, its microseconds of waiting, and its kernels."""
    threads: dict[int, list[Span]] = defaultdict(list)
    for e in trace.events:
        if e.ph == "X":
            threads[e.tid].append(e)
    whole = max((e.ts + e.dur for spans in threads.values() for e in spans), default=0.0)
    rows: list[tuple[str, ...]] = []
    for tid, spans in sorted(threads.items()):
        work = sum(e.dur for e in spans)
        rows.append((f"thread {tid}", f"{work:.1f}", f"{max(0.0, whole - work):.1f}",
                     f"{100 * work / whole:.0f} %" if whole else "", str(len(spans))))
    return Table(("thread", "at work, µs", "idle, µs", "at work", "kernel calls"), rows)
