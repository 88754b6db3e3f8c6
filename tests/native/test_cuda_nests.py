"""Loop nests in CUDA: what the text says, what CUDA's own compiler makes of it for each
architecture, and what it computes where pieces of memory do not fit."""

from __future__ import annotations

import ctypes
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import graphtool
from graphtool import dtypes, interp
from graphtool import ops as o
from graphtool.dtypes import DType
from graphtool.ir.graph import Module, TensorType
from graphtool.ir.trace import trace
from graphtool.native import runtime
from graphtool.native.library import open_library
from graphtool.symbolic import Dim, Symbol, evaluate, symbol
from tests.lower.compiling import faults

pytestmark = [pytest.mark.skipif(shutil.which("gcc") is None, reason="gcc is not installed"),
              pytest.mark.usefixtures("device")]
RNG = np.random.default_rng(13)
ARCHITECTURES = (80, 87, 90, 120)
F32, F16, I8 = dtypes.float32, dtypes.float16, dtypes.int8
SIZES = {"N": 64, "M": None, "L": 20000}  # open sizes and what bounds them; tests run 33
N, MANY, LONG = (symbol(name, 0, most) for name, most in SIZES.items())


def constant(x: Any, n: int) -> Any:
    values = RNG.standard_normal(n).astype(np.float32).astype(x.dtype.numpy)
    return x.builder.constant(values)


def chain(n: int) -> Any:
    return lambda x: o.relu(x + constant(x, n)) * 2.0 + o.tanh(x)


def norm(n: int) -> Any:
    return lambda x: o.layer_norm(x, constant(x, n), constant(x, n), axes=(1,))


def module(fn: Any, shape: tuple[Dim, ...], dtype: DType = F32) -> Module:
    graph = trace(fn, [TensorType(dtype, shape)], ["x"])
    return Module(graph, ("y",), {name: Symbol(name, 0, most) for name, most in SIZES.items()
                                  if symbol(name, 0, most) in shape})


def built(m: Module, folder: Path) -> tuple[Path, str]:
    work = graphtool.build(m, folder, target="sm_90")
    return work, (work / "model_kernels0.cu").read_text()


# what is computed, and what is in the text: elements of a piece, the type of indices
NESTS = {
    "chain": (chain(24), (70, 24), F32, "x0_4[4]"),
    "open": (chain(24), (N, 24), F32, "x0_4[4]"),
    "unbounded": (chain(24), (MANY, 24), F32, "int64_t i0"),
    "halves": (chain(24), (70, 24), F16, "x0_8[8]"),
    "halves_of_12": (chain(12), (70, 12), F16, "x0_4[4]"),
    "odd": (chain(7), (70, 7), F32, "int32_t i0"),
    "bytes": (lambda x: o.max(x, -x), (33, 32), I8, "x0_16[16]"),
    "to_floats": (lambda x: o.cast(x, dtype=F32) * 0.5, (33, 32), I8, "gt_read_4(x0_4, x0 + i0)"),
    "shifted": (lambda x: o.slice(x, start=(0, 1), limit=(70, 30), strides=(1, 1)) * 2.0,
                (70, 32), F32, "int32_t i0"),
    "softmax": (lambda x: o.softmax(x, axis=1), (9, 300), F32, "x0_4[4]"),
    "norm": (norm(768), (9, 768), F32, "gt_warp_add_f32"),
    "long": (lambda x: o.softmax(x, axis=1), (3, 2000), F32, "gt_team_max_f32"),
    "many_rows": (lambda x: o.reduce_sum(x, axes=(1,)), (LONG, 64), F32, "gt_warp_add_f32"),
    "channels": (lambda x: o.reduce_sum(x, axes=(0, 2)), (10, 40, 100), F32, "gt_warp_add_f32"),
}


@pytest.mark.parametrize("name", NESTS)
def test_nests(name: str, tmp_path: Path) -> None:
    fn, shape, dtype, words = NESTS[name]
    m = module(fn, shape, dtype)
    work, text = built(m, tmp_path / "b")
    assert words in text
    x = (RNG.standard_normal([evaluate(d, dict.fromkeys(SIZES, 33)) for d in shape]) * 3)
    xs = {"x": x.astype(np.float32).astype(dtype.numpy)}
    rounding = 4e-3 if dtype is F16 else 1e-4
    assert not faults(runtime.load(work)(**xs), interp.run(m, xs), rounding, rounding)


def column_sums(x: Any, y: Any, z: Any, b: Any, q: Any) -> tuple[Any, ...]:
    """Reductions of many terms over outer axes, and over all axes; of open and of odd sizes."""
    return (o.reduce_sum(o.relu(x), axes=(0,)), o.layer_norm(x, None, None, axes=(0,)),
            o.reduce_sum(y * 2.0, axes=(0,)), o.reduce_max(y, axes=(0,)),
            o.reduce_mean(z, axes=(0, 2, 3)), o.reduce_sum(z, axes=(0, 1, 2, 3)),
            o.reduce_sum(b, axes=(0,)), o.reduce_and(q, axes=(0,)))


def test_sums_over_outer_axes_are_in_slabs(tmp_path: Path) -> None:
    """Many workers reduce the slabs of a column, others their results; all runs give the same
    bits."""
    rows = symbol("N", 0, 2000)
    types = [TensorType(F32, (300, 24)), TensorType(F32, (rows, 5)),
             TensorType(F32, (8, 3, 40, 33)), TensorType(dtypes.bfloat16, (600, 6)),
             TensorType(dtypes.bool_, (513, 3))]
    m = Module(trace(column_sums, types, list("xyzbq")), tuple(f"y{i}" for i in range(8)),
               {"N": Symbol("N", 0, 2000)})
    work, text = built(m, tmp_path / "b")
    assert "gt_min_i64(((d0 + 30) / 31), -i1 * ((d0 + 30) / 31) + d0)" in text
    assert "i3 < 96" in text and text.count("gt_team_add_f32") == 2
    model = runtime.load(work)
    for n in (2000, 1, 0, 700):
        xs = {v.hint: RNG.standard_normal([evaluate(d, {"N": n}) for d in v.type.shape]).astype(
            np.float32).astype(v.type.dtype.numpy) for v in m.graph.inputs}
        xs["q"][:, 0], xs["q"][:, 1:] = True, RNG.random((513, 2)) < 0.999
        got = {name: y.copy() for name, y in model(**xs).items()}
        assert not faults(got, interp.run(m, xs), 1e-4, 1e-4)
        again = model(**xs)
        assert all(got[name].tobytes() == again[name].tobytes() for name in got)


def test_arrays_of_the_device_are_aligned(tmp_path: Path) -> None:
    work, _ = built(module(chain(24), (70, 24)), tmp_path / "b")
    library = open_library(work / "libmodel.so", "native")
    x = np.zeros(70 * 24 + 64, np.float32)
    at = x.ctypes.data + 63 & ~63
    ins, outs = (ctypes.c_void_p * 1)(at + 4), (ctypes.c_void_p * 1)(at)
    for one, other in ((ins, outs), (outs, ins)):
        assert library.model_run_device(ctypes.c_void_p(at), ctypes.c_void_p(at), None, one,
                                        other) == -4


@pytest.mark.parametrize(("shape", "perm", "dtype"), [
    ((70, 100), (1, 0), F32), ((3, 40, 33, 2), (0, 2, 1, 3), F32), ((2, 5, 64, 40), (0, 3, 1, 2),
                                                                    F32), ((90, 80), (1, 0), F16)])
def test_transpositions(shape: tuple[int, ...], perm: tuple[int, ...], dtype: DType,
                        tmp_path: Path) -> None:
    m = module(lambda x: o.transpose(x, perm=perm) * 2.0, shape, dtype)
    work, text = built(m, tmp_path / "b")
    assert ("transpose_cuda.h" in text) == (dtype is F32 and perm[-1] != 3)
    xs = {"x": RNG.standard_normal(shape).astype(dtype.numpy)}
    assert not faults(runtime.load(work)(**xs), interp.run(m, xs))


# what CUDA's compiler must make of it
COMPILED = {
    "chain": (chain(1024), (512, 1024), F32, ("ld.global.v4", "st.global.v4")),
    "halves": (chain(1024), (512, 1024), F16, ("ld.global.v4", "st.global.v4")),
    "softmax": (lambda x: o.softmax(x, axis=1), (512, 1000), F32, ("ld.global.v4",
                                                                   "st.global.v4")),
    "norm": (norm(768), (512, 768), F32, ("ld.global.v4", "st.global.v4", "shfl.sync")),
    "transpose": (lambda x: o.transpose(x, perm=(1, 0)), (512, 768), F32, ("st.shared",
                                                                           "ld.shared"))}


@pytest.mark.skipif(shutil.which("nvcc") is None, reason="nvcc is not installed")
@pytest.mark.parametrize("name", COMPILED)
def test_instructions(name: str, tmp_path: Path) -> None:
    """Elements go in pieces of 16 bytes, and all of a thread's numbers are in registers."""
    fn, shape, dtype, instructions = COMPILED[name]
    work, _ = built(module(fn, shape, dtype), tmp_path / "b")
    subprocess.run(["nvcc", "-ptx", "-arch=compute_80", "model_kernels0.cu", "-o", "m.ptx"],
                   cwd=work, check=True, capture_output=True)
    ptx = (work / "m.ptx").read_text()
    assert all(word in ptx for word in instructions) and ".local" not in ptx
    for arch in ARCHITECTURES if name == "softmax" else (90,):
        said = subprocess.run(["nvcc", "-cubin", f"-arch=sm_{arch}", "-Xptxas", "-v",
                               "model_kernels0.cu", "-o", "m.cubin"], cwd=work, check=True,
                              capture_output=True, text=True).stderr
        assert {int(n) for n in re.findall(r"(\d+) bytes (?:spill|stack)", said)} == {0}
        assert max(int(n) for n in re.findall(r"Used (\d+) registers", said)) <= 64


def test_loops_over_several_places_are_one_kernel(tmp_path: Path) -> None:
    """The caches of layers, one behind the other: a launch passes where each begins."""
    def fn(x: Any) -> list[Any]:
        layers = (o.slice(x, start=(i, 0, 0), limit=(i + 1, 4, 24), strides=(1, 1, 1))
                  for i in range(5))
        return [o.exp(layer) for layer in layers]
    m = Module(trace(fn, [TensorType(F16, (5, 4, 24))], ["x"]), tuple(f"y{i}" for i in range(5)))
    work = graphtool.build(m, tmp_path / "b", target="sm_90")
    text = (work / "model_kernels0.cu").read_text()
    assert len(re.findall("^GT_KERNEL", text, re.M)) == 1
    assert "gt_read_16(x0_8, x0 + (i0 + num0 * 8));" in text
    x = RNG.standard_normal((5, 4, 24)).astype(np.float16)
    got, want = runtime.load(work)(x=x), interp.run(m, {"x": x})
    assert not faults(got, want, 2e-3, 2e-3)


@pytest.mark.parametrize("dtype", [dtypes.float64, dtypes.int32, dtypes.int64])
def test_products_by_loops(dtype: DType, tmp_path: Path) -> None:
    """A loop over the depth takes its elements in pieces; no name stands for two things."""
    w = RNG.integers(-9, 9, (70, 33)).astype(dtype.numpy)
    m = module(lambda x: o.matmul(x, x.builder.constant(w)), (N, 70), dtype)
    work, text = built(m, tmp_path / "b")
    assert "gt_read_" in text and "_lane++" in text
    for n in (33, 1, 0):
        x = RNG.integers(-9, 9, (n, 70)).astype(dtype.numpy)
        np.testing.assert_array_equal(runtime.load(work)(x=x)["y"], x @ w)
