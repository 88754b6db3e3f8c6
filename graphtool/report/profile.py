"""The time of each step of a compiled model on each thread, measured by a build with clocks.

The sources of the build directory are compiled again with GT_PROFILE, in another directory.
"""

from __future__ import annotations

import ctypes
import json
import re
import shutil
import statistics
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from graphtool.analysis.phases import PHASES
from graphtool.errors import InputError
from graphtool.io.manifest import entry_base, read_entry
from graphtool.io.manifest_rows import Manifest
from graphtool.native.compiler import Compiler, find
from graphtool.native.objects import linking
from graphtool.native.runtime import Array, Model, load
from graphtool.native.sizes import dim_table
from graphtool.report.machine import Peaks, device_peaks, device_roof, peaks, roof_of
from graphtool.report.table import Column, Table, table
from graphtool.symbolic import substitute
from graphtool.symbolic.parse import parse
from graphtool.target import named

FIRST, ENTER, LEAVE, INSIDE, OUTSIDE, ITERATIONS, MARKS = range(7)  # as marks.h counts


class ProfileStep(msgspec.Struct):
    """One kernel call: medians over the runs, of the slowest thread; in a loop, all iterations
    together.

    `wait_us` is the time that all threads wait before their next step; `roof` is the least time
    that the machine's peaks allow, or a device's data sheet, divided by `us`, for the instructions
    that the kernel uses, of the kind `rate`, and for its own multiplications. `gflops` is nominal,
    of the op's definition: Winograd's kernels need fewer. `gbps` and `roof` are 0 if the number of
    bytes is unknown.
    `phase` is forward, backward or optimizer in a training step, or several joined by +.
    """

    kernel: str
    label: str
    where: str
    source: str
    us: float
    share: float
    wait_us: float
    gflops: float
    gbps: float
    roof: float
    phase: str = ""
    iterations: int = 1
    rate: str = "f32"


class Profile(msgspec.Struct):
    """`profile --json`; schemas/profile.schema.json is made from it."""

    name: str
    threads: int
    runs: int
    total_us: float
    peaks: Peaks
    steps: list[ProfileStep]


def profile(build_dir: Path, arrays: Mapping[str, Array], threads: int | None = None,
            runs: int = 30, entry: str | None = None) -> tuple[Profile, Array]:
    """(the profile, the marks of the median run): marks are [threads, steps, marks] in ns, as in
    marks.h.

    Of a training build, the training step is profiled; `arrays` then include its state. Raises
    InputError GT2219 for a build of an older version, GT2226 for a fat one and GT2228 for a step of
    several processes.
    """
    manifest = _profiled(build_dir, entry)
    with tempfile.TemporaryDirectory(prefix="graphtool-") as folder:
        work = Path(folder) / "profiled"
        shutil.copytree(build_dir, work)
        compiler = _compile(work, manifest)
        model = load(work, threads, entry=entry)
        samples = _measure(model, arrays, runs)
        bound = device_roof if manifest.device else roof_of
        roofs = [bound(step.choice) for step in model.manifest.steps]
        top = device_peaks(named(manifest.target)) if manifest.device else peaks(
            compiler, samples.shape[1], work, {kind for kind, _ in roofs})
        sources = kernel_lines(work, manifest.name)
    spans = np.array([_span(run) for run in samples])
    middle = samples[int(np.argsort(spans)[len(spans) // 2])]
    total = float(np.median(spans)) / 1000
    rows = []
    for i, step in enumerate(model.manifest.steps):
        us = float(np.median(samples[:, :, i, INSIDE].max(axis=1))) / 1000
        count = int(middle[:, i, ITERATIONS].max())
        flops, moved = (count * _amount(model, n) for n in (step.flops, step.bytes))
        kind, share = roofs[i]
        least = count * top.least_us(share * flops / count, moved // count, kind) \
            if moved and count else 0.0
        rows.append(ProfileStep(
            step.kernel, step.label, step.where, sources.get(step.kernel, ""), us,
            _over(us, total), _waits(samples, i), _over(flops, us * 1000),
            _over(moved, us * 1000), _over(least, us), step.phase, count,
            kind if kind in top.rates else "f32"))
    return Profile(model.manifest.name, samples.shape[1], runs, total, top, rows), middle


def _profiled(build_dir: Path, entry: str | None) -> Manifest:
    """The manifest of the build; raises an error if it cannot be profiled."""
    manifest = read_entry(build_dir, entry)
    if manifest.training is not None and manifest.training.distributed:
        raise InputError("GT2228", "this step exchanges gradients with other processes",
                         where=str(build_dir), hint="profile a build without --mpi")
    driver = build_dir / f"{manifest.name}.c"
    if manifest.levels:
        raise InputError("GT2226", "this build holds several versions of the model",
                         where=str(build_dir), hint="build it with one of them: --march x86-64-v3")
    if not driver.is_file() or "GT_PROFILED(" not in driver.read_text("utf-8"):
        raise InputError("GT2219", "this build has no places for clocks", where=str(build_dir),
                         hint="build it again with this version")
    return manifest


def _over(a: float, b: float) -> float:
    return a / b if b else 0.0


def _compile(work: Path, m: Manifest) -> Compiler:
    """Compile and link a copied build again, its driver with clocks; returns the compiler."""
    threads = m.threads is None or m.threads.by != "none"
    compiler = linking(find(None, named(m.target), threads=threads), m.files)
    compiler = compiler.of_class(m.precision)
    # a build of release 1.0 has the width of its vectors in the flags alone
    compiler = replace(compiler, flags=(
        *compiler.flags, *(f for f in m.flags if f.startswith("-DGT_LANES="))))
    clocks = replace(compiler, flags=(*compiler.flags, "-DGT_PROFILE"))
    headers = "".join(p.read_text("utf-8") for p in sorted(work.glob("*.h")))
    objects = []
    name = entry_base(m)
    programs = (f"{name}_main.c", f"{name}_example.c")
    for unit in (work / f for f in sorted(m.files) if f.endswith(".c")):
        if re.search(r"_(weights\d+|images)\.c$", unit.name):
            objects.append(compiler.compile_data(unit))
        elif unit.name not in programs:
            with_clocks = clocks if unit.name == f"{m.name}.c" else compiler
            objects.append(with_clocks.of_file(unit.name).compile(unit, headers))
    compiler.link(objects, work / m.library)
    return compiler


def _measure(model: Model, arrays: Mapping[str, Array], runs: int) -> Array:
    """The marks [runs, threads, steps, marks] in ns, of the threads that did any work in a run."""
    name, steps = model.manifest.name, len(model.manifest.steps)
    marks = np.zeros((model.threads, steps, MARKS), np.int64)
    model.run(arrays)
    model.call()
    getattr(model.library, f"{name}_profile")(ctypes.c_void_p(marks.ctypes.data))
    samples = []
    for _ in range(runs):
        marks[:] = 0
        model.call()
        samples.append(marks.copy())
    together = np.stack(samples)
    ran = (together[..., ITERATIONS] != 0).any(axis=(0, 2))
    ran[0] |= not ran.any()
    return together[:, ran]


def _span(marks: Array) -> int:
    """The time in ns from the start of the first step to the end of the last."""
    first = marks[:, :, FIRST][marks[:, :, ITERATIONS] > 0]
    return int(marks[:, :, LEAVE].max() - first.min()) if first.size else 0


def _waits(samples: Array, i: int) -> float:
    """Microseconds that all threads together are idle at the end of step i; a thread without
    further steps waits for the last thread."""
    done = samples[:, :, :, LEAVE].max(axis=2)
    late = np.where(samples[:, :, i, LEAVE] == done, done.max(axis=1, keepdims=True) - done, 0)
    idle = samples[:, :, i, OUTSIDE] + np.where(samples[:, :, i, ITERATIONS] > 0, late, 0)
    return float(np.median(idle.sum(axis=1))) / 1000


def _amount(model: Model, known: int | str) -> int:
    """A number of build.json, evaluated at the sizes of the last run."""
    if isinstance(known, int):
        return known
    table = dim_table(model.manifest.dims)
    value = substitute(parse(known, table), model.sizes)
    return value if isinstance(value, int) else 0


def kernel_lines(build_dir: Path, name: str) -> dict[str, str]:
    """The file:line at which each kernel of the program is defined."""
    out = {}
    for path in sorted(build_dir.glob(f"{name}_kernels*.c*")):
        for n, line in enumerate(path.read_text("utf-8").splitlines(), 1):
            match = re.match(rf"(?:GT_KERNEL )?void {name}_(k\d+)\(", line)
            if match:
                out[match[1]] = f"{path.name}:{n}"
    return out


def trace(p: Profile, marks: Array) -> str:
    """The run as Chrome trace events, for Perfetto: one row for each thread, in order of time; of a
    loop only the last iteration."""
    ran = marks[:, :, ENTER][marks[:, :, ITERATIONS] > 0]
    start = int(ran.min()) if ran.size else 0
    events: list[dict[str, Any]] = [_named("process_name", 0, p.name)]
    events += [_named("thread_name", t, f"thread {t}") for t in range(p.threads)]
    spans = [{"ph": "X", "pid": 1, "tid": t, "cat": s.phase or s.kernel,
              "name": s.label or s.kernel, "ts": (int(enter) - start) / 1000,
              "dur": (int(leave) - int(enter)) / 1000,
              "args": {"kernel": s.kernel, "source": s.source, "where": s.where,
                       "GFLOP/s": s.gflops, "GB/s": s.gbps, "of roof": s.roof}}
             for t in range(p.threads)
             for s, (_, enter, leave, *_) in zip(p.steps, marks[t], strict=True) if enter > 0]
    events += sorted(spans, key=lambda e: (e["ts"], e["tid"]))
    return json.dumps({"traceEvents": events, "displayTimeUnit": "ns"}) + "\n"


def _named(what: str, thread: int, name: str) -> dict[str, Any]:
    return {"ph": "M", "pid": 1, "tid": thread, "ts": 0, "name": what, "args": {"name": name}}


STEPS: tuple[Column[ProfileStep], ...] = (
    Column("µs", lambda s: micros(s.us)), Column("%", lambda s: f"{100 * s.share:.1f}"),
    Column("barrier wait", lambda s: micros(s.wait_us)),
    Column("nominal GFLOP/s", lambda s: f"{s.gflops:.1f}"),
    Column("GB/s", lambda s: f"{s.gbps:.1f}"),
    Column("of roof", lambda s: (f"{100 * s.roof:.0f}%" + (
        f" of {s.rate}" if s.rate != "f32" else "")) if s.gbps else ""),
    Column("kernel", lambda s: s.kernel + (f" ×{s.iterations}" if s.iterations > 1 else "")),
    Column("in C", "source"), Column("nodes", "label"), Column("source", "where"))


def profile_table(p: Profile, most: int) -> Table:
    """The slowest steps, the slowest first; with a column of phases if there are any."""
    slowest = sorted(p.steps, key=lambda s: -(s.us + s.wait_us))[:most]
    phase = [Column[ProfileStep]("phase")] if any(s.phase for s in p.steps) else []
    return table((*phase, *STEPS), slowest)


def micros(us: float) -> str:
    """Microseconds with the digits that tell short kernels apart, whose times are averages."""
    return f"{us:.1f}" if us >= 10 or not us else f"{us:.2f}"


def profile_lines(p: Profile) -> list[str]:
    """The totals as lines of text."""
    work = sum(s.us for s in p.steps)
    wait = sum(s.wait_us for s in p.steps)
    spread = statistics.median([s.us for s in p.steps]) if p.steps else 0.0
    near, far = p.peaks.bandwidth[0], p.peaks.bandwidth[-1]
    phases = sorted({s.phase for s in p.steps if s.phase},
                    key=lambda n: [PHASES.index(part) for part in n.split("+")])
    spent = {n: sum(s.us for s in p.steps if s.phase == n) for n in phases}
    ends = (f"{near.gbps:.0f} GB/s from memory" if near is far else
            f"{near.gbps:.0f} GB/s from the first cache, {far.gbps:.0f} GB/s from memory")
    return [f"{p.name}: {micros(p.total_us)} µs in {len(p.steps)} steps, the median "
            f"{micros(spread)} µs",
            f"{p.threads} thread{'s' if p.threads != 1 else ''}: {micros(work)} µs of the slowest "
            f"at work, {micros(wait)} µs of waiting at barriers over all threads",
            *([", ".join(f"{n} {micros(us)} µs ({100 * _over(us, work):.0f} %)"
                         for n, us in spent.items())] if spent else []),
            f"the roof: {p.peaks.gflops:.0f} GFLOP/s of float32, "
            + "".join(f"{rate:.0f} of {kind}, " for kind, rate in p.peaks.rates.items())
            + f"{ends}; a kernel's part of it counts its own multiplications, GFLOP/s are nominal"]
