"""show, draw, diff: graphs, programs and builds as text and as pictures, and how two of them
differ.
"""

from __future__ import annotations

from os.path import relpath
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from graphtool.cli import options, outputs, saving, sources, terminal
from graphtool.compile.source import is_model, is_program
from graphtool.errors import UsageError, one_of

if TYPE_CHECKING:
    from graphtool.io.manifest_rows import Manifest, StepRow
    from graphtool.loops.program import Program

Shown = Annotated[str, typer.Argument(
    metavar="IN", help="A graph (.graph.json or .gt), a program, a build directory, a model to "
    "import, or - for a graph from stdin.")]
Stats = Annotated[bool, typer.Option(
    "--stats", help="Print counts of ops, parameters, FLOPs, bytes, peak memory and open dims.")]
Tabular = Annotated[bool, typer.Option(
    "--tabular", help="Print a table with one row for each node.")]
Modules = Annotated[bool, typer.Option(
    "--modules", help="Print a table of the modules: class, ops, parameters, multiply-adds and "
    "the type of the output.")]
Depth = Annotated[int | None, typer.Option(
    "--depth", min=0, help="With --modules: how many levels of modules to print; by default all.")]
Category = Annotated[str | None, typer.Option(
    "--category", help="Print only the nodes of one category: compute, data, shape, control or "
        "memory.")]
Where = Annotated[bool, typer.Option("--where", help="Add the table of source locations.")]
Full = Annotated[bool, typer.Option(
    "--full", help="All that the graph file holds, the weights in the text: a listing that needs "
    "no other file.")]
Why = Annotated[bool, typer.Option(
    "--why", help="Print which kernels were chosen, over which others, and which rules made the "
    "nodes.")]
As = Annotated[str | None, typer.Option(
    "--as", metavar="FORMAT", help="Print the graph in another language: functional "
    "(let-bindings), fx (torch.fx's table), stablehlo, loops or c. Large weights are left out.")]
Report = Annotated[str | None, typer.Option(
    "--report", metavar="NAME", help="Print a report on the graph that a plug-in adds.")]
OneNode = Annotated[str | None, typer.Option(
    "--node", metavar="NAME", help="With --why: only this node or kernel.")]
Sizes = Annotated[list[str] | None, typer.Option(
    "--dim", metavar="NAME=SIZE", help="Print the graph with this size of an open dim, as in "
    "--stats --dim batch=1. May be repeated.")]
WhyNotFused = Annotated[tuple[str, str] | None, typer.Option(
    "--why-not-fused", metavar="A B", help="Print why nodes A and B are in different kernels. Of a "
    "build, one that was made with --keep.")]


def show(graph: Shown, stats: Stats = False, modules: Modules = False, depth: Depth = None,
         tabular: Tabular = False, category: Category = None, where: Where = False,
         full: Full = False, why: Why = False,
         node: OneNode = None, why_not_fused: WhyNotFused = None,
         entry: options.Entry = None, as_: As = None, report: Report = None,
         dim: Sizes = None, json: options.Json = False, capture: options.Capture = None) -> None:
    """Print a graph as a listing, as statistics or as a table, or why its kernels were chosen.

    The listing can be read back: `graphtool show m.graph.json | graphtool opt -`. Of a program it
    prints the memory plan, the steps and the loops, of a build what it contains; with --json these
    are printed as the JSON that they are. For --as loops and --as c, a graph that has not been
    optimised goes through the default passes first."""
    from graphtool.cli.inspect import kind_of, show_artifact
    if why or why_not_fused or node is not None:
        _show_why(graph, node, why_not_fused, json, entry, capture)
        return
    if (kind := kind_of(graph)) != "graph":
        given = {"--stats": stats, "--modules": modules, "--depth": depth is not None,
                 "--dim": dim, "--tabular": tabular, "--category": category, "--where": where,
                 "--full": full, "--as": as_, "--report": report}
        show_artifact(graph, kind, [name for name, value in given.items() if value], json, entry)
        return
    if as_ is not None:
        _show_as(as_, sources.load(graph, sources.captured(capture), True), json)
        return
    if report is not None:
        _show_report(report, sources.load(graph, sources.captured(capture), True), json)
        return
    from graphtool.ir.op import CATEGORIES
    if category not in (None, *CATEGORIES):
        raise UsageError("GT3016", f"unknown category {category!r}",
                         hint=one_of(category, CATEGORIES))
    if depth is not None and not modules:
        raise UsageError("GT3027", "--depth is for --modules", hint="give both")
    module, side, _ = sources.read(graph, sources.captured(capture), True)
    if dim:
        from graphtool.passes.specialize import specialize
        module = specialize(module, **sources.sizes(dim, module.symbols))
    if modules:
        from graphtool.report.modules import modules as count
        _show_modules(count(module, depth), json)
    elif stats or (json and not tabular):
        from graphtool.report.stats import stats as measure
        _show_stats(measure(module), json)
    elif tabular or category:
        from graphtool.report.listing import ROWS, Listing, rows
        _show_rows(Listing(rows(module, category)), ROWS, json)
    else:
        from graphtool.analysis.composites import notes
        from graphtool.ir.listing import ListingStyle, listing
        style = ListingStyle("embed", where=where, full=True) if full else ListingStyle(
            weights=relpath(side) if side else "", where=where, notes=notes(module.graph))
        terminal.lines(listing(module, style))


def _show_as(form: str, module: Any, json: bool) -> None:
    from graphtool.report.listing import FX_ROWS, FxListing, fx_rows
    from graphtool.report.texts import TEXTS
    if form != "fx":
        if form not in TEXTS:
            raise UsageError("GT3017", f"unknown format {form!r}",
                             hint=one_of(form, (*TEXTS, "fx")))
        terminal.lines(TEXTS[form](module))
        return
    _show_rows(FxListing(fx_rows(module)), FX_ROWS, json)


def _show_rows(rows: Any, columns: Any, json: bool) -> None:
    from graphtool.report.table import table
    if json:
        terminal.report(rows, True, ())
    else:
        terminal.table(table(columns, rows.rows))


def _show_report(name: str, module: Any, json: bool) -> None:
    from graphtool.report.added import REPORTS
    if name not in REPORTS:
        raise UsageError("GT3017", f"there is no report {name!r}", hint=one_of(
            name, REPORTS) if REPORTS else "plug-ins add reports: --plugin FILE.py")
    report = REPORTS[name].of(module)
    terminal.report(report, json, REPORTS[name].lines(report))


def _show_why(source: str, node: str | None, pair: tuple[str, str] | None, json: bool,
              entry: str | None, capture: str | None) -> None:
    from graphtool.report import why
    if Path(source).is_dir() and pair is None:
        from graphtool.io.manifest import read_entry
        m = read_entry(Path(source), entry)
        report = why.why_steps(m.steps, m.precision, node, threads=m.threads,
                               alone={s.kernel for s in m.steps if s.serial}, assumes=m.assumed)
    elif is_program(source) and pair is None:
        from graphtool.compile.rows import threads_of
        from graphtool.loops.program import runs
        program, _ = sources.program(source)
        report = why.why_steps(runs(program.steps), program.meta.get("precision", "default"), node,
                               threads=threads_of(program),
                               alone={k.name for k in program.kernels if k.serial},
                               assumes=program.assumes)
    else:
        module = _optimised(source, capture)
        if pair is not None:
            said = why.why_not_fused(module, *pair, _steps(source, entry))
            terminal.report(said, json, [said.reason])
            return
        report = why.why_graph(module, node)
    terminal.report(report, json, why.why_lines(report))


def _steps(source: str, entry: str | None) -> list[StepRow]:
    """The steps of a build, which its kernels are known by; of a graph none."""
    from graphtool.cli.inspect import kind_of
    from graphtool.io.manifest import read_entry
    return read_entry(Path(source), entry).steps if kind_of(source) == "build" else []


def _optimised(source: str, capture: str | None) -> Any:
    """A graph as it is; of a build the graph that it kept. A model goes through the passes
    first."""
    from graphtool import passes
    from graphtool.cli.inspect import kind_of
    if kind_of(source) == "build":
        from graphtool.report.artifacts import kept_graph
        source = str(kept_graph(Path(source)))
    module = sources.load(source, sources.captured(capture), True)
    return passes.run(module) if is_model(source) else module


def _show_stats(s: Any, json: bool) -> None:
    from graphtool.report.stats import OPS, stats_lines
    from graphtool.report.table import table
    terminal.report(s, json, stats_lines(s))
    if not json:
        terminal.lines([""])
        terminal.table(table(OPS, s.ops))


def _show_modules(counted: Any, json: bool) -> None:
    from graphtool.report.modules import ROWS, lines
    from graphtool.report.table import table
    if json:
        terminal.report(counted, True, ())
    else:
        terminal.table(table(ROWS, counted.rows))
        terminal.lines(["", *lines(counted)])


def draw(graph: options.Graph, out: options.Out = None,
         format: Annotated[str | None, typer.Option(
             "--format", help="dot, mermaid or svg. By default the suffix of -o decides.")] = None,
         constants: Annotated[bool, typer.Option(
             "--constants", help="Draw constants and parameters as nodes.")] = False,
         groups: Annotated[bool, typer.Option(
             "--groups", help="Draw one box for each fusion group.")] = False,
         capture: options.Capture = None) -> None:
    """Draw a graph as Graphviz dot, mermaid or SVG."""
    from graphtool.exporters import FORMATS, picture
    suffixes = {".dot": "dot", ".gv": "dot", ".mmd": "mermaid", ".md": "mermaid", ".svg": "svg"}
    suffix = out.suffix if out and str(out) != "-" else ""
    chosen = format or suffixes.get(suffix, suffix.removeprefix(".") or "dot")
    if chosen not in FORMATS:
        also = f"\nGraphviz makes it: graphtool draw IN --format dot | dot -T{chosen} -o {out}" \
            if chosen in ("png", "pdf", "jpg") else ""
        raise UsageError("GT3017", f"unknown format {chosen!r}",
                         hint=one_of(chosen, FORMATS, also))
    outputs.reachable(out)
    module = sources.load(graph, sources.captured(capture), True)
    saving.write(out, FORMATS[chosen](picture.picture(module, constants, groups)))


def diff(a: Annotated[str, typer.Argument(
             metavar="A",
             help="The graph, model or build before; REV:PATH is a file of a commit.")],
         b: Annotated[str, typer.Argument(
             metavar="B", help="The graph, model or build after.")],
         format: options.Format = None,
         json: options.Json = False,
         capture: options.Capture = None, watch: options.Watch = False) -> int:
    """Compare two graphs or models by structure, or two builds.

    The exit code is 1 when they differ.
    Names, the order of nodes and fusion groups are ignored. Of two builds, the kernels, what these
    move, and how both were compiled are compared."""
    from tempfile import TemporaryDirectory

    from graphtool.cli.inspect import kind_of
    from graphtool.integrations.git.drivers import at_revision
    from graphtool.report.diff import diff as compare
    from graphtool.report.diff_text import diff_outcome, text
    form = terminal.chosen_format(format, json)
    kinds = [kind_of(a), kind_of(b)]
    if kinds == ["build", "build"]:
        return _diff_builds(Path(a), Path(b), form)
    if "build" in kinds:
        other = (b, a)[kinds.index("build")]
        raise UsageError("GT3098", f"a build is compared with a build, and {other} is none",
                         hint="`graphtool check` compares what a build and a model compute")
    with TemporaryDirectory(ignore_cleanup_errors=True) as folder:  # as weights may be mapped
        paths = []
        for side, source in (("a", a), ("b", b)):
            (place := Path(folder, side)).mkdir()
            paths.append(at_revision(source, place))
        difference = compare(*(
            sources.load(s, sources.captured(sources.capture_of(s, capture)), True, said)
            for s, said in zip(paths, (a, b), strict=True)))
    terminal.tell(difference, form, lambda: text(difference, Path(a).name, Path(b).name),
                 lambda: diff_outcome(difference, a, b))
    return 0 if difference.equal else 1


def _diff_builds(a: Path, b: Path, form: str) -> int:
    from graphtool.io.manifest import read_manifest
    from graphtool.report.build_diff import build_diff, build_outcome, lines
    difference = build_diff(read_manifest(a), read_manifest(b))
    text = lines(difference, a.name, b.name)
    terminal.tell(difference, form, lambda: text,
                 lambda: build_outcome(difference, str(a), str(b), text))
    return 0 if difference.equal else 1


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
            from graphtool.io.manifest import read_entry
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
