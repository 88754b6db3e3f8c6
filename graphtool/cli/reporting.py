"""report: what a reviewer wants to know of a build, on one page."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from graphtool import escaping
from graphtool.cli import options, sources, terminal
from graphtool.cli.catalog import versions
from graphtool.cli.running import Build

if TYPE_CHECKING:
    from graphtool.io.manifest_rows import Manifest
    from graphtool.report.evidence import Evidence
    from graphtool.report.summary import Accuracy, CallTimes, Summary
    from graphtool.report.trace import Trace

Folder = Annotated[Path, typer.Option(
    "-o", "--out", help="The directory for report.md, report.html and report.json, and, "
    "of a build with --keep, trace.csv: what became of each node, down to lines of C.")]
Reference = Annotated[str | None, typer.Option(
    "--model", metavar="SOURCE", help="The model that the build was made from: the outputs on "
    "--data are compared with its own, and its file says under which licence it is.")]
Data = Annotated[Path | None, typer.Option(
    "--data", metavar="FILE", help="An .npz file with the inputs by name, examples along the first "
    "axis, and perhaps expected outputs by name, or one array with the right class of each "
    "example.")]
Timed = Annotated[bool, typer.Option(
    "--times/--no-times", help="Whether to time the build. Without times, equal builds have equal "
    "reports.")]
Shown = Annotated[bool, typer.Option(
    "--evidence", help="Of a build with --profile safety and --keep: write a test in C for each "
    "kernel, and evidence.md: what these tests cover, and their results by each compiler, level of "
    "optimisation and emulated board that is at hand.")]
Seconds = Annotated[float, typer.Option(
    "--seconds", min=0.0, help="How many seconds to time the build.")]


def report(build: Build, out: Folder, model: Reference = None, data: Data = None,
           times: Timed = True, seconds: Seconds = 1.0, seed: options.Seed = 0,
           dim: options.Dim = None, threads: options.Threads = None, entry: options.Entry = None,
           capture: options.Capture = None, evidence: Shown = False,
           json: options.Json = False) -> int:
    """Write a page on a build: sizes, times, accuracy, approximations, licences, versions, hashes.

    The exit code is 1 if a file of the build is not as it was built, or if --evidence finds a
    number that differs."""
    from graphtool.io.directory import write_files
    from graphtool.io.manifest import read_manifest
    from graphtool.report import summary as made
    from graphtool.report import summary_text
    from graphtool.report.trace import trace_csv
    manifest = read_manifest(build)
    summary = _summary(build, manifest, model, capture)
    if manifest.training is not None:
        summary.notes.append("A training build: `graphtool train` and `graphtool profile` time it.")
    elif manifest.library.endswith(".a"):
        summary.notes.append("A static library: it is linked into programs, and was not run here.")
    elif times or data is not None:
        summary.times, summary.accuracy = _run(build, model, data, times, seconds, seed, dim,
                                               threads, entry, capture)
    given = (("--model", model), ("--data", data))
    summary.reproduce.append(shlex.join([
        "graphtool", "report", "build", "-o", "report",
        *(str(w) for option in given if option[1] is not None for w in option)]))
    shown = _evidence(build, manifest.name) if evidence else None
    tests = {} if shown is None else {t.kernel: t.function for t in shown.tests}
    traced = _traced(build, manifest)
    summary.traced = made.traceability(traced) if traced is not None else None
    import msgspec
    extra = {} if shown is None else {**shown.files, "evidence.md": _evidence_text(shown, manifest)}
    write_files(out, extra | ({} if traced is None else {"trace.csv": trace_csv(traced, tests)}) | {
        "report.md": summary_text.markdown(summary), "report.html": summary_text.html(summary),
        "report.json": escaping.visible(
            msgspec.json.format(msgspec.json.encode(summary), indent=1).decode() + "\n")})
    wrong = [f.name for f in summary.files if not f.ok]
    terminal.report(summary, json, [str(out / "report.html")])
    if wrong:
        terminal.note(f"not as built: {', '.join(wrong)}")
    if shown is not None and not shown.holds:
        terminal.note("the tests of the kernels find numbers that differ: see evidence.md")
    return 1 if wrong or (shown is not None and not shown.holds) else 0


def _evidence(build: Path, name: str) -> Evidence:
    from graphtool.report.evidence import evidence
    return evidence(build, name)


def _evidence_text(shown: Evidence, m: Manifest) -> str:
    from graphtool.report.evidence import text
    return text(shown, m.name)


def _traced(folder: Path, m: Manifest) -> Trace | None:
    """The trace from the model to the C, of a build of one function that has kept its graphs."""
    from graphtool.ir import serial
    from graphtool.report.artifacts import c_texts, interfaces, kept_graphs, kept_journal
    from graphtool.report.lineage import steps_of
    from graphtool.report.trace import trace
    kept = kept_graphs(folder)
    if not kept or len(interfaces(m)) > 1:
        return None
    return trace(serial.load(kept[0]), kept_journal(folder), serial.load(kept[-1]),
                 steps_of(m.steps), c_texts(folder, m), m.name)


def _summary(build: Path, m: Manifest, model: str | None, capture: str | None) -> Summary:
    """All that is known without a run."""
    import hashlib

    import graphtool.kernels  # noqa: F401  (fills the registry that the reader uses)
    from graphtool.ir import serial
    from graphtool.report import summary as made
    from graphtool.report.artifacts import kept_graphs
    kept = kept_graphs(build)
    module = serial.load(kept[-1]) if kept else None
    meta: dict[str, Any] = dict(module.meta) if module else {}
    if model is not None:
        meta |= sources.load(model, sources.captured(sources.capture_of(model, capture))).meta
    path = Path(model) if model else None
    digest = hashlib.sha256(path.read_bytes()).hexdigest() if path and path.is_file() else ""
    known = versions()
    return made.Summary(
        m.name, "training" if m.training else "inference", m.target, m.compiler, m.flags,
        m.precision, m.key, model or "", digest,
        {n: known[n] for n in ("graphtool", "python", "numpy", "onnx") if n in known}
        | {"the build's format": f"{m.version}, since {m.since}"},
        made.functions(m), made.sizes(m, build), None, [], made.inexact(m),
        made.requires(m, module), made.licences(m, build, made.stated_licence(meta)),
        made.files(m, build), made.reproduce(m, model or ""),
        [])


def _run(build: Path, model: str | None, data: Path | None, timed: bool, seconds: float, seed: int,
         dim: list[str] | None, threads: int | None, entry: str | None, capture: str | None
         ) -> tuple[CallTimes | None, list[Accuracy]]:
    """Times on made-up inputs, and accuracy on the data."""
    from graphtool.io import npz
    from graphtool.machines import model as processor
    from graphtool.native import runtime
    from graphtool.report import bench
    from graphtool.report.summary import CallTimes
    from graphtool.verify import sides
    from graphtool.verify.accuracy import accuracy
    ours = runtime.load(build, threads, entry=entry)
    rows: list[Accuracy] = []
    if data is not None:
        side = sides.open_side(model, None, sources.capture_of(model, capture)) if model else None
        rows = accuracy(ours, npz.load(data), data, side)
    if not timed:
        return None, rows
    sizes = sources.sizes(dim, [d.name for d in ours.manifest.dims])
    arrays = sides.build_inputs(ours, seed, sizes)
    outputs = ours.run(arrays)
    times = bench.bench({"graphtool": lambda: ours.run(arrays, out=outputs)}, ours.threads, seconds)
    return CallTimes(processor(), ours.threads, ours.sizes, times.timings[0]), rows
