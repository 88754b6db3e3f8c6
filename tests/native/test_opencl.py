"""Models whose kernels are OpenCL C 1.2, run by pocl: the text, the C around it, what can fail."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import graphtool
from graphtool import dtypes, interp
from graphtool import ops as o
from graphtool.errors import InputError, UsageError
from graphtool.ir.graph import Module, TensorType
from graphtool.ir.trace import trace
from graphtool.native import opencl, runtime
from graphtool.native.device import Block
from graphtool.report import profile
from graphtool.symbolic import Symbol, evaluate, symbol
from graphtool.target import named
from graphtool.train.model import TrainModel
from graphtool.transforms.training import Recipe, training
from tests.lower.compiling import compiled, faults, merged, optimised
from tests.native.cuda.models import LOOPS, a_step, inputs_of, module, weights
from tests.passes.pass_samples import module as traced
from tests.passes.pass_samples import values

pytestmark = [pytest.mark.skipif(shutil.which("gcc") is None, reason="gcc is not installed"),
              pytest.mark.skipif(not opencl.cards(), reason="OpenCL has no device: install pocl"),
              pytest.mark.compiled]
RNG = np.random.default_rng(17)
N = symbol("N", 0, 64)
TARGET: dict[str, Any] = {"target": "opencl", "name": "net"}


def kinds(x: Any, h: Any, b: Any, i: Any, q: Any, m: Any) -> tuple[Any, ...]:
    """One nest of each kind: x is f32[N, 24], h f16[N, 24], b bf16[9, 8], i i64[N], q i8[9, 8],
    m bool[N, 24]."""
    heads = o.reshape(o.slice(x, start=(0, 0), limit=(x.shape[0], 16), strides=(1, 1)),
                      shape=(1, 2, x.shape[0], 8))
    rows = o.reshape(i, shape=(*i.shape, 1))
    image = weights(x, 1, 3, 6, 6)
    return (
        o.softmax(o.linear(x, weights(x, 7, 24), weights(x, 7)), axis=1),
        o.layer_norm(o.gelu(x), None, None, axes=(1,)), o.reduce_sum(x * 2.0, axes=(0,)),
        o.cumulative(x, axis=0, kind="sum"), o.gather(x, rows, axes=(0,)),
        o.scatter(weights(x, 64, 24), rows, x, axes=(0,), kind="add"),
        o.conv(image, weights(x, 4, 3, 3, 3), padding=((1, 1), (1, 1))),
        o.attention(heads, heads, heads), h * h + h, o.cast(o.exp(b), dtype=dtypes.float32),
        o.matmul(q, o.transpose(q, perm=(1, 0)), dtype=dtypes.int32),
        o.select(m, x, -x), o.reduce_and(m, axes=(1,)), i * 3 - 1, o.sort(x, axis=1)[0])


def of_kinds() -> Module:
    types = [TensorType(dtypes.float32, (N, 24)), TensorType(dtypes.float16, (N, 24)),
             TensorType(dtypes.bfloat16, (9, 8)), TensorType(dtypes.int64, (N,)),
             TensorType(dtypes.int8, (9, 8)), TensorType(dtypes.bool_, (N, 24))]
    graph = trace(kinds, types, ['x */ "\\\n#error', "h", "b", "i", "q", "m"])
    names = tuple(f"y{i}" for i in range(len(graph.outputs)))
    return Module(graph, names, {"N": Symbol("N", 0, 64)})


def values_of(m: Module, n: int) -> dict[str, np.ndarray]:
    return {v.hint: (RNG.integers(0, max(n, 1), [evaluate(d, {"N": n}) for d in v.type.shape])
                     if not v.type.dtype.is_float else
                     RNG.standard_normal([evaluate(d, {"N": n}) for d in v.type.shape])
                     ).astype(v.type.dtype.numpy) for v in m.graph.inputs}


def test_each_kind_of_nest(tmp_path: Path) -> None:
    """A model of open size with a name of an input that no text may contain as it is."""
    m = of_kinds()
    model = runtime.load(graphtool.build(m, tmp_path / "b", **TARGET))
    for n in (33, 1, 0):
        xs = values_of(m, n)
        assert not faults(model(**xs), interp.run(m, xs))


def conv(x: Any, filters: int, window: int, groups: int = 1, **how: Any) -> Any:
    """A convolution with a bias and a relu in its hook."""
    w = weights(x, filters, x.shape[1] // groups, window, window)
    return o.relu(o.conv(x, o.cast(w, dtype=x.dtype), groups=groups, **how))


def products(x: Any, h: Any, b: Any, image: Any) -> tuple[Any, ...]:
    """What product_opencl.h computes: x is f32[N, 24], h f16[N, 24], b bf16[9, 8], image
    f32[2, 12, 9, 11]."""
    w = weights(x, 3, 24, 17)
    wide = o.broadcast(o.reshape(x, shape=(1, *x.shape)), shape=(3, *x.shape))
    return (
        o.relu(o.linear(x, weights(x, 70, 24), weights(x, 70))),
        o.linear(x, weights(x, 5, 24), None), o.matmul(wide, w),
        o.matmul(o.transpose(x, perm=(1, 0)), o.linear(x, weights(x, 40, 24), None)),
        o.linear(h, o.cast(weights(x, 20, 24), dtype=h.dtype), None),
        o.linear(b, o.cast(weights(x, 33, 8), dtype=b.dtype), None),
        conv(image, 40, 3, padding=((1, 1), (1, 1))), conv(image, 7, 1, strides=(2, 2)),
        conv(image, 16, 3, 4, padding=((0, 2), (1, 0)), strides=(2, 1)),
        conv(image, 12, 3, padding=((4, 4), (4, 4)), rhs_dilation=(4, 4)),
        conv(o.cast(image, dtype=dtypes.float16), 20, 2))


def integers(u: Any, s: Any, image: Any) -> tuple[Any, ...]:
    """Products of u8[N, 23] and i8[9, 23], convolutions of u8[2, 12, 9, 11], by weights in int8."""
    def of(*shape: int) -> Any:
        return u.builder.constant(RNG.integers(-128, 128, shape).astype(np.int32))

    u, s, image = (o.cast(x, dtype=dtypes.int32) for x in (u, s, image))
    one = ((1, 1), (1, 1))
    return (o.matmul(u, of(23, 37)), o.matmul(s, of(23, 5)), o.conv(image, of(40, 12, 3, 3)),
            o.conv(image, of(8, 6, 3, 3), padding=one, strides=(2, 1), groups=2),
            o.conv(image, of(12, 1, 3, 3), padding=one, groups=12))


def test_products_of_integers_have_the_bits_of_the_evaluator(tmp_path: Path) -> None:
    """They need no float64, which a device may lack, and the weights have one byte or two."""
    types = [TensorType(dtypes.uint8, (N, 23)), TensorType(dtypes.int8, (9, 23)),
             TensorType(dtypes.uint8, (2, 12, 9, 11))]
    m = Module(trace(integers, types, ["u", "s", "image"]), tuple("abcde"),
               {"N": Symbol("N", 0, 64)})
    model = runtime.load(graphtool.build(m, tmp_path / "b", **TARGET))
    text = (tmp_path / "b" / "net_kernels0.cl").read_text()
    assert text.count("define GT_NAME") == 4 and "GT_OPENCL_DOUBLE_H" not in text
    for n in (33, 1, 0):
        xs = {v.hint: RNG.integers(np.iinfo(v.type.dtype.numpy).min, 128,
                                   [evaluate(d, {"N": n}) for d in v.type.shape]
                                   ).astype(v.type.dtype.numpy) for v in m.graph.inputs}
        got = model(**xs)
        for name, want in interp.run(m, xs).items():
            np.testing.assert_array_equal(got[name], want)


def test_products_are_tiles(tmp_path: Path) -> None:
    """Odd sizes, one row and none, numbers of 16 bits, and images with padding that is not in
    memory; one of infinities keeps them."""
    types = [TensorType(dtypes.float32, (N, 24)), TensorType(dtypes.float16, (N, 24)),
             TensorType(dtypes.bfloat16, (9, 8)), TensorType(dtypes.float32, (2, 12, 9, 11))]
    graph = trace(products, types, ["x", "h", "b", "image"])
    m = Module(graph, tuple(f"y{i}" for i in range(11)), {"N": Symbol("N", 0, 64)})
    model = runtime.load(graphtool.build(m, tmp_path / "b", assume="nothing", **TARGET))
    text = (tmp_path / "b" / "net_kernels0.cl").read_text()
    assert text.count("define GT_NAME") == 12
    for n in (33, 1, 0):
        xs = values_of(m, n)
        xs["image"][0, 0, 4, 4], xs["x"][:1, :1] = np.inf, np.nan
        assert not faults(model(**xs), interp.run(m, xs))


@pytest.mark.slow
@pytest.mark.parametrize("part", range(32))
def test_ops(part: int, tmp_path: Path) -> None:
    """Every case of the table that loops can compute."""
    m, xs = merged(LOOPS[part::32])
    model = compiled(optimised(m, named("opencl")), tmp_path / "b", target="opencl")
    assert not faults(model(**xs), interp.run(m, xs))


def changed(built: Path, old: bytes, new: bytes) -> runtime.Model:
    """The build with other bytes in the text of its kernels."""
    library = built / "libnet.so"
    assert old in library.read_bytes() and len(old) == len(new)
    library.write_bytes(library.read_bytes().replace(old, new))
    return runtime.load(built)


def one(fn: Any, dtype: Any = dtypes.float32) -> Module:
    return Module(trace(fn, [TensorType(dtype, (5, 8))], ["x"]), ("y",))


def test_kernels_that_are_refused(tmp_path: Path) -> None:
    built = graphtool.build(one(o.exp), tmp_path / "b", **TARGET)
    with pytest.raises(InputError, match="the device's compiler refused the kernels") as told:
        changed(built, b"GT_KERNEL void", b"GT_KERNEL vojd")(x=np.zeros((5, 8), np.float32))
    assert told.value.code == "GT2232" and "'vojd'" in str(told.value)


def test_a_device_without_float64(tmp_path: Path) -> None:
    """float32 is computed all the same, by the device's own functions; float64 is refused."""
    def both(x: Any) -> Any:
        return o.sin(x) + o.atanh(o.sin(x) * 0.5) + o.acos(o.sin(x)) + o.tan(x * 0.1)
    x = RNG.standard_normal((5, 8)).astype(np.float32)
    without = b"#ifdef cl_khr_fp64", b"#ifdef cl_khr_none"
    m = one(both)
    model = changed(graphtool.build(m, tmp_path / "b", **TARGET), *without)
    assert not faults(model(x=x), interp.run(m, {"x": x}))
    m = one(lambda x: x * x, dtypes.float64)
    with pytest.raises(InputError, match="float64, which this device does not have"):
        changed(graphtool.build(m, tmp_path / "c", **TARGET), *without)(x=x.astype(np.float64))


def test_memory_of_the_device(tmp_path: Path) -> None:
    """Arrays there are used where they are; too much memory is one error, and the next run is
    right."""
    m = module("dense")
    model = runtime.load(graphtool.build(m, tmp_path / "b", **TARGET))
    at = ctypes.c_void_p()
    for size in (1 << 38, 1 << 41):
        assert model.library.net_device_alloc(ctypes.byref(at), ctypes.c_size_t(size)) == -10
    x = inputs_of("dense", 3)["x"]
    block, copy = Block(model.library, "net", x.nbytes), np.empty_like(x)
    block.write(x)
    there = block.as_array().view(np.float32).reshape(x.shape)
    assert not faults(model(x=there), interp.run(m, {"x": x}))
    block.read(copy)
    assert np.array_equal(copy, x)


def test_a_stranger_compiles_it(tmp_path: Path) -> None:
    """The C around the kernels is C11 without a warning, and its example runs; without a driver it
    says what is missing."""
    built = graphtool.build(module("dense"), tmp_path / "b", **TARGET)
    flags = ["-std=c11", "-Wall", "-Wextra", "-Wconversion", "-pedantic", "-Werror", "-O1"]
    files = sorted(str(p) for p in built.glob("*.c"))
    subprocess.run(["gcc", *flags, *files, "-ldl", "-lm", "-o", "example"], cwd=built, check=True)
    if shutil.which("ldconfig") and opencl.LOADER in subprocess.run(
            ["ldconfig", "-p"], capture_output=True, text=True).stdout:
        said = subprocess.run(["./example"], cwd=built, capture_output=True, text=True)
        assert said.returncode == 0 and said.stdout.startswith("outputs[0]: "), said.stderr
    nothing = {**os.environ, "OCL_ICD_VENDORS": "/nothing", "OCL_ICD_FILENAMES": "/nothing"}
    said = subprocess.run(["./example"], cwd=built, capture_output=True, text=True, env=nothing)
    assert said.returncode == 1 and "libOpenCL.so.1" in said.stderr


def test_training_keeps_its_state_on_the_device(tmp_path: Path) -> None:
    step = training(traced(lambda x: o.linear(x, values(x, 5, 24, name="w", param=True), None),
                           "f32[B,24]"), Recipe("mse", optimizer="sgd"))
    on, off = (TrainModel(graphtool.build(step, tmp_path / t, target=t, name="net"))
               for t in ("opencl", "x86-64"))
    batch = {n: RNG.standard_normal(s).astype(np.float32) for n, s in (("x0", (7, 24)),
                                                                      ("y", (7, 5)))}
    for _ in range(2):
        assert on.step(batch, 0.05) == pytest.approx(off.step(batch, 0.05), rel=1e-4)
    np.testing.assert_allclose(on.state["w"], off.state["w"], rtol=1e-4, atol=1e-5)


@pytest.mark.slow
def test_entry_points_and_profile(tmp_path: Path) -> None:
    parts = {"one": module("dense"), "two": one(o.relu)}
    built = graphtool.build(parts, tmp_path / "b", **TARGET)
    for entry, m in parts.items():
        xs = inputs_of("dense", 4) if entry == "one" else {"x": -np.ones((5, 8), np.float32)}
        assert not faults(runtime.load(built, entry=entry)(**xs), interp.run(m, xs))
    said, _ = profile.profile(built, inputs_of("dense", 4), runs=2, entry="one")
    assert all(s.us > 0 and s.source.startswith("net_one_kernels0.cl:") for s in said.steps)


@pytest.mark.parametrize(("model", "options"), [
    (a_step, {"mpi": True}), (lambda: module("softmax"), {"precision": "strict"})])
def test_what_is_not_built(model: Callable[[], Module], options: dict[str, Any],
                           tmp_path: Path) -> None:
    with pytest.raises(UsageError) as told:
        graphtool.build(model(), tmp_path / "b", **TARGET, **options)
    assert told.value.code == "GT2107" and not (tmp_path / "b").exists()
