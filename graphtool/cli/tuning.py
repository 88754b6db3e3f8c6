"""tune and machine: which kernel is fastest here, and how fast this machine is.

`tune` measures kernels and keeps the results for later builds; `machine` prints the row by which
kernels are chosen.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from graphtool.cli import options, sources, terminal
from graphtool.cli.processors import warn_of_load
from graphtool.compile.options import Choosing
from graphtool.compile.source import is_program
from graphtool.errors import InputError, UsageError

if TYPE_CHECKING:
    from graphtool.io.manifest_rows import Choice
    from graphtool.target import Target

_UNITS = {"": 1, "s": 1, "m": 60, "h": 3600}


Source = Annotated[str | None, typer.Argument(
    metavar="IN", help="A build directory, program, graph or model. Not needed with --check.")]
File = Annotated[Path | None, typer.Option(
    "-o", "--out", help="The tuning file (JSON lines). Results are added to it.")]
Check = Annotated[Path | None, typer.Option(
    "--check", metavar="FILE", help="Measure the choices in FILE again. The exit code is 1 if one "
    "is no longer the fastest.")]
Budget = Annotated[str | None, typer.Option(
    "--budget", metavar="TIME", help="Begin no layer after this time, for example 60s or 2m. By "
    "default all layers are measured.")]
March = Annotated[str, typer.Option(
    "--march", "--target", help="The processor or GPU to choose kernels for; this machine must be "
    "able to run them.")]
Seconds = Annotated[float, typer.Option(
    "--seconds", min=0.01, help="Seconds of timing for the kernels of one layer.")]
RowFile = Annotated[Path | None, typer.Option(
    "-o", "--out", metavar="FILE.json", help="Write the measured row to this file; --machine of "
    "build, tune and opt takes it.")]
Known = Annotated[bool, typer.Option("--list", help="Print the table of known machines.")]
Called = Annotated[str, typer.Option("--name", help="The name of the measured row.")]


def tune(source: Source = None, out: File = None, check: Check = None, budget: Budget = None,
         threads: options.Threads = None, march: March = "native",
         precision: options.Precision = "default", kernels: options.Kernels = "generated",
         assume: options.Assume = "finite", machine: options.Machine = None,
         seconds: Seconds = 0.3, cc: options.Cc = None, format: options.Format = None,
         json: options.Json = False) -> int:
    """Measure on this machine which kernel is the fastest for each layer.

    `build --tuning FILE` then uses the fastest. The file is written after each layer."""
    from dataclasses import replace

    from graphtool.kernels.choice.tuning import Tuning, save
    from graphtool.target import named
    from graphtool.tune import search
    if (source is None) == (check is None):
        raise UsageError("GT3001", "tune takes an artifact, or --check and a tuning file",
                         hint="as in graphtool tune build -o m.tuning, or graphtool tune --check "
                              "m.tuning")
    until, form = _seconds(budget), terminal.chosen_format(format, json)
    path = check or out
    known = sources.tuning_of(path) if path is not None and (check or path.exists()) else Tuning()
    target = Choosing(machine=machine).on_machine(named(march, threads or 0))
    rules = replace(sources.rules(precision, kernels, None, assume),
                    tuning=known if check else Tuning())
    how = search.Search(target, rules, seconds, cc)
    _device_for(target)
    warn_of_load(target.threads)
    if path is None:
        terminal.note("nothing is kept: -o FILE.tuning writes what is measured")
    if source is None:
        names = [str(site) for site in search.due(known, how)]
        results = list(terminal.progress(search.check(known, how), names))
        report = search.TuneReport(target.threads, results, [], not any(t.refuted for t in results))
    else:
        todo = search.sites(_records(source, target), how)
        if not todo:
            raise InputError("GT3091", "nothing here has alternatives to measure", where=source)
        measured = search.tune(todo, how, until,
                               lambda t: save(t, path) if path else None, known)
        results = _measured(measured, [str(s) for s in todo], budget or "", path)
        done = {t.site for t in results}
        report = search.TuneReport(target.threads, results,
                                   [str(s) for s in todo if str(s) not in done], True)
    _tell(report, form, str(source or path))
    if out is not None and form == "text":
        terminal.note(f"written to {out}: `graphtool build MODEL -o build --tuning {out}` uses it")
    return 0 if report.ok else 1


def _device_for(target: Target) -> None:
    """Raises InputError GT2232 where kernels of a device would be measured and there is none."""
    if not target.grid:
        return
    from graphtool.native import cards, opencl
    if target.devices:
        driver = cards.driver()
        there, needs = driver is not None and bool(driver.cards), cards.NEEDS
    else:
        there, needs = bool(opencl.cards()), opencl.NEEDS
    if not there:
        raise InputError("GT2232", f"there is no device to measure kernels of {target.march} on",
                         hint=needs)


def _measured(layers: Iterator[Any], names: list[str], budget: str, path: Path | None) -> list[Any]:
    try:
        return list(terminal.progress(layers, names, budget))
    except KeyboardInterrupt:
        if path is not None:
            terminal.note(f"interrupted: {path} contains what was measured")
        raise


def _tell(report: Any, form: str, subject: str) -> None:
    from graphtool.report.table import table
    from graphtool.report.tuned import SITES, stale_line, tune_outcome
    from graphtool.tune import search
    if form == "text":
        terminal.table(table(SITES, report.sites))
    terminal.tell(report, form, lambda: search.tune_lines(report),
                 lambda: tune_outcome(report, subject))
    if form == "text" and not report.ok:
        terminal.lines([f"no longer the best: {t.site}: {stale_line(t)}"
                        for t in report.sites if t.refuted])


def _seconds(budget: str | None) -> float | None:
    if budget is None:
        return None
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([smh]?)", budget)
    if match is None:
        raise UsageError("GT3092", f"--budget {budget!r} is not a time", hint="as in 60s or 2m")
    return float(match[1]) * _UNITS[match[2]]


def _records(source: str, target: Target) -> Sequence[Choice | None]:
    """The choices that an artifact records; a model goes through the passes first."""
    if Path(source).is_dir():
        from graphtool.io.manifest import read_manifest
        m = read_manifest(Path(source))
        steps = [m.steps, *(row.steps for row in m.entries.values())]
        return [s.choice for s in chain(*steps)]
    if is_program(source):
        from graphtool.loops.program import runs
        return [s.choice for s in runs(sources.program(source)[0].steps)]
    from graphtool.tune.search import records
    return records(sources.load(source), target)


def machine(out: RowFile = None, name: Called = "here", list_: Known = False, cc: options.Cc = None,
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
    warn_of_load(cores())
    here = report.measured(name, cc)
    if out is not None:
        files.write_bytes(out, (here.line() + "\n").encode())
        terminal.note(f"written to {out}: `graphtool build MODEL -o build --machine {out}` uses it")
    if json:
        terminal.lines([here.line()])
        return
    known = report.against(detect())
    terminal.lines([f"{here.title} ({', '.join(here.cpus) or 'unknown'})",
                    f"kernels are chosen by the row {known.name}: {known.source}", ""])
    terminal.table(report.compared(known, here))
