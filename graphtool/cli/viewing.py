"""view: artifacts as one HTML page, and a browser that shows it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from graphtool.cli import options, saving, sources, terminal
from graphtool.cli.inspect import kind_of
from graphtool.errors import InputError, UsageError

if TYPE_CHECKING:
    from graphtool.ir.graph import Module


def view(artifacts: Annotated[list[str], typer.Argument(
        metavar="A", help="Graphs, models, programs, build directories, what `graphtool profile` "
        "wrote with --json and --trace, the log.jsonl of `graphtool train`, and JSON objects of "
        "numbers by names of nodes, which become colours. The first two graphs, and the first two "
        "builds, are also compared. A build that was made with --keep brings the graphs of its "
        "stages.")],
         out: Annotated[Path | None, typer.Option(
             "-o", "--out", help="The HTML file to write. By default one in the current folder is "
             "written, printed, and opened.")] = None,
         open_: Annotated[bool | None, typer.Option(
             "--open/--no-open", help="Whether to open the page in the browser.")] = None,
         numbers: Annotated[bool, typer.Option(
             "--numbers", help="Also run the graphs, and show where values part: the first graph "
             "beside the others, and an optimised one beside its compiled C.")] = False,
         inputs: options.Inputs = None, input: options.Input = None, seed: options.Seed = 0,
         dim: options.Dim = None, atol: options.Atol = None, rtol: options.Rtol = 1e-4,
         capture: options.Capture = None, watch: options.Watch = False) -> None:
    """Show graphs, memory plans and profiles as a page in the browser.

    The page is one HTML file that needs no network: modules open and close, a search finds nodes,
    the stages of a model stand side by side down to the C, and every part is reached by keys. It
    needs the extra `view`."""
    from graphtool.io import files
    from graphtool.report.page import opened, own, page
    how = NumbersOptions(inputs, input, seed, dim, atol, rtol) if numbers else None
    data = page(", ".join(Path(s).name for s in artifacts[:2]),
                page_sections(artifacts, capture, how)).encode()
    path = out or own(saving.stem(artifacts[0]))
    files.write_bytes(path, data)
    terminal.note(f"{path}: {len(data) / 1024:.0f} KiB")
    if out is None:
        terminal.lines([str(path)])
    if (out is None if open_ is None else open_) and not opened(path):
        terminal.note("there is no browser here: open the file in one")


def page_sections(artifacts: Sequence[str], capture: str | None = None,
                  numbers: NumbersOptions | None = None) -> list[dict[str, Any]]:
    """What the page of `view` shows of each artifact, the difference of the first two graphs, and
    with `numbers` where runs part.

    Raises UsageError GT3034 without the extra `view`, InputError GT3035 for JSON that is no
    artifact."""
    from graphtool.importers.kinds import JSON, LOG, what
    from graphtool.report.page import need_view
    need_view()
    from graphtool.report.page import sections
    page: list[dict[str, Any]] = []
    graphs: list[tuple[str, Any]] = []
    builds: list[tuple[str, Path]] = []
    profiles: list[Path] = []
    numbered: list[tuple[str, Any]] = []
    for source in _with_stages(artifacts):
        name, kind = _called(Path(source)), kind_of(source)
        if kind == "program":
            page.append(sections.of_program(name, sources.program(source)[0]))
        elif kind == "build":
            builds.append((name, Path(source)))
            page.append(sections.of_build(*builds[-1]))
        elif what(source) is LOG:
            page.append(sections.of_log(name, Path(source)))
        elif what(source) is JSON and (colours := sections.numbers(name, Path(source))):
            numbered.append((source, colours))
        elif what(source) is JSON:
            page.append(sections.of_measured(name, Path(source)))
            profiles += [Path(source)] if page[-1]["kind"] == "profile" else []
        else:
            graphs.append((name, sources.load(
                source, sources.captured(sources.capture_of(source, capture)), True)))
            page.append(sections.of_graph(*graphs[-1]))
    if numbered and not graphs:
        raise InputError("GT3035", "numbers of nodes, and no graph", where=numbered[0][0],
                         hint="name the graph too: its nodes get colours by these numbers")
    for section in page:
        if section["kind"] == "graph" and (profiles or numbered):
            section["numbers"] = [*map(sections.times, profiles[:1]), *(n for _, n in numbered)]
    if len(graphs) > 1:
        from graphtool.report.page import sections
        page.append(sections.compared(page, graphs[0], graphs[1]))
    if len(builds) > 1:
        from graphtool.report.page import sections
        page.append(sections.compared_builds(builds[0], builds[1], profiles))
    if numbers is not None:
        page += _numbers(graphs, [s for s in page if s["kind"] == "graph"], numbers)
    return page


@dataclass(frozen=True)
class NumbersOptions:
    """What `view --numbers` runs on, and when values part."""

    inputs: Path | None
    given: list[str] | None
    seed: int
    dims: list[str] | None
    atol: float | None
    rtol: float


def _numbers(graphs: Sequence[tuple[str, Module]], drawn: Sequence[dict[str, Any]],
             how: NumbersOptions) -> list[dict[str, Any]]:
    """The first graph beside each other one, and the last fused one beside its C; their own
    sections learn the errors.

    Raises UsageError GT3148 if there are not two runs to compare."""
    from graphtool.cli.transform import module_inputs
    from graphtool.report.page.facts import marked, of_numbers
    from graphtool.target import detect
    from graphtool.verify.along import along, compiled
    fused = [i for i, (_, m) in enumerate(graphs) if m.graph.groups]
    if len(graphs) < 2 and not fused:
        raise UsageError("GT3148", "--numbers compares two runs, and there is one graph",
                         hint="give two graphs, or an optimised one, which is compared with its C")
    result = []
    first, module = graphs[0]
    arrays = module_inputs(module, how.inputs, how.given, True, how.seed, how.dims)
    for i, (name, other) in enumerate(graphs[1:], 1):
        rows = along(module, other, arrays, how.atol, how.rtol)
        result.append(of_numbers(f"{first} and {name}", rows))
        marked(drawn[0], rows, False)
        marked(drawn[i], rows, True)
    if fused:
        name, module = graphs[fused[-1]]
        arrays = module_inputs(module, how.inputs, how.given, True, how.seed, how.dims)
        rows = compiled(module, arrays, detect(), how.atol, how.rtol)
        result.append(of_numbers(f"{name} and its C", rows))
        marked(drawn[fused[-1]], rows, False)
    return result


def _with_stages(artifacts: Sequence[str]) -> list[str]:
    """The artifacts, each build after the graphs of its stages if it was made with --keep."""
    from graphtool.report.artifacts import kept_graphs
    return [x for source in artifacts for x in (
        *(map(str, kept_graphs(Path(source))) if kind_of(source) == "build" else ()), source)]


def _called(path: Path) -> str:
    """The name of an artifact on the page; that of a stage in a build has the build's name."""
    kept = path.parent.name == "stages" and (path.parents[1] / "build.json").is_file()
    return f"{path.parents[1].name}: {path.name.split('.')[0].split('-', 1)[-1]}" if kept else (
        path.resolve().name)
