"""Small programs that the tests of the loop IR share, lowered for a target with 4 lanes."""

from __future__ import annotations

from functools import cache

from graphtool import passes
from graphtool.io.weights import Weight
from graphtool.ir.graph import Module
from graphtool.ir.serial import collect_all
from graphtool.loops.program import Program
from graphtool.lower import lower
from graphtool.target import named
from tests.passes.pass_samples import SAMPLES

TARGET = named("x86-64", 2)
NAMES = sorted(SAMPLES)


@cache
def optimised(name: str) -> Module:
    return passes.run(SAMPLES[name], supply={"target": TARGET})


@cache
def program(name: str) -> Program:
    return lower(optimised(name), TARGET, name="model")


def store(name: str) -> dict[str, Weight]:
    return {w.digest: w for w in collect_all(optimised(name).graph)}
