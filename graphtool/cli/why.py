"""why: what became of a value, through all stages."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from graphtool.cli import options, sources, terminal

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

    The passes run as `build` would run them. Each event says which rule fired, what the node was
    and became, and the rule's class of numerics."""
    from graphtool import passes as optimiser
    from graphtool.emit.c import emit
    from graphtool.errors import UsageError
    from graphtool.loops.program import runs
    from graphtool.lower import lower
    from graphtool.report.journal import Recorder, read_journal
    from graphtool.report.lineage import lineage, lineage_lines
    from graphtool.target import named
    if (journal is None) != (optimised is None):
        raise UsageError("GT3141", "--journal and --optimised belong together",
                         hint="the journal and the graph that one run of opt wrote")
    module, target = sources.load(graph), named(march)
    if journal is not None and optimised is not None:
        events, last = read_journal(journal), sources.load(optimised)
    else:
        recorder = Recorder(module)
        last = optimiser.run(module, passes, after=recorder.after, supply={"target": target},
                             texts=True)
        events = recorder.events
    program = lower(last, target)
    steps = [(r.kernel, r.label, next(iter(r.choice.us)) if r.choice else "")
             for r in runs(program.steps)]
    found = lineage(name, module, events, last, steps, emit(program), program.name)
    terminal.report(found, json, lineage_lines(found))
