"""run, check, profile: compiled code on inputs, against others, kernel by kernel."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from graphtool.cli import formats, options, sources, terminal
from graphtool.cli.faultfinding import ReproDir, leave_repro_of
from graphtool.compile.source import is_stdin
from graphtool.errors import UsageError

Build = Annotated[Path, typer.Argument(metavar="BUILD", help="A build directory.")]
Verify = Annotated[bool, typer.Option(
    "--verify", help="Check the library and the weights against their hashes first.")]


def run(build: Build, out: options.Out = None, inputs: options.Inputs = None,
        input: options.Input = None, random: options.Random = False, seed: options.Seed = 0,
        dim: options.Dim = None, threads: options.Threads = None,
        verify: Verify = False, entry: options.Entry = None) -> int:
    """Run compiled code on inputs.

    The outputs are written to an .npz file, or printed in short. The exit code is 1 if the program
    itself states what it expects, and this is not so."""
    from graphtool.cli.transform import judged
    from graphtool.native import runtime
    from graphtool.verify.sides import build_inputs
    model = runtime.load(build, threads, verify, entry=entry)
    sizes = sources.sizes(dim, [d.name for d in model.manifest.dims])
    arrays = sources.arrays([p.name for p in model.inputs], inputs, input,
                            (lambda: build_inputs(model, seed, sizes)) if random else None)
    return judged(dict(model.run(arrays)), out)


def check(a: Annotated[str, typer.Argument(
        metavar="A", help="The reference: a graph, a program, a build directory, an ONNX model or "
        "a torch source; - or DIR/- for a graph from stdin.")],
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
    form = formats.chosen(format, json)
    if is_stdin(a) and is_stdin(b):
        raise UsageError("GT3014", "stdin is given twice", hint="write one graph to a file")
    given = bool(inputs or input)
    left, right = sides.open_pair(
        a, b, entry, (sources.capture_of(a, capture), sources.capture_of(b, capture)),
        (lambda side: sources.arrays(side.inputs, inputs, input, None)) if given else None)
    sizes = sources.sizes(dim)
    arrays = sources.arrays(left.inputs, inputs, input, None if given else (
        lambda: sides.made_up((a, b), (left, right), seed, sizes)))
    found = compare(left, right, arrays, atol, rtol, divergence)
    formats.tell(found, form, lambda: check_lines(found), lambda: check_outcome(found, a, b))
    if repro is not None and not found.ok:
        leave_repro_of((a, left), (b, right), arrays, repro, capture, atol, rtol)
    return 0 if found.ok else 1


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
    found, marks = report.profile(build, arrays, threads, runs, entry)
    if trace is not None:
        files.write_bytes(trace, report.trace(found, marks).encode())
    terminal.report(found, json, report.profile_lines(found))
    if not json:
        terminal.table(report.profile_table(found, most))
