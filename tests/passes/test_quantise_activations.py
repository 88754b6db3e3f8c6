"""Activations that are stored although no layer reads them: which these are, and that a model with
all of them in 8 bits keeps no floats in memory."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import graphtool
from graphtool import Quantisation, dtypes, interp
from graphtool import ops as o
from graphtool.compile.build import build, emit
from graphtool.compile.options import Build
from graphtool.compile.source import Source
from graphtool.compile.unit import unit_of
from graphtool.errors import UsageError
from graphtool.ir.graph import Module, TensorType
from graphtool.ir.trace import trace
from graphtool.lower import lower
from graphtool.native.runtime import load
from graphtool.passes.quantise.activations import stored_activations
from graphtool.passes.quantise.layers import layers
from graphtool.passes.quantise.ports import PortType
from graphtool.target import named
from graphtool.transforms.quantising import prepared
from tests.native.small_targets import harness, here

IMAGE = TensorType(dtypes.float32, (1, 4, 8, 8))
EXAMPLES = {"x": np.random.default_rng(1).normal(size=(8, 4, 8, 8)).astype(np.float32)}


def weight(x: Any, seed: int, *shape: int) -> Any:
    w = np.random.default_rng(seed).normal(size=shape).astype(np.float32)
    return x.builder.constant(w, f"@w{seed}", True)


def residual(x: Any) -> Any:
    """Two branches of which no layer reads the sum: it is read by a mean."""
    a = o.relu(o.conv(x, weight(x, 1, 8, 4, 3, 3), padding=((1, 1), (1, 1))))
    b = o.conv(a, weight(x, 2, 8, 8, 3, 3), padding=((1, 1), (1, 1)))
    skip = o.conv(a, weight(x, 3, 8, 8, 1, 1))
    mean = o.reshape(o.reduce_mean(o.relu(o.add(b, skip)), axes=(2, 3)), shape=(1, 8))
    return o.linear(mean, weight(x, 4, 5, 8))


def gated(x: Any) -> Any:
    """x·sigmoid(x) of one layer's result is computed by its kernel."""
    a = o.conv(x, weight(x, 1, 8, 4, 1, 1))
    return o.conv(o.mul(a, o.sigmoid(a)), weight(x, 2, 8, 8, 1, 1))


def module(fn: Any) -> Module:
    return Module(trace(fn, [IMAGE], ["x"]), ("y",))


@pytest.mark.parametrize(("fn", "count"), [(residual, 2), (gated, 0)])
def test_what_is_stored_for_no_layer(fn: Any, count: int) -> None:
    graph = module(fn).graph
    assert len(stored_activations(graph, layers(graph))) == count


def floats(small: Module) -> int:
    """The most floats of a buffer in the arena, compiled for a microcontroller."""
    target = named("cortex-m4")
    ready = graphtool.optimize(small, target="cortex-m4")
    program = lower(ready, target)
    return max((b.size for b in program.buffers
                if b.space == "arena" and b.dtype is dtypes.float32), default=0)


def test_no_floats_are_left_in_memory(tmp_path: Path) -> None:
    model = module(residual)
    some = graphtool.quantise(model, Quantisation(), EXAMPLES)
    every = graphtool.quantise(model, Quantisation(stored=True), EXAMPLES)
    assert floats(some) == 512 and floats(every) <= 8
    how = Build(target="cortex-m4")
    emit(unit_of(Source(every), how, "small"), tmp_path, how)
    xs = {"x": EXAMPLES["x"][:1]}
    want = interp.run(graphtool.optimize(every, target="cortex-m4"), xs)
    harness(tmp_path, "small", xs, {"y": (1, 5)})
    assert here(tmp_path, "small", {"y": (1, 5)}).outputs["y"].tobytes() == want["y"].tobytes()


def test_the_error_stays_small() -> None:
    model = module(residual)
    want = interp.run(model, {"x": EXAMPLES["x"][:1]})["y"]
    got = interp.run(graphtool.quantise(model, Quantisation(stored=True), EXAMPLES),
                     {"x": EXAMPLES["x"][:1]})["y"]
    assert np.abs(got - want).max() < 0.03 * np.abs(want).max()


@pytest.mark.parametrize("io", ["int8", "uint8"])
def test_ports_are_bytes(io: PortType, tmp_path: Path) -> None:
    model = module(lambda x: o.softmax(residual(x), axis=1))
    small = graphtool.quantise(model, Quantisation(stored=True, io=io), EXAMPLES)
    assert [t.dtype.name for t in (*small.inputs.values(), *small.outputs.values())] == [io, io]
    low = dtypes.dtype(io).low
    assert small.meta["grids"]["outputs"] == {"y": [1 / 256, low]}
    xs = {"x": EXAMPLES["x"][:1]}
    want, got = interp.run(model, xs)["y"], interp.run_on_reals(small, xs)["y"]
    assert np.abs(got - want).max() < 0.15  # the logits are up to 30 apart
    how = Build(target="generic")
    folder = build(unit_of(Source(small), how, "small"), tmp_path / "b", how)
    header = (tmp_path / "b" / "small.h").read_text()
    assert "#define SMALL_OUTPUT0_SCALE 0.00390625f\n" in header
    assert f"#define SMALL_OUTPUT0_ZERO ({low})\n" in header
    whole = load(tmp_path / "b").run(xs)["y"]  # floats are rounded to bytes
    assert whole.dtype == io and folder is not None
    zero = small.meta["grids"]["outputs"]["y"][1]
    np.testing.assert_array_equal((whole.astype(np.float32) - zero) / 256, got)
    # the example's bytes are those of zeros
    subprocess.run("cc -O1 *.c -lm -o example", cwd=tmp_path / "b", shell=True, check=True)
    shown = subprocess.run([tmp_path / "b" / "example"], check=True, capture_output=True, text=True,
                           cwd=tmp_path / "b")
    zeros = load(tmp_path / "b").run({"x": np.zeros_like(xs["x"])})["y"]
    assert shown.stdout.split()[1:] == [str(n) for n in zeros.ravel()]


def test_a_layer_reads_the_bytes_of_the_input() -> None:
    small = graphtool.quantise(module(residual), Quantisation(io="int8"), EXAMPLES)
    nodes = graphtool.optimize(small, target="cortex-m4").nodes
    assert not [n for n in nodes if n.op in (o.div, o.round) and n.outputs[0].type.shape == (
        1, 8, 8, 4)]


def test_bytes_need_examples() -> None:
    with pytest.raises(UsageError, match="GT0644"):
        graphtool.quantise(module(residual), Quantisation(("dynamic",), io="int8"))


def test_norms_are_corrected_with_them() -> None:
    settings = Quantisation(stored=True, correct_norms=True)
    ready = prepared(module(residual), settings, [{"x": EXAMPLES["x"][:1]}])
    assert len(ready.stored) == 2
