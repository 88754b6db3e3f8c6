"""Builds for a GPU: where the weights are, for which devices there is code, by which compilers, and
what is refused."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import graphtool
from graphtool import interp
from graphtool.compile.options import Build
from graphtool.compile.source import Source
from graphtool.compile.unit import unit_of
from graphtool.errors import CompilerError, InputError, UsageError
from graphtool.ir import serial
from graphtool.ir.graph import Module
from graphtool.native import cuda, runtime
from graphtool.report.size import within
from graphtool.target import named
from tests.lower.compiling import faults, merged, optimised
from tests.native.cuda import folder
from tests.native.cuda.models import (
    LOOPS,
    ON_THE_DRIVER,
    a_step,
    inputs_of,
    module,
    value,
)

pytestmark = ON_THE_DRIVER

STEPS = [18, pytest.param(6, marks=pytest.mark.slow)]  # one case of so many, by the real compilers


@pytest.mark.parametrize("mode", ["embed", "c"])
def test_weights_inside_the_library(mode: str, tmp_path: Path) -> None:
    m = module("dense")
    model = runtime.load(graphtool.build(m, tmp_path / "b", target="sm_90", weights=mode))
    xs = inputs_of("dense")
    assert not faults(model(**xs), interp.run(m, xs))


@pytest.mark.parametrize(("arch", "runs"), [(90, True), (100, False), (80, False)])
def test_code_for_the_device(device: ctypes.CDLL, arch: int, runs: bool, tmp_path: Path) -> None:
    """A library has code for some architectures, and a text for later ones."""
    m = module("softmax")
    value(device, "cuda_arch").value = arch
    built = graphtool.build(m, tmp_path / "b", target="sm_90")
    if runs:
        assert runtime.load(built)(**inputs_of("softmax"))
        return
    with pytest.raises(InputError, match="device"):  # the test's driver compiles no text
        runtime.load(built)(**inputs_of("softmax"))


def test_a_stranger_compiles_it(tmp_path: Path) -> None:
    """The C around the kernels is C11 without a warning, and its example runs."""
    built = graphtool.build(module("dense"), tmp_path / "b", target="sm_90", name="net")
    flags = ["-std=c11", "-Wall", "-Wextra", "-Wconversion", "-pedantic", "-Werror", "-O1"]
    files = sorted(str(p) for p in built.glob("*.c"))
    subprocess.run(["gcc", *flags, *files, "-ldl", "-lm", "-o", "example"], cwd=built, check=True)
    said = subprocess.run(["./example"], cwd=built, capture_output=True, text=True, env={
        "LD_LIBRARY_PATH": folder()})
    assert said.returncode == 0 and said.stdout.startswith("outputs[0]: "), said.stderr
    said = subprocess.run(["./example"], cwd=built, capture_output=True, text=True, env={})
    assert said.returncode == 1 and "libcuda.so.1" in said.stderr


@pytest.mark.parametrize(("model", "options"), [
    (a_step, {"mpi": True}), (lambda: module("softmax"), {"precision": "strict"})])
def test_what_is_not_built(model: Callable[[], Module], options: dict[str, Any],
                           tmp_path: Path) -> None:
    with pytest.raises(UsageError) as told:
        graphtool.build(model(), tmp_path / "b", target="sm_90", **options)
    assert told.value.code == "GT2107" and not (tmp_path / "b").exists()


def test_its_code_is_not_measured() -> None:
    how = Build(target="sm_90", max_ram="1K")
    with pytest.raises(UsageError, match="code for sm_90 is not measured"):
        within(unit_of(Source(module("softmax")), how, "net"), how)


def test_without_a_compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    cuda.find.cache_clear()
    monkeypatch.setattr(cuda, "_nvcc", lambda: None)
    monkeypatch.setattr(cuda, "_libraries", list)
    with pytest.raises(CompilerError) as told:
        graphtool.build(module("softmax"), tmp_path / "b", target="sm_90")
    assert told.value.code == "GT2131" and "cuda" in (told.value.hint or "")
    cuda.find.cache_clear()
    assert not (tmp_path / "b").exists()


@pytest.mark.skipif(shutil.which("nvcc") is None, reason="nvcc is not installed")
@pytest.mark.parametrize("step", STEPS)
def test_nvcc(step: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same text compiled for a GPU, with the whole table of scalar functions."""
    monkeypatch.undo()
    cuda.find.cache_clear()
    built = graphtool.build(merged(LOOPS[::step])[0], tmp_path / "b", target="sm_90", name="m")
    assert (built / "m_sm_90.cubin").read_bytes()[:4] == b"\x7fELF"
    assert b".visible .entry m_k0(" in (built / "m_compute_90.ptx").read_bytes()


@pytest.mark.parametrize("step", STEPS)
def test_nvrtc(step: int, tmp_path: Path) -> None:
    """The library of PyPI compiles it too, without headers of a toolkit; in a process without the
    driver of this file, which it would take for the real one."""
    if not cuda._libraries():
        pytest.skip("NVRTC is not installed")
    module, _ = merged(LOOPS[step // 2::step])
    serial.save(optimised(module, named("sm_90")), tmp_path / "m.graph.json")
    program = ("import sys; from graphtool import cli; from graphtool.native import cuda; "
               "cuda._nvcc = lambda: None; sys.exit(cli.main())")
    subprocess.run([sys.executable, "-c", program, "build", "m.graph.json", "--target", "sm_90",
                    "-o", "b"], cwd=tmp_path, check=True, capture_output=True)
    assert (tmp_path / "b" / "m_sm_90.cubin").read_bytes()[:4] == b"\x7fELF"
