"""Small programs of many kernels, whose mutants are compiled under sanitizers."""

from __future__ import annotations

from functools import cache

from graphtool import passes
from graphtool.ir.serial import collect_all
from graphtool.loops import serial
from graphtool.loops.contract import CONTRACTS
from graphtool.lower import lower
from graphtool.target import named
from tests.cases import CASES
from tests.kernels.test_meaning import SAMPLES, sample
from tests.lab.fuzz.mutants import Sample, golden
from tests.loops.programs import NAMES, program, store
from tests.lower.compiling import merged

MARCH = "x86-64-v3"
SHARE = 300  # programs among which the cases of all ops are divided


def small() -> list[Sample]:
    """The small models of tests/loops."""
    return [Sample(n, serial.dumps(program(n)), store(n), "x86-64") for n in NAMES]


def kernels() -> list[Sample]:
    """A program of each kernel in C, but for those that want a library or several processes."""
    return [Sample(f"{name}{i}", serial.dumps(sample(name, i)[1]), sample(name, i)[2], "x86-64")
            for name in SAMPLES if name not in ("blas", "collective")
            and "c" in CONTRACTS[name].languages
            for i in range(len(SAMPLES[name]))]


@cache
def cases(number: int, march: str = MARCH) -> Sample:
    """A share of the cases of all ops, after the default passes."""
    module, _ = merged(CASES[number::SHARE])
    module = passes.run(module, None, supply={"march": march})
    made = lower(module, named(march, 2), name="model")
    return Sample(f"cases{number}", serial.dumps(made),
                  {w.digest: w for w in collect_all(module.graph)}, march)


def all_samples() -> list[Sample]:
    """Programs of every kernel."""
    return [*golden(), *small(), *kernels(), *map(cases, range(SHARE))]
