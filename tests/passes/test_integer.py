"""integer: results agree with those of floats, and C with the evaluator; see integer/*.txt."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import graphtool
from graphtool import dtypes, interp, passes
from graphtool import ops as o
from graphtool.compile.as_is import build
from graphtool.ir.graph import Module, TensorType
from graphtool.ir.trace import trace

RNG = np.random.default_rng(1)
W = RNG.integers(-127, 128, (8, 6), dtype=np.int8)
FILTERS = RNG.integers(-127, 128, (5, 6, 3, 3), dtype=np.int8)
SCALES = RNG.uniform(0.01, 0.02, (8, 1)).astype(np.float32)
ROWS, IMAGE = TensorType(dtypes.float32, (4, 6)), TensorType(dtypes.float32, (2, 6, 7, 7))


def quantised(x: Any, scale: float, zero: int) -> Any:
    return o.cast(o.clamp(o.round(x / scale) + float(zero), 0.0, 255.0), dtype=dtypes.uint8)


def real(q: Any, scale: Any, zero: int = 0) -> Any:
    wide = o.cast(q, dtype=dtypes.int32)
    return o.cast(wide - zero if zero else wide, dtype=dtypes.float32) * scale


def again(x: Any, scale: float = 0.03, zero: int = 120) -> Any:
    return real(quantised(x, scale, zero), scale, zero)


def weights(x: Any, w: Any, scale: Any) -> Any:
    return real(x.builder.constant(w), scale if isinstance(scale, float) else (
        x.builder.constant(scale)))


def linear(x: Any) -> Any:
    return again(o.linear(again(x), weights(x, W, SCALES)), 0.05, 100)


def biased(x: Any) -> Any:
    bias = (np.arange(8) * 0.03 * 0.02).astype(np.float32)
    return again(o.linear(again(x), weights(x, W, 0.02), x.builder.constant(bias)), 0.05, 100)


def transposed(x: Any) -> Any:
    return o.matmul(again(x), o.transpose(weights(x, W, SCALES), perm=(1, 0)))


def conv(x: Any) -> Any:
    scale = SCALES[:5].reshape(5, 1, 1, 1)
    return again(o.conv(again(x), weights(x, FILTERS, scale), padding=((1, 1), (1, 1))), 0.1, 9)


def pooled(x: Any) -> Any:
    best = o.max_pool(again(x), window=(2, 2), strides=(2, 2), padding=((0, 0), (0, 0)))
    return o.conv(again(best), weights(x, FILTERS, 0.01))


TAKEN = {"linear": (linear, ROWS), "biased": (biased, ROWS), "transposed": (transposed, ROWS),
         "conv": (conv, IMAGE), "pooled": (pooled, IMAGE)}

def module(case: Any) -> Module:
    function, kind = case
    return Module(trace(function, [kind], ["x"]), ("y",))


@pytest.mark.parametrize("name", TAKEN)
def test_agrees(name: str, tmp_path: Path) -> None:
    """Within one step of what floats give, and C as the evaluator, bit by bit."""
    before = module(TAKEN[name])
    after = passes.run(before, supply={"march": "native"})
    assert any(n.op.name.endswith("_int") for n in after.graph.nodes)
    xs = {"x": RNG.normal(size=TAKEN[name][1].shape).astype(np.float32)}
    (want,), (same,) = interp.run(before, xs).values(), interp.run(after, xs).values()
    (got,) = graphtool.load(build(after, tmp_path / "b"))(**xs).values()
    step = 0.1 if name == "conv" else 0.05
    np.testing.assert_allclose(same, want, atol=step * 1.01)
    np.testing.assert_array_equal(got, same)


def test_a_bias_of_whole_steps_joins_the_sums() -> None:
    after = passes.run(module(TAKEN["biased"]), supply={"march": "native"})
    made = {v: n for n in after.graph.nodes for v in n.outputs}
    (cast,) = [n for n in after.graph.nodes if n.op.name == "cast"
               and n.inputs[0].type.dtype is dtypes.int32 and n.outputs[0].type.rank == 2
               and made[n.inputs[0]].op.name != "cast" and n.outputs[0].type.shape[1] == 8][:1]
    assert made[cast.inputs[0]].op.name == "add"


def test_quantised_constants_are_no_cut() -> None:
    """What is quantised may be made by a node without operands."""
    def fn(x: Any) -> Any:
        held = x.builder.constant(np.arange(6, dtype=np.float32))
        return x, o.cast(o.round(held / 0.5) + 3.0, dtype=dtypes.uint8, saturate=True)
    module = Module(trace(fn, [ROWS]), ("x", "q"))
    feed = {"x0": np.zeros((4, 6), np.float32)}
    got = interp.run(passes.run(module, "integer"), feed)["q"]
    np.testing.assert_array_equal(got, interp.run(module, feed)["q"])


def test_other_zero_points_of_channels_are_other_integers() -> None:
    """What was quantised with a zero point for each channel is quantised with others."""
    def fn(q: Any) -> Any:
        zero, other = (q.builder.constant(np.float32(z)) for z in ([1, 2, 3], [7, 8, 9]))
        y = (o.cast(q, dtype=dtypes.float32) - zero) * 0.5
        return o.cast(o.round(y / 0.5) + other, dtype=dtypes.uint8, saturate=True)
    module = Module(trace(fn, [TensorType(dtypes.uint8, (2, 3))], ["q"]), ("y",))
    feed = {"q": np.full((2, 3), 50, np.uint8)}
    want = interp.run(module, feed)["y"]
    np.testing.assert_array_equal(want, np.full((2, 3), 56))
    np.testing.assert_array_equal(interp.run(passes.run(module, "integer"), feed)["y"], want)


@pytest.mark.parametrize("scale", [1e-45, 3e37])
def test_scales_that_overflow_or_lose_digits_stay_floats(scale: float) -> None:
    """The quotient of a product that overflowed is not what was multiplied."""
    kind = TensorType(dtypes.uint8, (256,))
    before = module((lambda q: quantised(real(q, scale), scale, 0), kind))
    xs = {"x": np.arange(256, dtype=np.uint8)}
    (want,), (got,) = interp.run(before, xs).values(), interp.run(passes.run(before), xs).values()
    np.testing.assert_array_equal(got, want)
