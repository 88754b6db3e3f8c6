"""Each known quirk of the fuzzer's oracle is there: onnxruntime differs where the row says so, and
agrees next to it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnxruntime")

from graphtool import interp
from tests.importers.onnx.build import checked, model, node, random
from tests.lab.fuzz.compare import difference
from tests.lab.fuzz.oracle import Oracle
from tests.lab.fuzz.quirks import QUIRKS, Use, quirk

INF, NAN, F32 = np.inf, np.nan, np.float32
KIND = {"float32": "f32", "float64": "f64", "int32": "i32", "int64": "i64", "int8": "i8",
        "uint8": "u8"}

RESULT = {"ArgMax": "i64", "QuantizeLinear": "i8", "DynamicQuantizeLinear": "f32"}


def put(x: Any, *values: float) -> Any:
    """x with these numbers instead of its first ones, every third."""
    x = x.copy()
    x.reshape(-1)[:3 * len(values):3] = values
    return x


X, W, LINE = random(1, 2, 6, 6), random(2, 2, 2, 2), random(1, 6)
ONE, GATES = np.ones(2, F32), (random(1, 8, 3, seed=1), random(1, 8, 2, seed=2))
WIDE = {"dilations": [2, 2], "auto_pad": "SAME_UPPER", "kernel_shape": [2, 2]}
BN, HALF = "y = BatchNormalization(x, s, b, m, v)", np.array([1, 1, 1.5, 1.5], F32)
ALIGNED = {"mode": "linear", "coordinate_transformation_mode": "align_corners"}
SMALL = {"m": np.zeros(2, F32), "v": ONE, "b": ONE}
BACK = {"a": np.array([4]), "c": np.array([1]), "t": np.array([-1])}
ROWS: dict[str, tuple[Any, dict[str, Any], dict[str, Any]]] = {  # where it differs, and beside it
    "LSTM": (node("y = LSTM(x, w, r, b)", hidden_size=2),
             {"x": put(random(2, 1, 3), NAN), "w": GATES[0], "r": GATES[1],
              "b": random(1, 16, seed=3)}, {"x": random(2, 1, 3)}),
    "RNN": (node("y = RNN(x, w, r)", hidden_size=2),
            {"x": random(2, 1, 3), "w": random(1, 2, 3), "r": put(random(1, 2, 2), INF)},
            {"r": random(1, 2, 2)}),
    "RNN, tiny": (node("y = RNN(x, w, r)", hidden_size=1),
                  {"x": F32([1e-8, 0, 0, 0]).reshape(4, 1, 1), "w": F32([[[1]]]),
                   "r": F32([[[300]]])}, {"x": F32([0.5, 0, 0, 0]).reshape(4, 1, 1)}),
    "Resize, nearest": (node("y = Resize(x, , , n)", mode="nearest", nearest_mode="floor"),
                        {"x": random(1, 1, 7, 1), "n": np.array([1, 1, 1, 1])},
                        {"x": random(1, 1, 6, 1)}),
    "ScatterElements": (node("y = ScatterElements(x, i, u)", reduction="max", axis=1),
                        {"x": put(LINE, NAN), "i": np.array([[0, 1]]), "u": F32([[1, 2]])},
                        {"x": LINE}),
    "ReduceMax": (node("y = ReduceMax(x)"), {"x": np.array([[1, NAN, 2], [3, NAN, 2]], F32)},
                  {"x": put(LINE, INF)}),
    "LRN": (node("y = LRN(x)", size=1), {"x": put(X, INF)}, {"x": X}),
    "BatchNormalization": (node(BN), {"x": X, "s": put(ONE, INF), **SMALL}, {"s": ONE}),
    "InstanceNormalization": (node("y = InstanceNormalization(x, s, b)"),
                              {"x": X, "s": put(ONE, INF), "b": ONE}, {"s": ONE}),
    "ReduceSum": (node("y = ReduceSum(x)"), {"x": np.full((2, 3), 2**30, np.int32)},
                  {"x": np.full((2, 3), 2**20, np.int32)}),
    "ReduceProd": (node("y = ReduceProd(x)"), {"x": put(np.full(768, 1e-3, F32), INF)},
                   {"x": np.full(768, 1e-3, F32)}),
    "Pow": (node("y = Pow(x, e)"), {"x": np.array([2**62 + 1]), "e": np.array([1])},
            {"x": np.array([2**50 + 1])}),
    "Clip": (node("y = Clip(x, a)"), {"x": put(LINE, INF), "a": np.array(0, F32)}, {"x": LINE}),
    "AveragePool": (node("y = AveragePool(x)", **WIDE), {"x": X}, {}),
    "MaxPool": (node("y = MaxPool(x)", **WIDE), {"x": X}, {}),
    "ArgMax": (node("y = ArgMax(x)", axis=1), {"x": F32([[1, 2, NAN]])}, {"x": F32([[1, 2, 3]])}),
    "DynamicQuantizeLinear": (node("q, y, z = DynamicQuantizeLinear(x)"), {"x": 0 * LINE},
                              {"x": LINE}),
    "QuantizeLinear": (node("y = QuantizeLinear(x, s, z)"),
                       {"x": put(LINE, NAN), "s": np.array(0.5, F32), "z": np.array(0, np.int8)},
                       {"x": put(LINE, INF)}),
    "Slice": (node("y = Slice(x, a, e, c, t)"), {"x": LINE, "e": np.array([2**31 - 1]), **BACK},
              {"e": np.array([-(2**31)])}),
    "Resize": (node("y = Resize(x, , s)", **ALIGNED), {"x": random(1, 1, 3, 3), "s": HALF},
               {"s": F32([1, 1, 2, 2])}),
    "LogSoftmax": (node("y = LogSoftmax(x)"), {"x": put(LINE, INF).astype(np.float64)},
                   {"x": put(LINE, INF)}),
    "Shrink": (node("y = Shrink(x)"), {"x": np.array([2**53 + 1])}, {"x": np.array([3])}),
    "Unique": (node("y = Unique(x)"), {"x": put(LINE, NAN)}, {"x": LINE}),
    "ReduceLogSumExp": (node("y = ReduceLogSumExp(x)"), {"x": np.array([-7, -1])}, {}),
    "GroupNormalization": (node("y = GroupNormalization(x, s, b)", num_groups=1),
                           {"x": F32([[[1, 0.994]]]), "s": F32([-5]), "b": F32([0])},
                           {"x": F32([[[1, -0.994]]])}),
    "InstanceNormalization, flat": (node("y = InstanceNormalization(x, s, b)"),
                                    {"x": F32([[[[9.790326]]]]), "s": F32([-1.5283324]),
                                     "b": F32([-0.3088526])},
                                    {"x": F32([[[[-1.5, 1.25]]]])}),
    "MeanVarianceNormalization": (node("y = MeanVarianceNormalization(x)"),
                                  {"x": np.full((1, 8, 1, 1), 0.3, F32)},
                                  {"x": F32([-2, 2]).reshape(2, 1, 1, 1)}),
}


@pytest.fixture(scope="module")
def oracle() -> Iterator[Oracle]:
    found = Oracle()
    yield found
    found.close()


def differs(call: Any, feed: dict[str, Any], oracle: Oracle) -> tuple[str, str]:
    """How ours and onnxruntime's results differ, and what explains it."""
    inputs = [f"{n} {KIND[x.dtype.name]} {' '.join(map(str, x.shape))}" for n, x in feed.items()]
    proto = model([call], inputs, [f"y {RESULT.get(call.op_type, KIND[feed['x'].dtype.name])}"],
                  opset=21)
    proto.graph.output[0].type.tensor_type.ClearField("shape")
    got = interp.run(checked(proto), feed)["y"]
    want = oracle.run(proto.SerializeToString(), feed)["y"]
    return difference(got, want, [*feed.values()]), quirk(Use(call, feed))


@pytest.mark.parametrize("name", ROWS)
def test_a_quirk_is_there_and_narrow(name: str, oracle: Oracle) -> None:
    call, where, beside = ROWS[name]
    kind, why = differs(call, where, oracle)
    assert kind and why.startswith(f"{call.op_type}: ")
    if beside:
        assert differs(call, {**where, **beside}, oracle) == ("", "")


def test_only_an_empty_part_of_other_sizes_is_a_quirk() -> None:
    call, empty, row = node("y = Concat(a, b)", axis=0), np.zeros((1, 0)), np.zeros((1, 1))
    assert quirk(Use(call, {"a": empty, "b": row}))
    assert not quirk(Use(call, {"a": np.zeros((0, 1)), "b": row}))
    assert not quirk(Use(call, {"a": np.zeros((1, 2)), "b": row}))


def test_a_sum_that_cancels_is_a_quirk() -> None:
    call = node("y = ReduceLogSum(x, a)")
    near, far = F32([[0.3, -0.1, -0.2]]), F32([[0.3, -0.1, 0.2]])
    assert quirk(Use(call, {"x": near, "a": np.array([1])}))
    assert not quirk(Use(call, {"x": far, "a": np.array([1])}))


def test_a_half_on_a_step_is_a_quirk() -> None:
    call = node("y = Floor(x)")
    assert quirk(Use(call, {"x": np.ones(2, np.float16)}))
    assert not quirk(Use(call, {"x": np.full(2, 0.5, np.float16)}))
    assert not quirk(Use(call, {"x": np.ones(2, np.float32)}))


def test_every_row_says_why() -> None:
    assert all(q.ops and len(q.reason) > 15 for q in QUIRKS)
