"""Sizes that the graph itself bounds: compiled without a word from the user, onnxruntime's results.

What nothing bounds is refused, and compiled once --dynamic says how large it can be.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graphtool import interp
from graphtool import ops as o
from graphtool.dtypes import bool_, float32, int32, int64, uint8
from graphtool.errors import InputError
from graphtool.front.known import Elements
from graphtool.ir.graph import TensorType, producers
from graphtool.ir.trace import trace
from graphtool.symbolic import symbol
from tests.importers.onnx.build import checked, model, oracle, random
from tests.lower.compiling import compiled, faults, optimised

whole, F = np.int64, np.float32
ZERO, ONE = {"zero": whole(0)}, {"one": whole(1)}
COUNT = "n = Squeeze(s)"
RANGES: dict[str, tuple[list[str], list[str], dict[str, Any], list[dict[str, Any]]]] = {
    "min": (["m = Min(n, cap)", "y = Range(zero, m, one)"], ["n i64"],
            {**ZERO, **ONE, "cap": whole(50)}, [{"n": whole(k)} for k in (-3, 0, 7, 99)]),
    "clip": (["c = Clip(n, lo, hi)", "y = Range(a, c, d)"], ["n f32"],
             {"a": F(0), "d": F(0.5), "lo": F(0), "hi": F(10)},
             [{"n": F(k)} for k in (-3, 0.2, 7.9, 99)]),
    "modulus": (["m = Mod(n, cap)", "y = Range(zero, m, one)"], ["n i64"],
                {**ZERO, **ONE, "cap": whole(50)}, [{"n": whole(k)} for k in (-3, 0, 7, 99)]),
    "a byte": (["m = Cast(n)", "y = Range(zero, m, one)"], ["n u8"], {**ZERO, **ONE},
               [{"n": np.uint8(k)} for k in (0, 7, 255)]),
    "how many hold": (["g = Greater(x, half)", "c = Cast(g)", "m = ReduceSum(c)",
                       "n = Squeeze(m)", "y = Range(zero, n, one)"], ["x f32 A 3"],
                      {**ZERO, **ONE, "half": F(0.5)}, [{"x": random(k, 3)} for k in (1, 8)]),
    "a place": (["a = ArgMax(x)", "n = Squeeze(a)", "y = Range(zero, n, one)"], ["x f32 A"],
                {**ZERO, **ONE}, [{"x": random(k)} for k in (1, 9)]),
    "half of a size": (["s = Shape(x)", COUNT, "f = Cast(n)", "h = Mul(f, half)",
                        "y = Range(a, h, d)"], ["x f32 A"],
                       {"half": F(0.5), "a": F(0), "d": F(1)},
                       [{"x": random(k)} for k in (1, 8, 9)]),
    "back": (["s = Shape(x)", COUNT, "y = Range(n, zero, two)"], ["x f32 A"],
             {**ZERO, "two": whole(-2)}, [{"x": random(k)} for k in (1, 8, 9)]),
    "a step": (["m = Max(n, one)", "y = Range(zero, cap, m)"], ["n i64"],
               {**ZERO, **ONE, "cap": whole(9)}, [{"n": whole(k)} for k in (-4, 2, 30)]),
}
CASTS = {"a byte": 7, "how many hold": 7, "half of a size": 1}


def ranged(name: str) -> Any:
    nodes, inputs, weights, feeds = RANGES[name]
    row = "f32" if name in ("clip", "half of a size") else "i64"
    proto = model(nodes, inputs, [f"y {row} ?"], weights)
    for n in proto.graph.node:
        if n.op_type == "Cast":
            n.attribute.add(name="to", type=2, i=CASTS[name])
        if n.op_type in ("ReduceSum", "ArgMax"):
            n.attribute.add(name="keepdims", type=2, i=1)
    return proto, feeds


@pytest.mark.parametrize("name", RANGES)
def test_ranges(name: str, tmp_path: Path) -> None:
    proto, feeds = ranged(name)
    module = checked(proto)
    run = compiled(optimised(module), tmp_path / "b").run
    for feed in feeds:
        given = {k: np.asarray(v) for k, v in feed.items()}
        want = {"y": oracle(proto, given)[0]}
        assert faults(interp.run(module, given), want) == []
        assert faults(run(given), want) == []


CROPS = {  # nodes, inputs, feeds; x has odd and even gaps either way
    "like another": (["s = Shape(t)", "y = CenterCropPad(x, s)"], ["x f32 A B", "t f32 C D"],
                     [{"x": random(5, 8), "t": random(c, d)}
                      for c, d in ((5, 8), (2, 11), (8, 3), (4, 5))]),
    "at most": (["m = Min(n, cap)", "y = CenterCropPad(x, m)"], ["x f32 A B", "n i64 2"],
                [{"x": random(5, 8), "n": np.array(n)} for n in ((1, 3), (6, 16), (99, 8))]),
}


def cropped(x: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """As ONNX's reference says it: half of the difference in front, cut off towards 0."""
    for a, n in enumerate(shape):
        gap = abs(n - x.shape[a])
        if n < x.shape[a]:
            x = x.take(range(gap // 2, gap // 2 + n), a)
        else:
            x = np.pad(x, [(gap // 2, gap - gap // 2) if i == a else (0, 0)
                           for i in range(x.ndim)])
    return x


@pytest.mark.parametrize("name", CROPS)
def test_crops(name: str, tmp_path: Path) -> None:
    nodes, inputs, feeds = CROPS[name]
    module = checked(model(nodes, inputs, ["y f32 ? ?"], {"cap": np.array([9, 16])}))
    run = compiled(optimised(module), tmp_path / "b").run
    for feed in feeds:
        shape = feed["t"].shape if "t" in feed else tuple(np.minimum(feed["n"], [9, 16]))
        want = {"y": cropped(feed["x"], shape)}
        assert faults(interp.run(module, feed), want) == []
        assert faults(run(feed), want) == []


def test_what_nothing_bounds(tmp_path: Path) -> None:
    proto = model(["y = CenterCropPad(x, n)"], ["x f32 4 6", "n i64 2"], ["y f32 ? ?"])
    with pytest.raises(InputError, match=r"GT2005.*sizes y_size and y_size2 have no upper bound"):
        compiled(optimised(checked(proto)), tmp_path / "b")
    module = checked(proto, dynamic={"y_size": (0, 9), "y_size2": (0, 9)})
    feed = {"x": random(4, 6), "n": np.array([7, 3])}
    run = compiled(optimised(module), tmp_path / "b").run
    assert faults(run(feed), {"y": cropped(feed["x"], (7, 3))}) == []


A = symbol("A", 1)
SPANS: dict[str, tuple[Any, TensorType, Any]] = {
    "minimum": (lambda x: o.min(x, 7), TensorType(int64, ()), 7),
    "unknown": (lambda x: o.add(x, 7), TensorType(int64, ()), None),
    "bool": (lambda x: o.cast(x, dtype=int64) * 3, TensorType(bool_, ()), 3),
    "difference": (lambda x: o.cast(o.reshape(x, shape=()), dtype=int64) * -2 + 9,
                   TensorType(uint8, ()), 9),
    "a byte wraps": (lambda x: o.cast(o.min(x, 300), dtype=uint8), TensorType(int64, ()), 255),
    "wide cast": (lambda x: o.cast(o.clamp(x, 0.0, 2.5), dtype=int32), TensorType(float32, ()), 3),
    "quotient": (lambda x: o.div(o.clamp(x, -9, 9), 2), TensorType(int64, ()), 4),
    "by a negative": (lambda x: o.div(o.clamp(x, -9, 5), -2), TensorType(int64, ()), 4),
    "real quotient": (lambda x: o.div(o.clamp(x, -9.0, 9.0), 0.5), TensorType(float32, ()), 18),
    "remainder": (lambda x: o.rem(x, 5), TensorType(int64, ()), 4),
    "sum of bools": (lambda x: o.reduce_sum(o.cast(x, dtype=int64), axes=(0,)),
                     TensorType(bool_, (A,)), A),
    "place": (lambda x: o.arg_reduce(x, kind="max", axis=0) * 2, TensorType(float32, (A,)),
              2 * A - 2),
    "either": (lambda x: o.select(o.gt(x, 0), o.min(x, 5), 3), TensorType(int64, ()), 5),
    "magnitude": (lambda x: o.abs(o.clamp(x, -9, 5)), TensorType(int64, ()), 9),
}


@pytest.mark.parametrize("name", SPANS)
def test_bounds(name: str) -> None:
    fn, kind, want = SPANS[name]
    g = trace(fn, [kind], ["x"])
    assert Elements(producers(g).get).most(g.outputs[0]) == want
