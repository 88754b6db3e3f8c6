"""Runs of libraries for a GPU, on a driver on the processor: launches, memory, failures of the
driver, training and profiles."""

from __future__ import annotations

import ctypes
import gc
import re
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import graphtool
from graphtool import dtypes, interp
from graphtool import ops as o
from graphtool.analysis import made_up
from graphtool.emit.language import LANGUAGES
from graphtool.errors import InputError
from graphtool.ir.graph import Module, TensorType
from graphtool.ir.trace import trace
from graphtool.native import runtime
from graphtool.native.device import Block
from graphtool.native.library import open_library
from graphtool.report import profile
from graphtool.train.model import TrainModel
from tests.lower.compiling import faults
from tests.native.cuda import shows
from tests.native.cuda.models import (
    ON_THE_DRIVER,
    RNG,
    a_step,
    inputs_of,
    module,
    value,
)

pytestmark = ON_THE_DRIVER


def test_a_second_run_is_one_launch(device: ctypes.CDLL, tmp_path: Path) -> None:
    """A graph is recorded for the sizes and addresses of a run, replayed when they come again."""
    m = module("dense")
    model = runtime.load(graphtool.build(m, tmp_path / "b", target="sm_90"))
    before = value(device, "cuda_captures").value
    for n, captures in ((40, 1), (40, 1), (40, 1), (7, 2), (40, 2), (7, 2)):
        xs = inputs_of("dense", n)
        assert not faults(model(**xs), interp.run(m, xs))
        assert value(device, "cuda_captures").value - before == captures


@pytest.mark.usefixtures("device")
def test_two_models_of_one_process(tmp_path: Path) -> None:
    """Libraries of one name share the driver and its context, and neither weights nor launches; one
    goes on after the other has left."""
    names = ("dense", "network")
    modules = {name: module(name) for name in names}
    models = {name: runtime.load(graphtool.build(m, tmp_path / name, target="sm_90"))
              for name, m in modules.items()}
    for name in (*names, *names, "network"):
        xs = inputs_of(name, 5)
        assert not faults(models[name](**xs), interp.run(modules[name], xs))
    del models["dense"]
    gc.collect()
    xs = inputs_of("network", 7)
    assert not faults(models["network"](**xs), interp.run(modules["network"], xs))


@pytest.mark.parametrize("target", ["sm_90", "sm_80"])
def test_launches_start_early_where_the_code_waits(device: ctypes.CDLL, target: str,
                                                   tmp_path: Path) -> None:
    """Code for sm_90 is launched so on an sm_90, code for sm_80 is not on an sm_80."""
    value(device, "cuda_arch").value = int(target[3:])
    m, xs = module("network"), inputs_of("network", 5)
    model = runtime.load(graphtool.build(m, tmp_path / "b", target=target))
    before = [value(device, name).value for name in ("cuda_early", "cuda_launches")]
    assert not faults(model(**xs), interp.run(m, xs))
    early, all_ = (value(device, name).value - n for name, n in zip(
        ("cuda_early", "cuda_launches"), before, strict=True))
    assert early == (all_ if target == "sm_90" else 0)


EARLY = {"a buffer that is read too early": {"begins": "(void)*(volatile float *)x0; GT_AFTER();"},
         "no wait": {"begins": ""},
         "constants that are longer": {"asks": "GT_ASK_FOR({name}, {bytes} + 9999);"},
         "constants that are asked for late": {"begins": "GT_AFTER(); GT_ASK_FOR(x1, 16);"}}


@pytest.mark.parametrize("mistake", [None, *EARLY])
def test_kernels_ask_for_constants_and_touch_nothing_before_they_wait(
        mistake: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The driver takes the memory away until then, so that a mistake shows."""
    m, xs = module("dense"), inputs_of("dense", 5)
    if mistake:
        monkeypatch.setitem(LANGUAGES, "cuda", replace(LANGUAGES["cuda"], **EARLY[mistake]))
    built = graphtool.build(m, tmp_path / "b", target="sm_90")
    text = (built / "model_kernels0.cu").read_text()
    assert mistake or re.search(r"ASK_FOR\(x1, \d+\);\s+GT_ASK_FOR\(x2, 24\);\s+GT_AFTER", text)
    assert shows(lambda: not faults(runtime.load(built)(**xs), interp.run(m, xs))) == bool(mistake)


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


def test_any_call_may_fail(device: ctypes.CDLL, tmp_path: Path) -> None:
    """Whichever call of the driver fails, there is one error, and the next run is right. Then there
    is as much memory, and as many contexts, modules, streams and graphs, as without an error."""
    m = module("dense")
    built = graphtool.build(m, tmp_path / "b", target="sm_90")
    more = [inputs_of("dense", n) for n in (5, 40, 64)]  # each needs more memory: graphs are freed
    want, failing, codes = interp.run(m, more[2]), value(device, "cuda_fail_in"), []
    counts = [value(device, name) for name in ("cuda_allocated", "cuda_made")]
    usual: list[int] = []
    for call in range(99):
        library = shutil.copytree(built, tmp_path / f"b{call}")  # one that has no device yet
        gc.collect()
        before, failing.value = [c.value for c in counts], call
        try:
            model = runtime.load(library)
            model(**more[0]), model(**more[1])
        except InputError as error:
            codes.append(error.code)
        left, failing.value, model = failing.value, 0, None
        gc.collect()
        model = runtime.load(library)
        assert not faults(model(**more[2]), want)
        now = [c.value - n for c, n in zip(counts, before, strict=True)]
        usual = usual or now  # of the first, in which no call fails
        assert now == usual, call
        del model
        if left:
            break
    assert call == len(codes) + 1 > 20 and set(codes) == {"GT2232"}


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


def test_training_keeps_its_state_on_the_device(device: ctypes.CDLL, tmp_path: Path) -> None:
    """Steps on a device give the losses and the state of steps on a processor; a step of known
    sizes is one launch, and what the host writes into the state counts. No kernel asks early for
    what the step before has changed."""
    step = a_step()
    on, off = (TrainModel(graphtool.build(step, tmp_path / t, target=t, name="net"))
               for t in ("sm_90", "x86-64"))
    assert "GT_ASK_FOR" not in (tmp_path / "sm_90" / "net_step_kernels0.cu").read_text()
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
