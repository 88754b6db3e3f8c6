"""A build as two files of C: one command compiles them, and they compute what the many files do."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import graphtool
from graphtool.analysis import made_up
from graphtool.compile import build as compiling
from graphtool.compile.as_is import build
from graphtool.compile.options import Build
from graphtool.compile.source import Source
from graphtool.compile.unit import unit_of
from graphtool.emit.single import folded, single
from graphtool.errors import UsageError
from graphtool.ir.graph import Module
from graphtool.native import runtime
from graphtool.target import named
from graphtool.train.model import TrainModel
from graphtool.transforms.training import Recipe, training
from tests.compilers import run_compiler
from tests.emit.test_any_compiler import MODELS, widest
from tests.passes.pass_samples import SAMPLES, module

TARGET = named("x86-64-v3")
QUIET = ("-Wall", "-Wextra", "-Werror", "-Wno-psabi", "-O1")


def compiled(folder: Path, *sources: str, cc: str = "gcc", std: str = "c99") -> Path:
    """A program from these files alone, moved away from the rest of the build."""
    if shutil.which(cc) is None:
        pytest.skip(f"{cc} is not installed")
    away = folder / "away"
    away.mkdir(exist_ok=True)
    for file in sources:
        shutil.copy(folder / file, away)
    run_compiler([cc, f"-std={std}", *QUIET, *(f for f in sources if f.endswith(".c")),
                  "-lm", "-lpthread", "-o", "program"], away).check_returncode()
    return away / "program"


def equal(one: Path, many: Path, model: Module, **given: Any) -> None:
    xs = made_up.random_inputs(model, 3, {s: 5 for s in model.symbols})
    got, want = (runtime.load(b, 1, **given).run(xs) for b in (one, many))
    for key, array in want.items():
        np.testing.assert_allclose(got[key], array, rtol=1e-5, atol=1e-6)


@pytest.mark.part(3)
@pytest.mark.parametrize("name", MODELS)
def test_it_computes_the_same(name: str, tmp_path: Path) -> None:
    model = MODELS[name]()
    one, many = (graphtool.build(model, tmp_path / f"{n}", target=TARGET, name="m", single=n)
                 for n in (True, False))
    assert sorted(p.suffix for p in one.iterdir() if p.suffix in (".c", ".h")) == [
        ".c", ".c", ".h"]
    equal(one, many, model)


@pytest.mark.part(2)
@pytest.mark.parametrize("cc", ["gcc", "clang"])
@pytest.mark.parametrize("weights", ["file", "embed", "c"])
def test_one_command_compiles_it(weights: Any, cc: str, tmp_path: Path) -> None:
    path = graphtool.build(SAMPLES["convnet"], tmp_path / "b", target=TARGET, name="m", single=True,
                 weights=weights)
    names = {p.name for p in path.iterdir()}
    assert ("m.safetensors" in names) == (weights == "file") and "m_weights.bin" not in names
    program = compiled(path, "m.c", "m.h", "m_example.c", cc=cc)
    given = [path / "m.safetensors"] if weights == "file" else []
    said = subprocess.run([program, *given], check=True, capture_output=True, text=True).stdout
    assert said.startswith("outputs[0]:")


def test_pedantic_compilers_say_no_more(tmp_path: Path) -> None:
    def said(single: bool) -> set[str]:
        path = graphtool.build(SAMPLES["convnet"], tmp_path / f"{single}", target=TARGET,
                               single=single)
        found = subprocess.run(["gcc", "-std=c99", "-pedantic", "-Wall", "-Wextra", "-Wno-psabi",
                                "-fsyntax-only", *sorted(p.name for p in path.glob("*.c"))],
                               cwd=path, capture_output=True, text=True, check=True).stderr
        lines = [line.partition(" warning: ")[2] for line in found.splitlines()]
        return {line for line in lines if line}
    assert said(True) <= said(False)


def test_a_program_with_files(tmp_path: Path) -> None:
    path = graphtool.build(SAMPLES["convnet"], tmp_path / "b", target=TARGET, name="m", single=True,
                 weights="embed", exe=True)
    program = compiled(path, "m.c", "m.h", "m_main.c", std="gnu11")
    xs = made_up.random_inputs(SAMPLES["convnet"], 1)
    np.savez(tmp_path / "in.npz", **xs)
    subprocess.run([program, tmp_path / "in.npz", "-o", tmp_path / "out.npz"], check=True)
    want = runtime.load(path).run(xs)
    for key, array in dict(np.load(tmp_path / "out.npz")).items():
        np.testing.assert_allclose(array, want[key], rtol=1e-5, atol=1e-6)


def test_several_entry_points(tmp_path: Path) -> None:
    """Each has a driver with types of the same names."""
    models = {"wide": module(widest, "f32[B,24]"), "one": module(widest, "f32[1,24]")}
    one, many = (graphtool.build(models, tmp_path / f"{n}", target=TARGET, name="m", single=n)
                 for n in (True, False))
    for entry, model in models.items():
        equal(one, many, model, entry=entry)
    program = compiled(one, "m.c", "m.h", "m_example.c")
    subprocess.run([program, one / "m.safetensors"], check=True)


def test_training(tmp_path: Path) -> None:
    graph = training(module(widest, "f32[B,24]"), Recipe("mse", optimizer="adam"))
    rng = np.random.default_rng(0)
    x, y = (rng.standard_normal((5, n)).astype(np.float32) for n in (24, 33))

    def losses(single: bool) -> list[float]:
        path = build(graph, tmp_path / f"{single}", target=TARGET, single=single, exe=True)
        model = TrainModel(path, 1)
        return [float(model.step({model.inputs[0]: x, "y": y}, 0.01)) for _ in range(3)]
    np.testing.assert_allclose(losses(True), losses(False), rtol=1e-5)
    compiled(tmp_path / "True", "model.c", "model.h", "model_main.c", std="gnu11")


def test_emit_writes_the_same_c(tmp_path: Path) -> None:
    how = Build(target=TARGET, single=True, weights="embed", threads_by="none")
    unit = unit_of(Source(SAMPLES["convnet"]), how, "m")
    compiling.emit(unit, tmp_path / "e", how)
    built = compiling.build(unit, tmp_path / "b", how).path
    assert sorted(p.name for p in (tmp_path / "e").iterdir()) == ["m.c", "m.h", "m_example.c"]
    assert all((built / p.name).read_bytes() == p.read_bytes() for p in (tmp_path / "e").iterdir())


def test_what_cannot_be_one_file(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as found:
        graphtool.build(SAMPLES["convnet"], tmp_path / "b", target="fat", single=True)
    assert found.value.code == "GT3054"
    with pytest.raises(UsageError) as found:
        graphtool.build(SAMPLES["convnet"], tmp_path / "b", single=True, debug_lines=True)
    assert found.value.code == "GT2116"
    settings = {f"m_{k}_kernels.h": f"#ifndef M_{k.upper()}_KERNELS_H\n#define GT_LANES {n}\n"
                                    "#endif\n" for k, n in (("a", 4), ("b", 8))}
    with pytest.raises(UsageError) as found:
        single("m", {"m.h": "#ifndef M_H\n#define M_H\n#endif\n", "m.c": "", **settings})
    assert found.value.code == "GT2116"


def test_what_a_condition_may_leave_out_comes_again() -> None:
    """Also a header that is included by the header under the condition."""
    def header(name: str, text: str) -> str:
        return f"#ifndef {name}_H\n#define {name}_H\n{text}\n#endif\n"
    texts = {"inner.h": header("INNER", "typedef int inner;"),
             "outer.h": header("OUTER", '#include "inner.h"'),
             "a.c": '#ifdef MORE\n#include "outer.h"\n#endif\n#include "inner.h"\ninner x;\n'
                    '#include "inner.h"\n'}
    assert folded("a.c", texts).count("typedef int inner;") == 2
