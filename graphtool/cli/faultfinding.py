"""reduce, repro, debug: a small graph that shows the same fault as a large one, a fault in plain
C, and a graph step by step.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from graphtool.cli import options, saving, sources, terminal
from graphtool.compile.source import is_stdin
from graphtool.errors import UsageError, one_of

if TYPE_CHECKING:
    from graphtool.ir.graph import Module
    from graphtool.kernels.choice.rules import Rules
    from graphtool.target import Target
    from graphtool.verify.sides import Side

Small = Annotated[Path, typer.Option(
    "-o", "--out", help="The small graph. Its inputs are written to an .npz file beside it.")]
Compiled = Annotated[bool, typer.Option(
    "--compiled", help="The fault: compiled code computes something else than the evaluator.")]
Command = Annotated[str | None, typer.Option(
    "--command", help="The fault: this command fails (any exit code but 0). {graph} and {inputs} "
    "stand for the files.")]
ReproDir = Annotated[Path | None, typer.Option(
    "--repro", metavar="DIR", help="Also write a directory that shows the fault with nothing but a "
    "C compiler.")]
Tries = Annotated[int, typer.Option("--tries", min=1, help="Try at most this many graphs.")]
Runner = Annotated[str, typer.Option(
    "--with", metavar="SIDE", help="evaluator: each value of the graph. c: each kernel's result, "
    "of the C that the graph becomes.")]
Commands = Annotated[str | None, typer.Option(
    "--commands", metavar="TEXT", help="Commands, separated by semicolons; without them they are "
    "read from stdin. `help` lists them.")]
_SIDES = ("evaluator", "c")


def reduce(graph: options.Graph, out: Small, passes: options.Passes = None,
           compiled: Compiled = False, command: Command = None, inputs: options.Inputs = None,
           input: options.Input = None, seed: options.Seed = 0, dim: options.Dim = None,
           atol: options.Atol = None, rtol: options.Rtol = 1e-4, tries: Tries = 1000,
           capture: options.Capture = None, repro: ReproDir = None) -> int:
    """Make a graph that shows a fault as small as possible.

    By default the fault is that the passes fail, or change what the graph computes."""
    from graphtool.cli.transform import module_inputs
    from graphtool.io import files, npz
    from graphtool.target import detect
    from graphtool.verify.reducer import Reducer, command_fails, compiled_differs, passes_change
    if command is not None and (compiled or passes is not None):
        raise UsageError("GT3025", "--command cannot be combined with --compiled or --passes",
                         hint="give one of them")
    if command is not None and "{graph}" not in command:
        raise UsageError("GT3025", "--command has no {graph}, the place of the file to try",
                         hint="as in --command 'my-tool {graph} {inputs}'")
    module, _, text = sources.read(graph, sources.captured(capture))
    arrays = module_inputs(module, inputs, input, True, seed, dim)
    fault = command_fails(command) if command is not None else (
        compiled_differs if compiled else passes_change)(passes, detect(), atol, rtol)
    if not fault(module, arrays):
        terminal.note("the graph shows no such fault on these inputs: " + (
            "the command succeeds" if command is not None else "compiled code computes the same"
            if compiled else "the passes change nothing; --compiled looks at compiled code")
            + "; --seed N tries other inputs")
        return 1
    reducer = Reducer(module, arrays, fault, tries=tries, tell=lambda tried, nodes: terminal.note(
        f"  {nodes} node{'s' * (nodes != 1)} left, after {tried} "
        f"{'try' if tried == 1 else 'tries'}"))
    whole = reducer.size(reducer.best)
    small, held = reducer.run()
    saving.save(small, out, graph, "reduced", text)
    beside = files.next_to(out, ".npz")
    npz.save(held, beside)
    terminal.note(f"{reducer.size(reducer.best)} of {whole} nodes show it: {out}, "
                  f"inputs in {beside}")
    if repro is not None:
        leave_repro(small, held, repro, passes, atol, rtol)
    return 0


def repro(graph: options.Graph, out: Annotated[Path, typer.Option(
        "-o", "--out", help="The directory to write.")], passes: options.Passes = None,
          inputs: options.Inputs = None, input: options.Input = None, seed: options.Seed = 0,
          dim: options.Dim = None, march: options.March = "native",
          precision: options.Precision = "default", atol: options.Atol = None,
          rtol: options.Rtol = 1e-4, json: options.Json = False) -> None:
    """Write a directory that shows a wrong result with nothing but a C compiler.

    It has the C of the graph, inputs, what the evaluator computes from them, a main program that
    compares the result of each kernel and names the first that differs, and a Makefile. Without
    inputs, random ones are made."""
    from graphtool.cli.transform import module_inputs
    from graphtool.verify.repro import repro_lines, write_repro
    module = sources.load(graph)
    arrays = module_inputs(module, inputs, input, True, seed, dim)
    folder = write_repro(module, arrays, out, sources.goal(march), pipeline=passes,
                         rules=sources.rules(precision, "generated", None, "finite"), atol=atol,
                         rtol=rtol)
    terminal.report(folder, json, repro_lines(folder))


def leave_repro_of(a: tuple[str, Side], b: tuple[str, Side], arrays: Mapping[str, Any], out: Path,
                   capture: str | None, atol: float | None, rtol: float) -> None:
    """Write a repro of two sides that differ, with the inputs of the first one.

    The C is that of the second side, and the first one says what is expected. A build is never
    expected, and has no graph: then both are those of the other side, compiled as the build was."""
    from graphtool.target import TABLE, detect, named
    from graphtool.verify.sides import by_position
    builds = [side for _, side in (a, b) if side.manifest is not None]
    if len(builds) == 2:
        terminal.note("no repro: neither side is a graph or a model")
        return
    source, side = a if b[1].manifest is not None else b
    reference = side if builds else a[1]
    module = side.module or side.captured or sources.load(source, sources.captured(
        sources.capture_of(source, capture)))
    target, rules = detect(), None
    if builds and (built := builds[0].manifest):
        target = named(built.target) if built.target in TABLE else target
        rules = sources.rules(built.precision, "generated", None, "finite")
    leave_repro(module, by_position(arrays, a[1].inputs, side.inputs), out, None, atol, rtol,
                reference.run(by_position(arrays, a[1].inputs, reference.inputs)), target, rules)


def leave_repro(module: Module, arrays: Mapping[str, Any], out: Path, passes: str | None,
                atol: float | None, rtol: float, expected: Mapping[str, Any] | None = None,
                target: Target | None = None, rules: Rules | None = None) -> None:
    """Write a repro of a fault that another verb has found; a note says where it is, or why there
    is none. `expected` are the model's outputs if another side computes them, by name or in
    order."""
    from graphtool.errors import UnsupportedError
    from graphtool.target import detect
    from graphtool.verify.repro import repro_lines, write_repro
    if expected is not None and len(expected) < len(module.output_names):
        expected = None  # torch has no state of random numbers
    elif expected is not None and expected.keys() >= set(module.output_names):
        expected = {name: expected[name] for name in module.output_names}
    try:
        folder = write_repro(module, arrays, out, target or detect(), pipeline=passes, rules=rules,
                             expected=expected, atol=atol, rtol=rtol)
    except UnsupportedError as error:
        terminal.note(*str(error).split("\n"))
        return
    for line in repro_lines(folder):
        terminal.note(line)


def debug(graph: options.Graph, with_: Runner = "evaluator", commands: Commands = None,
          inputs: options.Inputs = None, input: options.Input = None, seed: options.Seed = 0,
          dim: options.Dim = None, march: options.March = "native",
          precision: options.Precision = "default", capture: options.Capture = None) -> int:
    """Stop at a node, print its value, step, go on: in the evaluator, or in C.

    Commands: break NAME, break --nan, run, next, continue, print NAME[0,:4], stats, where, list,
    values, help, quit. Without inputs, random ones are made. In C a value inside a kernel does
    not exist; the result of every kernel does. The exit code is that of the error if the run
    fails, and 2 for a bad command unless a person types it."""
    from graphtool.cli.transform import module_inputs
    from graphtool.verify.debug_subjects import compiled, evaluated
    from graphtool.verify.debugger import Debugger, commands_of
    if with_ not in _SIDES:
        raise UsageError("GT3163", f"--with {with_!r}: no such side", hint=one_of(with_, _SIDES))
    if commands is None and is_stdin(graph):
        raise UsageError("GT3163", "the graph and the commands cannot both come from stdin",
                         hint="give --commands")
    module = sources.load(graph, sources.captured(capture))
    arrays = module_inputs(module, inputs, input, True, seed, dim)
    subject = evaluated(module, arrays) if with_ == "evaluator" else compiled(
        module, arrays, sources.goal(march), sources.rules(precision, "generated", None, "finite"))
    talks = commands is None and sys.stdin.isatty()
    if talks:
        terminal.note(f"{len(subject.rows)} values in {'C' if with_ == 'c' else 'the evaluator'}; "
                      "help lists the commands")
    lines = commands_of(commands) if commands is not None else _typed() if talks else (
        c for line in sys.stdin for c in commands_of(line))
    return Debugger(subject, lines, lambda *rows: terminal.lines(rows), not talks).session()


def _typed() -> Iterator[str]:
    """The lines that a person types, with the terminal's editing and history, until Ctrl-D."""
    import importlib.util
    if importlib.util.find_spec("readline"):
        import readline  # noqa: F401  (input() then edits lines)
    while True:
        try:
            yield input("(graphtool) ")
        except EOFError:
            terminal.lines([""])
            return
