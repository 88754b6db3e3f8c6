"""Artifacts as a page in the browser."""

from __future__ import annotations

from os import PathLike
from pathlib import Path

import graphtool.kernels  # noqa: F401  (fills the registry)
from graphtool.api.arguments import Pathlike, checked
from graphtool.compile.source import source_of
from graphtool.io import files
from graphtool.ir.graph import Module
from graphtool.loops.program import Program
from graphtool.report.page import need_view, page


@checked
def view(artifact: Module | Program | Pathlike, out: Pathlike | None = None, *,
         browser: bool = True) -> Path:
    """The HTML page of a graph, a program, or the path of one, of a model or of a build directory.

    Without `out` it is a file of the current folder. It is opened in the browser of the desktop,
    where there is one, unless `browser` is False. Raises UsageError GT3034 without the packages of
    the extra `view`.
    """
    need_view()
    from graphtool.report import page as desktop
    from graphtool.report.page import sections
    path = Path(artifact) if isinstance(artifact, (str, PathLike)) else None
    name = path.name if path is not None else "graph"
    if path is not None and path.is_dir() and (path / "build.json").is_file():
        section = sections.of_build(name, path)
    else:
        source = source_of(artifact)
        section = sections.of_program(name, source.program) if source.module is None and \
            source.program is not None else sections.of_graph(name, _graph(source.module))
    file = Path(out) if out is not None else desktop.own(name.split(".")[0].split(":")[0])
    files.write_bytes(file, page(name, [section]).encode())
    if browser:
        desktop.opened(file)
    return file


def _graph(module: Module | None) -> Module:
    assert module is not None
    return module
