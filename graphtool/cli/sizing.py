"""size: the flash, RAM and stack of a model, as a table, as a picture, and as a gate."""

from __future__ import annotations

from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from graphtool.cli import options, sources, terminal
from graphtool.compile.options import Build, Importing, LoweringOptions
from graphtool.errors import UsageError

if TYPE_CHECKING:
    from graphtool.report.size import MemoryLimits, SizeReport

Measured = Annotated[str, typer.Argument(
    metavar="MODEL|BUILD", help="A graph, a program, a model to import, or a build that was made "
    "with --keep.")]
MaxFlash = Annotated[str | None, typer.Option(
    "--max-flash", metavar="BYTES", help="The most bytes of code, constants and weights, as 256K: "
    "K, M and G count 1024, as linkers do.")]
MaxRam = Annotated[str | None, typer.Option(
    "--max-ram", metavar="BYTES", help="The most bytes of the arena, the inputs, the outputs and "
    "static data together, as 64K.")]
MaxStack = Annotated[str | None, typer.Option(
    "--max-stack", metavar="BYTES", help="The most bytes of stack of a call, as 2K.")]


def size(source: Measured, how: LoweringOptions, importing: Importing, cc: options.Cc = None,
         dim: options.Dim = None, max_flash: MaxFlash = None, max_ram: MaxRam = None,
         max_stack: MaxStack = None, json: options.Json = False) -> int:
    """Print the flash, RAM and stack that a model takes, in all and for each kernel.

    The C is compiled for one thread, not linked: what the C library and the compiler's runtime add
    is not counted. The stack is that of the whole call, from the graph of calls that gcc writes.
    The exit code is 1 if --max-flash, --max-ram or --max-stack is not kept."""
    from graphtool.report.size import COLUMNS, MemoryLimits, broken, byte_count, lines, picture
    from graphtool.report.table import table
    limits = MemoryLimits(byte_count("--max-flash", max_flash), byte_count("--max-ram", max_ram),
                          byte_count("--max-stack", max_stack))
    report = _measured(source, how, importing, cc, dim, limits)
    if not json:
        terminal.table(table(COLUMNS, report.kernels))
        terminal.lines(["", *picture(report), ""])
    terminal.report(report, json, lines(report))
    terminal.note(*broken(report))
    return 0 if report.met else 1


def _measured(source: str, how: LoweringOptions, importing: Importing, cc: str | None,
              dim: list[str] | None, limits: MemoryLimits) -> SizeReport:
    from graphtool.compile.source import source_of
    from graphtool.compile.unit import check, unit_of
    from graphtool.emit.names import c_name
    from graphtool.report import size as report
    how = sources.noted(how)
    build = Build(**{f.name: getattr(how, f.name) for f in fields(how)}, cc=cc, threads_by="none")
    if Path(source).is_dir():
        source, build = _kept(Path(source), build)
    name = build.name or c_name(source)
    check(build, name)
    found = sources.warned(source_of(source, importing))
    unit = unit_of(found, build, build.name or (found.program.name if found.program else name))
    return report.measured(unit, build, sources.sizes(dim), limits)


def _kept(folder: Path, how: Build) -> tuple[str, Build]:
    """The program that a build has kept, and options that say what it was built for."""
    from graphtool.io.manifest import read_manifest
    known = read_manifest(folder)
    programs = sorted(folder.glob("stages/*.program.json"))
    if not programs:
        raise UsageError("GT3058", "the build has not kept its program", where=str(folder),
                         hint="build it with --keep, or name the model")
    return str(programs[-1]), replace(how, target=known.target or "native")
