"""What the page shows of each artifact: a graph, a program, a build, a profile, a trace, a log."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec

from graphtool.errors import InputError
from graphtool.io import files
from graphtool.io.manifest import read_manifest
from graphtool.ir.graph import Module
from graphtool.loops.program import Program
from graphtool.report.build_listing import STEPS, build_lines, interfaces
from graphtool.report.compiled import program_of
from graphtool.report.page import charts, code, learning, timeline
from graphtool.report.page.tree import graph_data
from graphtool.report.profile import Profile
from graphtool.report.program_listing import head_lines, memory, step_lines
from graphtool.report.stats import stats, stats_lines
from graphtool.report.table import data, table


def of_graph(name: str, module: Module) -> dict[str, Any]:
    """A graph: its figures, its modules, and of a fused one the memory plan of its program."""
    found = stats(module)
    program = program_of(module) if module.graph.groups else None
    return {"name": name, "kind": "graph", "lines": stats_lines(found),
            "graph": graph_data(module),
            "charts": [charts.memory(program)] if program is not None else []}


def of_program(name: str, program: Program) -> dict[str, Any]:
    """A program: its interface, its steps, the memory plan as a plot and as a table."""
    return {"name": name, "kind": "program", "lines": [*head_lines(program), "",
                                                      *step_lines(program)],
            "charts": [charts.memory(program)],
            "table": data(memory(program)), **code.of_program(program)}


def of_build(name: str, folder: Path) -> dict[str, Any]:
    """A build: its manifest in short, its kernels, and the C of each."""
    manifest = read_manifest(folder)
    parts = [code.of_build(m, folder) for m in interfaces(manifest)]
    return {"name": name, "kind": "build", "lines": build_lines(manifest, folder), "charts": [],
            "table": data(table(STEPS, [s for m in interfaces(manifest) for s in m.steps])),
            **(parts[0] if len(parts) == 1 else {})}


def of_measured(name: str, path: Path) -> dict[str, Any]:
    """A profile that `graphtool profile --json` printed, or the trace that its --trace wrote.
    Raises InputError GT3035 for another file."""
    data = files.read_bytes(path)
    try:
        if b'"traceEvents"' in data[:1 << 10]:
            return _trace(name, msgspec.json.decode(data, type=timeline.Trace))
        found = msgspec.json.decode(data, type=Profile)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InputError("GT3035", f"no profile and no trace: {error}", where=str(path),
                         hint="`graphtool profile BUILD --json` and --trace write them") from None
    return profiled(name, found)


def profiled(name: str, found: Profile) -> dict[str, Any]:
    """A profile: times of kernels and modules, and the roofline."""
    raw = json.loads(msgspec.json.encode(found))
    return {"name": name, "kind": "profile", "lines": [], "charts": [
        chart for chart in (charts.times(raw), charts.layers(raw), charts.roofline(raw)) if chart]}


def _trace(name: str, trace: timeline.Trace) -> dict[str, Any]:
    """A run over time."""
    drawn = timeline.timeline(trace, name)
    return {"name": name, "kind": "timeline", "charts": [drawn] if drawn else [],
            "lines": [] if drawn else ["The trace has no spans."],
            "table": data(timeline.busy(trace))}


def of_log(name: str, path: Path) -> dict[str, Any]:
    """The curves of a training run. Raises InputError GT3147 for another file."""
    rows = learning.read_log(path)
    return {"name": name, "kind": "training", "charts": learning.curves(rows),
            "lines": learning.log_lines(rows)}
