"""Random graphs compiled, against the evaluator: every target, several batch and thread counts."""

from __future__ import annotations

from pathlib import Path

import pytest

from graphtool import interp, passes
from graphtool.ir.graph import Module
from graphtool.passes.arguments import PassCall
from graphtool.target import detect, named
from tests.lower.compiling import compiled, faults
from tests.lower.fuzzing import Fuzzer

MARCHES = ["native", "x86-64-v3", "x86-64", "generic"]
PIPELINES = {"default": None, "plain": [PassCall("decompose", {"keep": ()})],
             "fused": [PassCall("decompose", {"keep": ()}), "select", "fold", "fuse"]}


def check(seed: int, path: Path, march: str = "native", pipeline: str = "default",
          threads_by: str = "pool") -> list[str]:
    """The faults of one random graph, with what reproduces each."""
    fuzzer = Fuzzer(seed, symbolic=bool(seed % 2))
    fuzzer.grow(12)
    module: Module = fuzzer.module()
    target = named(march, threads=7)
    ready = passes.run(module, PIPELINES[pipeline], supply={"march": march})
    model = compiled(ready, path, target=target, threads_by=threads_by, eager=True)
    found = []
    for threads, batch in ((1, 3), (2, 1), (7, 5), (3, 0), (3, 9)):
        if seed % 2 == 0:
            batch = fuzzer.batch
        model.threads = threads
        inputs = fuzzer.arrays(batch, threads)
        want = interp.run(module, inputs)
        found += [f"seed {seed} {march} {pipeline} batch {batch}, {threads} threads: {fault}"
                  for fault in faults(model.run(inputs), want, 1e-3, 1e-3)]
    return found


def runnable(march: str) -> bool:
    return named(march).lanes <= detect().lanes


@pytest.mark.part(3)
@pytest.mark.parametrize("seed", range(10))
def test_random_graphs(seed: int, tmp_path: Path) -> None:
    march = MARCHES[seed % 4] if runnable(MARCHES[seed % 4]) else "generic"
    pipeline = list(PIPELINES)[seed % 3]
    by = "none" if seed % 5 == 4 else "pool"
    assert check(seed, tmp_path / "m", march, pipeline, threads_by=by) == []


@pytest.mark.slow
@pytest.mark.parametrize("march", MARCHES)
@pytest.mark.parametrize("seed", range(1000, 1150))
def test_many_random_graphs(seed: int, march: str, tmp_path: Path) -> None:
    if not runnable(march):
        pytest.skip(f"this machine does not run {march}")
    assert check(seed, tmp_path / "m", march, list(PIPELINES)[seed % 3], seed % 5 != 4) == []
