"""The plots of the page: Vega-Lite specifications, drawn to SVG when the page is made."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from graphtool.loops.liveness import lifetimes, places_of_runs
from graphtool.loops.program import SCRATCH, Program
from graphtool.symbolic import Dim, at_least_sizes, symbols

if TYPE_CHECKING:
    from graphtool.report.build_diff import BuildDiff

_LOOK = {  # the page's own colour, so that plots follow its theme
    "background": None, "font": "inherit", "axis": {
        "labelColor": "currentColor", "titleColor": "currentColor", "gridColor": "currentColor",
        "gridOpacity": 0.15, "domainColor": "currentColor", "tickColor": "currentColor"},
    "legend": {"labelColor": "currentColor", "titleColor": "currentColor"},
    "title": {"color": "currentColor"}, "view": {"stroke": None}}
_PLACES = re.compile(r'\b(?:d|transform)="[^"]*"')
_DIGITS = re.compile(r"(\.\d\d)\d+")  # a hundredth of a pixel is enough
KERNELS = 25  # bars of a profile
BUFFERS = 1000  # of the plan, the largest ones


def plot(spec: dict[str, Any]) -> str:
    """A Vega-Lite specification as SVG, in the page's own colours."""
    from vl_convert import vegalite_to_svg
    svg: str = vegalite_to_svg({"config": _LOOK, **spec})
    return _PLACES.sub(lambda m: _DIGITS.sub(r"\1", m[0]), svg)


def _kib(d: Dim) -> float:
    return at_least_sizes(d) / 1024


def decades(values: Sequence[float]) -> list[float]:
    """The powers of ten in reach, with their doubles and halves if there are few."""
    low, high = (math.floor(math.log10(f(values))) for f in (min, max))
    return [float(f"{m}e{k}") for k in range(low, high + 2)
            for m in ((1, 2, 5) if high - low < 3 else (1,))]


def memory(program: Program) -> str:
    """The arena over the steps, as SVG: a box for each buffer, at its offset, while it is in use.

    Open sizes are at their least. An empty text if there is no arena."""
    lives = lifetimes(program.steps)
    arena = sorted((b for b in program.buffers if b.space == "arena" and b.name in lives),
                   key=lambda b: -at_least_sizes(b.bytes_of(b.size)))
    rows = [{"buffer": b.name, "what": b.label.removeprefix(SCRATCH), "from": lives[b.name][0],
             "to": lives[b.name][1] + 1, "low": _kib(b.offset),
             "high": _kib(b.offset + b.bytes_of(b.size)),
             "kind": "workspace" if b.label.startswith(SCRATCH) else "values"}
            for b in arena[:BUFFERS]]
    if not rows:
        return ""
    last = max(places_of_runs(program.steps), default=0) + 1
    return plot({
        "width": 820, "height": 360, "data": {"values": rows},
        "title": f"Arena of {program.name}"
                 + (", open sizes at their least" if symbols(program.arena) else "")
                 + (f", the {BUFFERS} largest of {len(arena)} buffers"
                    if len(arena) > BUFFERS else ""),
        "mark": {"type": "rect", "stroke": "currentColor", "strokeWidth": 0.6,
                 "fillOpacity": 0.75},
        "encoding": {
            "x": {"field": "from", "type": "quantitative", "title": "step",
                  "scale": {"domain": [0, last], "nice": True},
                  "axis": {"tickMinStep": 1, "format": "d"}},
            "x2": {"field": "to"},
            "y": {"field": "low", "type": "quantitative", "title": "offset in the arena, KiB"},
            "y2": {"field": "high"},
            "color": {"field": "kind", "title": "", "scale": {
                "domain": ["values", "workspace"], "range": ["#4c78a8", "#f58518"]}},
            "description": {"field": "what"}}})


def times(profile: dict[str, Any]) -> str:
    """The slowest kernels of a profile as bars in µs, as SVG."""
    steps = sorted(profile["steps"], key=lambda s: -s["us"])[:KERNELS]
    rows = [{"kernel": f"{s['kernel']}  {s['label'][:48]}", "us": s["us"]} for s in steps]
    return plot({
        "width": 520, "height": {"step": 18}, "data": {"values": rows},
        "title": f"{profile['name']}: {profile['total_us']:.1f} µs in {len(profile['steps'])} "
                 f"steps, {profile['threads']} thread{'s' * (profile['threads'] != 1)}",
        "mark": {"type": "bar", "color": "#4c78a8"},
        "encoding": {"y": {"field": "kernel", "type": "nominal", "sort": None, "title": None,
                           "axis": {"labelLimit": 420}},
                     "x": {"field": "us", "type": "quantitative", "title": "time, µs"}}})


def both(compared: BuildDiff, a: str, b: str) -> str:
    """The time of each kernel of two builds, as pairs of bars; an empty text without times."""
    rows: list[dict[str, Any]] = [
        {"kernel": f"{r.what[:48]}  {call.kernel}", "build": side, "us": call.us,
         "told": f"{side}: {call.us:.4g} µs, {call.plan or call.kernel}"}
        for r in compared.rows for side, call in ((a, r.before), (b, r.after))
        if call is not None and call.us]
    rows = sorted(rows, key=lambda row: -row["us"])[:2 * KERNELS]
    if not rows:
        return ""
    how = "measured" if compared.measured else "as the builds record them"
    return plot({
        "width": 520, "height": {"step": 12}, "data": {"values": rows},
        "title": f"Times of kernels, {how}", "mark": {"type": "bar"},
        "encoding": {"y": {"field": "kernel", "type": "nominal", "sort": None, "title": None,
                           "axis": {"labelLimit": 420}},
                     "yOffset": {"field": "build", "sort": [a, b]},
                     "x": {"field": "us", "type": "quantitative", "title": "time, µs"},
                     "color": {"field": "build", "title": "", "sort": [a, b]},
                     "description": {"field": "told"}}})


def layers(profile: dict[str, Any]) -> str:
    """The time of each module of the model, by the names of the values of its kernels, as SVG. As
    deep as KERNELS bars allow; an empty text for a model without modules."""
    paths = [(tuple(s["label"].split(" + ")[0].replace("/", ".").split(".")[:-1]), s["us"])
             for s in profile["steps"]]
    sums: dict[str, float] = {}
    for depth in range(1, max((len(p) for p, _ in paths), default=0) + 1):
        deeper: dict[str, float] = {}
        for path, us in paths:
            key = ".".join(path[:depth]) or "outside of modules"
            deeper[key] = deeper.get(key, 0.0) + us
        if len(deeper) > KERNELS and sums:
            break
        sums = deeper
    if len(sums) < 2:
        return ""
    whole = sum(sums.values()) or 1.0
    return plot({
        "width": 520, "height": {"step": 18}, "title": "Time of each module",
        "data": {"values": [{"module": k, "us": us, "told": f"{k}: {us:.4g} µs, "
                             f"{100 * us / whole:.3g} %"} for k, us in sums.items()]},
        "mark": {"type": "bar", "color": "#54a24b"},
        "encoding": {"y": {"field": "module", "type": "nominal", "sort": None, "title": None,
                           "axis": {"labelLimit": 420}},
                     "x": {"field": "us", "type": "quantitative", "title": "time, µs"},
                     "description": {"field": "told"}}})


def roofline(profile: dict[str, Any]) -> str:
    """Each kernel by its work for each byte and its speed, under the limits of the machine, as
    SVG. An empty text if nothing was measured."""
    rows = [{"kernel": s["kernel"], "intensity": s["gflops"] / s["gbps"], "gflops": s["gflops"],
             "us": s["us"]} for s in profile["steps"] if s["gflops"] > 0 and s["gbps"] > 0]
    if not rows:
        return ""
    peak, bandwidth = profile["peaks"]["gflops"], profile["peaks"]["bandwidth"]
    low = min(r["intensity"] for r in rows) / 2
    high = max(4 * peak / bandwidth[-1]["gbps"], 2 * max(r["intensity"] for r in rows))
    roofs = [{"limit": label, "intensity": x, "gflops": min(peak, x * row["gbps"])}
             for label, row in (("first cache", bandwidth[0]), ("memory", bandwidth[-1]))
             for x in sorted({low, peak / row["gbps"], high})]
    log = {"type": "log"}
    x = {"field": "intensity", "type": "quantitative", "scale": log,
         "title": "work for each byte, FLOP/B"}
    y = {"field": "gflops", "type": "quantitative", "scale": log, "title": "speed, GFLOP/s"}
    return plot({
        "width": 520, "height": 300, "title": "Roofline", "layer": [
            {"data": {"values": roofs}, "mark": {"type": "line", "strokeWidth": 1.5},
             "encoding": {"x": x, "y": y, "strokeDash": {"field": "limit", "title": "limit"},
                          "color": {"value": "#888"}}},
            {"data": {"values": rows}, "mark": {"type": "circle", "color": "#f58518"},
             "encoding": {"x": x, "y": y, "size": {
                 "field": "us", "type": "quantitative", "title": "time, µs"},
                 "description": {"field": "kernel"}}},
            {"data": {"values": rows}, "mark": {"type": "text", "dx": 10, "align": "left",
                                                "color": "currentColor", "fontSize": 9},
             "encoding": {"x": x, "y": y, "text": {"field": "kernel"}}}]})
