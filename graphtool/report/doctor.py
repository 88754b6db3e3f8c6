"""A report of this machine: compiler, OpenMP, vector units, package versions. Installs nothing."""

from __future__ import annotations

import platform
from collections.abc import Mapping

import msgspec

from graphtool import target
from graphtool.errors import CompilerError
from graphtool.io import release
from graphtool.machines import cores, cpu_flags, model, tiles_allowed
from graphtool.native import cache, cards, compiler, cuda, opencl, probes
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
    checks += [*result, *([_machine()] if result[0].ok else []), _mpi(), *_cuda(), *_opencl(),
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
    """What compiles kernels for GPUs here, the driver that runs them, and its GPUs."""
    try:
        compiles = cuda.find().version
    except CompilerError as error:
        compiles = f"{error.message}; {error.hint}"
    return [Check("CUDA compiler", compiles), *_cards(cards.driver())]


def _cards(driver: cards.Driver | None) -> list[Check]:
    """The driver of GPUs, and for each GPU the target that builds code for it."""
    if driver is None:
        return [Check("CUDA driver", f"no driver {cards.DRIVER}: builds for GPUs do not run here")]
    runs = f"{cards.DRIVER}, for CUDA {driver.version}"
    if not driver.cards:
        runs += f"; it has no GPU (error {driver.failure})" if driver.failure else "; it has no GPU"
    return [Check("CUDA driver", runs), *(Check(
        f"GPU {i}", f"{c.name}: compute capability {c.arch // 10}.{c.arch % 10}, "
                    f"{c.multiprocessors} multiprocessors, {c.memory / 2**30:.1f} GiB; "
                    f"{_target_of(c.arch)}") for i, c in enumerate(driver.cards))]


def _opencl() -> list[Check]:
    """The devices that run builds of `--target opencl`."""
    known = opencl.cards()
    if not known:
        lacking = f"no {opencl.LOADER}" if known is None else f"{opencl.LOADER} knows no device"
        return [Check("OpenCL", f"{lacking}; `{release.install('opencl')}` brings one for the "
                                "processor")]
    return [Check(f"OpenCL {i}", f"{c.name} ({c.platform}): {c.version}, {c.units} compute units, "
                                 f"{c.memory / 2**30:.1f} GiB, "
                                 f"{'with' if c.doubles else 'without'} float64; --target opencl")
            for i, c in enumerate(known)]


def _target_of(arch: int) -> str:
    """The target whose code runs on a GPU: that of its architecture, or of an earlier one of its
    generation; else the text of an earlier generation."""
    single = sorted(t.devices[0] for t in target.TABLE.values() if len(t.devices) == 1)
    alike = [a for a in single if a // 10 == arch // 10 and a <= arch]
    if alike:
        return f"--target sm_{alike[-1]}"
    if arch > single[0]:
        return "--target cuda, whose PTX the driver compiles"
    return "no target: it is older than the GPUs that there are targets for"


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
        threads = works and any(probes.compiles(command, *flags)
                                for flags in (("-fopenmp",), compiler.THREADS))
        return [Check("compiler", f"{' '.join(command)}: {version}", works),
                Check("threads", "yes" if threads else "no: built code has one", threads)]
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
