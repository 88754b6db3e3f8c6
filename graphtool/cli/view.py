"""view: one HTML page to look at a model in, and at what becomes of it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from graphtool.cli import sources, terminal
from graphtool.cli.artifacts import kind_of


def view(artifacts: Annotated[list[str], typer.Argument(
        metavar="A", help="Graphs, models, programs, build directories, and profiles that "
        "`graphtool profile --json` printed. The first two graphs are also compared.")],
         out: Annotated[Path, typer.Option("-o", "--out", help="The HTML file to write.")]) -> None:
    """Write an HTML page of graphs, memory plans and profiles.

    The page is one file that needs no network: modules open and close, a search finds nodes, and
    every part is reached by keys. It needs the extra `view`."""
    from graphtool.report.page import need_view
    need_view()
    from graphtool.io import files
    from graphtool.report.page import page, sections
    made: list[dict[str, Any]] = []
    graphs: list[tuple[str, Any]] = []
    for source in artifacts:
        name, kind = Path(source).name, kind_of(source)
        if kind == "program":
            made.append(sections.of_program(name, sources.program(source)[0]))
        elif kind == "build":
            made.append(sections.of_build(name, Path(source)))
        elif source.endswith(".json") and not source.endswith(".graph.json"):
            made.append(sections.of_profile(name, Path(source)))
        else:
            graphs.append((name, sources.load(source)))
            made.append(sections.of_graph(*graphs[-1]))
    if len(graphs) > 1:
        made.append(sections.compared(made, graphs[0], graphs[1]))
    text = page(", ".join(Path(s).name for s in artifacts[:2]), made)
    files.write_bytes(out, text.encode())
    terminal.note(f"{out}: {len(text.encode()) / 1024:.0f} KiB")
