"""Products and convolutions by the instructions of four warps: their values on the driver of the
tests, which knows descriptors, barriers and copies; the instructions that nvcc makes of them."""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import graphtool
from graphtool import interp
from graphtool import ops as o
from graphtool.dtypes import DType
from graphtool.emit import cuda as emitted
from graphtool.ir.graph import Module
from graphtool.kernels import headers
from graphtool.native import cuda, runtime
from graphtool.target import TABLE
from tests.native.cuda import OnC, shows
from tests.native.test_cuda_templates import (
    BF16,
    EXACT,
    F16,
    F32,
    ROUNDED,
    TF32,
    bytes_of,
    constant,
    conv,
    dense,
    module,
    quantised,
)

pytestmark = pytest.mark.skipif(shutil.which("gcc") is None, reason="gcc is not installed")
RNG = np.random.default_rng(31)


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """A device of one multiprocessor, for which few tiles are enough."""
    monkeypatch.setitem(TABLE, "sm_90", replace(TABLE["sm_90"], multiprocessors=1))


def distance(m: Module, folder: Path, **options: Any) -> float:
    """The relative rms error of a build, whose products are by four warps."""
    built = graphtool.build(m, folder, target="sm_90", **options)
    assert "_wide_cuda.h" in (built / "model_kernels0.cu").read_text()
    given = m.graph.inputs[0].type
    x = RNG.standard_normal(given.shape).astype(np.float32).astype(given.dtype.numpy)
    runs = (runtime.load(built)(x=x), interp.run(m, {"x": x}))
    got, want = (np.asarray(r["y"], np.float64) for r in runs)
    return float(np.sqrt(np.mean((got - want) ** 2) / np.mean(want ** 2)))


CASES: dict[str, tuple[Any, tuple[int, ...], DType, dict[str, str]]] = {
    "bf16": (dense(128, 256), (128, 256), BF16, {}),
    "f16": (dense(120, 512), (250, 512), F16, {}),
    "odd": (dense(123, 91), (117, 91), BF16, {}),
    "rounded": (dense(128, 192), (128, 192), F32, {"precision": "fast"}),
    "conv": (conv(16, 112, 3, pad=1), (1, 16, 11, 11), BF16, {}),
    "strided": (conv(8, 128, 3, pad=1, strides=(2, 2)), (2, 8, 16, 15), F16, {}),
    "dilated": (conv(8, 100, 3, pad=2, rhs_dilation=(2, 2)), (1, 8, 12, 10), BF16, {}),
    "pixels": (conv(24, 128, 1), (1, 24, 12, 10), BF16, {})}
SLOW = ("two", "pixels", "dilated")
FLOATS: dict[str, tuple[Any, tuple[int, ...], dict[str, str], float]] = {
    "parts": (dense(128, 256), (128, 256), {}, EXACT),
    "odd": (dense(123, 91), (117, 91), {}, EXACT),
    "columns": (lambda x: o.relu(o.matmul(o.transpose(x, perm=(1, 0)), constant(x, 92, 120))),
                (92, 128), {}, EXACT),
    "two": (lambda x: o.matmul(x, o.transpose(o.relu(x), perm=(1, 0))), (125, 70), {}, EXACT),
    "tf32": (dense(120, 200), (120, 200), {"precision": "high"}, TF32),
    "conv": (conv(16, 112, 3, pad=1), (1, 16, 11, 11), {}, EXACT),
    "strided": (conv(8, 128, 3, pad=1, strides=(2, 2)), (2, 8, 16, 15), {}, EXACT),
    "dilated": (conv(12, 100, 3, pad=2, rhs_dilation=(2, 2)), (1, 12, 12, 10),
                {"precision": "high"}, TF32),
    "pixels": (conv(24, 128, 1), (1, 24, 12, 10), {}, EXACT)}


@pytest.mark.parametrize(("fn", "shape", "kind"), [
    (lambda x: o.matmul(x, bytes_of(x, 300, 120)), (128, 300), "uint8"),
    (lambda x: o.matmul(x, bytes_of(x, 128, 128)), (125, 128), "int8"),
    (lambda x: o.conv(x, bytes_of(x, 128, 16, 3, 3), padding=((1, 1), (1, 1))), (1, 16, 11, 11),
     "uint8")])
@pytest.mark.usefixtures("device", "small")
def test_bytes_have_the_bits_of_the_evaluator(fn: Any, shape: tuple[int, ...], kind: str,
                                              tmp_path: Path) -> None:
    m = quantised(fn, shape, kind)
    built = graphtool.build(m, tmp_path / "b", target="sm_90")
    assert "_wide_cuda.h" in (built / "model_kernels0.cu").read_text()
    x = RNG.integers(0 if kind == "uint8" else -128, 127, shape).astype(kind)
    np.testing.assert_array_equal(runtime.load(built)(x=x)["y"], interp.run(m, {"x": x})["y"])


@pytest.mark.parametrize("name", CASES)
@pytest.mark.usefixtures("device", "small")
def test_tiles(name: str, tmp_path: Path) -> None:
    fn, shape, dtype, options = CASES[name]
    assert distance(module(fn, shape, dtype), tmp_path / "b", **options) < ROUNDED


@pytest.mark.parametrize("name", [pytest.param(name, marks=[pytest.mark.slow] * (name in SLOW))
                                  for name in FLOATS])
@pytest.mark.usefixtures("device", "small")
def test_floats(name: str, tmp_path: Path) -> None:
    fn, shape, options, most = FLOATS[name]
    assert distance(module(fn, shape), tmp_path / "b", **options) < most


@pytest.mark.usefixtures("device", "small")
def test_numbers_that_do_not_split(tmp_path: Path) -> None:
    """The greatest numbers cannot be rounded, and of subnormal ones the unit reads multiples of
    2⁻¹³⁶; a NaN stays where it is, and an infinity becomes one."""
    big, least = np.finfo(np.float32).max, 2.0 ** -136
    values = np.asarray([big, -big, big / 3, least / 99, 99 * least, 1e-38, np.inf, np.nan, 1.5],
                        np.float32)
    x = np.zeros((128, 40), np.float32)
    x[np.arange(9), np.arange(9) * 4] = values
    m = module(lambda x: o.matmul(x, x.builder.constant(np.full((40, 128), 0.5, np.float32))),
               (128, 40))
    built = graphtool.build(m, tmp_path / "b", target="sm_90")
    assert "_wide_cuda.h" in (built / "model_kernels0.cu").read_text()
    got, want = runtime.load(built)(x=x)["y"], interp.run(m, {"x": x})["y"]
    finite = np.isfinite(want).all(1)
    np.testing.assert_allclose(got[finite], want[finite], rtol=5e-7, atol=least)
    assert not finite[6:8].any() and np.isnan(got[~finite]).all()


@pytest.mark.usefixtures("device", "small")
def test_devices_without_the_instructions_have_those_of_a_warp(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The text of an older or a later device, which a driver compiles from PTX."""
    monkeypatch.setattr(cuda, "find", lambda: OnC("-DON_C_ONE_WARP"))
    fn, shape, dtype, options = CASES["f16"]
    assert distance(module(fn, shape, dtype), tmp_path / "f16", **options) < ROUNDED
    floats, shape, _, most = FLOATS["odd"]
    assert distance(module(floats, shape), tmp_path / "odd") < most


# what each of these mistakes is, and the text that has it
OF_FLOATS = {
    "parts that are not shown": ("    gt_async_fence();\n    __syncthreads();\n}\n\n/* B",
                                 "    __syncthreads();\n}\n\n/* B"),
    "parts that others still write": ("    __syncthreads();\n}\n\n/* B", "}\n\n/* B"),
    "sums that begin with what was there": ("GT_STEP(k), k > 0)", "GT_STEP(k), 1)"),
    "parts that are left out": ("gt_in_columns(rests)", "gt_in_columns(panel)")}
MISTAKES = {
    "a panel that is not waited for": ("gt_barrier_wait(", "(void)sizeof("),
    "the wrong turn": ("*turn / GT_STAGES % 2", "(*turn / GT_STAGES + 1) % 2"),
    "sums that are not waited for": ("gt_wide_wait();\n    __sync", "__sync"),
    "rows in order": ("(piece ^ r % 8)", "piece"),
    "sums in other places": ("s / 2 % 2 * 8", "s % 2 * 8"),
    "pieces that lie otherwise": ("8 * GT_ROW_BYTES, 1)", "8 * GT_ROW_BYTES, 2)"),
    "distances that are swapped": ("16 * GT_WIDE_COLUMNS, 8 * 16, 0", "128, 2048, 0"),
    "rows that are not waited for": ("gt_copy_wait(GT_AHEAD - 1)", "gt_copy_wait(GT_AHEAD)"),
    "rows that are not shown": ("gt_async_fence();\n            gt_wide", "gt_wide"),
    "products of other threads that are not waited for": ("__syncthreads();\n            GT_J",
                                                          "GT_J"),
    "buffers for fewer chunks": ("#define GT_AHEAD (GT_STAGES - 1)", "#define GT_AHEAD GT_STAGES")}


@pytest.mark.parametrize("mistake", [
    *(pytest.param(name, marks=pytest.mark.slow) for name in (*OF_FLOATS, *list(MISTAKES)[:-3])),
    *list(MISTAKES)[-3:]])
@pytest.mark.usefixtures("device", "small")
def test_mistakes_show(mistake: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The driver ends the program, or the values are wrong."""
    was, now = {**MISTAKES, **OF_FLOATS}[mistake]
    kind, most = (F32, EXACT) if mistake in OF_FLOATS else (BF16, ROUNDED)
    name = next(n for n in ("product_wide_cuda.h", "cuda_wide.h") if was in (headers.text(n) or ""))
    monkeypatch.setitem(headers.ADDED, name, (headers.text(name) or "").replace(was, now))
    m = module(dense(128, 320), (128, 320), kind)
    assert shows(lambda: distance(m, tmp_path / "b") < most)


@pytest.mark.skipif(shutil.which("nvcc") is None, reason="nvcc is not installed")
@pytest.mark.parametrize("dtype", [BF16, F32], ids=str)
def test_nvcc_makes_the_instructions_that_were_meant(dtype: DType, tmp_path: Path,
                                                     monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is spilled, two blocks fit a multiprocessor, and products do not wait one for the
    other, which the compiler would say."""
    monkeypatch.setattr(cuda, "find", OnC)
    fn = conv(64, 128, 3, pad=1)
    work = graphtool.build(module(fn, (64, 64, 28, 28), dtype), tmp_path / "b", target="sm_90")
    images = {row.file: row.command for row in emitted.images("model", (90,))}
    assert "-arch=sm_90a" in images["model_sm_90.cubin"]
    source = work / "model_kernels0.cu"
    for arch, instructions in {"90a": ("wgmma.mma_async", "cp.async.bulk", "cp.async.cg",
                                       "cp.async.bulk.prefetch.L2", "griddepcontrol.wait"),
                               "90": ("mma.sync", "ldmatrix", "cp.async.bulk")}.items():
        how = ["nvcc", f"-arch=sm_{arch}", source.name]
        said = subprocess.run([*how, "-cubin", "-keep", "-Xptxas", "-v", "-o", "m.cubin"], cwd=work,
                              check=True, capture_output=True, text=True).stderr
        assert {int(n) for n in re.findall(r"(\d+) bytes spill", said)} == {0}
        assert max(int(n) for n in re.findall(r"Used (\d+) registers", said)) <= 255
        assert "warning" not in said and "serializ" not in said
        ptx = next(work.glob("model_kernels0*.ptx"))
        assert all(word in ptx.read_text() for word in instructions)
        assert dtype is BF16 or ".tf32.tf32" in ptx.read_text()
        ptx.unlink()
