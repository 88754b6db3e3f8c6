"""The kinds of files that graphtool reads: how each is read as a whole, and samples to change."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

import graphtool.kernels  # noqa: F401  (fills the tables that the readers ask)
from benchmarks.jobs import PROJECT
from graphtool import machines
from graphtool.compile.as_is import build
from graphtool.emit.c import emit
from graphtool.io.manifest import read_manifest
from graphtool.ir import serial
from graphtool.kernels.choice import tuning
from graphtool.language import tokenizer
from graphtool.loops import serial as programs
from graphtool.native.runtime import Model
from graphtool.passes import journal
from graphtool.report import bench
from graphtool.target import named as target
from graphtool.train import checkpoint
from graphtool.train.model import TrainModel
from graphtool.transforms.training import training
from graphtool.transforms.training.recipe import Recipe
from tests.lab.fuzz.foreign_kinds import FOREIGN

GOLDEN = PROJECT / "tests/io/golden"
Read = Callable[[Path], object]
Samples = Callable[[], list[Path]]


def read_graph(path: Path) -> None:
    """A graph, a listing, or what lies beside it, and its text again."""
    serial.dumps(serial.load(path), embed=True)


def read_weights(path: Path) -> None:
    """The weights of the graph beside them."""
    read_graph(path.with_suffix(".graph.json"))


def read_program(path: Path) -> None:
    """A program, its C, and all its weights."""
    program, store = programs.load(path)
    emit(program)
    for w in store.values():
        _ = w.source


def read_build(path: Path) -> None:
    """A manifest, and the library that it describes."""
    read_manifest(path.parent)
    Model(path.parent, 1)


def trained(mark: float) -> Any:
    """What a checkpoint is made of: some weights, all of one value, and a counter."""
    state = {"w": np.full(600, mark), "step": np.array(3)}
    return SimpleNamespace(state=state, fixed={}, row=SimpleNamespace(model={"w": ["w"]}))


def read_checkpoint(path: Path) -> None:
    """A checkpoint, into the state that it was made of."""
    checkpoint.read(path)
    checkpoint.restore(trained(0), path.parent)


def named(folder: str, ending: str) -> Samples:
    """The files of every format's samples."""
    return lambda: sorted((GOLDEN / folder).glob(f"*{ending}"))


def listings() -> list[Path]:
    """The graphs as listings."""
    folder = Path(tempfile.mkdtemp())
    for p in named("graph/v1", ".graph.json")():
        serial.save(serial.load(p), folder / p.name.replace(".graph.json", ".gt"))
    return sorted(folder.glob("*.gt"))


def builds() -> list[Path]:
    """The manifest of a build."""
    folder = Path(tempfile.mkdtemp()) / "m"
    build(serial.load(GOLDEN / "graph/v1/model.graph.json"), folder, target=target("generic"))
    return [folder / "build.json"]


def read_trainer(path: Path) -> None:
    """The manifest of a training build, and the library, which makes its state."""
    TrainModel(path.parent, 1)


def trainers() -> list[Path]:
    """The manifest of a training build."""
    folder = Path(tempfile.mkdtemp()) / "m"
    recipe = Recipe("mse", ("up.bias", "down.bias"), "sgd")
    build(training(serial.load(GOLDEN / "graph/v1/model.graph.json"), recipe), folder,
          target=target("generic"))
    return [folder / "build.json"]


def checkpoints() -> list[Path]:
    """The state of a training."""
    folder = Path(tempfile.mkdtemp())
    checkpoint.save(trained(1), folder, {"epoch": 1, "order": {"seed": 0}})
    return [folder / checkpoint.STATE]


def read_tokenizer(path: Path) -> None:
    """A tokenizer, and what it makes of a text."""
    found = tokenizer.load(path)
    assert found.decode(found.encode("a mutated text")) == b"a mutated text"


def tokenizers() -> list[Path]:
    """A tokenizer with merges of merges."""
    path = Path(tempfile.mkdtemp()) / "tokens.json"
    tokenizer.save(tokenizer.train("the text of a text " * 20, 300), path)
    return [path]


def read_machine(path: Path) -> None:
    """A measured machine."""
    machines.machine(str(path))


def machine_files() -> list[Path]:
    """A row of the table of machines."""
    path = Path(tempfile.mkdtemp()) / "machine.json"
    path.write_text(next(iter(machines.table().values())).line() + "\n")
    return [path]


def base_files() -> list[Path]:
    """The times of a build."""
    path = Path(tempfile.mkdtemp()) / "base.json"
    bench.save(bench.fresh("m", 2, {"batch": 8}), path, [1.0, 1.1, 1.2] * 20)
    return [path]


def read_base(path: Path) -> None:
    """The times of a build, and a comparison with them."""
    base = bench.read_base(path)
    bench.against_base(base, path, [1.0, 1.1] * 20, 0.1)


def journals() -> list[Path]:
    """What passes did."""
    path = Path(tempfile.mkdtemp()) / "journal.jsonl"
    journal.write_journal(path, [journal.Event(1, "fold", "", "", "x", ["x"], "a", "b", "m.py:1")])
    return [path]


KINDS: dict[str, tuple[Read, Samples]] = {
    "graph": (read_graph, named("graph/v1", ".graph.json")),
    "weights": (read_weights, named("graph/v1", ".safetensors")),
    "listing": (read_graph, listings),
    "program": (read_program, named("program/v1", ".program.json")),
    "build": (read_build, builds),
    "trainer": (read_trainer, trainers),
    "tuning": (tuning.load, named("tuning/v1", ".jsonl")),
    "checkpoint": (read_checkpoint, checkpoints),
    "tokenizer": (read_tokenizer, tokenizers),
    "machine": (read_machine, machine_files),
    "base": (read_base, base_files),
    "journal": (journal.read_journal, journals), **FOREIGN}
