"""Operators whose sizes and parameters are inputs, against the same ones known at import."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import helper

from graphtool import interp
from graphtool.errors import UnsupportedError
from graphtool.ir.graph import TensorType
from tests.importers.onnx.build import agree, checked, evaluate, model, node, random
from tests.lower.compiling import compiled, optimised

WAVE = random(1, 24, 1)
MEL = {"bins": np.int64(5), "length": np.int64(16), "rate": np.int64(8000),
       "low": np.float32(20), "high": np.float32(3000)}
SIZED = {  # node, the input that always is one, others, the declared result
    "dft axis": (node("y = DFT(x, , a)"), {"x": random(2, 4, 4, 1)}, {"a": np.array(-3)},
                 "f32 2 4 4 2"),
    "dft onesided": (node("y = DFT(x, , a)", onesided=1), {"x": random(2, 6, 4, 1)},
                     {"a": np.array(1)}, "f32 2 4 4 2"),
    "dft length": (node("y = DFT(x, n)"), {"x": random(2, 6, 1)}, {"n": np.array(8)}, "f32 2 8 2"),
    "dft inverse half": (node("y = DFT(x, n)", inverse=1, onesided=1), {"x": random(2, 4, 2)},
                         {"n": np.array(7)}, "f32 2 7 1"),
    "stft": (node("y = STFT(x, s, , n)"), {"x": WAVE}, {"s": np.array(4), "n": np.array(8)},
             "f32 1 5 5 2"),
    "stft window": (node("y = STFT(x, s, w)"), {"x": WAVE},
                    {"s": np.array(5), "w": random(6)}, "f32 1 4 4 2"),
    "mel": (node("y = MelWeightMatrix(bins, length, rate, low, high)"), {}, MEL, "f32 9 5"),
    "hann": (node("y = HannWindow(n)"), {}, {"n": np.int64(6)}, "f32 6"),
    "hamming": (node("y = HammingWindow(n)", periodic=0), {}, {"n": np.int64(7)}, "f32 7"),
    "blackman": (node("y = BlackmanWindow(n)"), {}, {"n": np.int64(5)}, "f32 5"),
    "affine grid": (node("y = AffineGrid(x, s)", align_corners=1), {"x": random(2, 2, 3)},
                    {"s": np.array([2, 1, 4, 5])}, "f32 2 4 5 2"),
    "affine grid 3d": (node("y = AffineGrid(x, s)"), {"x": random(2, 3, 4)},
                       {"s": np.array([2, 1, 2, 4, 5])}, "f32 2 2 4 5 3"),
    "col2im": (node("y = Col2Im(x, i, b)", pads=[0, 1, 0, 1], strides=[2, 1]),
               {"x": random(1, 12, 10)}, {"i": np.array([5, 5]), "b": np.array([2, 3])},
               "f32 1 2 5 5"),
}


def kind(array: Any) -> str:
    name = {"float32": "f32", "int64": "i64"}[np.asarray(array).dtype.name]
    return " ".join([name, *map(str, np.shape(array))])


def sized(name: str, known: bool, declared: bool) -> tuple[Any, dict[str, Any]]:
    call, given, more, out = SIZED[name]
    feed = {k: np.asarray(v) for k, v in (given if known else given | more).items()}
    shape = out if declared else " ".join([out.split()[0], *["?"] * (len(out.split()) - 1)])
    return model([call], [f"{k} {kind(v)}" for k, v in feed.items()], [f"y {shape}"],
                 more if known else {}), feed


@pytest.mark.parametrize("name", SIZED)
@pytest.mark.parametrize("declared", [True, False], ids=["declared", "open"])
def test_as_with_known_numbers(name: str, declared: bool) -> None:
    if name == "dft onesided" and not declared:
        pytest.skip("the shape says which axes it can be")
    want, = evaluate(*sized(name, True, declared))
    got, = evaluate(*sized(name, False, declared))
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)


def test_compiled_where_the_model_says_the_sizes(tmp_path: Any) -> None:
    for i, name in enumerate(SIZED):
        proto, feed = sized(name, False, True)
        module = checked(proto)
        got = compiled(optimised(module), tmp_path / str(i)).run(feed)["y"]
        np.testing.assert_allclose(got, interp.run(module, feed)["y"], rtol=1e-5, atol=1e-5)


def test_known_tables_are_those_of_onnxruntime() -> None:
    for name in ("dft length", "dft inverse half", "stft window", "mel", "hann", "hamming",
                 "blackman"):
        agree(*sized(name, False, False), tolerance=1e-4)


@pytest.mark.parametrize("training", [True, False])
def test_dropout_by_a_computed_mode(training: bool) -> None:
    x = np.ones((40, 50), np.float32)
    module = checked(model(["y, m = Dropout(x, r, t)"], ["x f32 40 50", "r f32", "t bool"],
                           ["y f32 40 50", "m bool 40 50"], opset=13))
    out = interp.run(module, {"x": x, "r": np.float32(0.25), "t": np.array(training),
                              "rng": np.array([7, 0], np.uint64)})
    assert abs(out["m"].mean() - (0.75 if training else 1)) < 0.03
    np.testing.assert_allclose(out["y"], out["m"] / (0.75 if training else 1.0), rtol=1e-6)


def test_the_slope_of_a_part_of_the_model() -> None:
    gradient = node("g, h = Gradient(x, w)", xs=["x", "w"], y="l",
                    domain="ai.onnx.preview.training")
    proto = model(["p = Mul(x, w)", "q = Mul(p, p)", "l = ReduceSum(q)", gradient], ["x f32 3"],
                  ["g f32 3", "h f32 3"], {"w": np.array([1.0, 2.0, 3.0], np.float32)})
    proto.opset_import.append(helper.make_opsetid("ai.onnx.preview.training", 1))
    x, w = np.array([2.0, 1.0, 0.5], np.float32), np.array([1.0, 2.0, 3.0], np.float32)
    g, h = evaluate(proto, {"x": x})
    np.testing.assert_allclose([g, h], [2 * x * w * w, 2 * x * x * w], rtol=1e-6)


def test_a_slope_by_what_is_no_tensor() -> None:
    gradient = node("g = Gradient(x)", xs=["x"], y="gone", domain="ai.onnx.preview.training")
    with pytest.raises(UnsupportedError, match="gone"):
        proto = model([gradient], ["x f32 3"], ["g f32 3"])
        proto.opset_import.append(helper.make_opsetid("ai.onnx.preview.training", 1))
        checked(proto)


def test_parts_settle_the_names_of_dims() -> None:
    proto = model(["y = SequenceAt(s, i)", "z = Add(y, x)"], ["x f32 N"], ["z f32 N"],
                  {"i": np.array(0)})
    proto.graph.input.append(helper.make_tensor_sequence_value_info("s", 1, ["N"]))
    part = TensorType(checked(model(["y = Neg(x)"], ["x f32 1"], ["y f32 1"])).graph.inputs[
        0].type.dtype, (4,))
    module = checked(proto, made_of={"s": [part, part]})
    assert str(module.graph.inputs[0].type) == "f32[4]"
    assert checked(model(["y = Neg(x)"], ["x f32 N"], ["y f32 N"])).symbols


def test_the_model_bounds_what_nothing_else_does() -> None:
    proto = model(["y = Range(a, n, b)"], ["n i64"], ["y i64 9"],
                  {"a": np.array(0), "b": np.array(1)})
    module = checked(proto)
    assert interp.run(module, {"n": np.array(9)})["y"].tolist() == list(range(9))


@pytest.mark.parametrize("dim", ["N", "4"])
def test_dims_keep_the_integer_type_of_a_cast(dim: str) -> None:
    nodes = ["s = Shape(x)", node("i = Cast(s)", to=6), "h = Mul(i, two)", "m = Div(h, two)",
             "q = Gather(m, at)", node("w = Cast(m)", to=7), "y = Reshape(x, w)", "k = Sub(m, i)"]
    weights = {"two": np.array([2], np.int32), "at": np.array(0)}
    proto = model(nodes, [f"x f32 {dim} 2"], ["y f32 ? ?", "q i32", "k i32 2"], weights)
    agree(proto, {"x": np.ones((4, 2), np.float32)})


@pytest.mark.parametrize("op", ["Neg", "Abs", "Identity", "Sign"])
def test_a_number_of_elements_is_an_operand(op: str) -> None:
    proto = model(["s = Size(x)", f"y = {op}(s)"], ["x f32 N 2"], ["y i64"])
    agree(proto, {"x": random(3, 2)})
