"""What the page shows of two graphs, or of two builds, side by side."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from graphtool.io import files
from graphtool.io.manifest import read_manifest
from graphtool.ir.graph import Module
from graphtool.report.build_diff import build_diff, calls, fact_lines, summary
from graphtool.report.diff import diff
from graphtool.report.diff_text import text
from graphtool.report.page import charts
from graphtool.report.profile import Profile
from graphtool.report.table import data


def compared(made: list[dict[str, Any]], a: tuple[str, Module], b: tuple[str, Module]
             ) -> dict[str, Any]:
    """The difference of two graphs as text; their sections in `made` learn how each node
    changed."""
    found = diff(a[1], b[1])
    graphs = [section for section in made if section["kind"] == "graph"]
    for section, gone in zip(graphs, (True, False), strict=False):  # of the first two
        section["changes"] = {c.name: c.kind for c in found.changes
                              if (c.kind == "removed") is gone}
    return {"name": "difference", "kind": "difference", "charts": [],
            "lines": text(found, a[0], b[0])}


def compared_builds(a: tuple[str, Path], b: tuple[str, Path], profiles: Sequence[Path]
                    ) -> dict[str, Any]:
    """The kernels of two builds side by side; with two profiles, in the same order, by their
    times."""
    times = [{s.kernel: s.us for s in msgspec.json.decode(files.read_bytes(p), type=Profile).steps}
             for p in profiles[:2]]
    found = build_diff(read_manifest(a[1]), read_manifest(b[1]),
                       (times[0], times[1]) if len(times) == 2 else None)
    return {"name": "difference of builds", "kind": "difference",
            "charts": [chart for chart in (charts.both(found, a[0], b[0]),) if chart],
            "lines": [summary(found, a[0], b[0]), *fact_lines(found)],
            "table": data(calls(found, whole=True))}
