"""Rare forms of operators against onnxruntime: each row was wrong or refused once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import helper

from graphtool.compile.as_is import build
from graphtool.errors import InputError, UnsupportedError
from graphtool.native import runtime
from graphtool.target import named
from tests.importers.onnx.build import agree, checked, evaluate, model, node, oracle, random, value
from tests.lower.compiling import optimised

TARGET = named("x86-64-v3", 1)
MS = {"domain": "com.microsoft"}
SMALL, SKIP = random(1, 2, 8) * np.float32(1e-4), random(1, 2, 8, seed=1) * np.float32(1e-4)
SCALE = {"g": random(8, seed=2), "b": random(8, seed=3)}
BOTH = ["x f32 1 2 8", "s f32 1 2 8"]
X, Q = random(3, 4), random(2, 4, 16)


def _slice(start: int, end: int, step: int) -> tuple[Any, ...]:
    weights = {"a": np.array([start]), "b": np.array([end]), "c": np.array([1]),
               "d": np.array([step])}
    return (["y = Slice(x, a, b, c, d)"], ["x f32 3 4"], ["y f32 3 K"], weights, {"x": X}, 18)


def _mask(kind: str, dtype: Any) -> tuple[Any, ...]:
    mask = np.array([[1, 0, 1, 1]] * 4, dtype)
    call = node("y = Attention(q, q, q, m)", q_num_heads=2, kv_num_heads=2)
    return ([call], ["q f32 2 4 16", f"m {kind} 4 4"], ["y f32 2 4 16"], {},
            {"q": Q, "m": mask}, 23)


def _counting_loop() -> Any:
    nodes = [node("on = Identity(go)"), node("f = Cast(i)", to=1), node("t = Add(s, f)"),
             node("u = Identity(f)")]
    return helper.make_graph(nodes, "body", [value("i i64 1"), value("go bool 1"),
                                             value("s f32 2")],
                             [value("on bool 1"), value("t f32 2"), value("u f32 1")])


LOOP = node("y, z = Loop(n, yes, x)", body=_counting_loop())
FORMS: dict[str, tuple[Any, ...]] = {  # nodes, inputs, outputs, weights, feed, opset
    "the default epsilon of SkipLayerNormalization": (
        [node("y = SkipLayerNormalization(x, s, g, b)", **MS)], BOTH, ["y f32 1 2 8"], SCALE,
        {"x": SMALL, "s": SKIP}, 18),
    "its four outputs": (
        [node("y, m, v, t = SkipLayerNormalization(x, s, g, b)", epsilon=1e-5, **MS)], BOTH,
        ["y f32 1 2 8", "m f32 1 2 1", "v f32 1 2 1", "t f32 1 2 8"], SCALE,
        {"x": SMALL, "s": SKIP}, 18),
    "the default epsilon of SkipSimplifiedLayerNormalization": (
        [node("y = SkipSimplifiedLayerNormalization(x, s, g)", **MS)], BOTH, ["y f32 1 2 8"],
        SCALE, {"x": SMALL, "s": SKIP}, 18),
    "both outputs of SimplifiedLayerNormalization": (
        ["y, v = SimplifiedLayerNormalization(x, g)"], BOTH[:1], ["y f32 1 2 8", "v f32 1 2 1"],
        SCALE, {"x": SMALL}, 18),
    "GatherND of one number": (["y = GatherND(x, i)"], ["x f32 3 4", "i i64 2"], ["y f32"], {},
                               {"x": X, "i": np.array([1, -2])}, 18),
    "GatherND of one number, open sizes": (
        ["y = GatherND(x, i)"], ["x f32 N M", "i i64 2"], ["y f32"], {},
        {"x": X, "i": np.array([1, -2])}, 18),
    "ScatterND of one number": (
        ["y = ScatterND(x, i, u)"], ["x f32 3 4", "i i64 2", "u f32"], ["y f32 3 4"], {},
        {"x": X, "i": np.array([1, 2]), "u": np.array(9, np.float32)}, 18),
    "Slice back from before the start": _slice(-10, -100, -1),
    "Slice back from just before the start": _slice(-5, -9, -1),
    "Slice back from behind the end": _slice(10, -10, -1),
    "Celu of alpha 0": ([node("y = Celu(x)", alpha=0.0)], ["x f32 3 4"], ["y f32 3 4"], {},
                        {"x": X}, 18),
    "MeanVarianceNormalization far from 0": (
        ["y = MeanVarianceNormalization(x)"], ["x f32 2 3 4 4"], ["y f32 2 3 4 4"], {},
        {"x": random(2, 3, 4, 4) + np.float32(1000)}, 13),
    "BatchNormalization of a vector": (
        ["y = BatchNormalization(x, g, b, m, v)"], ["x f32 4"], ["y f32 4"],
        {k: np.abs(random(1, seed=i)) for i, k in enumerate("gbmv")}, {"x": random(4)}, 18),
    "a reduction over a number of axes that is open": (
        ["y = ReduceSum(x, a)"], ["x f32 3 4", "a i64 K"], ["y f32 ? ?"], {},
        {"x": X, "a": np.array([-1])}, 18),
    "a mean over all axes, their number open": (
        ["y = ReduceMean(x, a)"], ["x f32 3 4", "a i64 K"], ["y f32 1 1"], {},
        {"x": X, "a": np.array([1, 0])}, 18),
    "Attention with a mask of int64": _mask("i64", np.int64),
    "Attention with a mask of uint8": _mask("u8", np.uint8),
    "ImageScaler": ([node("y = ImageScaler(x)", scale=0.5, bias=[1.0, 2.0])], ["x f32 1 2 5 5"],
                    ["y f32 1 2 5 5"], {}, {"x": random(1, 2, 5, 5)}, 7),
    "a loop whose counter is a vector": (
        [LOOP], ["x f32 2"], ["y f32 2", "z f32 3 1"],
        {"n": np.array([3]), "yes": np.array([True])}, {"x": random(2)}, 18),
    "a loop whose counter is a vector, run": (
        [LOOP], ["x f32 2", "n i64 1"], ["y f32 2", "z f32 ? 1"], {"yes": np.array([True])},
        {"x": random(2), "n": np.array([3])}, 18),
}


@pytest.mark.parametrize("name", FORMS)
def test_forms_agree_with_onnxruntime(name: str) -> None:
    *parts, feed, opset = FORMS[name]
    agree(model(*parts, opset=opset), feed, 1e-4)


COMPILED = ["GatherND of one number", "Slice back from before the start", "Celu of alpha 0",
            "MeanVarianceNormalization far from 0", "BatchNormalization of a vector",
            "a reduction over a number of axes that is open", "its four outputs",
            "ScatterND of one number", "a loop whose counter is a vector"]


@pytest.mark.parametrize("name", COMPILED)
def test_forms_compiled(name: str, tmp_path: Path) -> None:
    *parts, feed, opset = FORMS[name]
    proto = model(*parts, opset=opset)
    built = runtime.load(build(optimised(checked(proto)), tmp_path / "b", jobs=2))
    for got, want in zip(built.run(feed).values(), oracle(proto, feed), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=5e-4)  # the mean itself is rounded


@pytest.mark.parametrize("op", ["BeamSearch", "GreedySearch", "Sampling"])
def test_searches_are_refused_by_name(op: str) -> None:
    call = node(f"y = {op}(x)", **MS)
    with pytest.raises(UnsupportedError, match=f"com.microsoft.{op}: a search over a decoder"):
        checked(model([call], ["x i32 1 4"], ["y i32 ? ?"]))


# ---- casts out of range --------------------------------------------------------------------------

WILD = np.array([-1.5, -0.5, 0.5, 255.5, 256, 300, 1e3, -300, 65535.7, -70000, 2e9], np.float32)
SHORT = {"u8": np.uint8, "i8": np.int8, "u16": np.uint16, "i16": np.int16, "u32": np.uint32,
         "u64": np.uint64, "i32": np.int32, "i64": np.int64}
NUMBERS = {"u8": 2, "i8": 3, "u16": 4, "i16": 5, "u32": 12, "u64": 13, "i32": 6, "i64": 7}


def _cast(kind: str) -> Any:
    proto = model([node("y = Cast(x)", to=NUMBERS[kind])], ["x f32 N"], ["y f32 N"])
    proto.graph.output[0].type.tensor_type.elem_type = NUMBERS[kind]
    return proto


@pytest.mark.parametrize("kind", SHORT)
def test_casts_out_of_range_wrap_around(kind: str, tmp_path: Path) -> None:
    """As numpy and onnxruntime within int32; beyond it, and for NaN, as our own evaluator."""
    proto = _cast(kind)
    agree(proto, {"x": WILD})
    built = runtime.load(build(optimised(checked(proto)), tmp_path / "b", jobs=2))
    np.testing.assert_array_equal(built.run({"x": WILD})["y"], oracle(proto, {"x": WILD})[0])
    far = np.array([np.nan, np.inf, -np.inf, 3e9, -3e9, 1e20, -1e20], np.float32)
    np.testing.assert_array_equal(built.run({"x": far})["y"], evaluate(proto, {"x": far})[0])


OLD: dict[str, tuple[Any, dict[str, Any], Any]] = {  # before opset 7, which onnxruntime lacks
    "cast": (node("y = Cast(x)", to="INT32"), {}, np.trunc(X).astype(np.int32)),
    "reshape": (node("y = Reshape(x)", shape=[0, 2, -1], consumed_inputs=[0]), {},
                X.reshape(3, 2, 2)),
    "relu": (node("y = Relu(x)", consumed_inputs=[1]), {}, np.maximum(X, 0)),
    "dropout": (node("y = Dropout(x)", is_test=1, consumed_inputs=[0]), {}, X),
    "power": (node("y = Pow(x, e)", broadcast=1, axis=0), {"e": np.float32([1, 2, 3])},
              X ** np.float32([[1], [2], [3]])),
    "pooling": (node("y = GlobalLpPool(x)", p=1.0), {}, np.abs(X).sum(1, keepdims=True)),
}


@pytest.mark.parametrize("name", OLD)
def test_a_form_of_the_first_opset(name: str) -> None:
    call, weights, want = OLD[name]
    kind = "i32" if want.dtype == np.int32 else "f32"
    proto = model([call], ["x f32 3 4"], [f"y {kind}" + " ?" * want.ndim], weights, opset=1)
    if name == "pooling":  # has a batch and channels before the window
        proto = model([call], ["x f32 1 3 4"], ["y f32 1 3 1"], opset=1)
    got, = evaluate(proto, {"x": X[None] if name == "pooling" else X})
    assert got.dtype == want.dtype
    np.testing.assert_allclose(got.reshape(want.shape), want, rtol=1e-6)


def test_a_cast_to_a_type_that_is_none() -> None:
    with pytest.raises(InputError, match="no element type 'FLOOT'"):
        checked(model([node("y = Cast(x)", to="FLOOT")], ["x f32 3 4"], ["y f32 3 4"], opset=1))


def test_attention_of_old_opsets_is_recognised() -> None:
    """Before opset 13 a softmax is one of a matrix; that of the last axis is attention's."""
    nodes = ["t = Transpose(k)", "s = MatMul(q, t)", "p = Softmax(s)", "y = MatMul(p, k)"]
    nodes = [node(n, **how) for n, how in zip(nodes, (
        {"perm": (0, 1, 3, 2)}, {}, {"axis": 3}, {}), strict=True)]
    module = checked(model(nodes, ["q f32 1 2 16 8", "k f32 1 2 16 8"], ["y f32 1 2 16 8"],
                           opset=11))
    assert [n.op.name for n in optimised(module, TARGET).graph.nodes] == ["attend"]
