"""Programs and builds for `show`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from graphtool.cli import sources, terminal
from graphtool.errors import UsageError

if TYPE_CHECKING:
    from graphtool.io.manifest_rows import Manifest
    from graphtool.loops.program import Program


def kind_of(source: str) -> str:
    """`program`, `build`, or `graph` for everything else that `show` reads."""
    from graphtool.importers.kinds import BUILD, PROGRAM, what
    kind = what(source)
    return kind.name if kind in (BUILD, PROGRAM) else "graph"


def show_artifact(source: str, kind: str, graph_options: list[str], json: bool,
                  entry: str | None) -> None:
    """Print a program or a build as a listing, or with `json` as the JSON that it is.

    Raises UsageError GT3027 if options are given that are for graphs."""
    if graph_options:
        verb = "is" if len(graph_options) == 1 else "are"
        raise UsageError("GT3027", f"{', '.join(graph_options)} {verb} for graphs, this is a "
                                   f"{kind}", where=source,
                         hint=f"graphtool show {source} has its figures")
    from graphtool.io import files
    from graphtool.io.manifest import read_manifest
    path = Path(source)
    if kind == "program":
        program, _ = sources.program(source)
        if not json:
            _program(program)
    else:
        manifest, path = read_manifest(path), path / "build.json"
        if entry is not None:
            from graphtool.io.entry_points import read_entry
            manifest = read_entry(path.parent, entry)
        if not json:
            _build(manifest, path.parent)
    if json:
        terminal.document(files.read_bytes(path).decode())


def _program(program: Program) -> None:
    from graphtool.report import artifacts as show
    terminal.lines([*show.head_lines(program), "", "buffers"])
    terminal.table(show.memory(program))
    terminal.lines(["", "steps", *show.step_lines(program), *show.kernel_lines(program)])


def _build(manifest: Manifest, folder: Path) -> None:
    from graphtool.report import artifacts as show
    from graphtool.report.table import table
    terminal.lines([*show.build_lines(manifest, folder), ""])
    for one in show.interfaces(manifest):
        terminal.table(table(show.STEPS, one.steps))
