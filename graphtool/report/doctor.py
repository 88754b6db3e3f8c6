"""A report of this machine: compiler, OpenMP, vector units, package versions. Installs nothing."""

from __future__ import annotations

import ctypes
import platform
from collections.abc import Mapping

import msgspec

from graphtool import target
from graphtool.errors import CompilerError
from graphtool.machines import cores, cpu_flags, model, tiles_allowed
from graphtool.native import cache, compiler, cuda, probes
from graphtool.report import machine
from graphtool.report.findings import Finding, Outcome, outcome


class Check(msgspec.Struct):
    """The result of one check; `ok` is null for a check that cannot fail."""

    name: str
    value: str
    ok: bool | None = None


class Doctor(msgspec.Struct):
    """`doctor --json`; schemas/doctor.schema.json is made from it."""

    ok: bool
    checks: list[Check]
    versions: dict[str, str]


def doctor(versions: Mapping[str, str]) -> Doctor:
    """Run all checks, with test compilations; ok if C can be compiled."""
    checks = [Check("cpu", f"{platform.machine()}: {model()}"), Check("cores", str(cores())),
              Check("target", _target()), Check("features", _features())]
    if (allowed := tiles_allowed()) is not None:
        checks.append(Check("matrix unit", "its tiles may be used" if allowed else
                            "the system refuses its tiles to this process: vectors stand in for "
                            "them", allowed))
    result = _compiler_checks()
    checks += [*result, *([_machine()] if result[0].ok else []), _mpi(), *_cuda(),
               Check("cache", str(cache.directory()))]
    return Doctor(all(c.ok is not False for c in checks if c.name == "compiler"), checks,
                  dict(versions))


def _target() -> str:
    t = target.detect()
    return f"{t.name}: {t.title}, {t.lanes} f32 lanes, tiles of {t.mr}×{t.nr}"


def _machine() -> Check:
    """The row for the choice of kernels, and how far the machine at hand is from it."""
    t = target.detect()
    known = machine.against(t)
    far = machine.distance(known, machine.measured())
    return Check("machine", f"{known.name}: kernels are chosen by this row; here {far} of it")


def _cuda() -> list[Check]:
    """What compiles kernels for GPUs here, and whether there is a driver to run them."""
    try:
        compiles = cuda.find().version
    except CompilerError as error:
        compiles = f"{error.message}; {error.hint}"
    try:
        ctypes.CDLL("libcuda.so.1")
        runs = "libcuda.so.1"
    except OSError:
        runs = "no driver libcuda.so.1: builds for GPUs do not run here"
    return [Check("CUDA compiler", compiles), Check("CUDA driver", runs)]


def _features() -> str:
    """The CPU features of this machine that some target of the table requires."""
    asked = {f for t in target.TABLE.values() for f in t.needs | t.bf16_by | t.dot8_by}
    return " ".join(sorted(asked & cpu_flags())) or "unknown"


def _compiler_checks() -> list[Check]:
    for command in compiler.candidates(None):
        version = probes.version_of(command)
        if version is None:
            continue
        works = probes.compiles(command, "-O2")
        openmp = works and probes.compiles(command, "-fopenmp")
        return [Check("compiler", f"{' '.join(command)}: {version}", works),
                Check("openmp", "yes" if openmp else "no: built code runs on one thread", openmp)]
    return [Check("compiler", "none: set $CC, or install gcc, clang or the extra `zig`", False)]


def _mpi() -> Check:
    for command in compiler.mpi_candidates():
        if probes.compiles(command, "-DGT_MPI"):
            return Check("mpi", " ".join(command))
    return Check("mpi", "none: training with several processes wants the extra `mpi`")


def doctor_lines(d: Doctor) -> list[str]:
    """The checks and the versions as lines of text."""
    marks = {True: "ok  ", False: "FAIL", None: "    "}
    width = max(len(c.name) for c in d.checks)
    out = [f"{marks[c.ok]} {c.name:<{width}}  {c.value}" for c in d.checks]
    return [*out, "", *(f"     {name:<12} {v}" for name, v in d.versions.items())]


def doctor_outcome(d: Doctor) -> Outcome:
    """A finding for each check and each version; without a compiler it is an error, else a
    warning."""
    findings = [Finding("doctor", c.name, "ok" if c.ok is not False else "error" if
                        c.name == "compiler" else "warning", c.value) for c in d.checks]
    findings += [Finding("doctor/version", n, "ok", version) for n, version in d.versions.items()]
    return outcome("doctor", "this machine", "C can be compiled" if d.ok else
                   "C cannot be compiled", findings, doctor_lines(d))
