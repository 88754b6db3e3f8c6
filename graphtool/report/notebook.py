"""How notebooks show what the Python API returns: the page of `view`, small, in the cell's output.

Without the packages of the extra `view`, and for graphs that are too large to be kept in a
notebook, there is text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from html import escape  # of a whole document; for names there is xml
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from typing import Any

from graphtool.escaping import line, xml
from graphtool.io.manifest import read_manifest
from graphtool.ir.graph import Module, is_constant
from graphtool.ir.listing import listing
from graphtool.loops.program import Program
from graphtool.report import artifacts
from graphtool.report.diff import SIGNS, Diff
from graphtool.report.diff_text import summary, text
from graphtool.report.page import PACKAGES, page
from graphtool.report.profile import Profile, profile_lines

LINES = 20  # of a listing's head
NODES = 2000  # a page of more is a megabyte, which a notebook would save with every output
HEIGHT = 420  # pixels
COLOURS = {"added": "#2da44e", "removed": "#cf222e"}
Sections = Callable[[], list[dict[str, Any]]]


def head(module: Module) -> str:
    """The listing's first lines without the arrays: dims, inputs and nodes, then how many more."""
    arrays = sum(map(is_constant, module.graph.nodes))
    lines = [f"<Module of {len(module.graph.nodes) - arrays} nodes and {arrays} arrays>"]
    rest = (text for text in listing(module)
            if not text.startswith(("param ", "constant ", "weights ")))
    lines += islice(rest, LINES)
    left = sum(1 for _ in rest)
    return "\n".join([*lines, *([f"… {left} more lines: graphtool.show"] if left else [])])


def told(report: Diff | Profile) -> str:
    """The first lines that `diff` or `profile` prints, then how many more there are."""
    lines = [*map(line, profile_lines(report) if isinstance(report, Profile) else text(
        report, "before", "after"))]
    left = len(lines) - LINES
    return "\n".join([*lines[:LINES], *([f"… {left} more lines"] if left > 0 else [])])


def of_module(module: Module) -> str:
    """A graph: its page, or its listing's head."""
    from graphtool.report.page.tree import graph_data

    def sections() -> list[dict[str, Any]]:
        from graphtool.report.stats import stats, stats_lines
        return [{"name": "graph", "kind": "graph", "lines": stats_lines(stats(module)),
                 "graph": graph_data(module), "charts": []}]
    return _framed("a graph", sections, head(module), len(module.graph.nodes))


def of_diff(report: Diff, graphs: tuple[Module, Module] | None) -> str:
    """What changed: as a page if the two graphs are known, and as a table."""
    table = _changes(report)
    if graphs is None or report.equal:
        return table

    def sections() -> list[dict[str, Any]]:
        from graphtool.report.page.sections import compared
        from graphtool.report.page.tree import graph_data
        parts = [{"name": name, "kind": "graph", "lines": [], "graph": graph_data(m), "charts": []}
                 for name, m in zip(("before", "after"), graphs, strict=True)]
        return [*parts, compared(parts, ("before", graphs[0]), ("after", graphs[1]))]
    size = sum(len(m.graph.nodes) for m in graphs)
    frame = _framed("the difference of two graphs", sections, "", size)
    return (f"{frame}<details><summary>{xml(summary(report))}</summary>{table}</details>"
            if frame else table)


def _changes(report: Diff) -> str:
    if report.equal:
        return _pre(text(report, "before", "after"))
    rows = "".join(
        f'<tr style="color:{COLOURS.get(c.kind, "#bf8700")}">'
        f'<td style="white-space:nowrap">{SIGNS[c.kind]} {c.kind}</td>'
        f"<td>{xml(c.name)}</td><td>{xml(c.op)}</td><td>{xml(c.detail)}</td>"
        f"<td>{xml(c.where)}</td></tr>" for c in report.changes[:200])
    left = len(report.changes) - 200
    return (f"<p>{xml(summary(report))}</p><table><thead><tr><th>change</th><th>value</th>"
            f"<th>op</th><th>what</th><th>at</th></tr></thead><tbody>{rows}</tbody></table>"
            + (f"<p>and {left} more</p>" if left > 0 else ""))


def of_build(folder: Path) -> str:
    """A build: its manifest in short, its kernels and their C, and its stages if it has them."""
    def sections() -> list[dict[str, Any]]:
        from graphtool.report.page.sections import of_build as section
        return [section(folder.name, folder)]
    return _framed("a build", sections, "\n".join(
        artifacts.build_lines(read_manifest(folder), folder)))


def of_program(program: Program) -> str:
    """A program: its steps, its memory plan and its C."""
    def sections() -> list[dict[str, Any]]:
        from graphtool.report.page.sections import of_program as section
        return [section(program.name, program)]
    return _framed("a program", sections, "\n".join([
        *artifacts.head_lines(program), "",
        *islice(artifacts.step_lines(program), LINES)]), len(program.steps))


def of_profile(report: Profile) -> str:
    """A profile: times and roofline."""
    def sections() -> list[dict[str, Any]]:
        from graphtool.report.page.sections import profiled
        return [profiled(report.name, report)]
    return _framed("a profile", sections, "\n".join(map(line, profile_lines(report))))


def _framed(what: str, sections: Sections, instead: str, size: int = 0) -> str:
    """A page in a frame, which keeps its style and script apart from the notebook's."""
    if size > NODES or any(find_spec(name) is None for name in PACKAGES):
        return _pre([instead]) if instead else ""
    return (f'<iframe title="graphtool: {what}" sandbox="allow-scripts" '
            f'style="width:100%;height:{HEIGHT}px;border:1px solid #8884;border-radius:6px" '
            f'srcdoc="{escape(page("", sections()))}"></iframe>')


def _pre(lines: Iterable[str] | Sequence[str]) -> str:
    return f"<pre>{chr(10).join(xml(x) for text in lines for x in text.splitlines())}</pre>"
