"""Readers are total: a changed file is read, or refused by one error with a code."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

import graphtool.kernels  # noqa: F401  (fills the tables that the readers ask)
from graphtool.emit.c import emit
from graphtool.errors import InputError
from graphtool.io.manifest import read_manifest
from graphtool.ir import serial
from graphtool.kernels.choice import tuning
from graphtool.loops import serial as programs
from graphtool.native.build import build
from graphtool.native.runtime import Model
from graphtool.target import named as target
from graphtool.train import checkpoint
from tests.emit.samples import layer
from tests.io.mutations import explore
from tests.io.test_crashes import fake

GOLDEN = Path(__file__).parent / "golden"


def read_graph(path: Path) -> None:
    module = serial.load(path)
    serial.dumps(module, embed=True)


def read_weights(path: Path) -> None:
    read_graph(path.with_suffix(".graph.json"))


def read_program(path: Path) -> None:
    program, store = programs.load(path)
    emit(program)
    for w in store.values():
        _ = w.source


def read_build(path: Path) -> None:
    read_manifest(path.parent)
    Model(path.parent, 1)


def read_checkpoint(path: Path) -> None:
    model = fake(0)
    checkpoint.read(path)
    checkpoint.restore(model, path.parent)


def named(folder: str, ending: str) -> Callable[[], list[Path]]:
    return lambda: sorted((GOLDEN / folder).glob(f"*{ending}"))


def listings() -> list[Path]:
    folder = Path(tempfile.mkdtemp())
    for p in named("graph/v2", ".graph.json")():
        serial.save(serial.load(p), folder / p.name.replace(".graph.json", ".gt"))
    return sorted(folder.glob("*.gt"))


CASES = {  # each ended in an internal error once
    "an operand that is an object": ("in", lambda n: n["in"].append({})),
    "an operand that is null": ("in", lambda n: n.update({"in": [None]})),
    "a number for a tensor": ("in", lambda n: n.update({"in": [3]})),
    "an operand too many": ("in", lambda n: n["in"].extend(n["in"] * 3)),
    "an attribute that no type fits": ("attrs", lambda n: n["attrs"].update(
        {k: {"x": []} for k in n["attrs"]})),
    "an attribute that is null": ("attrs", lambda n: n["attrs"].update(dict.fromkeys(n["attrs"]))),
    "a float in an attribute": ("attrs", lambda n: n["attrs"].update(
        {k: 1e308 for k in n["attrs"]})),
    "ragged pairs": ("attrs", lambda n: n["attrs"].update({k: [[1, 2], [1]] for k in n["attrs"]})),
    "a longer tuple": ("attrs", lambda n: n["attrs"].update({k: [1] * 9 for k in n["attrs"]})),
    "half of a character": ("id", lambda n: n.update({"id": "\ud800"}))}


@pytest.mark.parametrize("case", CASES)
def test_every_node_with_a_fault(case: str, tmp_path: Path) -> None:
    field, change = CASES[case]
    seen = 0
    for sample in named("graph/v2", ".graph.json")():
        for p in sample.parent.glob("*.safetensors"):
            shutil.copy(p, tmp_path)
        document = json.loads(sample.read_text())
        for n, node in enumerate(document["nodes"]):
            if field not in node:
                continue
            broken = json.loads(sample.read_text())
            change(broken["nodes"][n])
            path = tmp_path / sample.name
            path.write_text(json.dumps(broken))
            with suppress(InputError):
                serial.load(path)
                continue
            seen += 1
    assert seen > 20


@pytest.mark.parametrize("text", ["4 */ int x; /*", "0", "-4", "4\n", "1_6", "x86", ""])
def test_what_a_program_says_of_lanes_is_a_number(text: str, tmp_path: Path) -> None:
    document = json.loads((GOLDEN / "program/v2/attend.program.json").read_text())
    document["meta"]["lanes"] = text
    with pytest.raises(InputError) as found:
        programs.loads(json.dumps(document))
    assert found.value.code == "GT0379"


def builds() -> list[Path]:
    folder = Path(tempfile.mkdtemp()) / "m"
    build(layer("generic"), folder, target=target("generic"))
    return [folder / "build.json"]


def checkpoints() -> list[Path]:
    folder = Path(tempfile.mkdtemp())
    checkpoint.save(fake(1), folder, {"epoch": 1, "order": {"seed": 0}})
    return [folder / checkpoint.STATE]


Read, Samples = Callable[[Path], None], Callable[[], list[Path]]
KINDS: dict[str, tuple[Read, Samples]] = {
    "graph": (read_graph, named("graph/v2", ".graph.json")),
    "weights": (read_weights, named("graph/v2", ".safetensors")),
    "listing": (read_graph, listings),
    "program": (read_program, named("program/v2", ".program.json")),
    "build": (read_build, builds),
    "tuning": (lambda p: np.asarray(tuning.load(p)), named("tuning/v2", ".jsonl")),
    "checkpoint": (read_checkpoint, checkpoints)}


@pytest.mark.parametrize("kind", KINDS)
def test_a_mutated_file_is_read_or_refused(kind: str) -> None:
    read, samples = KINDS[kind]
    found, bad = explore(read, samples(), 150)
    assert bad == []
    assert found["refused"] > 20


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_thousands_of_mutated_files(kind: str) -> None:
    read, samples = KINDS[kind]
    assert explore(read, samples(), 5000, 1_000_000)[1] == []
