"""why: what became of a value, through all stages."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from graphtool.cli import options, sources, terminal

if TYPE_CHECKING:
    from graphtool.ir.graph import Module

Name = Annotated[str, typer.Argument(metavar="NAME", help="A value, as `graphtool show` names it.")]
Recorded = Annotated[Path | None, typer.Option(
    "--journal", metavar="FILE", help="Read the passes from a journal that `opt --journal` wrote, "
    "instead of running them. IN is then the graph that opt was given.")]
Out = Annotated[str | None, typer.Option(
    "--optimised", metavar="GRAPH", help="With --journal: the graph that opt wrote.")]


def why(graph: options.Graph, name: Name, passes: options.Passes = None,
        journal: Recorded = None, optimised: Out = None, march: options.March = "native",
        json: options.Json = False) -> None:
    """Print the history of a value: its source line, each pass that changed it, kernel and C.

    The passes run as `build` would run them. Of a build they are not run: it tells which rules
    fired if it was made with --keep, and else its kernels and their C. Each event says which rule
    fired, what the node was and became, and the rule's class of numerics."""
    from graphtool import passes as optimiser
    from graphtool.cli.inspect import kind_of
    from graphtool.emit.c import emit
    from graphtool.errors import UsageError
    from graphtool.loops.program import runs
    from graphtool.lower import lower
    from graphtool.passes.journal import PassEvents, read_journal
    from graphtool.report.lineage import Histories, lineage_lines, steps_of
    if (journal is None) != (optimised is None):
        raise UsageError("GT3141", "--journal and --optimised belong together",
                         hint="the journal and the graph that one run of opt wrote")
    if kind_of(graph) == "build":
        if passes is not None or journal is not None:
            raise UsageError("GT3141", "--passes and --journal are for graphs, this is a build",
                             hint="a build has gone through its passes")
        _of_build(Path(graph), name, json)
        return
    module, target = _with_numbers(sources.load(graph, without=True)), sources.goal(march)
    if journal is not None and optimised is not None:
        events, last = read_journal(journal), sources.load(optimised, without=True)
    else:
        recorder = PassEvents(module)
        last = optimiser.run(module, passes, after=recorder.after, supply={"target": target},
                             texts=True)
        events = recorder.events
    program = lower(last, target)
    report = Histories(module, events, last, steps_of(runs(program.steps)), emit(program),
                       program.name).of(name)
    terminal.report(report, json, lineage_lines(report))



def _with_numbers(module: Module) -> Module:
    """The module, whose weights are made up where their file is not there: passes compute with
    them, and few rules depend on what they come to."""
    from dataclasses import replace

    import numpy as np

    from graphtool.io.weights import weight
    from graphtool.ir.graph import is_constant
    draw = np.random.default_rng(0).standard_normal
    nodes = tuple(replace(n, attrs={**n.attrs, "data": weight(
        draw(w.shape).astype(w.dtype.numpy))}) if is_constant(n) and (w := n.attrs["data"]).absent
        else n for n in module.graph.nodes)
    if nodes == module.graph.nodes:
        return module
    terminal.note("the passes run on made-up weights: a rule that looks at their numbers, such as "
                  "those for zeros and ones, may fire differently")
    return replace(module, graph=replace(module.graph, nodes=nodes))


def _of_build(folder: Path, name: str, json: bool) -> None:
    """The history of a value in a build: what its graphs, its manifest and its C say of it."""
    import graphtool.kernels  # noqa: F401  (fills the registry that the reader uses)
    from graphtool.io.manifest import read_manifest
    from graphtool.ir import serial
    from graphtool.report.artifacts import c_texts, interfaces, kept_graphs, kept_journal
    from graphtool.report.lineage import Histories, lineage_lines, of_steps, steps_of
    manifest = read_manifest(folder)
    steps = steps_of(s for one in interfaces(manifest) for s in one.steps)
    texts = c_texts(folder, manifest)
    if kept := [serial.load(p) for p in kept_graphs(folder)]:
        report = Histories(kept[0], kept_journal(folder), kept[-1], steps, texts,
                           manifest.name).of(name)
    else:
        prefixes = [one.name for one in interfaces(manifest)]
        report = of_steps(name, steps, texts, prefixes[0])
    terminal.report(report, json, lineage_lines(report))
