"""The JSON Schema of every artifact and report, made from the types that write and read them."""

from __future__ import annotations

import inspect
from dataclasses import is_dataclass
from typing import Any

import msgspec

from graphtool.io import files
from graphtool.io.manifest_rows import Manifest
from graphtool.ir.serial import GraphFile
from graphtool.kernels.choice.tuning import Row
from graphtool.loops.records import ProgramFile
from graphtool.machines import Machine
from graphtool.report.bench import Bench
from graphtool.report.bench_base import Base
from graphtool.report.build_diff import BuildDiff
from graphtool.report.captures import Captures
from graphtool.report.catalog import Ops, Passes
from graphtool.report.diff import Diff
from graphtool.report.doctor import Doctor
from graphtool.report.git import GitStatus, HookReport, Review
from graphtool.report.graph_schema import constrain
from graphtool.report.journal import Event
from graphtool.report.lineage import Lineage
from graphtool.report.listing import FxListing, Listing
from graphtool.report.profile import Profile
from graphtool.report.quantised import QuantiseReport
from graphtool.report.stats import Stats
from graphtool.report.summary import Summary
from graphtool.report.support import Support
from graphtool.report.why import WhyNot, WhyReport
from graphtool.tune.search import TuneReport

_WIDTH = 120
TYPES: dict[str, Any] = {
    "graph": GraphFile, "program": ProgramFile, "build": Manifest, "stats": Stats,
    "listing": Listing, "fx-listing": FxListing, "diff": Diff, "ops": Ops, "passes": Passes,
    "build-diff": BuildDiff, "support": Support,
    "doctor": Doctor, "bench": Bench, "profile": Profile, "tune": TuneReport,
    "tuning": Row, "machine": Machine, "why": WhyReport, "why-not-fused": WhyNot,
    "captures": Captures, "quantise": QuantiseReport, "git-status": GitStatus,
    "git-check": HookReport, "review": Review, "bench-base": Base,
    "journal": Event, "lineage": Lineage, "report": Summary}


def schema_text(name: str, type: Any) -> str:
    """The text of schemas/NAME.schema.json."""
    (schema,), parts = msgspec.json.schema_components([type], ref_template="#/$defs/{name}")
    for part in parts.values() if is_dataclass(type) else ():  # `decode` takes no unknown field
        part["additionalProperties"] = False
    if type is GraphFile:
        constrain(parts)
    for part in parts.values():
        if "description" in part:
            part["description"] = _plain_text(part["description"])
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema",
            "title": f"graphtool {name}", **schema, "$defs": parts}
    return _lines(head, 0) + "\n"


def _plain_text(docstring: str) -> str:
    """A docstring without the indentation and line breaks of the source: one line a paragraph."""
    paragraphs = inspect.cleandoc(docstring).split("\n\n")
    return "\n\n".join(" ".join(p.split()) for p in paragraphs)


def _lines(x: Any, indent: int) -> str:
    """JSON with an object or array on one line if it fits."""
    line = files.compact(x)
    if len(line) + indent <= _WIDTH or not isinstance(x, (dict, list)):
        return line
    margin = "\n" + " " * (indent + 1)
    items = [f"{files.compact(k)}: {_lines(v, indent + 1)}" for k, v in x.items()
             ] if isinstance(x, dict) else [_lines(v, indent + 1) for v in x]
    first, last = "{}" if isinstance(x, dict) else "[]"
    return f"{first}{margin}{f',{margin}'.join(items)}\n{' ' * indent}{last}"
