"""Small programs of many kernels, whose mutants are compiled under sanitizers."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from graphtool import passes
from graphtool.ir.serial import collect_all
from graphtool.loops import serial
from graphtool.lower import lower
from graphtool.target import named
from tests.cases import CASES
from tests.io.sanitized import Sample
from tests.kernels.test_meaning import SAMPLES, sample
from tests.loops.programs import NAMES, program, store
from tests.lower.compiling import merged

FOLDER = Path(__file__).parent / "golden/program/v2"
MARCH = "x86-64-v3"
SHARE = 300  # programs among which the cases of all ops are divided


def golden() -> list[Sample]:
    """The programs of all kernels that are kept as files."""
    out = []
    for path in sorted(FOLDER.glob("*.program.json")):
        found, weights = serial.load(path)
        lanes = int(found.meta.get("lanes", 8))
        out.append(Sample(path.name.split(".")[0], serial.dumps(found), weights,
                          {4: "x86-64", 8: MARCH, 16: "x86-64-v4"}[lanes]))
    return out


def small() -> list[Sample]:
    """The small models of tests/loops."""
    return [Sample(n, serial.dumps(program(n)), store(n), "x86-64") for n in NAMES]


def kernels() -> list[Sample]:
    """A program of each kernel; a library would have to be linked."""
    return [Sample(f"{name}{i}", serial.dumps(sample(name, i)[1]), sample(name, i)[2], "x86-64")
            for name in SAMPLES if name != "blas" for i in range(len(SAMPLES[name]))]


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
