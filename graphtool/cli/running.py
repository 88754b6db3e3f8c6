"""run, check, profile, bench: compiled code on inputs, against others, kernel by kernel, against
the clock.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from graphtool.cli import options, sources, terminal
from graphtool.cli.faultfinding import ReproDir, leave_repro_of
from graphtool.cli.processors import note_of_threads, warn_of_load
from graphtool.compile.source import is_stdin
from graphtool.errors import UsageError, listed

Build = Annotated[Path, typer.Argument(metavar="BUILD", help="A build directory.")]
Verify = Annotated[bool, typer.Option(
    "--verify", help="Check the library and the weights against their hashes first.")]
Steps = Annotated[int | None, typer.Option(
    "--steps", metavar="AXIS", help="The inputs go on along this axis: run each part of them, "
    "with the state that the part before left. A state that is not given is zeros.")]
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


def run(build: Build, out: options.Out = None, inputs: options.Inputs = None,
        input: options.Input = None, random: options.Random = False, seed: options.Seed = 0,
        dim: options.Dim = None, threads: options.Threads = None,
        verify: Verify = False, entry: options.Entry = None, steps: Steps = None) -> int:
    """Run compiled code on inputs.

    The outputs are written to an .npz file, or printed in short. The exit code is 1 if the program
    itself states what it expects, and this is not so."""
    from graphtool.cli.transform import judged
    from graphtool.native import runtime
    from graphtool.native.stepping import over
    from graphtool.verify.sides import build_inputs
    model = runtime.load(build, threads, verify, entry=entry)
    note_of_threads(model.manifest, threads)
    sizes = sources.sizes(dim, [d.name for d in model.manifest.dims])
    arrays = sources.arrays([p.name for p in model.inputs], inputs, input,
                            (lambda: build_inputs(model, seed, sizes)) if random else None)
    if model.manifest.training is not None:
        terminal.note("this is a training step: `graphtool train` runs it over data")
    return judged(dict(model.run(arrays) if steps is None else over(model, arrays, steps)), out)


def check(a: Annotated[str, typer.Argument(
        metavar="A", help="The reference: a graph, a program, a build directory, an ONNX model or "
        "a torch source; - for a graph or an ONNX model from stdin (DIR/-: a graph's weights are "
        "in DIR).")],
          b: Annotated[str, typer.Argument(
              metavar="B", help="The artifact to compare with it, of the same kinds.")],
          inputs: options.Inputs = None, input: options.Input = None, seed: options.Seed = 0,
          dim: options.Dim = None, atol: options.Atol = None, rtol: options.Rtol = 1e-4,
          divergence: Annotated[bool, typer.Option(
              "--divergence", help="Compare intermediate values of two graphs, and name the first "
              "that differs.")] = False,
          entry: options.Entry = None, capture: options.Capture = None,
          repro: ReproDir = None, format: options.Format = None,
          json: options.Json = False) -> int:
    """Compare what two artifacts or models compute. The exit code is 1 if they differ.

    Without inputs, random ones are made."""
    from graphtool.verify import sides
    from graphtool.verify.check import check as compare
    from graphtool.verify.check import check_lines, check_outcome
    form = terminal.chosen_format(format, json)
    if is_stdin(a) and is_stdin(b):
        raise UsageError("GT3014", "stdin is given twice", hint="write one graph to a file")
    names = a, b
    a, b = map(sources.spooled, names)
    given = bool(inputs or input)
    left, right = sides.open_pair(
        a, b, entry, (sources.capture_of(a, capture), sources.capture_of(b, capture)),
        (lambda side: sources.arrays(side.inputs, inputs, input, None)) if given else None)
    sizes = sources.sizes(dim)
    arrays = sources.arrays(left.inputs, inputs, input, None if given else (
        lambda: sides.made_up((a, b), (left, right), seed, sizes)))
    report_ = compare(left, right, arrays, atol, rtol, divergence)
    terminal.tell(report_, form, lambda: check_lines(report_, *names),
                  lambda: check_outcome(report_, *names))
    if repro is not None and not report_.ok:
        leave_repro_of((a, left), (b, right), arrays, repro, capture, atol, rtol)
    return 0 if report_.ok else 1


def profile(build: Build, inputs: options.Inputs = None, input: options.Input = None,
            seed: options.Seed = 0, dim: options.Dim = None, threads: options.Threads = None,
            trace: Annotated[Path | None, typer.Option(
                "--trace",
                help="Write a Chrome trace of one run, for example for Perfetto.")] = None,
            runs: Annotated[int, typer.Option("--runs", min=1, help="The number of runs.")] = 30,
            most: Annotated[int, typer.Option(
                "-n", "--most", min=1, help="Print at most this many rows.")] = 25,
            entry: options.Entry = None, json: options.Json = False) -> None:
    """Time each kernel of a build on each thread, and compare it with the limits of the machine.

    A copy of the build with clocks in it is compiled and run. For a training build, the training
    step is run from the initial state."""
    from graphtool.io import files
    from graphtool.native import runtime
    from graphtool.report import profile as report
    from graphtool.verify.sides import build_inputs, training_state
    model = runtime.load(build, threads, entry=entry)
    sizes = sources.sizes(dim, [d.name for d in model.manifest.dims])
    state = training_state(build)
    arrays = sources.arrays([p.name for p in model.inputs if p.name not in state], inputs, input,
                            lambda: build_inputs(model, seed, sizes) | state)
    measured, marks = report.profile(build, arrays, threads, runs, entry)
    if trace is not None:
        files.write_bytes(trace, report.trace(measured, marks).encode())
    terminal.report(measured, json, report.profile_lines(measured))
    if not json:
        terminal.table(report.profile_table(measured, most))


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
    form, allowed = terminal.chosen_format(format, json), report.share(fail_slower)
    if vs is not None and compare is not None:
        raise UsageError("GT3137", "--vs and --compare contradict each other",
                         hint="give one of them")
    ours = runtime.load(build, threads, entry=entry)
    note_of_threads(ours.manifest, threads)
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
    times_ = report.compared(ours.threads, times)
    if compare is not None and before is not None:
        times_.compared = report.against_base(before, compare, times["graphtool"], allowed)
    elif compare is not None and times_.ratio is not None:
        times_.compared = report.in_turns(str(compare), times[str(compare)], times["graphtool"],
                                          times_.ratio, times_.low, times_.high, allowed)
        times_.ratio = None
    if save is not None and kept is not None:
        runs = report.save(kept, save, times["graphtool"])
        terminal.note(f"{save}: {runs} run{'s' if runs > 1 else ''}")
    terminal.tell(times_, form, lambda: report.bench_lines(times_),
                 lambda: report.bench_outcome(times_, str(build)))
    return 1 if times_.compared is not None and times_.compared.failed else 0


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
