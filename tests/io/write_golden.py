"""Writes the golden files of a release: `python -m tests.io.write_golden` when formats are frozen.

They go into tests/io/golden/FORMAT/vN, N being the version that is written, and only where there is
no such directory yet: what was released is never written again.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from graphtool import interp, passes
from graphtool import ops as o
from graphtool.analysis import made_up
from graphtool.cli.faults import run as cli
from graphtool.compile.as_is import build
from graphtool.dtypes import int32
from graphtool.importers.torch import import_torch
from graphtool.io import npz
from graphtool.io.versions import BUILD, CHECKPOINT, GRAPH, PROGRAM, TUNING, Format
from graphtool.ir import serial
from graphtool.ir.graph import Module
from graphtool.ir.plan import plan
from graphtool.kernels.choice import tuning as measured
from graphtool.kernels.choice.rules import Rules, rules_of
from graphtool.kernels.choice.sites import site
from graphtool.loops import serial as programs
from graphtool.lower import lower
from graphtool.target import Target, named
from graphtool.transforms.training import Recipe, training
from tests.loops import test_interp as samples
from tests.passes.pass_samples import module, values

GOLDEN = Path(__file__).parent / "golden"
TARGET = named("x86-64-v3", 4)
WINOGRAD = "conv{n=1,h=12,w=12,c=16,o=16,kh=3,kw=3}"


def integers(x: Any) -> Any:
    w = np.random.default_rng(0).integers(-99, 99, (5, 6)).astype(np.int8)
    return o.matmul(o.cast(x, dtype=int32), o.cast(x.builder.constant(w), dtype=int32)) + 1


def winograd(x: Any) -> Any:
    padded = o.pad(x, lo=(0, 0, 1, 1), hi=(0, 0, 1, 1))
    return o.relu(o.conv(padded, values(x, 16, 16, 3, 3) * 0.1))


def pairs(x: Any, w: Any) -> Any:
    return o.relu(o.matmul(x, w)) + 1.0


def nbits(x: Any) -> Any:
    rng = np.random.default_rng(0)
    tables = (rng.integers(0, 256, (9, 2, 16)).astype(np.uint8), rng.random((9, 2), np.float32),
              rng.random((9, 2), np.float32) * 9)
    return o.linear_nbits(x, *map(x.builder.constant, tables), bits=4, block=32)


def cases() -> dict[str, tuple[Module, Target, Rules]]:
    """Small modules that use the kernels between them, each with a target and kernel rules."""
    row = measured.row(site(WINOGRAD), TARGET, {plan("winograd{tile=2,group=16}"): 1.0})
    plain = rules_of("default", "generated")
    forced = rules_of("default", "generated", measured.merged([row]))
    first = serial.load(GOLDEN / "model.graph.json")  # groups, regions, history
    kept = {n: (samples.MODULES[n](), TARGET, plain)
            for n in ("depthwise", "grouped", "attend", "cells", "ordered", "casts")}
    return kept | {
        "model": (first, TARGET, plain),
        "recurrences": (samples.MODULES["cells back"](), TARGET, plain),
        "pools": (module(samples.pools, "f32[1,3,5,20]"), TARGET, plain),
        "integers": (module(integers, "u8[B,5]"), TARGET, plain),
        "winograd": (module(winograd, "f32[1,16,12,12]"), TARGET, forced),
        "pairs": (module(pairs, "bf16[5,7]", "bf16[7,33]"),
                  replace(named("x86-64-v4", 4), bf16=True), plain),
        "nbits": (module(nbits, "f32[17,64]"), TARGET, plain)}


def two() -> Module:
    """Two layers with a tanh between them, from torch."""
    torch.manual_seed(0)
    net = nn.Sequential(OrderedDict(one=nn.Linear(4, 5), tanh=nn.Tanh(), two=nn.Linear(5, 3)))
    return import_torch(net, (torch.zeros(2, 4),), dynamic={"batch": (1, 64)}, names=["x"])


@contextmanager
def new(form: Format) -> Iterator[Path]:
    """The directory of a format's current version; a temporary one where it exists already."""
    path = GOLDEN / form.name.partition("/")[2] / f"v{form.version}"
    if path.exists():
        print(f"{path} stays as it is", file=sys.stderr)
        with tempfile.TemporaryDirectory() as unused:
            yield Path(unused)
    else:
        path.mkdir(parents=True)
        yield path


def write_models() -> None:
    """Graphs with inputs and what the evaluator gives, and the programs made from them."""
    with new(GRAPH) as graphs, new(PROGRAM) as lowered:
        for name, (m, target, rules) in cases().items():
            xs = made_up.random_inputs(m, 0)
            npz.save({f"in.{n}": x for n, x in xs.items()}
                     | {f"out.{n}": y for n, y in interp.run(m, xs).items()},
                     graphs / f"{name}.npz")
            best = passes.run(m, supply={"target": target, "rules": rules})
            serial.save(best, graphs / f"{name}.graph.json")
            programs.save(lower(best, target, name="model"), lowered / f"{name}.program.json",
                          {w.digest: w for w in serial.collect_all(best.graph)})


def write_tuning() -> None:
    with new(TUNING) as folder:
        measured.save(measured.load(GOLDEN / "tuning.jsonl"), folder / "tuning.jsonl")


def write_builds(work: Path) -> None:
    """build.json of a model and of a training, and a checkpoint that the training left."""
    graph = work / "two.train.graph.json"
    rng = np.random.default_rng(0)
    npz.save({"x": rng.standard_normal((20, 4)).astype(np.float32),
              "y": rng.standard_normal((20, 3)).astype(np.float32)}, work / "two.npz")
    serial.save(training(two(), Recipe("mse", optimizer="adam")), graph)
    for args in (("build", str(graph), "-o", str(work / "t"), "--name", "two", "--march",
                  TARGET.march),
                 ("train", str(work / "t"), "--data", str(work / "two.npz"), "--epochs", "2",
                  "--batch", "5", "--val", "0.2", "--checkpoint", str(work / "run"), "--seed", "1",
                  "--threads", "1")):
        assert cli(list(args)) == 0
    with new(CHECKPOINT) as folder:
        for path in (work / "run" / "checkpoint.safetensors", *work.glob("two.train.*")):
            shutil.copy(path, folder)
    best = passes.run(cases()["model"][0], supply={"target": TARGET})
    build(best, work / "b", target=TARGET, name="model")
    with new(BUILD) as folder:
        shutil.copy(work / "b" / "build.json", folder / "model.build.json")
        shutil.copy(work / "t" / "build.json", folder / "training.build.json")


if __name__ == "__main__":
    write_models()
    write_tuning()
    with tempfile.TemporaryDirectory() as scratch:
        write_builds(Path(scratch))
