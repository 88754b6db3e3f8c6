"""The format policy: golden files of every released version are read, newer ones are refused."""

from __future__ import annotations

import json
import shutil
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.numpy

from graphtool import interp
from graphtool.cli.faults import run as cli
from graphtool.compile.as_is import build
from graphtool.errors import InputError
from graphtool.io import npz
from graphtool.io.manifest import read_manifest
from graphtool.io.release import install
from graphtool.io.versions import (
    BUILD,
    CHECKPOINT,
    FORMATS,
    GRAPH,
    PROGRAM,
    TUNING,
    Format,
)
from graphtool.ir import serial
from graphtool.kernels.choice import tuning as measured
from graphtool.kernels.choice.sites import site
from graphtool.loops import interp as loops
from graphtool.loops import serial as programs
from graphtool.target import named
from graphtool.train import checkpoint
from graphtool.train.model import TrainModel

GOLDEN = Path(__file__).parent / "golden"
PYPROJECT = Path(__file__).parents[2] / "pyproject.toml"


def release(text: str) -> tuple[int, ...]:
    return tuple(map(int, text.split(".")))


def kind(form: Format) -> str:
    return form.name.partition("/")[2]


def goldens(form: Format, pattern: str) -> list[Any]:
    """The files of a format's golden directories, all versions."""
    return [pytest.param(p, id=f"{p.parent.name}-{p.name}")
            for p in sorted((GOLDEN / kind(form)).glob(f"v*/{pattern}"))]


def agree(got: dict[str, Any], want: dict[str, Any]) -> None:
    for name, y in want.items():
        wide = (np.asarray(a).astype(np.float64) for a in (got[name], y))
        coarse = y.dtype.itemsize < 4 and y.dtype.kind not in "biu"
        np.testing.assert_allclose(*wide, rtol=2e-2 if coarse else 2e-4,
                                   atol=1e-2 if coarse else 2e-5)


def arrays(path: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """Inputs and outputs that the evaluator gave when the golden file was made."""
    found = npz.load(path)
    return ({k[3:]: x for k, x in found.items() if k.startswith("in.")},
            {k[4:]: x for k, x in found.items() if k.startswith("out.")})


# ---- the table ---------------------------------------------------------------------------------

@pytest.mark.parametrize("form", FORMATS, ids=kind)
def test_every_format_has_goldens(form: Format) -> None:
    """They are made once, by tests/io/write_golden.py, and then only read."""
    ours = release(tomllib.loads(PYPROJECT.read_text())["project"]["version"])
    assert release(form.since) <= ours
    for version in range(1, form.version + 1):
        assert any((GOLDEN / kind(form) / f"v{version}").iterdir())


# ---- what released versions wrote ---------------------------------------------------------------

@pytest.mark.parametrize("path", goldens(GRAPH, "*.graph.json"))
def test_graphs(path: Path) -> None:
    xs, want = arrays(path.with_name(path.name.removesuffix(".graph.json") + ".npz"))
    module = serial.load(path)
    agree(interp.run(module, xs), want)
    assert serial.loads(serial.dumps(module, embed=True)).history == module.history


def test_a_graph_keeps_its_tables() -> None:
    module = serial.load(GOLDEN / "graph" / "v1" / "model.graph.json")
    assert [g.kind for g in module.graph.groups] == ["template"] * 3 + ["nest"] * 4
    assert module.history["up.linear.matmul"] == ("simplify.matmul_of_transpose",)
    assert len(module.locations) == 8


@pytest.mark.parametrize("path", goldens(PROGRAM, "*.program.json"))
def test_programs(path: Path) -> None:
    name = path.name.removesuffix(".program.json")
    xs, want = arrays(GOLDEN / "graph" / path.parent.name / f"{name}.npz")
    program, store = programs.load(path)
    agree(loops.run(program, xs, store), want)


@pytest.mark.parametrize("path", goldens(BUILD, "*.build.json"))
def test_builds(path: Path, tmp_path: Path) -> None:
    shutil.copy(path, tmp_path / "build.json")
    manifest = read_manifest(tmp_path)
    assert manifest.steps and (manifest.training is not None) == path.name.startswith("training")


@pytest.mark.parametrize("path", goldens(TUNING, "*.jsonl"))
def test_tuning(path: Path) -> None:
    found = measured.load(path)
    times = found.find(site("product{batch=1,m=128,n=16,k=4}"), named("x86-64-v3", 4))
    assert {str(c): us for c, us in times} == {"blas": 1.5, "gemm{nv=1}": 0.06,
                                               "gemm{nv=2}": 0.0473}
    assert len(found.rows) == 4


@pytest.mark.parametrize("path", goldens(CHECKPOINT, "checkpoint.safetensors"))
def test_checkpoints(path: Path, tmp_path: Path) -> None:
    """The build is today's, of the graph that the checkpoint was made with."""
    module = serial.load(path.with_name("two.train.graph.json"))
    model = TrainModel(build(module, tmp_path / "b", name="two"), 1)
    shutil.copy(path, tmp_path)  # what goes on from a checkpoint completes the files beside it
    progress = checkpoint.restore(model, tmp_path)
    assert (progress["epoch"], progress["finished"], progress["order"]["seed"]) == (2, True, 1)
    saved = safetensors.numpy.load_file(path)
    assert {n: a.tolist() for n, a in model.state.items()} == {
        n: a.tolist() for n, a in saved.items()}


def test_joined_tuning_files(tmp_path: Path) -> None:
    """A head may stand anywhere: two files joined are one."""
    path = GOLDEN / "tuning" / "v1" / "tuning.jsonl"
    (tmp_path / "both").write_bytes(path.read_bytes() * 2)
    assert measured.load(tmp_path / "both").rows == measured.load(path).rows


# ---- what is refused ---------------------------------------------------------------------------

def _read_graph(head: dict[str, Any], folder: Path) -> None:
    serial.loads(json.dumps(head))


def _read_program(head: dict[str, Any], folder: Path) -> None:
    programs.loads(json.dumps(head))


def _read_build(head: dict[str, Any], folder: Path) -> None:
    (folder / "build.json").write_text(json.dumps(head))
    read_manifest(folder)


def _read_tuning(head: dict[str, Any], folder: Path) -> None:
    (folder / "t.jsonl").write_text(json.dumps(head) + "\n" + '{"site": 1}\n')
    measured.load(folder / "t.jsonl")


def _read_checkpoint(head: dict[str, Any], folder: Path) -> None:
    (folder / checkpoint.STATE).write_bytes(safetensors.numpy.save(
        {"a": np.zeros(1, np.float32)}, {"progress": json.dumps(head)}))
    checkpoint.restore(_Stateless(), folder)  # type: ignore[arg-type]


class _Stateless:
    def __init__(self) -> None:
        self.state: dict[str, Any] = {}


READERS: dict[str, Callable[[dict[str, Any], Path], None]] = {
    "graph": _read_graph, "program": _read_program, "build": _read_build,
    "tuning": _read_tuning, "checkpoint": _read_checkpoint}


@pytest.mark.parametrize("form", FORMATS, ids=kind)
def test_a_newer_file_names_the_release_it_needs(form: Format, tmp_path: Path) -> None:
    head = {"format": form.name, "version": form.version + 1, "since": "7.5.0"}
    with pytest.raises(InputError, match=r"needs graphtool 7\.5\.0 or newer") as found:
        READERS[kind(form)](head, tmp_path)
    assert (found.value.code, found.value.exit_code) == ("GT0334", 3)


@pytest.mark.parametrize("version", [None, 0, -1, True, "1", 1.0, [1]])
@pytest.mark.parametrize("form", FORMATS, ids=kind)
def test_a_version_is_a_number_from_1(form: Format, version: Any, tmp_path: Path) -> None:
    with pytest.raises(InputError) as found:
        READERS[kind(form)]({"format": form.name, "version": version}, tmp_path)
    assert found.value.code == form.malformed


@pytest.mark.parametrize("form", FORMATS, ids=kind)
def test_a_file_with_nothing_in_it(form: Format, tmp_path: Path) -> None:
    with pytest.raises(InputError):
        READERS[kind(form)]({"format": form.name, "version": 1}, tmp_path)


@pytest.mark.parametrize(("old", "new", "code"), [
    ('"op": "cond"', '"op": "fork"', "GT0401"), ('"n": 16', '"columns": 16', "GT0402"),
    ('"members"', '"nodes"', "GT0342"), ('"weights"', '"arrays"', "GT0342")])
def test_nothing_unknown_is_skipped(old: str, new: str, code: str, tmp_path: Path) -> None:
    shutil.copy(GOLDEN / "graph" / "v1" / "model.safetensors", tmp_path)
    text = (GOLDEN / "graph" / "v1" / "model.graph.json").read_text()
    assert old in text
    (tmp_path / "model.graph.json").write_text(text.replace(old, new))
    with pytest.raises(InputError) as found:
        serial.load(tmp_path / "model.graph.json")
    assert found.value.code == code


def test_the_command_line_says_it_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "m.graph.json"
    path.write_text('{"format": "graphtool/graph", "version": 77, "since": "9.0.0"}')
    assert cli(["show", str(path)]) == 3
    assert install(least="9.0.0") in capsys.readouterr().err


def test_what_is_written_names_its_release() -> None:
    text = serial.dumps(serial.load(GOLDEN / "graph" / "v1" / "casts.graph.json"))
    head = json.loads(text)
    assert {k: head[k] for k in GRAPH.head} == GRAPH.head
