"""One way to compile: what emit writes is what build compiles, an option is one field, and each
refusal stands with its option."""

from __future__ import annotations

import inspect
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.main import get_command

import graphtool
from graphtool.cli.app import app
from graphtool.compile.option import given, options_of
from graphtool.compile.options import (
    ENTRIES,
    KINDS,
    LEVELS,
    MODEL,
    PROGRAM,
    TRAINING,
    Build,
    refuse,
)
from graphtool.compile.source import Source
from graphtool.compile.unit import unit_of
from graphtool.errors import UsageError
from graphtool.ir.serial import collect_all
from graphtool.loops import serial
from graphtool.target import named
from tests.cli.conftest import Cli


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sources")
    g = graphtool.Graph(n=(1, None))
    w = g.add_const(np.float32([[0.5, 1], [2, -1]]), "w", trainable=True)
    g.add_output(g.add_op("matmul", g.add_input("x", "f32[n,2]"), w), "y")
    module = g.module()
    graphtool.write(module, folder / "m.graph.json")
    fused = graphtool.optimize(module, target="x86-64")
    serial.save(graphtool.lower_model(fused, name="p", target="x86-64"), folder / "p.program.json",
                {c.digest: c for c in collect_all(fused.graph)})
    graphtool.write(graphtool.grad(module, graphtool.Recipe("mse", optimizer="sgd")),
                    folder / "t.graph.json")
    return folder


@pytest.mark.parametrize("line", [
    "{0}/m.graph.json --precision strict --passes decompose,select,fuse --weights c "
    "--threads-by none",
    "{0}/p.program.json --exe", "a={0}/m.graph.json b={0}/m.graph.json --debug-lines",
    "{0}/t.graph.json --no-index-checks"], ids=["model", "program", "entries", "training"])
def test_emit_writes_what_build_compiles(line: str, files: Path, tmp_path: Path, gt: Cli,
                                         monkeypatch: pytest.MonkeyPatch) -> None:
    def compiled(work: Path, name: str, *_: Any, **how: Any) -> dict[str, Any]:
        """An empty library: others test the compiling."""
        (work / f"lib{name}.so").touch()
        return {"library": f"lib{name}.so", "compiler": "none", "flags": []}
    monkeypatch.setattr("graphtool.compile.build.compile_all", compiled)
    args = [*line.format(files).split(), "--march", "x86-64"]
    assert gt("build", *args, "-o", tmp_path / "b").code == 0
    assert gt("emit", *args, "-o", tmp_path / "c").code == 0
    emitted = {p.name: p.read_bytes() for p in (tmp_path / "c").iterdir()}
    built = {p.name: p.read_bytes() for p in (tmp_path / "b").iterdir()}
    assert emitted.items() <= built.items()
    assert {n for n in built if n.endswith((".c", ".h"))} <= set(emitted)


def test_emit_leaves_no_kernels_of_an_earlier_text(files: Path, tmp_path: Path, gt: Cli) -> None:
    out = tmp_path / "c"
    out.mkdir()
    for name in ("m_kernels7.c", "m_kernels7.c.mine", "m_main.c", "n_kernels7.c"):
        (out / name).write_text("mine")
    assert gt("emit", files / "m.graph.json", "--name", "m", "--march", "x86-64", "-o", out
              ).code == 0
    left = {p.name for p in out.iterdir()}
    assert "m_kernels7.c" not in left
    assert {"m_kernels0.c", "m_kernels7.c.mine", "m_main.c", "n_kernels7.c"} <= left


def test_the_command_line_and_the_api_have_every_option() -> None:
    names = {name for name, _, _ in options_of(Build)}
    program: Any = get_command(app)
    for verb in ("build", "emit"):
        assert names < {p.name for p in program.commands[verb].params}
    assert names == set(inspect.signature(graphtool.build).parameters) - {"source", "out_dir"}


OTHER = {"target": "x86-64", "index_checks": False, "threads_by": "none", "jobs": 1, "weights": "c"}
CASES = [(name, kind) for name, _, found in options_of(Build) for kind in found.refused]


@pytest.mark.parametrize(("name", "kind"), CASES, ids=[f"{n} {k}" for n, k in CASES])
def test_each_refusal(name: str, kind: str) -> None:
    how = replace(Build(), **{name: OTHER.get(name, True)})
    ((word, found),) = given(how)
    with pytest.raises(UsageError) as caught:
        refuse(how, kind, "m")
    assert caught.value.code == KINDS[kind][1]
    assert word in caught.value.message and caught.value.hint == found.refused[kind]


def test_units_refuse(files: Path) -> None:
    """What is found out from the sources themselves."""
    model, step = (Source(graphtool.read(files / f"{n}.graph.json")) for n in "mt")
    program = Source(program=graphtool.lower_model(graphtool.optimize(model.module)))
    fat = Build(target="fat")
    for source, how, code in ((step, fat, "GT3054"), (program, fat, "GT3054"),
                              ({"a": step}, Build(), "GT3055"), ({"a": model}, fat, "GT3055"),
                              (model, Build(mpi=True), "GT3052"),
                              (model, Build(weights="nowhere"), "GT2113"),
                              ({"load": model}, Build(), "GT2110")):
        with pytest.raises(UsageError) as caught:
            unit_of(source, how, "m")
        assert caught.value.code == code


def test_kinds_of_units(files: Path) -> None:
    model, step = (Source(graphtool.read(files / f"{n}.graph.json")) for n in "mt")
    found = [unit_of(s, h, "m") for s, h in (
        (model, Build()), (model, Build(target="fat")), ({"a": model}, Build()), (step, Build()))]
    assert [u.kind for u in found] == [MODEL, LEVELS, ENTRIES, TRAINING]
    assert list(found[3].entries) == ["step", "loss", "predict", "init"] and found[3].state
    assert found[0].target == named("native") and len(found[1].targets) > 3
    assert set(KINDS) == {MODEL, LEVELS, ENTRIES, TRAINING, PROGRAM}
