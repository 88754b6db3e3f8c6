"""Kernels with a text in CUDA: what they compute on the processor, against float64; and what CUDA's
own compiler makes of the same text for each architecture."""

from __future__ import annotations

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
from graphtool.native import cuda, runtime
from graphtool.symbolic import Dim, Symbol, symbol
from tests.native.cuda import OnC

pytestmark = pytest.mark.skipif(shutil.which("gcc") is None, reason="gcc is not installed")
RNG = np.random.default_rng(11)
ARCHITECTURES = (80, 87, 90, 120)
EXACT, TF32, ROUNDED = 6e-7, 6e-4, 4e-3  # relative rms errors
F32, F16, BF16 = dtypes.float32, dtypes.float16, dtypes.bfloat16


def constant(x: Any, *shape: int) -> Any:
    values = RNG.standard_normal(shape).astype(np.float32)
    return x.builder.constant(values.astype(x.dtype.numpy))


def dense(n: int, k: int) -> Any:
    """A product with a bias and a relu in its hook."""
    return lambda x: o.relu(o.linear(x, constant(x, n, k), constant(x, n)))


def conv(channels: int, filters: int, window: int, **how: Any) -> Any:
    pad = how.pop("pad", 0)
    groups = how.get("groups", 1)
    return lambda x: o.relu(o.conv(x, constant(x, filters, channels // groups, window, window),
                                   padding=((pad, pad), (pad, pad)), **how))


def module(fn: Any, shape: tuple[Dim, ...], dtype: DType = F32) -> Module:
    graph = trace(fn, [TensorType(dtype, shape)], ["x"])
    return Module(graph, ("y",), {"N": Symbol("N", 0, 200)} if symbol("N", 0, 200) in shape else {})


def error(m: Module, folder: Path, n: int | None = None, **options: Any) -> float:
    """The relative rms error of a build for a device."""
    model = runtime.load(graphtool.build(m, folder, target="sm_90", **options))
    given = m.graph.inputs[0].type
    shape = [d if isinstance(d, int) else n for d in given.shape]
    xs = {"x": RNG.standard_normal(shape).astype(np.float32).astype(given.dtype.numpy)}
    got, want = (np.asarray(r["y"], np.float64) for r in (model(**xs), interp.run(m, xs)))
    return float(np.sqrt(np.mean((got - want) ** 2) / np.mean(want ** 2)))


@pytest.mark.part(3)
@pytest.mark.parametrize(("rows", "columns", "depth", "dtype", "options", "most"), [
    (70, 100, 90, F32, {}, EXACT), (33, 24, 70, F32, {}, EXACT), (300, 600, 20, F32, {}, EXACT),
    (100, 40, 1024, F32, {}, EXACT), (70, 100, 90, F32, {"assume": "nothing"}, EXACT),
    (3, 100, 300, F32, {}, EXACT), (1, 64, 1030, F32, {}, EXACT),
    (70, 100, 96, F32, {"precision": "high"}, TF32),
    (70, 100, 96, F32, {"precision": "fast"}, ROUNDED),
    (17, 30, 91, F32, {"precision": "fast"}, ROUNDED),
    (70, 100, 91, F16, {}, ROUNDED), (10, 30, 96, F16, {}, ROUNDED),
    (600, 600, 33, BF16, {}, ROUNDED), (2, 100, 97, BF16, {}, ROUNDED)])
@pytest.mark.usefixtures("device")
def test_products(rows: int, columns: int, depth: int, dtype: DType, options: dict[str, str],
                  most: float, tmp_path: Path) -> None:
    m = module(dense(columns, depth), (rows, depth), dtype)
    assert error(m, tmp_path / "b", **options) < most


@pytest.mark.usefixtures("device")
def test_products_of_open_size(tmp_path: Path) -> None:
    m = module(dense(70, 40), (symbol("N", 0, 200), 40))
    for n in (1, 5, 200):
        assert error(m, tmp_path / "b", n) < EXACT


@pytest.mark.part(2)
@pytest.mark.parametrize(("shape", "fn", "dtype", "options", "most"), [
    ((2, 16, 9, 9), conv(16, 40, 3, pad=1), F32, {}, EXACT),
    ((1, 3, 20, 20), conv(3, 24, 3, pad=1, strides=(2, 2)), F32, {}, EXACT),
    ((1, 8, 12, 12), conv(8, 70, 3, pad=2, rhs_dilation=(2, 2)), F32, {}, EXACT),
    ((1, 64, 9, 9), conv(64, 64, 3, pad=1, groups=4), F32, {}, EXACT),
    ((1, 16, 5, 5), conv(16, 16, 3, pad=4, rhs_dilation=(4, 4)), F32, {"assume": "nothing"}, EXACT),
    ((1, 5, 12, 12), conv(5, 70, 3, rhs_dilation=(2, 2)), F32, {"precision": "fast"}, ROUNDED),
    ((1, 3, 20, 20), conv(3, 24, 3, strides=(2, 2)), F32, {"precision": "fast"}, ROUNDED),
    ((1, 6, 10, 10), conv(6, 20, 3), F16, {}, ROUNDED)])
@pytest.mark.usefixtures("device")
def test_convolutions(shape: tuple[int, ...], fn: Any, dtype: DType, options: dict[str, str],
                      most: float, tmp_path: Path) -> None:
    assert error(module(fn, shape, dtype), tmp_path / "b", **options) < most
    text = (tmp_path / "b" / "model_kernels0.cu").read_text()
    assert "conv_direct_cuda.h" in text and "= 0.0f;" not in text  # no zeros are written around x


@pytest.mark.parametrize(("shape", "how", "dtype", "most"), [
    ((2, 40, 9, 11), {"window": 3, "pad": 1}, F32, EXACT),
    ((1, 6, 12, 10), {"window": 3, "pad": 1, "strides": (2, 2)}, F32, EXACT),
    ((1, 33, 13, 13), {"window": 5, "pad": 4, "rhs_dilation": (2, 3)}, F32, EXACT),
    ((1, 8, 10, 9), {"window": 2, "rhs_dilation": (5, 5)}, F32, EXACT),
    ((1, 16, 7, 7), {"window": 3, "pad": 1, "strides": (2, 1)}, F16, ROUNDED),
    ((2, 20, 6, 5), {"window": 3, "pad": 2}, BF16, ROUNDED)])
@pytest.mark.usefixtures("device")
def test_depthwise(shape: tuple[int, ...], how: dict[str, Any], dtype: DType, most: float,
                   tmp_path: Path) -> None:
    c = shape[1]
    m = module(conv(c, c, groups=c, **how), shape, dtype)
    assert error(m, tmp_path / "b") < most
    text = (tmp_path / "b" / "model_kernels0.cu").read_text()
    assert "depthwise_cuda.h" in text and "= 0.0f;" not in text


@pytest.mark.usefixtures("device")
def test_depthwise_sums_its_rows(tmp_path: Path) -> None:
    """The thread that stored a row adds it."""
    def fn(x: Any) -> Any:
        y = o.relu(o.depthwise(x, constant(x, 3, 2, 5), strides=(1, 1)))
        return y, o.reduce_sum(y, axes=(2,))
    m = Module(trace(fn, [TensorType(F32, (2, 7, 6, 5))], ["x"]), ("y", "sums"))
    model = runtime.load(graphtool.build(m, tmp_path / "b", target="sm_90"))
    assert "define GT_SUMS" in (tmp_path / "b" / "model_kernels0.cu").read_text()
    xs = {"x": RNG.standard_normal((2, 7, 6, 5)).astype(np.float32)}
    got, want = model(**xs), interp.run(m, xs)
    for name in want:
        np.testing.assert_allclose(got[name], want[name], rtol=1e-5, atol=1e-5)


def quantised(fn: Any, shape: tuple[int, ...], kind: str) -> Module:
    """A graph that takes bytes, and computes in int32."""
    return Module(trace(lambda x: fn(o.cast(x, dtype=dtypes.int32)),
                        [TensorType(dtypes.dtype(kind), shape)], ["x"]), ("y",))


def bytes_of(x: Any, *shape: int, most: int = 127) -> Any:
    """Constant weights in int32."""
    return x.builder.constant(RNG.integers(-most, most, shape).astype(np.int32))


INTEGERS = {
    "product": (lambda x: o.matmul(x, bytes_of(x, 90, 70)), (70, 90), "uint8"),
    "aligned": (lambda x: o.matmul(x, bytes_of(x, 128, 100)), (33, 128), "uint8"),
    "few": (lambda x: o.matmul(x, bytes_of(x, 64, 40)), (2, 64), "uint8"),
    "signed": (lambda x: o.matmul(x, bytes_of(x, 64, 40)), (9, 64), "int8"),
    "words": (lambda x: o.conv(x, bytes_of(x, 40, 5, 3, 3, most=9000)), (1, 5, 9, 8), "uint8"),
    "conv": (lambda x: o.conv(x, bytes_of(x, 40, 16, 3, 3), padding=((1, 1), (1, 1))),
             (2, 16, 9, 8), "uint8"),
    "strided": (lambda x: o.conv(x, bytes_of(x, 20, 3, 3, 3), strides=(2, 2)), (1, 3, 12, 11),
                "int8"),
    "groups": (lambda x: o.conv(x, bytes_of(x, 12, 4, 3, 3), groups=3, rhs_dilation=(2, 2)),
               (1, 12, 9, 9), "uint8"),
    "depthwise": (lambda x: o.conv(x, bytes_of(x, 24, 1, 3, 3), groups=24,
                                   padding=((1, 1), (1, 1))), (2, 24, 7, 9), "uint8"),
    "depthwise odd": (lambda x: o.conv(x, bytes_of(x, 7, 1, 5, 2), groups=7, strides=(2, 3),
                                       rhs_dilation=(1, 2)), (1, 7, 11, 13), "uint8"),
    "deep product": (lambda x: o.matmul(x, bytes_of(x, 515, 40)), (33, 515), "uint8"),
    "deep conv": (lambda x: o.conv(x, bytes_of(x, 20, 48, 3, 3), padding=((1, 1), (1, 1))),
                  (1, 48, 4, 5), "uint8")}


@pytest.mark.parametrize("name", INTEGERS)
@pytest.mark.usefixtures("device")
def test_products_of_integers_have_the_bits_of_the_evaluator(name: str, tmp_path: Path) -> None:
    fn, shape, kind = INTEGERS[name]
    m = quantised(fn, shape, kind)
    model = runtime.load(graphtool.build(m, tmp_path / "b", target="sm_90"))
    text = (tmp_path / "b" / "model_kernels0.cu").read_text()
    assert "_int_cuda.h" in text and ("define GT_SLICES" in text) == name.startswith("deep")
    xs = {"x": RNG.integers(0 if kind == "uint8" else -128, 127, shape).astype(kind)}
    np.testing.assert_array_equal(model(**xs)["y"], interp.run(m, xs)["y"])


@pytest.mark.parametrize("depth", [250, 1023])
@pytest.mark.usefixtures("device")
def test_parts_are_no_less_exact_than_multiply_adds(depth: int, tmp_path: Path) -> None:
    w, x = (RNG.standard_normal((32, depth)).astype(np.float32) for _ in range(2))
    m = module(lambda x: o.linear(x, x.builder.constant(w), None), (32, depth))
    want, errors = x.astype(np.float64) @ w.T.astype(np.float64), []
    for assume in ("finite", "nothing"):
        model = runtime.load(graphtool.build(m, tmp_path / assume, target="sm_90", assume=assume))
        errors.append(np.sqrt(np.mean((model(x=x)["y"] - want) ** 2)))
    assert errors[0] < errors[1]


@pytest.mark.parametrize(("fn", "shape", "launches"), [
    (dense(100, 512), (60, 512), 1), (dense(40, 600), (3, 600), 1),
    (conv(64, 24, 3, pad=1), (1, 64, 5, 4), 2)])
@pytest.mark.usefixtures("device")
def test_slices_are_added_by_the_block_that_is_last(fn: Any, shape: tuple[int, ...], launches: int,
                                                    tmp_path: Path) -> None:
    """Blocks and threads run in another order each time, and a run gives the same bits. Nothing is
    launched to add the slices."""
    m = module(fn, shape)
    built = graphtool.build(m, tmp_path / "b", target="sm_90")
    assert "#define GT_SLICES 4" in (built / "model_kernels0.cu").read_text()
    assert (built / "model.c").read_text().count("GT_LAUNCH(") == launches
    model = runtime.load(built)
    x = RNG.standard_normal(shape).astype(np.float32)
    first = model(x=x)["y"].copy()
    np.testing.assert_allclose(first, interp.run(m, {"x": x})["y"], rtol=1e-4, atol=1e-4)
    for _ in range(3):
        np.testing.assert_array_equal(first, model(x=x)["y"])


# the instructions of each kind of product, as PTX calls them
COMPILED = {
    "parts": (dense(1024, 256), (2048, 256), F32, {}, ("mma.sync.aligned.m16n8k8", "ldmatrix",
                                                       "cp.async.cg")),
    "fma": (dense(1024, 256), (2048, 256), F32, {"assume": "nothing"}, ("fma.rn.f32",
                                                                        "cp.async.cg")),
    "bf16": (dense(1024, 256), (2048, 256), BF16, {}, ("m16n8k16.row.col.f32.bf16", "ldmatrix",
                                                       "cp.async.cg")),
    "f16": (dense(1024, 256), (2048, 256), F16, {}, ("m16n8k16.row.col.f32.f16",
                                                     "x4.trans", "cp.async.cg")),
    "few": (dense(1024, 256), (1, 256), F32, {}, ("fma.rn.f32",)),
    "slices": (dense(256, 1024), (49, 1024), F32, {}, ("mma.sync.aligned.m16n8k8", "membar",
                                                       "atom.global.add", "ld.volatile.global")),
    "conv": (conv(64, 64, 3, pad=1), (8, 64, 28, 28), F32, {}, (
        "mma.sync.aligned.m16n8k8", "ldmatrix", "cp.async.cg")),
    "bytes": (lambda x: o.matmul(o.cast(x, dtype=dtypes.int32), bytes_of(x, 256, 1024)),
              (2048, 256), dtypes.uint8, {}, ("m16n8k32.row.col.s32.u8.s8", "ldmatrix",
                                              "cp.async.cg")),
    "depthwise bytes": (lambda x: o.conv(
        o.cast(x, dtype=dtypes.int32), bytes_of(x, 96, 1, 3, 3), groups=96), (1, 96, 30, 30),
        dtypes.uint8, {}, ("ld.global.v4", "ld.global.u32", "mad.lo")),
    "depthwise": (conv(96, 96, 3, pad=1, groups=96), (1, 96, 28, 28), BF16, {}, ("fma.rn.f32",))}


@pytest.mark.part(3)
@pytest.mark.skipif(shutil.which("nvcc") is None, reason="nvcc is not installed")
@pytest.mark.parametrize("name", COMPILED)
def test_nothing_is_spilled(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No registers go to memory, four blocks fit a multiprocessor, and the instructions are those
    that were meant."""
    fn, shape, dtype, options, instructions = COMPILED[name]
    monkeypatch.setattr(cuda, "find", OnC)
    work = graphtool.build(module(fn, shape, dtype), tmp_path / "b", target="cuda", **options)
    source = work / "model_kernels0.cu"
    subprocess.run(["nvcc", "-ptx", "-arch=compute_80", source.name, "-o", "m.ptx"], cwd=work,
                   check=True, capture_output=True)
    text = (work / "m.ptx").read_text()
    assert all(word in text for word in instructions)
    if "depthwise" not in name:  # nothing goes byte by byte; there a loop moves the channels
        assert not re.search(r"ld\.global\S*\.[ub]8\b", text)
    for arch in ARCHITECTURES:
        said = subprocess.run(["nvcc", "-cubin", f"-arch=sm_{arch}", "-Xptxas", "-v", source.name,
                               "-o", "m.cubin"], cwd=work, check=True, capture_output=True,
                              text=True).stderr
        assert {int(n) for n in re.findall(r"(\d+) bytes spill", said)} == {0}
        assert max(int(n) for n in re.findall(r"Used (\d+) registers", said)) <= 128
