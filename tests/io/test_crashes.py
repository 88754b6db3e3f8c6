"""A writer that is killed anywhere leaves the old artifact or the new one whole, and the next
writer cleans up."""

from __future__ import annotations

import errno
import itertools
import os
import random
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from graphtool import ops as o
from graphtool.cli.pipeline import Watch
from graphtool.dtypes import float32
from graphtool.errors import InputError
from graphtool.exporters.onnx import export_onnx
from graphtool.io import directory, files
from graphtool.io.directory import replacing, write_files
from graphtool.ir import serial
from graphtool.ir.graph import Module, TensorType, is_constant
from graphtool.ir.trace import trace
from graphtool.kernels.choice import tuning
from graphtool.kernels.choice.rules import rules_of
from graphtool.loops import serial as programs
from graphtool.lower import lower
from graphtool.target import named
from graphtool.train import checkpoint
from tests.io.crashes import fail_points, kept, kill_points, leftovers
from tests.lab.fuzz.artifact_kinds import trained

TARGET = named("x86-64", 2)
FIXED = np.arange(600, dtype=np.float32)


def model(mark: float) -> Module:
    """x * [mark, mark, …] + [0, 1, 2, …]: two large constants, one of which both models share."""
    def body(x: Any) -> Any:
        return o.add(o.mul(x, x.builder.constant(np.full(600, mark, np.float32))),
                     x.builder.constant(FIXED))
    return Module(trace(body, [TensorType(float32, (600,))]), ("y",))


def told(path: Path) -> float:
    """Which model stands there; all its data must be there, and right."""
    found = [n.attrs["data"].source for n in serial.load(path).graph.nodes if is_constant(n)]
    assert len(found) == 2 and any((x == FIXED).all() for x in found)
    return float(next(x[0] for x in found if x[0] == x[1]))


def told_program(path: Path) -> float:
    program, store = programs.load(path)
    data = [store[d].source for _, d in program.weights]
    assert len(data) == 2
    return float(next(x[0] for x in data if x[0] == x[1]))


def told_onnx(path: Path) -> float:
    found = [onnx.numpy_helper.to_array(t) for t in onnx.load(path).graph.initializer]
    assert any((x == FIXED).all() for x in found)
    return float(next(x[0] for x in found if x[0] == x[1]))


def told_file(path: Path) -> float:
    return float(path.read_text())


def told_directory(path: Path) -> float:
    found = {p.name: p.read_text() for p in path.rglob("*") if p.is_file()}
    texts = set(found.values())
    assert len(texts) == 1 and {"a", "build.json", "0-import"} <= set(found)
    return float(texts.pop())


def told_emitted(path: Path) -> float:
    assert (path / "main.c").read_text() == "the user's"
    texts = {(path / name).read_text() for name in ("m.c", "m.h")}
    assert len(texts) == 1
    return float(texts.pop())


def told_beside_folders(path: Path) -> float:
    """As above; the user's directories are there, and whole."""
    assert (path / "build" / "x.o").read_text() == (path / ".git" / "a" / "b").read_text() == "mine"
    return told_emitted(path)


def write_directory(path: Path, mark: float) -> None:
    with replacing(path) as work:
        for name in ("a", "build.json"):
            (work / name).write_text(str(mark))
        (work / "stages").mkdir()
        (work / "stages" / "0-import").write_text(str(mark))


def write_emitted(path: Path, mark: float) -> None:
    write_files(path, {"m.c": str(mark), "m.h": str(mark)})
    (path / "main.c").write_text("the user's")


def write_beside_folders(path: Path, mark: float) -> None:
    for file in ("build/x.o", ".git/a/b"):
        (path / file).parent.mkdir(parents=True, exist_ok=True)
        (path / file).write_text("mine")
    write_emitted(path, mark)


def write_program(path: Path, mark: float) -> None:
    module = model(mark)
    programs.save(lower(module, TARGET), path,
                  {n.attrs["data"].digest: n.attrs["data"] for n in module.graph.nodes
                   if is_constant(n)})


def write_dump(path: Path, mark: float) -> None:
    path.parent.mkdir(exist_ok=True)
    Watch(model(mark), "dce,cse", None, path.parent, TARGET, rules_of("default", "generated")).run()


def write_tuning(path: Path, mark: float) -> None:
    tuning.save(tuning.merged([tuning.Row("conv", "f32", "rows", "avx", 1, 2, 3, 4,
                                          us={"gemm{mr=4,nv=2}": mark})]), path)


def told_tuning(path: Path) -> float:
    return float(next(iter(next(iter(tuning.load(path).rows.values())).us.values())))


def write_checkpoint(path: Path, mark: float) -> None:
    path.parent.mkdir(exist_ok=True)
    checkpoint.save(trained(mark), path.parent, {"epoch": mark})


def told_checkpoint(path: Path) -> float:
    read = trained(0)
    progress = checkpoint.restore(read, path.parent)
    assert len(set(read.state["w"])) == 1 and read.state["w"][0] == progress["epoch"]
    beside = checkpoint.read(path.parent / checkpoint.MODEL)["w"]  # whole, or of the save before
    assert len(set(beside)) == 1
    return float(progress["epoch"])


Write, Told = Callable[[Path, float], Any], Callable[[Path], float]
WRITERS: dict[str, tuple[str, Write, Told]] = {
    "graph": ("m.graph.json", lambda p, mark: serial.save(model(mark), p), told),
    "listing": ("m.gt", lambda p, mark: serial.save(model(mark), p), told),
    "program": ("m.program.json", write_program, told_program),
    "onnx": ("m.onnx", lambda p, mark: export_onnx(model(mark), p, external=True), told_onnx),
    "file": ("m.txt", lambda p, mark: files.write_bytes(p, str(mark).encode()), told_file),
    "build": ("m", write_directory, told_directory),
    "emit": ("m", write_emitted, told_emitted),
    "emit beside folders": ("m", write_beside_folders, told_beside_folders),
    "dump": ("dump/000-input.graph.json", write_dump, told),
    "tuning": ("m.jsonl", write_tuning, told_tuning),
    "checkpoint": ("run/checkpoint.safetensors", write_checkpoint, told_checkpoint)}


@pytest.mark.parametrize("kind", WRITERS)
def test_a_killed_writer_leaves_the_old_or_the_new(kind: str, tmp_path: Path) -> None:
    name, write, which = WRITERS[kind]
    folder = tmp_path / "work"
    folder.mkdir()
    write(folder / name, 1)
    found = []
    with kept(folder) as restore:
        for _ in kill_points(lambda: write(folder / name, 2)):
            found.append(which(folder / name))
            write(folder / name, 2)  # the next run
            assert which(folder / name) == 2 and leftovers(folder) == []
            restore()
    assert found[0] == 1 and found[-1] == 2 and found == sorted(found)


@pytest.mark.parametrize("number", [
    errno.ENOSPC, pytest.param(errno.EIO, marks=pytest.mark.slow)], ids=["full", "broken"])
@pytest.mark.parametrize("kind", [
    pytest.param(k, marks=pytest.mark.slow) if k in ("dump", "emit beside folders") else k
    for k in WRITERS])
def test_a_failing_writer_leaves_the_old_or_the_new(kind: str, number: int, tmp_path: Path) -> None:
    """Whatever step fails: one clear error, a whole artifact, and nothing left by the next run."""
    name, write, which = WRITERS[kind]
    folder = tmp_path / "work"
    folder.mkdir()
    write(folder / name, 1)
    with kept(folder) as restore:
        for _ in fail_points(lambda: write(folder / name, 2), number):
            assert which(folder / name) in (1, 2)
            write(folder / name, 2)
            assert which(folder / name) == 2 and leftovers(folder) == []
            restore()


def test_without_an_exchange_of_directories(tmp_path: Path,
                                            monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(directory, "exchange", lambda a, b: False)
    folder = tmp_path / "work"
    folder.mkdir()
    write_directory(folder / "m", 1)
    with kept(folder) as restore:
        for _ in kill_points(lambda: write_directory(folder / "m", 2)):
            directory.recover(folder / "m")
            assert told_directory(folder / "m") in (1, 2)
            write_directory(folder / "m", 2)
            assert leftovers(folder) == []
            restore()


def test_documents_of_one_stem_share_the_weights(tmp_path: Path) -> None:
    serial.save(model(1), tmp_path / "m.graph.json")
    serial.save(model(2), tmp_path / "m.gt")
    assert told(tmp_path / "m.graph.json") == 1 and told(tmp_path / "m.gt") == 2
    assert len(set(os.listdir(tmp_path))) == 3
    serial.save(model(2), tmp_path / "m.graph.json")
    serial.save(model(2), tmp_path / "n.graph.json")
    same = [(tmp_path / f"{n}.safetensors").read_bytes() for n in "mn"]
    assert same[0] == same[1]  # nothing of the first model is left
    (tmp_path / "copy.graph.json").write_bytes((tmp_path / "m.graph.json").read_bytes())
    serial.save(model(3), tmp_path / "m.graph.json")
    assert [told(tmp_path / f"{n}.graph.json") for n in ("copy", "m")] == [2, 3]


def test_weights_that_nothing_needs_are_deleted(tmp_path: Path) -> None:
    path = tmp_path / "m.graph.json"
    serial.save(model(1), path)
    small = Module(trace(lambda x: o.exp(x), [TensorType(float32, (2,))]), ("y",))
    serial.save(small, path)
    assert os.listdir(tmp_path) == ["m.graph.json"]


def test_the_weights_of_others_are_not_overwritten(tmp_path: Path) -> None:
    from safetensors.numpy import save_file
    save_file({"w": FIXED}, tmp_path / "model.safetensors")
    with pytest.raises(InputError) as found:
        serial.save(model(1), tmp_path / "model.graph.json")
    assert found.value.code == "GT0337" and os.listdir(tmp_path) == ["model.safetensors"]


def test_a_broken_weights_file_is_written_anew(tmp_path: Path) -> None:
    path = tmp_path / "m.graph.json"
    for damage in (b"", b"junk", b"\xff" * 100):
        (tmp_path / "m.safetensors").write_bytes(damage)
        serial.save(model(1), path)
        assert told(path) == 1
    whole = (tmp_path / "m.safetensors").read_bytes()
    (tmp_path / "m.safetensors").write_bytes(whole[:-99] + b"\1" + whole[-98:])
    serial.save(model(1), path)
    assert (tmp_path / "m.safetensors").read_bytes() == whole


def test_a_device_is_written_to_as_it_is() -> None:
    files.write_bytes(Path("/dev/null"), b"nothing")
    assert Path("/dev/null").is_char_device()


def test_what_lies_beside_is_not_swept(tmp_path: Path) -> None:
    mine = [".m.txt.original", ".m.txt.12345678", ".m.txt.1234.part", "m.1.part"]
    for name in mine:
        (tmp_path / name).write_text("the user's")
    files.write_bytes(tmp_path / "m.txt", b"1")
    assert sorted(os.listdir(tmp_path)) == sorted([*mine, "m.txt"])


@pytest.mark.slow
@pytest.mark.parametrize("kind", WRITERS)
def test_kills_at_random_moments(kind: str, tmp_path: Path) -> None:
    name, write, which = WRITERS[kind]
    write(tmp_path / name, 1)
    choice = random.Random(0)
    for _ in range(60):
        child = os.fork()
        if child == 0:
            try:
                for mark in itertools.count(2):
                    write(tmp_path / name, mark)
            finally:  # the child must not go on with its parent's tests
                os._exit(1)
        time.sleep(choice.random() / 30)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        assert which(tmp_path / name) >= 1
    write(tmp_path / name, 1)
    assert which(tmp_path / name) == 1 and leftovers(tmp_path) == []
