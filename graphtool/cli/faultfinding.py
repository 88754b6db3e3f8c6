"""reduce: a small graph out of a large one that shows the same fault."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from graphtool.cli import options, sources, terminal
from graphtool.errors import UsageError

Small = Annotated[Path, typer.Option(
    "-o", "--out", help="The small graph. Its inputs are written to an .npz file beside it.")]
Compiled = Annotated[bool, typer.Option(
    "--compiled", help="The fault: compiled code computes something else than the evaluator.")]
Command = Annotated[str | None, typer.Option(
    "--command", help="The fault: this command fails (any exit code but 0). {graph} and {inputs} "
    "stand for the files.")]
Tries = Annotated[int, typer.Option("--tries", min=1, help="Try at most this many graphs.")]


def reduce(graph: options.Graph, out: Small, passes: options.Passes = None,
           compiled: Compiled = False, command: Command = None, inputs: options.Inputs = None,
           input: options.Input = None, seed: options.Seed = 0, dim: options.Dim = None,
           atol: options.Atol = None, rtol: options.Rtol = 1e-4, tries: Tries = 1000,
           capture: options.Capture = None) -> int:
    """Make a graph that shows a fault as small as possible.

    By default the fault is that the passes fail, or change what the graph computes."""
    from graphtool.cli.transform import module_inputs
    from graphtool.io import files, npz
    from graphtool.target import detect
    from graphtool.verify.reducer import Reducer
    from graphtool.verify.reduction_criteria import command_fails, compiled_differs, passes_change
    if command is not None and (compiled or passes is not None):
        raise UsageError("GT3025", "--command cannot be combined with --compiled or --passes",
                         hint="give one of them")
    module, _, text = sources.read(graph, sources.captured(capture))
    arrays = module_inputs(module, inputs, input, True, seed, dim)
    fault = command_fails(command) if command is not None else (
        compiled_differs if compiled else passes_change)(passes, detect(), atol, rtol)
    if not fault(module, arrays):
        terminal.note("the graph shows no such fault on these inputs")
        return 1
    reducer = Reducer(module, arrays, fault, tries=tries, tell=lambda tried, nodes: terminal.note(
        f"  {nodes} nodes left, after {tried} tries"))
    whole = reducer.size(reducer.best)
    small, held = reducer.run()
    sources.save(small, out, text)
    beside = files.beside(out, ".npz")
    npz.save(held, beside)
    terminal.note(f"{reducer.size(reducer.best)} of {whole} nodes show it: {out}, "
                  f"inputs in {beside}")
    return 0
