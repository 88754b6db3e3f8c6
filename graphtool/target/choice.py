"""Which row of the table is meant: by its name, by this machine's processor, by a family; with the
rates of a machine that is known."""

from __future__ import annotations

import platform
from dataclasses import replace

from graphtool.errors import UsageError, one_of
from graphtool.machines import GENERIC, Machine, caches, cores, cpu, cpu_flags, machine, of_cpu
from graphtool.target.record import MOST_THREADS, TABLE, Levels, Target, spelled


def detect() -> Target:
    """The target of this machine with all its cores, to be compiled with -march=native."""
    return named("native")


def recognised_here() -> Target:
    """The row of this machine, to be compiled with -march=native."""
    row = recognised(platform.machine().lower(), cpu_flags())
    return replace(row, native=True, flags=spelled("native"))


def usual_machine(target: Target) -> str:
    """The machine by whose figures kernels are chosen for a target if none is named."""
    return detect().machine if target.native else GENERIC


def _native() -> Target:
    row, flags = recognised_here(), cpu_flags()
    l1, l2, l3 = (measured or usual for measured, usual in zip(caches(), (row.l1, row.l2, row.l3),
                                                               strict=True))
    here = replace(row, l1=l1, l2=l2, l3=l3, bf16=bool(row.bf16_by & flags),
                   dot8=bool(row.dot8_by & flags))
    known = of_cpu(cpu())
    # a virtual machine can show another model than it has
    return here if known is None or not row.needs <= TABLE[known.isa].needs else _with_rates(
        here, known)


def _with_rates(target: Target, m: Machine) -> Target:
    """The target with the rates of a machine, whose units can be narrower than its vectors."""
    f32 = m.f32 * min(1.0, target.lanes / m.lanes)
    return replace(target, machine=m.name, mhz=round(f32 / (4 * target.lanes) * 1000),
                   bandwidth=m.gbps, all_gbps=m.all_gbps, meet=m.meet,
                   dots=m.rates.get("bf16", target.dots))


def on_machine(target: Target, word: str) -> Target:
    """The target with the rates and the caches of the machine that `word` names: a row of the table
    of machines, or a file of one.

    Raises UsageError GT2103 for an unknown machine, or one of another kind; InputError GT2104.
    """
    m = machine(word)
    if m is None:
        row = _row_of(target.name)
        return replace(target, machine=GENERIC, mhz=row.mhz, bandwidth=row.bandwidth,
                       all_gbps=row.all_gbps, meet=row.meet, dots=row.dots, l1=row.l1, l2=row.l2,
                       l3=row.l3)
    if not set(_row_of(m.isa).machines) & set(target.machines):
        raise UsageError("GT2103", f"the machine {m.name} is a {m.isa}, and the target is "
                                   f"{target.march}", hint="take a machine of the same kind")
    return replace(_with_rates(target, m), l1=m.l1, l2=m.l2, l3=m.l3)


def recognised(machine: str, flags: frozenset[str]) -> Target:
    """The row of a machine that Python calls `machine` and whose CPU has the features `flags`."""
    return max((t for t in TABLE.values()
                if machine in t.machines and not t.system and t.needs <= flags),
               key=lambda t: len(t.needs), default=TABLE["generic"])


def family(levels: Levels) -> dict[int, Target]:
    """The targets of a family for all cores, by level, best first."""
    rows = sorted((t for t in TABLE.values() if t.levels == levels), key=lambda t: -t.level)
    return {t.level: named(t.name) for t in rows}


def named(march: str, threads: int = 0) -> Target:
    """The target called `march`, for at most `threads` threads; 0: for all of any machine, with
    kernels chosen for as many as this one has cores. A device has threads of its own.

    Raises UsageError GT2101 for an unknown one.
    """
    row = _row_of(march)
    if row.grid:
        return replace(row, most_threads=MOST_THREADS)
    if threads or row.alone:
        return for_threads(row, threads)
    return replace(row, threads=cores(), most_threads=MOST_THREADS)


def for_threads(target: Target, threads: int) -> Target:
    """The target for at most so many threads, if it has threads of the processor."""
    if target.grid:
        return target
    count = 1 if target.alone else threads
    return replace(target, threads=count, most_threads=count)


_ELSEWHERE = {  # what other tools call a target
    "arm64": "armv8-a", "aarch64": "armv8-a", "arm": "armv7-linux", "amd64": "x86-64",
    "x86": "x86-64", "x64": "x86-64", "avx2": "x86-64-v3", "avx512": "x86-64-v4", "wasm": "wasm32",
    "gpu": "cuda", "nvidia": "cuda", "ocl": "opencl", "pocl": "opencl",
    "sm_86": "sm_80", "sm_89": "sm_80", "sm_100": "cuda", "sm_103": "cuda", "sm_121": "sm_120",
    "windows": "x86_64-windows", "linux": "x86-64",
    "riscv": "riscv64-linux", "riscv64": "riscv64-linux", "amx": "sapphirerapids"}


def _row_of(march: str) -> Target:
    if march == "native":
        return _native()
    for row in TABLE.values():
        if march == row.name or march in row.aliases:
            return row
    names = "native", *TABLE
    word = march.lower()
    raise UsageError("GT2101", f"unknown target {march!r}", hint="\n".join((
        f"did you mean {_ELSEWHERE[word]!r}?", f"one of {', '.join(names)}")
        if word in _ELSEWHERE else (one_of(march, names),)))
