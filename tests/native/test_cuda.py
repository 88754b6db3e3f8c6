"""Models whose kernels are in CUDA, built as for a GPU and run by a driver on the processor.

All but the device is what a user gets: the emitted text, the C around it, the library, its loader.
"""

from __future__ import annotations

import ctypes
import gc
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import graphtool
from graphtool import dtypes, interp, passes
from graphtool import ops as o
from graphtool.analysis import made_up
from graphtool.errors import CompilerError, InputError, UnsupportedError, UsageError
from graphtool.ir import serial
from graphtool.ir.graph import Module, TensorType
from graphtool.ir.trace import trace
from graphtool.lower import lower
from graphtool.native import cuda, runtime
from graphtool.native.device import Block
from graphtool.native.library import open_library
from graphtool.report import profile
from graphtool.symbolic import Dim, Symbol, evaluate, symbol
from graphtool.target import named
from graphtool.train.model import TrainModel
from graphtool.transforms.training import Recipe, training
from tests.cases import CASES
from tests.lower.compiling import compiled, faults, merged, optimised
from tests.native.cuda import OnC, folder
from tests.passes.pass_samples import SAMPLES, values
from tests.passes.pass_samples import module as traced

pytestmark = [pytest.mark.skipif(shutil.which("gcc") is None, reason="gcc is not installed"),
              pytest.mark.compiled]  # each test has the driver, which is compiled
RNG = np.random.default_rng(7)
N = symbol("N", 0, 64)
# ops of communication: only kernels compute these, with no text in CUDA
LACKING = {"all_reduce", "all_gather", "reduce_scatter",
           "broadcast_first", "process_rank", "collective_begin", "collective_end"}
LOOPS = [c for c in CASES if c.op.name not in LACKING]
STEPS = [18, pytest.param(6, marks=pytest.mark.slow)]  # one case of so many, by the real compilers


@pytest.fixture(autouse=True)
def device(libcuda: ctypes.CDLL, monkeypatch: pytest.MonkeyPatch) -> Iterator[ctypes.CDLL]:
    monkeypatch.setattr(cuda, "find", OnC)
    value(libcuda, "cuda_fail_in").value = 0
    value(libcuda, "cuda_arch").value = 90
    yield libcuda
    gc.collect()  # the driver looks behind memory when it is given back: here, not in another test


def value(library: ctypes.CDLL, name: str) -> ctypes.c_int:
    return ctypes.c_int.in_dll(library, name)


def weights(x: Any, *shape: int) -> Any:
    return x.builder.constant(RNG.standard_normal(shape).astype(np.float32))


def softmax(x: Any) -> Any:
    return o.softmax(x * 0.5, axis=1)


def elementwise(x: Any) -> Any:
    return o.relu(x) * 2.0 + o.tanh(x), o.exp(-x)


def network(x: Any) -> Any:
    """Products and a transposition, whose kernels have texts in C alone."""
    y = o.relu(o.linear(x, weights(x, 24, 70), weights(x, 24)))
    return o.transpose(o.layer_norm(y, None, None, axes=(1,)), perm=(1, 0))


def dense(x: Any) -> Any:
    """Little work, for tests of what is around it."""
    return o.relu(o.linear(x, weights(x, 6, 8), weights(x, 6)))


def convolution(x: Any) -> Any:
    return o.reduce_sum(o.relu(o.conv(x, weights(x, 8, 3, 3, 3), padding=((1, 1), (1, 1)))),
                        axes=(2, 3))


def pool(x: Any) -> Any:
    """A loop over windows, whose elements all workers share."""
    return o.reduce_window(x, kind="max", window=(1, 1, 2, 2), strides=(1, 1, 1, 1))


def running(x: Any) -> Any:
    """A scan along rows, which one worker does at a time, and sums over columns."""
    return o.cumulative(x, axis=1, kind="sum", exclusive=False, reverse=False), o.reduce_sum(
        x, axes=(0,))


MODELS: dict[str, tuple[Any, tuple[Dim, ...]]] = {
    "softmax": (softmax, (N, 300)), "elementwise": (elementwise, (N, 700)),
    "network": (network, (N, 70)), "convolution": (convolution, (2, 3, 12, 12)),
    "running": (running, (50, 60)), "pool": (pool, (4, 8, 24, 24)),
    "dense": (dense, (N, 8))}


def module(name: str) -> Module:
    fn, shape = MODELS[name]
    graph = trace(fn, [TensorType(dtypes.float32, shape)], ["x"])
    outputs = tuple(f"y{i}" for i in range(len(graph.outputs)))
    return Module(graph, outputs, {"N": Symbol("N", 0, 64)} if N in shape else {})


def inputs_of(name: str, n: int = 33) -> dict[str, np.ndarray]:
    shape = [evaluate(d, {"N": n}) for d in MODELS[name][1]]
    return {"x": RNG.standard_normal(shape).astype(np.float32)}


@pytest.mark.part(2)
@pytest.mark.parametrize("name", MODELS)
def test_a_model_computes_what_the_graph_does(name: str, tmp_path: Path) -> None:
    m = module(name)
    model = runtime.load(graphtool.build(m, tmp_path / "b", target="sm_90"))
    for n in (33, 1, 0, 64) if m.symbols else (33,):
        xs = inputs_of(name, n)
        assert not faults(model(**xs), interp.run(m, xs))


@pytest.mark.part(2)
@pytest.mark.parametrize("name", sorted(SAMPLES))
def test_samples(name: str, tmp_path: Path) -> None:
    model = runtime.load(graphtool.build(SAMPLES[name], tmp_path / "b", target="cuda"))
    for seed in range(2):
        xs = made_up.random_inputs(SAMPLES[name], seed)
        assert not faults(model(**xs), interp.run(SAMPLES[name], xs), 1e-4, 1e-4)


@pytest.mark.part(16)
@pytest.mark.parametrize("part", range(16))
def test_ops(part: int, tmp_path: Path) -> None:
    """Every case of the table that loops can compute, many in one library."""
    m, xs = merged(LOOPS[part::16])
    model = compiled(optimised(m, named("sm_90")), tmp_path / "b", target="sm_90")
    assert not faults(model(**xs), interp.run(m, xs))


def test_a_second_run_is_one_launch(device: ctypes.CDLL, tmp_path: Path) -> None:
    """A graph is recorded for the sizes and addresses of a run, replayed when they come again."""
    m = module("dense")
    model = runtime.load(graphtool.build(m, tmp_path / "b", target="sm_90"))
    before = value(device, "cuda_captures").value
    for n, captures in ((40, 1), (40, 1), (40, 1), (7, 2), (40, 2), (7, 2)):
        xs = inputs_of("dense", n)
        assert not faults(model(**xs), interp.run(m, xs))
        assert value(device, "cuda_captures").value - before == captures


def test_weights_leave_the_device(device: ctypes.CDLL, tmp_path: Path) -> None:
    built = graphtool.build(module("dense"), tmp_path / "b", target="sm_90")
    gc.collect()
    before = value(device, "cuda_allocated").value
    model = runtime.load(built)
    model(**inputs_of("dense"))
    assert value(device, "cuda_allocated").value == before + 2  # the weights, and what a run needs
    del model
    gc.collect()
    assert value(device, "cuda_allocated").value == before + 1


@pytest.mark.parametrize("mode", ["embed", "c"])
def test_weights_inside_the_library(mode: str, tmp_path: Path) -> None:
    m = module("dense")
    model = runtime.load(graphtool.build(m, tmp_path / "b", target="sm_90", weights=mode))
    xs = inputs_of("dense")
    assert not faults(model(**xs), interp.run(m, xs))


def test_any_call_may_fail(device: ctypes.CDLL, tmp_path: Path) -> None:
    """Whichever call of the driver fails, there is one error, and the next run is right."""
    m = module("dense")
    built = graphtool.build(m, tmp_path / "b", target="sm_90")
    xs = inputs_of("dense")
    want, failing, codes = interp.run(m, xs), value(device, "cuda_fail_in"), []
    for call in range(1, 99):
        library = shutil.copytree(built, tmp_path / f"b{call}")  # one that has no device yet
        failing.value = call
        try:
            runtime.load(library)(**xs)
        except InputError as error:
            codes.append(error.code)
        if failing.value:
            break
        assert not faults(runtime.load(library)(**xs), want)
    failing.value = 0
    assert len(codes) > 12 and set(codes) == {"GT2232"}


def test_index_checks_and_computed_sizes(tmp_path: Path) -> None:
    """What a kernel finds out is read from the device: failed checks, sizes, conditions."""
    def pick(x: Any, i: Any) -> Any:
        return o.gather(x, i, axes=(0,))
    types = [TensorType(dtypes.float32, (5, 3)), TensorType(dtypes.int64, (4, 1))]
    m = Module(trace(pick, types, ["x", "i"]), ("y",))
    model = runtime.load(graphtool.build(m, tmp_path / "b", target="sm_90"))
    x = RNG.standard_normal((5, 3)).astype(np.float32)
    got = model(x=x, i=np.array([[0], [4], [2], [1]]))
    np.testing.assert_array_equal(got["y"], x[[0, 4, 2, 1]])
    with pytest.raises(InputError) as told:
        model(x=x, i=np.array([[0], [5], [2], [1]]))
    assert told.value.code == "GT0501"


def test_memory_of_the_device_is_used_as_it_is(device: ctypes.CDLL, tmp_path: Path) -> None:
    """NAME_run_device takes addresses of the device; the driver's are the processor's."""
    m = module("softmax")
    built = graphtool.build(m, tmp_path / "b", target="sm_90", name="soft")
    library = open_library(built / "libsoft.so", "native")
    library.soft_arena_bytes.restype = ctypes.c_size_t
    x = inputs_of("softmax", 9)["x"]
    y = np.full_like(x, np.nan)
    dims = (ctypes.c_int64 * 1)(9)
    arena = np.zeros(library.soft_arena_bytes(dims) + 64, np.uint8)
    ins, outs = ((ctypes.c_void_p * 1)(a.ctypes.data) for a in (x, y))
    launched = value(device, "cuda_launches").value
    run = library.soft_run_device
    assert run(None, ctypes.c_void_p(arena.ctypes.data), dims, ins, outs) == 0
    assert value(device, "cuda_launches").value > launched
    assert not faults({"y0": y}, interp.run(m, {"x": x}))
    assert run(None, None, dims, ins, outs) in (0, -3)
    assert run(None, ctypes.c_void_p(arena.ctypes.data), None, ins, outs) == -3


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


def a_step() -> Module:
    return training(traced(lambda x: o.linear(x, values(x, 5, 24, name="w", param=True), None),
                           "f32[B,24]"), Recipe("mse", optimizer="adam"))


@pytest.mark.parametrize(("model", "options"), [
    (a_step, {"mpi": True}), (lambda: module("softmax"), {"precision": "strict"})])
def test_what_is_not_built(model: Callable[[], Module], options: dict[str, Any],
                           tmp_path: Path) -> None:
    with pytest.raises(UsageError) as told:
        graphtool.build(model(), tmp_path / "b", target="sm_90", **options)
    assert told.value.code == "GT2107" and not (tmp_path / "b").exists()


def test_training_keeps_its_state_on_the_device(device: ctypes.CDLL, tmp_path: Path) -> None:
    """Steps on a device give the losses and the state of steps on a processor; a step of known
    sizes is one launch, and what the host writes into the state counts."""
    step = a_step()
    on, off = (TrainModel(graphtool.build(step, tmp_path / t, target=t, name="net"))
               for t in ("sm_90", "x86-64"))
    batch = {n: RNG.standard_normal(s).astype(np.float32) for n, s in (("x0", (7, 24)),
                                                                      ("y", (7, 5)))}
    for i in range(3):
        captures = value(device, "cuda_captures").value
        assert on.step(batch, 0.05) == pytest.approx(off.step(batch, 0.05), rel=1e-4)
        assert value(device, "cuda_captures").value - captures == (i == 0)
    for model in (on, off):
        model.state["w"][...] *= 0.5
    assert on.loss(batch) == pytest.approx(off.loss(batch), rel=1e-4)
    np.testing.assert_allclose(on.state["w"], off.state["w"], rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(on.predict(batch)[0], off.predict(batch)[0], rtol=1e-4, atol=1e-5)


def test_entry_points_share_weights_and_memory_of_the_device(device: ctypes.CDLL,
                                                             tmp_path: Path) -> None:
    """Several functions over one set of weights, which is on the device once."""
    w = RNG.standard_normal((6, 8)).astype(np.float32)

    def graph(fn: Any, rows: int) -> Module:
        return Module(trace(lambda x: fn(o.linear(x, x.builder.constant(w), None)),
                            [TensorType(dtypes.float32, (rows, 8))], ["x"]), ("y",))
    parts = {"many": graph(o.relu, 20), "one": graph(o.tanh, 1)}
    built = graphtool.build(parts, tmp_path / "b", target="sm_90", name="net")
    gc.collect()
    before = value(device, "cuda_allocated").value
    models = {e: runtime.load(built, entry=e) for e in parts}
    assert value(device, "cuda_allocated").value == before + 1
    for entry, m in parts.items():
        xs = made_up.random_inputs(m, 1)
        assert not faults(models[entry](**xs), interp.run(m, xs))


def test_arrays_that_are_on_the_device_stay_there(tmp_path: Path) -> None:
    """NAME_run takes addresses of the device among those of the caller, and does not copy them."""
    m = module("dense")
    model = runtime.load(graphtool.build(m, tmp_path / "b", target="sm_90", name="net"))
    x = inputs_of("dense", 3)["x"]
    block = Block(model.library, "net", x.nbytes)
    block.write(x)
    there = block.as_array().view(np.float32).reshape(x.shape)
    assert not faults(model(x=there), interp.run(m, {"x": x}))


def test_profile(tmp_path: Path) -> None:
    """A profile of a device has a row for each launch, on the roof of its data sheet."""
    m = module("network")
    built = graphtool.build(m, tmp_path / "b", target="sm_90", name="net")
    said, marks = profile.profile(built, inputs_of("network"), runs=2)
    assert said.threads == 1 and said.peaks.gflops == 67e3 and marks.shape[0] == 1
    assert all(s.us > 0 and s.source.startswith("net_kernels0.cu:") for s in said.steps)
    assert {s.rate for s in said.steps} == {"f32", "tf32"}
    assert "3350 GB/s from memory" in profile.profile_lines(said)[-1]
    assert not faults(runtime.load(built)(**(xs := inputs_of("network"))), interp.run(m, xs))


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


def test_an_op_without_a_definition_says_what_is_missing() -> None:
    graph = trace(lambda x: o.all_reduce(x, kind="sum"), [TensorType(dtypes.float32, (4, 9))],
                  ["x"])
    m = passes.run(Module(graph, ("y",), {}), None, supply={"march": "sm_90"})
    with pytest.raises(UnsupportedError) as told:
        lower(m, named("sm_90"))
    assert "has no text in the language cuda" in str(told.value)
