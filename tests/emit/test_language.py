"""A second language: the CUDA of the documentation's plug-in, run on the processor by a shim.

What it shows is that nothing in `emit` knows C's threads: loops are divided among blocks and their
threads, sums meet in a block, and steps are launches.
"""

from __future__ import annotations

import ctypes
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graphtool import dtypes, interp, passes, plugins
from graphtool import ops as o
from graphtool.compile.as_is import build
from graphtool.compile.build import emit as emit_unit
from graphtool.compile.options import Build
from graphtool.compile.source import Source
from graphtool.compile.unit import unit_of
from graphtool.emit.c import emit
from graphtool.emit.language import LANGUAGES, named
from graphtool.errors import InputError, UnsupportedError, UsageError
from graphtool.ir.graph import Module, TensorType
from graphtool.ir.trace import trace
from graphtool.kernels import headers
from graphtool.loops.ir import Template
from graphtool.loops.walk import statements
from graphtool.lower import lower
from graphtool.symbolic import Dim, Symbol, evaluate, symbol
from graphtool.target import named as target

HERE = Path(__file__).parent
PLUGIN = HERE.parents[1] / "docs" / "examples" / "plugins" / "cuda_text.py"
RNG = np.random.default_rng(7)
N = symbol("N", 1, 64)


@pytest.fixture(autouse=True)
def cuda() -> Iterator[None]:
    plugins.load_plugin(PLUGIN)
    yield
    plugins.unload("cuda_text")


def weights(x: Any, *shape: int) -> Any:
    return x.builder.constant(RNG.standard_normal(shape).astype(np.float32))


def softmax(x: Any) -> Any:
    return o.softmax(x * 0.5, axis=1)


def elementwise(x: Any) -> Any:
    return o.relu(x) * 2.0 + o.tanh(x), o.exp(-x)


def network(x: Any) -> Any:
    """Products and a transposition, whose kernels have texts in C alone."""
    y = o.relu(o.linear(x, weights(x, 96, 70), weights(x, 96)))
    return o.transpose(o.layer_norm(y, None, None, axes=(1,)), perm=(1, 0))


def convolution(x: Any) -> Any:
    return o.reduce_sum(o.relu(o.conv(x, weights(x, 8, 3, 3, 3), padding=((1, 1), (1, 1)))),
                        axes=(2, 3))


def running(x: Any) -> Any:
    """A scan along rows, which one worker does at a time, and sums over columns."""
    return o.cumulative(x, axis=1, kind="sum", exclusive=False, reverse=False), o.reduce_sum(
        x, axes=(0,))


MODELS: dict[str, tuple[Any, tuple[Dim, ...]]] = {
    "softmax": (softmax, (N, 300)), "elementwise": (elementwise, (N, 700)),
    "network": (network, (40, 70)), "convolution": (convolution, (2, 3, 12, 12)),
    "running": (running, (50, 60))}


def module(name: str, march: str = "gpu_text") -> Module:
    fn, shape = MODELS[name]
    graph = trace(fn, [TensorType(dtypes.float32, shape)], ["x"])
    outputs = tuple(f"y{i}" for i in range(len(graph.outputs)))
    symbols = {"N": Symbol("N", 1, 64)} if N in shape else {}
    return passes.run(Module(graph, outputs, symbols), None, supply={"march": march})


def run(m: Module, x: np.ndarray, folder: Path) -> list[np.ndarray]:
    """The outputs of the emitted text for one input, by the shim; open sizes are those of x."""
    how = Build(as_is=True, target="gpu_text", weights="c")
    emit_unit(unit_of(Source(m), how, "model"), folder, how)
    kernels = sorted(folder.glob("*.cu"))
    assert kernels and not list(folder.glob("*_kernels?.c"))
    for name in ("cuda_on_c.h", "cuda_on_c.c"):
        shutil.copy(HERE / name, folder)
    (folder / "model_example.c").unlink()
    subprocess.run(["gcc", "-std=gnu11", "-O1", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC",
                    "-o", "model.so", *(p.name for p in sorted(folder.glob("*.c"))), "-x", "c",
                    *(p.name for p in kernels), "-lm"], cwd=folder, check=True)
    library = ctypes.CDLL(str(folder / "model.so"))
    library.model_arena_bytes.restype = ctypes.c_size_t
    sizes = (ctypes.c_int64 * 1)(x.shape[0])
    room = np.full(library.model_arena_bytes(sizes) + 64, 0x7f, np.uint8)
    arena = room.ctypes.data + (-room.ctypes.data) % 64
    sized = {s: x.shape[0] for s in m.symbols}
    outs = [np.full([evaluate(d, sized) for d in v.type.shape], np.nan, np.float32)
            for v in m.graph.outputs]
    pointers = [(ctypes.c_void_p * len(arrays))(*(a.ctypes.data for a in arrays))
                for arrays in ([np.ascontiguousarray(x)], outs)]
    assert library.model_run(None, ctypes.c_void_p(arena), sizes, *pointers, 0) == 0
    return outs


@pytest.mark.skipif(shutil.which("gcc") is None, reason="gcc is not installed")
@pytest.mark.parametrize("name", MODELS)
def test_text_computes_what_the_graph_does(name: str, tmp_path: Path) -> None:
    m = module(name)
    shape = [evaluate(d, {"N": 33}) for d in MODELS[name][1]]
    x = RNG.standard_normal(shape).astype(np.float32)
    want = interp.run(m, {"x": x})
    for y, output in zip(run(m, x, tmp_path), m.output_names, strict=True):
        np.testing.assert_allclose(y, want[output], rtol=2e-5, atol=2e-5)


@pytest.mark.skipif(shutil.which("nvcc") is None, reason="nvcc is not installed")
@pytest.mark.parametrize("name", ["softmax", "network"])
def test_nvcc_takes_the_same_text(name: str, tmp_path: Path) -> None:
    for file, text in emit(lower(module(name), target("gpu_text", threads=4))).items():
        (tmp_path / file).write_text(text)
    subprocess.run(["nvcc", "-arch=sm_90", "-ptx", "model_kernels0.cu", "-o", "model.ptx"],
                   cwd=tmp_path, check=True)
    assert ".visible .entry model_k0(" in (tmp_path / "model.ptx").read_text()


def text_of(name: str) -> str:
    program = lower(module(name), target("gpu_text", threads=4))
    return "".join(t for f, t in emit(program).items() if f.endswith((".cu", "model.c")))


def test_rows_belong_to_blocks_and_their_elements_to_threads() -> None:
    text = text_of("softmax")
    assert "for (int64_t i0 = blockIdx.x; i0 < d0; i0 += gridDim.x) {" in text
    assert "for (int64_t r0 = threadIdx.x; r0 < 300; r0 += blockDim.x) {" in text
    assert "acc0 = gt_block_max_f32(acc0);" in text and "GT_LAUNCH(model_k0, d0, " in text


def test_a_row_without_loops_inside_is_a_thread() -> None:
    text = text_of("elementwise")
    assert "= blockIdx.x * blockDim.x + threadIdx.x; " in text
    assert not re.search(r"\bt\b|gt_barrier|GT_SIMD|gt_worker|gt_choose", text)


def test_no_kernel_is_used_that_has_no_text() -> None:
    for name in MODELS:
        program = lower(module(name), target("gpu_text", threads=4))
        assert not [s for k in program.kernels for s in statements(k.body)
                    if isinstance(s, Template)]
    in_c = lower(module("network", "x86-64-v3"), target("x86-64-v3", threads=4))
    assert [s for k in in_c.kernels for s in statements(k.body) if isinstance(s, Template)]


def test_a_program_for_another_language_is_refused() -> None:
    p = lower(module("network", "x86-64-v3"), target("x86-64-v3", threads=4))
    with pytest.raises(InputError, match="has no text in cuda_text") as told:
        emit(replace(p, meta={**p.meta, "language": "cuda_text"}))
    assert told.value.code == "GT0572"


def test_an_op_without_a_definition_says_what_is_missing() -> None:
    graph = trace(lambda x: o.sort(x, axis=1)[0], [TensorType(dtypes.float32, (4, 9))], ["x"])
    m = passes.run(Module(graph, ("y",), {}), None, supply={"march": "gpu_text"})
    with pytest.raises(UnsupportedError) as told:
        lower(m, target("gpu_text", threads=4))
    assert "has no text in the language cuda_text" in str(told.value)


def test_nothing_is_compiled_in_another_language(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="kernels in CUDA are not compiled here") as told:
        build(module("softmax"), tmp_path / "b", target="gpu_text")
    assert told.value.code == "GT2106"


def test_an_unknown_language() -> None:
    with pytest.raises(UsageError, match="unknown language 'cude_text'") as told:
        named("cude_text")
    assert told.value.code == "GT2105" and "did you mean 'cuda_text'" in (told.value.hint or "")


def test_nothing_stays_behind() -> None:
    plugins.unload("cuda_text")
    assert list(LANGUAGES) == ["c"] and "cuda_text.h" not in headers.names()
    plugins.load_plugin(PLUGIN)
