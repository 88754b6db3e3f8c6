"""C for microcontrollers: silent under strict compilers, and the same bits on emulated boards as
here."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import graphtool
from graphtool import dtypes, interp
from graphtool import ops as o
from graphtool.compile.build import build, emit
from graphtool.compile.options import Build
from graphtool.compile.source import Source
from graphtool.compile.unit import unit_of
from graphtool.errors import CompilerError, UsageError
from graphtool.ir.graph import Module, TensorType
from graphtool.ir.trace import trace
from graphtool.target import TABLE, named
from tests.compilers import run_compiler
from tests.native.small_targets import BOARDS, available, harness, here, on_board, sources

pytestmark = pytest.mark.compiled
SAMPLES = Path(__file__).parents[2] / "samples"
SMALL = [t.name for t in TABLE.values() if t.freestanding]
SILENT = ("-std=c99", "-pedantic", "-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Werror", "-O2")
OUTPUTS = {"logits": (1, 10)}


@pytest.fixture(scope="module")
def digits() -> Module:
    """The digits for one image at a time, in integers of 8 bits."""
    module = graphtool.import_model(SAMPLES / "digits.onnx", dynamic={"batch": (1, 1)})
    examples = {"image": np.load(SAMPLES / "digits_test.npz")["image"][:64]}
    return graphtool.quantise(module, examples=examples)


def written(module: Module, folder: Path, target: str, **options: object) -> Path:
    how = Build(target=target, **options)  # type: ignore[arg-type]
    emit(unit_of(Source(module), how, "digits"), folder, how)
    return folder


@pytest.fixture(scope="module")
def image() -> dict[str, np.ndarray]:
    return {"image": np.load(SAMPLES / "digits_test.npz")["image"][:1]}


@pytest.mark.part(2)
@pytest.mark.parametrize("target", SMALL)
def test_no_compiler_of_the_target_is_needed_for_its_c(
        target: str, digits: Module, image: dict[str, np.ndarray], tmp_path: Path) -> None:
    folder = written(digits, tmp_path, target)
    harness(folder, "digits", image, OUTPUTS)
    want = interp.run(digits, image)["logits"]
    np.testing.assert_allclose(here(folder, "digits", OUTPUTS).outputs["logits"], want, rtol=1e-5)
    text = "".join(p.read_text() for p in folder.glob("digits_kernels*"))
    assert "int32_t n, int32_t oh" in text and "int64_t" not in text
    assert "int16_t" not in text  # integers of 8 bits stay that


@pytest.mark.parametrize("target", sorted(BOARDS))
def test_a_board_computes_the_same_bits(
        target: str, digits: Module, image: dict[str, np.ndarray], tmp_path: Path) -> None:
    if why := available(target):
        pytest.skip(why)
    folder = written(digits, tmp_path, target)
    harness(folder, "digits", image, OUTPUTS)
    ran, local = on_board(folder, "digits", target, OUTPUTS), here(folder, "digits", OUTPUTS)
    assert ran.outputs["logits"].tobytes() == local.outputs["logits"].tobytes()
    assert 0 < ran.instructions < 40_000_000


@pytest.mark.parametrize("cc", ["gcc", "clang", "arm-none-eabi-gcc"])
def test_compilers_have_nothing_to_say(cc: str, digits: Module, tmp_path: Path) -> None:
    if shutil.which(cc) is None:
        pytest.skip(f"{cc} is not installed")
    folder = written(digits, tmp_path, "cortex-m4")
    flags = TABLE["cortex-m4"].flags[0] if cc.startswith("arm") else ()
    for file in sources(folder, "digits"):
        done = run_compiler([cc, *flags, *SILENT, "-c", file, "-o", "/dev/null"], folder)
        assert done.returncode == 0, done.stderr[:2000]


def test_a_loop_that_rounds_keeps_indices_of_32_bits(tmp_path: Path) -> None:
    """Rows of floats between the conversions would be a kilobyte of stack."""
    def bytes_of(x: Any) -> Any:
        return o.cast(o.round(x * 0.5), dtype=dtypes.uint8)
    graph = trace(bytes_of, [TensorType(dtypes.float32, (64,))], ["x"])
    folder = written(Module(graph, ("y",)), tmp_path, "cortex-m4")
    text = (folder / "digits_kernels0.c").read_text()
    assert "int64" not in text and "[256]" not in text


def test_of_two_kernels_the_smaller_one_is_taken(digits: Module, tmp_path: Path) -> None:
    def text(objective: str) -> str:
        folder = written(digits, tmp_path / objective, "generic", objective=objective)
        return (folder / "digits_kernels0.c").read_text()
    assert "winograd" not in text("size") and "winograd" in text("usual")


def test_a_build_is_a_static_library_with_its_weights(digits: Module, tmp_path: Path) -> None:
    if shutil.which(TABLE["cortex-m4"].cross) is None:
        pytest.skip("arm-none-eabi-gcc is not installed")
    how = Build(target="cortex-m4")
    build(unit_of(Source(digits), how, "digits"), tmp_path / "b", how)
    files = {p.name for p in (tmp_path / "b").iterdir()}
    assert "libdigits.a" in files and not any(f.endswith((".safetensors", ".so")) for f in files)


def test_what_needs_a_system_is_refused(digits: Module, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="GT2108"):
        written(digits, tmp_path, "cortex-m4", exe=True)


def test_this_machines_compiler_is_not_taken_for_it(digits: Module, tmp_path: Path) -> None:
    how = Build(target="cortex-m4", cc="gcc")
    with pytest.raises(CompilerError, match="GT2124"):
        build(unit_of(Source(digits), how, "digits"), tmp_path / "b", how)


def test_one_thread_runs_there() -> None:
    assert named("cortex-m4", threads=8).threads == 1
