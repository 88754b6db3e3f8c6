"""An axis or a length that the run computes, out of range: an error in the evaluator and in C."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import helper

from graphtool import interp
from graphtool.compile.as_is import build
from graphtool.errors import GraphtoolError, UnsupportedError
from graphtool.native import runtime
from tests.importers.onnx.build import checked, model, node, oracle, random
from tests.lower.compiling import optimised

X = random(2, 5)
ONE, MANY = ["x f32 2 5", "a i64 1"], ["x f32 2 5", "a i64 k"]
NONE: dict[str, Any] = {}

CASES: dict[str, tuple[Any, list[str], Any, dict[str, Any]]] = {
    "a reduction": ("y = ReduceSum(x, a)", ONE, -1, NONE),
    "a reduction over some axes": ("y = ReduceMean(x, a)", MANY, -1, NONE),
    "a running sum": ("y = CumSum(x, a)", ONE, 1, NONE),
    "a slice": ("y = Slice(x, s, e, a)", ONE, 1, {"s": np.array([1]), "e": np.array([2])}),
    "a transform": (node("y = DFT(r, , a)"), ["r f32 2 5 1", "a i64"], 1, NONE),
}


def wrong(name: str) -> list[int]:
    return [2, -4] if name == "a transform" else [2, -3]


def made(name: str, axis: int) -> tuple[Any, dict[str, Any]]:
    call, inputs, _, weights = CASES[name]
    proto = model([call], inputs, ["y f32 ? ?" + " ?" * ("r f32" in inputs[0])], weights, opset=20)
    x = {"r": X[:, :, None]} if "r f32" in inputs[0] else {"x": X}
    return proto, x | {"a": np.array(axis if name == "a transform" else [axis])}


@pytest.mark.parametrize("name", CASES)
def test_axes_out_of_range_fail(name: str) -> None:
    proto, feed = made(name, CASES[name][2])
    np.testing.assert_allclose(interp.run(checked(proto), feed)["y"], oracle(proto, feed)[0],
                               atol=1e-5)
    for axis in wrong(name):
        proto, feed = made(name, axis)
        with pytest.raises(GraphtoolError, match=r"out of range|expected"):
            interp.run(checked(proto), feed)


@pytest.mark.parametrize("name", CASES)
def test_compiled_code_fails_too(name: str, tmp_path: Path) -> None:
    proto, feed = made(name, CASES[name][2])
    loaded = runtime.load(build(optimised(checked(proto)), tmp_path / "b", jobs=2))
    np.testing.assert_allclose(loaded.run(feed)["y"], oracle(proto, feed)[0], atol=1e-5)
    for axis in wrong(name):
        with pytest.raises(GraphtoolError, match=r"out of range|breaks its bound"):
            loaded.run(made(name, axis)[1])


def test_a_transform_agrees_with_its_declared_axis() -> None:
    proto = model(["y = DFT(r, n, a)"], ["r f32 2 5 1", "a i64"], ["y f32 2 3 2"],
                  {"n": np.array(3)}, opset=20)
    feed = {"r": X[:, :, None]}
    assert interp.run(checked(proto), feed | {"a": np.array(1)})["y"].shape == (2, 3, 2)
    with pytest.raises(GraphtoolError, match="expected"):
        interp.run(checked(proto), feed | {"a": np.array(0)})


def test_a_negative_length_fails() -> None:
    proto = model([node("y = ReverseSequence(x, a)", batch_axis=0, time_axis=1)],
                  ["x f32 2 5", "a i64 2"], ["y f32 2 5"])
    feed = {"x": X, "a": np.array([5, 0])}
    np.testing.assert_array_equal(interp.run(checked(proto), feed)["y"], oracle(proto, feed)[0])
    with pytest.raises(GraphtoolError, match="out of range"):
        interp.run(checked(proto), feed | {"a": np.array([-1, 2])})


# ---- a number of axes that the run computes ------------------------------------------------------

WIDE = random(2, 3, 4)
RANKS = {  # a call, the declared result, axes that make it, axes that do not
    "a matrix": ("y = ReduceSum(x, a)", "p q", [[0], [1], [-1]], [[0, 1], [], [0, 1, 2], [3]]),
    "a number is declared": ("y = ReduceMean(x, a)", "p 4", [[0], [1]], [[2], [0, 2]]),
    "a vector": ("y = ReduceMax(x, a)", "p", [[0, 1], [2, -2]], [[0], []]),
    "a scalar": ("y = ReduceL2(x, a)", "", [[0, 1, 2], [2, 0, 1], []], [[0, 1]]),
}


@pytest.mark.parametrize("name", RANKS)
def test_the_declared_rank_says_how_many(name: str, tmp_path: Path) -> None:
    call, dims, good, bad = RANKS[name]
    proto = model([node(call, keepdims=0)], ["x f32 2 3 4", "a i64 k"], [f"y f32 {dims}"],
                  opset=18)
    module = checked(proto, dynamic={"k": (0, 8)})
    loaded = runtime.load(build(optimised(module), tmp_path / "b", jobs=2))
    for axes in good:
        feed = {"x": WIDE, "a": np.array(axes, np.int64)}
        for run in (lambda x: interp.run(module, x), loaded.run):
            np.testing.assert_allclose(run(feed)["y"], oracle(proto, feed)[0], rtol=1e-5)
    for axes in bad:
        for run in (lambda x: interp.run(module, x), loaded.run):
            with pytest.raises(GraphtoolError, match=r"GT0515|GT0501|GT2221"):
                run({"x": WIDE, "a": np.array(axes, np.int64)})


def test_without_a_declared_rank_it_is_refused() -> None:
    proto = model([node("y = ReduceSum(x, a)", keepdims=0)], ["x f32 2 3 4", "a i64 k"], [])
    proto.graph.output.append(helper.make_empty_tensor_value_info("y"))
    with pytest.raises(UnsupportedError, match="the rank of the result is not known; declare it"):
        checked(proto)
