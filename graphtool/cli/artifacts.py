"""Programs, builds and profiles for `show` and `view`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graphtool.cli import sources, terminal
from graphtool.errors import UsageError

if TYPE_CHECKING:
    from graphtool.io.manifest_rows import Manifest
    from graphtool.ir.graph import Module
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
    from graphtool.report import program_listing as show
    terminal.lines([*show.head_lines(program), "", "buffers"])
    terminal.table(show.MEMORY, show.memory_rows(program))
    terminal.lines(["", "steps", *show.step_lines(program), *show.kernel_lines(program)])


def _build(manifest: Manifest, folder: Path) -> None:
    from graphtool.report import build_listing as show
    terminal.lines([*show.build_lines(manifest, folder), ""])
    for one in show.interfaces(manifest):
        terminal.table(show.KERNELS, show.kernel_rows(one))


def page_sections(artifacts: Sequence[str], capture: str | None = None,
                  numbers: Numbers | None = None) -> list[dict[str, Any]]:
    """What the page of `view` shows of each artifact, the difference of the first two graphs, and
    with `numbers` where runs part.

    Raises UsageError GT3034 without the extra `view`, InputError GT3035 for JSON that is no
    artifact."""
    from graphtool.importers.kinds import JSON, LOG, what
    from graphtool.report.page import need_view
    need_view()
    from graphtool.report.page import sections
    made: list[dict[str, Any]] = []
    graphs: list[tuple[str, Any]] = []
    builds: list[tuple[str, Path]] = []
    profiles: list[Path] = []
    for source in _with_stages(artifacts):
        name, kind = _called(Path(source)), kind_of(source)
        if kind == "program":
            made.append(sections.of_program(name, sources.program(source)[0]))
        elif kind == "build":
            builds.append((name, Path(source)))
            made.append(sections.of_build(*builds[-1]))
        elif what(source) is LOG:
            made.append(sections.of_log(name, Path(source)))
        elif what(source) is JSON:
            made.append(sections.of_measured(name, Path(source)))
            profiles += [Path(source)] if made[-1]["kind"] == "profile" else []
        else:
            graphs.append((name, sources.load(
                source, sources.captured(sources.capture_of(source, capture)), True)))
            made.append(sections.of_graph(*graphs[-1]))
    if len(graphs) > 1:
        made.append(sections.compared(made, graphs[0], graphs[1]))
    if len(builds) > 1:
        made.append(sections.compared_builds(builds[0], builds[1], profiles))
    if numbers is not None:
        made += _numbers(graphs, [s for s in made if s["kind"] == "graph"], numbers)
    return made


@dataclass(frozen=True)
class Numbers:
    """What `view --numbers` runs on, and when values part."""

    inputs: Path | None
    given: list[str] | None
    seed: int
    dims: list[str] | None
    atol: float | None
    rtol: float


def _numbers(graphs: Sequence[tuple[str, Module]], drawn: Sequence[dict[str, Any]], how: Numbers
             ) -> list[dict[str, Any]]:
    """The first graph beside each other one, and the last fused one beside its C; their own
    sections learn the errors.

    Raises UsageError GT3148 if there are not two runs to compare."""
    from graphtool.cli.transform import module_inputs
    from graphtool.report.page.numbers import marked, of_numbers
    from graphtool.target import detect
    from graphtool.verify.along import along, compiled
    fused = [i for i, (_, m) in enumerate(graphs) if m.graph.groups]
    if len(graphs) < 2 and not fused:
        raise UsageError("GT3148", "--numbers compares two runs, and there is one graph",
                         hint="give two graphs, or an optimised one, which is compared with its C")
    made = []
    first, module = graphs[0]
    arrays = module_inputs(module, how.inputs, how.given, True, how.seed, how.dims)
    for i, (name, other) in enumerate(graphs[1:], 1):
        rows = along(module, other, arrays, how.atol, how.rtol)
        made.append(of_numbers(f"{first} and {name}", rows))
        marked(drawn[0], rows, False)
        marked(drawn[i], rows, True)
    if fused:
        name, module = graphs[fused[-1]]
        arrays = module_inputs(module, how.inputs, how.given, True, how.seed, how.dims)
        rows = compiled(module, arrays, detect(), how.atol, how.rtol)
        made.append(of_numbers(f"{name} and its C", rows))
        marked(drawn[fused[-1]], rows, False)
    return made


def _with_stages(artifacts: Sequence[str]) -> list[str]:
    """The artifacts, each build after the graphs of its stages if it was made with --keep."""
    from graphtool.report.build_listing import kept_graphs
    return [x for source in artifacts for x in (
        *(map(str, kept_graphs(Path(source))) if kind_of(source) == "build" else ()), source)]


def _called(path: Path) -> str:
    """The name of an artifact on the page; that of a stage in a build has the build's name."""
    kept = path.parent.name == "stages" and (path.parents[1] / "build.json").is_file()
    return f"{path.parents[1].name}: {path.name.split('.')[0].split('-', 1)[-1]}" if kept else (
        path.resolve().name)
