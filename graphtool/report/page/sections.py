"""What the page shows of each artifact: a graph, a program, a build, a profile, a trace, a log, and
two graphs or builds side by side.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from graphtool.errors import InputError
from graphtool.io import files
from graphtool.io.manifest import read_manifest
from graphtool.ir.graph import Module
from graphtool.loops.program import Program
from graphtool.report.artifacts import (
    STEPS,
    build_lines,
    head_lines,
    interfaces,
    memory,
    step_lines,
)
from graphtool.report.build_diff import build_diff, calls, fact_lines, summary
from graphtool.report.compiled import program_of
from graphtool.report.diff import diff
from graphtool.report.diff_text import text
from graphtool.report.page import charts, code, learning, timeline
from graphtool.report.page.tree import graph_data
from graphtool.report.stats import stats, stats_lines
from graphtool.report.table import data, table

if TYPE_CHECKING:
    from graphtool.report.profile import Profile

# a key, a title, and numbers by the names of the nodes that each is about; the page colours by them
Numbers = tuple[str, str, list[tuple[list[str], float]]]


def of_graph(name: str, module: Module) -> dict[str, Any]:
    """A graph: its figures, its modules, and of a fused one the memory plan of its program."""
    counts = stats(module)
    program = program_of(module) if module.graph.groups else None
    origin = ", ".join(str(module.meta[key]) for key in ("source", "producer")
                       if module.meta.get(key))
    return {"name": name, "kind": "graph",
            "lines": [f"made from  {origin}"] * bool(origin) + stats_lines(counts),
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
        measured = _read(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InputError("GT3035", f"no profile and no trace: {error}", where=str(path),
                         hint="`graphtool profile BUILD --json` and --trace write them; an object "
                         "of numbers by names of nodes colours a graph") from None
    return profiled(name, measured)


def profiled(name: str, measured: Profile) -> dict[str, Any]:
    """A profile: times of kernels and modules, and the roofline."""
    raw = json.loads(msgspec.json.encode(measured))
    return {"name": name, "kind": "profile", "lines": [], "charts": [
        chart for chart in (charts.times(raw), charts.layers(raw), charts.roofline(raw)) if chart]}


def times(path: Path) -> Numbers:
    """The µs of each kernel call of a profile."""
    return "us", "µs", [(s.label.split(" + "), s.us)
                        for s in _read(files.read_bytes(path)).steps if s.label]


def numbers(name: str, path: Path) -> Numbers | None:
    """The numbers of a JSON object by names of nodes; None if the file is another one."""
    try:
        rows = msgspec.json.decode(files.read_bytes(path), type=dict[str, float])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return (f":{name}", name, [([node], x) for node, x in rows.items()]) if rows else None


def _read(data: bytes) -> Profile:
    from graphtool.report.profile import Profile  # late: a graph alone does not need it
    return msgspec.json.decode(data, type=Profile)


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


def compared(sections: list[dict[str, Any]], a: tuple[str, Module], b: tuple[str, Module]
             ) -> dict[str, Any]:
    """The difference of two graphs as text; their sections in `sections` learn how each node
    changed."""
    difference = diff(a[1], b[1])
    graphs = [section for section in sections if section["kind"] == "graph"]
    for section, gone in zip(graphs, (True, False), strict=False):  # of the first two
        section["changes"] = {c.name: c.kind for c in difference.changes
                              if (c.kind == "removed") is gone}
    return {"name": "difference", "kind": "difference", "charts": [],
            "lines": text(difference, a[0], b[0])}


def compared_builds(a: tuple[str, Path], b: tuple[str, Path], profiles: Sequence[Path]
                    ) -> dict[str, Any]:
    """The kernels of two builds side by side; with two profiles, in the same order, by their
    times."""
    us = [{s.kernel: s.us for s in _read(files.read_bytes(p)).steps} for p in profiles[:2]]
    difference = build_diff(read_manifest(a[1]), read_manifest(b[1]),
                            (us[0], us[1]) if len(us) == 2 else None)
    return {"name": "difference of builds", "kind": "difference",
            "charts": [chart for chart in (charts.both(difference, a[0], b[0]),) if chart],
            "lines": [summary(difference, a[0], b[0]), *fact_lines(difference)],
            "table": data(calls(difference, whole=True))}
