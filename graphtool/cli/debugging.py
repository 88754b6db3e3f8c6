"""debug: a graph step by step, with its values, in the evaluator or in C."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Annotated

import typer

from graphtool.cli import options, sources, terminal
from graphtool.compile.source import is_stdin
from graphtool.errors import UsageError, one_of

Side = Annotated[str, typer.Option(
    "--with", metavar="SIDE", help="evaluator: each value of the graph. c: each kernel's result, "
    "of the C that the graph becomes.")]
Commands = Annotated[str | None, typer.Option(
    "--commands", metavar="TEXT", help="Commands, separated by semicolons; without them they are "
    "read from stdin. `help` lists them.")]
_SIDES = ("evaluator", "c")


def debug(graph: options.Graph, with_: Side = "evaluator", commands: Commands = None,
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
