"""bench: compiled code against the clock, other runtimes, and what it was before."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from graphtool.cli import formats, options, sources, terminal
from graphtool.cli.running import Build
from graphtool.cli.tuning import warn_of_load
from graphtool.errors import UsageError, listed

Vs = Annotated[str | None, typer.Option(
    "--vs", help="Another runtime to time alternately: onnxruntime.")]
Rival = Annotated[Path | None, typer.Option("--model", help="The .onnx file for --vs.")]
Seconds = Annotated[float, typer.Option(
    "--seconds", min=0.0, help="How many seconds to time each runtime.")]
Save = Annotated[Path | None, typer.Option(
    "--save", metavar="FILE", help="Keep the times in a file, for --compare. A file that has times "
    "gets these too: then it is known how much runs differ.")]
Compare = Annotated[Path | None, typer.Option(
    "--compare", metavar="BASE", help="A file that --save wrote, or a build directory, which runs "
    "in turns with this one: that is more exact.")]
Allowed = Annotated[str, typer.Option(
    "--fail-slower", metavar="SHARE", help="With --compare: how much slower the build may be.")]


def bench(build: Build, inputs: options.Inputs = None, input: options.Input = None,
          seed: options.Seed = 0, dim: options.Dim = None, threads: options.Threads = None,
          vs: Vs = None, model: Rival = None, seconds: Seconds = 2.0, save: Save = None,
          compare: Compare = None, fail_slower: Allowed = "5%", entry: options.Entry = None,
          format: options.Format = None, json: options.Json = False) -> int:
    """Time compiled code, alone, against onnxruntime, or against what it was before.

    With --compare, the exit code is 1 if it is slower for certain, and by more than --fail-slower.
    """
    from graphtool.native import runtime
    from graphtool.report import bench as report
    from graphtool.verify.sides import build_inputs
    form, allowed = formats.chosen(format, json), report.share(fail_slower)
    if vs is not None and compare is not None:
        raise UsageError("GT3137", "--vs and --compare contradict each other",
                         hint="give one of them")
    ours = runtime.load(build, threads, entry=entry)
    sizes = sources.sizes(dim, [d.name for d in ours.manifest.dims])
    arrays = sources.arrays([p.name for p in ours.inputs], inputs, input,
                            lambda: build_inputs(ours, seed, sizes))
    outputs = ours.run(arrays)
    new = report.fresh(ours.manifest.name, ours.threads, ours.sizes)
    before = None
    if compare is not None and not compare.is_dir():  # faults of files are told before the timing
        before = report.to_compare(compare, new)
        if before.name != new.name:
            terminal.note(f"{compare} has the times of {before.name}, this build is {new.name}")
    kept = report.to_save(save, new) if save is not None else None
    contestants: dict[str, Callable[[], object]] = {
        "graphtool": lambda: ours.run(arrays, out=outputs)}
    if vs is not None:
        contestants[vs] = _rival(vs, model, arrays, ours.threads)
    if compare is not None and compare.is_dir():
        contestants[str(compare)] = _before(compare, arrays, ours.threads, entry)
    if save is not None or compare is not None:
        warn_of_load(ours.threads)
    times = report.race(contestants, seconds,
                        report.CALLS if save is not None or compare is not None else report.MOST)
    found = report.compared(ours.threads, times)
    if compare is not None and before is not None:
        found.compared = report.against_base(before, compare, times["graphtool"], allowed)
    elif compare is not None and found.ratio is not None:
        found.compared = report.in_turns(str(compare), times[str(compare)], times["graphtool"],
                                         found.ratio, found.low, found.high, allowed)
        found.ratio = None
    if save is not None and kept is not None:
        runs = report.save(kept, save, times["graphtool"])
        terminal.note(f"{save}: {runs} run{'s' if runs > 1 else ''}")
    formats.tell(found, form, lambda: report.bench_lines(found),
                 lambda: report.bench_outcome(found, str(build)))
    return 1 if found.compared is not None and found.compared.failed else 0


def _before(folder: Path, arrays: dict[str, Any], threads: int,
            entry: str | None) -> Callable[[], object]:
    """Calls of another build on the same inputs. Raises UsageError GT3138 if it takes others."""
    from graphtool.native import runtime
    from graphtool.verify.sides import by_position
    model = runtime.load(folder, threads, entry=entry)
    names = tuple(p.name for p in model.inputs)
    given = by_position(arrays, tuple(arrays), names)
    if set(given) != set(names):
        raise UsageError("GT3138", f"{folder} takes other inputs: {', '.join(names)}",
                         hint=f"this build takes {listed(arrays)}")
    outputs = model.run(given)
    return lambda: model.run(given, out=outputs)


def _rival(vs: str, model: Path | None, arrays: dict[str, Any],
           threads: int) -> Callable[[], object]:
    from importlib.util import find_spec

    from graphtool.io import release
    from graphtool.verify.session import onnx_session
    if vs != "onnxruntime":
        raise UsageError("GT3031", f"unknown rival {vs!r}", hint="onnxruntime")
    if model is None:
        raise UsageError("GT3032", "--vs onnxruntime needs the model",
                         hint="--model model.onnx")
    if not find_spec("onnxruntime"):
        raise UsageError("GT3033", "onnxruntime is not installed",
                         hint=release.install("onnxruntime"))
    session = onnx_session(model, threads)
    names = [i.name for i in session.get_inputs()]
    given = dict(zip(names, arrays.values(), strict=False)) if set(names) != set(
        arrays) else arrays
    return lambda: session.run(None, given)
