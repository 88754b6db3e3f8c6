"""Small models whose kernels are in CUDA, for tests that run them on the driver of the tests."""

from __future__ import annotations

import ctypes
import shutil
from typing import Any

import numpy as np
import pytest

from graphtool import dtypes
from graphtool import ops as o
from graphtool.ir.graph import Module, TensorType
from graphtool.ir.trace import trace
from graphtool.symbolic import Dim, Symbol, evaluate, symbol
from graphtool.transforms.training import Recipe, training
from tests.cases import CASES
from tests.passes.pass_samples import module as traced
from tests.passes.pass_samples import values

ON_THE_DRIVER = [
    pytest.mark.skipif(shutil.which("gcc") is None, reason="gcc is not installed"),
    pytest.mark.compiled,  # each test has the driver, which is compiled
    pytest.mark.usefixtures("device")]
"""The marks of tests that run kernels on the driver of the tests."""
RNG = np.random.default_rng(7)
N = symbol("N", 0, 64)
# ops of communication: only kernels compute these, with no text in CUDA
LACKING = {"all_reduce", "all_gather", "reduce_scatter",
           "broadcast_first", "process_rank", "collective_begin", "collective_end"}
LOOPS = [c for c in CASES if c.op.name not in LACKING]


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


def a_step() -> Module:
    return training(traced(lambda x: o.linear(x, values(x, 5, 24, name="w", param=True), None),
                           "f32[B,24]"), Recipe("mse", optimizer="adam"))
