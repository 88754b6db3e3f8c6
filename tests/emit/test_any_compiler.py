"""The emitted C is right with any flags, or refuses them in a sentence: nothing it relies on is
known to the build directory alone."""

from __future__ import annotations

import platform
import shutil
import subprocess
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import graphtool
from graphtool import interp, passes
from graphtool import ops as o
from graphtool.analysis import made_up
from graphtool.compile.as_is import build
from graphtool.ir import serial
from graphtool.ir.graph import Module
from graphtool.native import runtime
from graphtool.train.model import TrainModel
from graphtool.transforms.training import Recipe, training
from tests.compilers import run_compiler
from tests.lower.compiling import faults
from tests.passes.pass_samples import SAMPLES, module, values

HERE = Path(__file__).parent
X86 = platform.machine().lower() in ("x86_64", "amd64")
COMPILERS = ["gcc -O2", "gcc -O0 -fopenmp", "gcc -O3 -march=native -std=c11", "clang -O2"]
REFUSED = {"-Ofast": "-ffast-math", "-O2 -ffinite-math-only": "-ffast-math",
           "-O2 -fassociative-math -fno-signed-zeros -fno-trapping-math": "the order of sums",
           "-x c++": "this is C"}


def widest(x: Any) -> Any:
    """Products of several panels, in a shape that each kind of kernel takes."""
    y = o.linear(x, values(x, 40, 24, name="w", param=True), values(x, 40))
    return o.matmul(o.tanh(y), values(x, 40, 33)) * 0.1


def wrapping(x: Any) -> Any:
    """Whole numbers whose sums and products wrap around."""
    big = x * 2_000_000_011 + 2_147_483_647
    return o.reduce_sum(big * big - x, axes=(1,)), o.neg(big)


def integer() -> Module:
    text = (HERE.parent / "passes" / "integer" / "linear.txt").read_text()
    return serial.loads(text.partition("\n")[2].partition("---")[0])


def digits() -> Module:
    return graphtool.import_model(HERE.parents[1] / "samples" / "digits.onnx")


MODELS: dict[str, Callable[[], Module]] = {
    "widest": lambda: module(widest, "f32[B,24]"),
    "wrapping": lambda: module(wrapping, "i32[3,40]"),
    "convnet": lambda: SAMPLES["convnet"], "transformer": lambda: SAMPLES["block"],
    "recurrent": lambda: SAMPLES["recurrent"], "integer": integer, "digits": digits,
    "bfloat16": lambda: passes.run(module(widest, "f32[B,24]"), "amp{dtype=bfloat16}"),
}
ROUGH = {"bfloat16": 3e-2}


def bare(built: Path, made: Path, command: str, library: str) -> subprocess.CompletedProcess[str]:
    """A copy of the build whose library this command has made, given nothing but the C files."""
    if shutil.which(command.split()[0]) is None:
        pytest.skip(f"{command.split()[0]} is not installed")
    shutil.copytree(built, made)
    (made / library).unlink()
    return run_compiler([*command.split(), "-shared", "-fPIC", *sorted(
        p.name for p in made.glob("*.c")), "-lm", "-o", library], made)


@pytest.mark.part(6)
@pytest.mark.parametrize("march", [
    "native", *([pytest.param("x86-64-v3", marks=pytest.mark.slow)] if X86 else [])])
@pytest.mark.parametrize("name", MODELS)
def test_a_build_is_right_with_any_compiler(name: str, march: str, tmp_path: Path) -> None:
    built = graphtool.build(MODELS[name](), tmp_path / "b", target=march)
    agrees(MODELS[name](), built, tmp_path, ROUGH.get(name, 1e-4))


@pytest.mark.skipif(not X86, reason="levels of x86-64")
@pytest.mark.part(8)
@pytest.mark.parametrize("weights", ["file", "embed", "c"])
@pytest.mark.parametrize("command", COMPILERS)
def test_a_fat_build_is_right_with_any_compiler(command: str, weights: Any,
                                                tmp_path: Path) -> None:
    built = graphtool.build(MODELS["widest"](), tmp_path / "b", target="fat", weights=weights)
    agrees(MODELS["widest"](), built, tmp_path, 1e-4, (command,))


def agrees(model: Module, built: Path, folder: Path, rtol: float,
           commands: Iterable[str] = COMPILERS) -> None:
    """Each compiler's library computes what the evaluator does."""
    sizes = {s: 5 for s in model.symbols}
    inputs = made_up.random_inputs(model, 3, sizes)
    want = interp.run(model, inputs)
    for n, command in enumerate(commands):
        if shutil.which(command.split()[0]) is None:
            continue
        done = bare(built, folder / str(n), command, "libmodel.so")
        assert done.returncode == 0, done.stderr[:2000]
        got = runtime.load(folder / str(n)).run(inputs)
        if rtol > 1e-3:
            for key, array in want.items():
                np.testing.assert_allclose(got[key], array, rtol, rtol)
        else:
            assert faults(got, want) == [], command


@pytest.mark.part(2)
@pytest.mark.parametrize("command", COMPILERS)
def test_a_training_step_is_right_with_any_compiler(command: str, tmp_path: Path) -> None:
    def losses(built: Path) -> list[float]:
        model, rng = TrainModel(built, 1), np.random.default_rng(0)
        x = rng.standard_normal((5, 24)).astype(np.float32)
        y = rng.standard_normal((5, 33)).astype(np.float32)
        return [float(model.step({model.inputs[0]: x, "y": y}, 0.01)) for _ in range(5)]
    built = build(training(MODELS["widest"](), Recipe("mse", optimizer="adam")),
                           tmp_path / "b")
    done = bare(built, tmp_path / "c", command, "libmodel.so")
    assert done.returncode == 0, done.stderr[:2000]
    np.testing.assert_allclose(losses(tmp_path / "c"), losses(built), rtol=1e-4)


@pytest.mark.parametrize("flags", REFUSED)
def test_flags_that_make_it_wrong_are_refused(flags: str, tmp_path: Path) -> None:
    """Every file of C that computes says so, taken alone."""
    built = graphtool.build(MODELS["widest"](), tmp_path / "b")
    idle = {"model_load.c", "model_example.c"}  # they read and call, without a number of their own
    for file in sorted(f for f in built.glob("*.c") if f.name not in idle):
        done = subprocess.run(["gcc", *flags.split(), "-c", file.name, "-o", "x.o"], cwd=built,
                              capture_output=True, text=True)
        assert done.returncode and REFUSED[flags] in done.stderr, file.name


def outputs_of(built: Path, inputs: Mapping[str, Any]) -> list[bytes]:
    return [a.tobytes() for a in runtime.load(built, 1).run(inputs).values()]


@pytest.mark.skipif(not X86, reason="fused multiplication is a flag there")
def test_strict_fuses_nothing_whatever_the_flags(tmp_path: Path) -> None:
    model = MODELS["widest"]()
    inputs = made_up.random_inputs(model, 3, {"B": 5})
    built = graphtool.build(model, tmp_path / "b", target="x86-64-v3", precision="strict")
    for n, command in enumerate(("gcc -O2", "gcc -O3 -mfma -mavx2")):
        assert bare(built, tmp_path / str(n), command, "libmodel.so").returncode == 0
        assert outputs_of(tmp_path / str(n), inputs) == outputs_of(built, inputs)
