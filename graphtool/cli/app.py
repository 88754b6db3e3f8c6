"""The typer app: the program's own options, and the verbs."""

from __future__ import annotations

from typing import Annotated

import typer

import graphtool.cli.verbs  # noqa: F401  (fills the table of verbs)
from graphtool.cli import terminal
from graphtool.cli.catalog import own_version
from graphtool.cli.group import SETTINGS, Verbs

app = typer.Typer(cls=Verbs, **SETTINGS, context_settings={"help_option_names": ["-h", "--help"]})


def _version(wanted: bool) -> None:
    if wanted:
        terminal.lines([own_version()])
        raise typer.Exit


@app.callback(invoke_without_command=True)
def main(context: typer.Context,
         version: Annotated[bool, typer.Option(
             "-V", "--version", callback=_version, is_eager=True,
             help="Print the version.")] = False,
         plugin: Annotated[list[str] | None, typer.Option(
             "--plugin", metavar="FILE", help="Load a Python file that adds ops, rules, passes, "
             "kernels, targets, importers, verbs or reports. May follow the verb, and be given "
             "several times.")] = None) -> None:
    """A compiler for machine-learning graphs: import, inspect, optimise, build, run, train.

    Every stage writes a file that the next one reads. Results go to stdout, messages to stderr.
    `graphtool help VERB` shows what a verb takes. `--plugin FILE.py`, before or after the verb,
    loads a plug-in. Exit codes: 0 fine, 1 differs or fails a check, 2 usage, 3 bad input, 4
    unsupported, 5 the C compiler failed, 70 internal error, 130 interrupted.
    """
    if context.invoked_subcommand is None:
        terminal.document(context.get_help() + "\n")
