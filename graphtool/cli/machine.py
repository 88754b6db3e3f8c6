"""machine: how fast this machine is, beside the row by which kernels are chosen for it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

import typer

from graphtool.cli import options, terminal
from graphtool.errors import UsageError

File = Annotated[Path | None, typer.Option(
    "-o", "--out", metavar="FILE.json", help="Write the measured row to this file; --machine of "
    "build, tune and opt takes it.")]
Known = Annotated[bool, typer.Option("--list", help="Print the table of known machines.")]
Called = Annotated[str, typer.Option("--name", help="The name of the measured row.")]


def machine(out: File = None, name: Called = "here", list_: Known = False, cc: options.Cc = None,
            json: options.Json = False) -> None:
    """Measure in seconds how fast this machine computes and reads, and compare it with its row.

    Kernels are chosen by such rows; a build never measures anything by itself."""
    from graphtool import machines
    from graphtool.io import files
    from graphtool.machines import cores
    from graphtool.report import machine as report
    from graphtool.report.table import table
    from graphtool.target import detect
    if list_:
        if json or out:
            raise UsageError("GT3001", "--list prints the table, and measures nothing")
        terminal.table(table(report.MACHINES, machines.table().values()))
        return
    if out is not None and out.suffix != ".json":
        raise UsageError("GT2103", f"{out}: the name of a file of a row ends in .json",
                         hint=f"-o {out}.json")
    if not re.fullmatch(machines.NAME, name):
        raise UsageError("GT2103", f"a row cannot be called {name!r}",
                         hint="letters, digits, - and .")
    from graphtool.cli.tuning import warn_of_load
    warn_of_load(cores())
    here = report.measured(name, cc)
    if out is not None:
        files.write_bytes(out, (here.line() + "\n").encode())
    if json:
        terminal.lines([here.line()])
        return
    known = report.against(detect())
    terminal.lines([f"{here.title} ({', '.join(here.cpus) or 'unknown'})",
                    f"kernels are chosen by the row {known.name}: {known.source}", ""])
    terminal.table(report.compared(known, here))
