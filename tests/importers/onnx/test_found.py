"""Models as they are found: old opsets and files, odd order, what is left out, what is there twice.

onnxruntime is the oracle throughout.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper, version_converter

from graphtool import interp
from graphtool.errors import InputError, UnsupportedError
from graphtool.importers.onnx import import_model, import_onnx, support
from tests.importers.onnx.build import agree, checked, evaluate, model, node, oracle, random

X = random(2, 3, 4, 5)
IMAGE = "x f32 2 3 4 5"
F32 = np.float32

# ---- old opsets --------------------------------------------------------------------------------

OLD: dict[str, tuple[int, Any, dict[str, Any], str]] = {  # opset, node, weights, output
    "softmax over all that follows": (12, node("y = Softmax(x)", axis=1), {}, "y f32 2 3 4 5"),
    "log softmax": (11, node("y = LogSoftmax(x)", axis=2), {}, "y f32 2 3 4 5"),
    "hardmax": (11, node("y = Hardmax(x)", axis=1), {}, "y f32 2 3 4 5"),
    "upsample by an attribute": (7, node("y = Upsample(x)", scales=[1.0, 1.0, 2.0, 3.0]), {},
                                 "y f32 ? ? ? ?"),
    "upsample by an input": (9, node("y = Upsample(x, s)", mode="linear"),
                             {"s": np.array([1, 1, 2, 2], F32)}, "y f32 ? ? ? ?"),
    "resize without coordinates": (10, node("y = Resize(x, s)"),
                                   {"s": np.array([1, 1, 0.5, 2], F32)}, "y f32 ? ? ? ?"),
    "slice by attributes": (9, node("y = Slice(x)", starts=[1, -2], ends=[9, 99], axes=[1, 3]),
                            {}, "y f32 ? ? ? ?"),
    "pad by attributes": (10, node("y = Pad(x)", pads=[0, 0, 1, 0, 0, 1, 2, 0], value=1.5), {},
                          "y f32 ? ? ? ?"),
    "clip by attributes": (10, node("y = Clip(x)", min=-0.5, max=0.25), {}, "y f32 2 3 4 5"),
    "squeeze by an attribute": (12, node("y = Squeeze(t)", axes=[0, 2]),
                                {"t": random(1, 3, 1)}, "y f32 ?"),
    "unsqueeze by an attribute": (11, node("y = Unsqueeze(x)", axes=[0, 3]), {},
                                  "y f32 ? ? ? ? ? ?"),
    "split by an attribute": (11, node("y, z = Split(x)", axis=3, split=[2, 3]), {},
                              "y f32 ? ? ? ?"),
    "sum by an attribute": (11, node("y = ReduceSum(x)", axes=[1, -1], keepdims=0), {},
                            "y f32 ? ?"),
    "mean of all": (11, node("y = ReduceMean(x)", keepdims=0), {}, "y f32"),
    "top k by an attribute": (9, node("y, i = TopK(x)", k=2, axis=1), {}, "y f32 ? ? ? ?"),
    "top k by an input": (10, node("y, i = TopK(x, k)", axis=3), {"k": np.array([2])},
                          "y f32 ? ? ? ?"),
    "dropout has no mode": (10, node("y, m = Dropout(x)", ratio=0.9), {}, "y f32 2 3 4 5"),
    "an old mask has the type of x": (7, node("y, m = Dropout(x)", ratio=0.9), {}, "y f32 2 3 4 5"),
    "batch normalisation": (7, node("y = BatchNormalization(x, g, b, m, v)", epsilon=1e-3),
                            dict(zip("gbmv", np.abs(random(4, 3)) + F32(0.1), strict=True)),
                            "y f32 2 3 4 5"),
    "max pooling's places": (8, node("y, i = MaxPool(x)", kernel_shape=[2, 2]), {},
                             "y f32 ? ? ? ?"),
    "average pooling": (7, node("y = AveragePool(x)", kernel_shape=[3, 3], auto_pad="SAME_UPPER"),
                        {}, "y f32 ? ? ? ?"),
    "gemm": (7, node("y = Gemm(f, w, b)", transB=1, alpha=0.5),
             {"f": random(2, 6), "w": random(4, 6, seed=1), "b": random(4, seed=2)}, "y f32 2 4"),
    "flatten": (9, node("y = Flatten(x)", axis=2), {}, "y f32 ? ?"),
    "arg max": (11, node("y = ArgMax(x)", axis=2, keepdims=0), {}, "y i64 ? ? ?"),
    "constant of a shape": (9, node("y = ConstantOfShape(s)"), {"s": np.array([2, 0, 3])},
                            "y f32 ? ? ?"),
    "one hot": (9, node("y = OneHot(i, d, v)", axis=1),
                {"i": np.array([1, 0, 5]), "d": np.array(3), "v": np.array([0, 1], F32)},
                "y f32 3 3"),
    "scatter": (9, node("y = Scatter(x, i, u)", axis=3),
                {"i": np.array([[[[0, 3]]]]), "u": random(1, 1, 1, 2)},
                "y f32 2 3 4 5"),
    "gru": (7, node("y, h = GRU(t, w, r)", hidden_size=2),
            {"t": random(4, 2, 3), "w": random(1, 6, 3, seed=1), "r": random(1, 6, 2, seed=2)},
            "y f32 ? ? ? ?"),
    "transposed convolution": (7, node("y = ConvTranspose(x, w)", strides=[2, 2],
                                       output_padding=[1, 0]), {"w": random(3, 2, 3, 3)},
                               "y f32 ? ? ? ?"),
}


@pytest.mark.parametrize("name", OLD)
@pytest.mark.parametrize("ir", [3, 8])
def test_operators_of_old_opsets(name: str, ir: int) -> None:
    opset, call, weights, out = OLD[name]
    reads = "x" in call.input
    proto = model([call], [IMAGE] if reads else [], [out], weights, opset)
    agree(of_version(proto, ir), {"x": X} if reads else {}, 1e-4)


def of_version(proto: ModelProto, ir: int) -> ModelProto:
    """As files of that time are: initializers are inputs as well up to version 3."""
    proto.ir_version = ir
    if ir < 4:
        proto.graph.input.extend(helper.make_tensor_value_info(t.name, t.data_type, t.dims)
                                 for t in proto.graph.initializer)
    return proto


def convolutional(opset: int = 13) -> ModelProto:
    nodes = [node("c = Conv(x, w, b)", pads=[1] * 4), "r = Relu(c)",
             node("p = MaxPool(r)", kernel_shape=[2, 2], strides=[2, 2]), "f = Flatten(p)",
             "g = Gemm(f, v, u)", node("y = Softmax(g)", axis=1)]
    weights = {"w": random(4, 3, 3, 3), "b": random(4, seed=1), "v": random(16, 5, seed=2),
               "u": random(5, seed=3)}
    return model(nodes, [IMAGE], ["y f32 2 5"], weights, opset)


@pytest.mark.parametrize("start, end", [(7, 8), (8, 9), (8, 10), (8, 11), (8, 12), (8, 13),
                                        (9, 18), (11, 21), (13, 24), (9, 8)])
def test_converted_to_another_opset(start: int, end: int) -> None:
    agree(version_converter.convert_version(convolutional(start), end), {"x": X})


@pytest.mark.parametrize("level", ["BASIC", "EXTENDED"])
def test_what_onnxruntime_has_optimised(level: str, tmp_path: Path) -> None:
    import onnxruntime
    options = onnxruntime.SessionOptions()
    options.optimized_model_filepath = str(tmp_path / "o.onnx")
    options.graph_optimization_level = getattr(onnxruntime.GraphOptimizationLevel,
                                               f"ORT_ENABLE_{level}")
    options.log_severity_level = 4
    onnxruntime.InferenceSession(convolutional().SerializeToString(), options)
    got = interp.run(import_onnx(tmp_path / "o.onnx"), {"x": X})["y"]
    np.testing.assert_allclose(got, oracle(convolutional(), {"x": X})[0], rtol=1e-4, atol=1e-5)


# ---- files -------------------------------------------------------------------------------------

def test_opsets_in_any_order_and_under_both_names() -> None:
    proto = convolutional()
    del proto.opset_import[:]
    for domain, version in (("com.microsoft", 1), ("ai.onnx.ml", 3), ("ai.onnx", 13)):
        proto.opset_import.append(helper.make_opsetid(domain, version))
    np.testing.assert_allclose(evaluate(proto, {"x": X})[0],
                               oracle(convolutional(), {"x": X})[0], rtol=1e-4, atol=1e-5)


def test_weights_of_half_precision() -> None:
    nodes = [node("d = Cast(w)", to=1), "y = MatMul(x, d)",
             node("h = Cast(x)", to=10), "z = MatMul(h, w)"]
    agree(model(nodes, ["x f32 2 3"], ["y f32 2 4", "z f16 2 4"],
                {"w": random(3, 4).astype(np.float16)}), {"x": random(2, 3)}, 5e-3)


def test_nothing_says_the_shapes() -> None:
    proto = convolutional()
    proto.graph.output[0].type.tensor_type.ClearField("shape")
    del proto.graph.value_info[:]
    agree(proto, {"x": X})
    proto.graph.output[0].ClearField("type")
    assert evaluate(proto, {"x": X})[0].shape == (2, 5)


def test_an_input_without_a_rank_is_refused_by_name() -> None:
    proto = convolutional()
    proto.graph.input[0].type.tensor_type.ClearField("shape")
    with pytest.raises(UnsupportedError, match="rank"):
        import_model(proto)


def test_external_data_in_several_files(tmp_path: Path) -> None:
    proto = convolutional()
    rows = [numpy_helper.to_array(t) for t in proto.graph.initializer]
    for i, (t, row) in enumerate(zip(proto.graph.initializer, rows, strict=True)):
        t.ClearField("raw_data")
        t.data_location = TensorProto.EXTERNAL
        file = tmp_path / ("a.bin" if i % 2 else "b.bin")
        start = file.stat().st_size if file.exists() else 0
        with file.open("ab") as out:
            out.write(row.tobytes() + b"gap!")
        keys = {"location": file.name, "offset": start} | ({"length": row.nbytes} if i else {})
        for key, value in keys.items():
            t.external_data.add(key=key, value=str(value))
    (tmp_path / "m.onnx").write_bytes(proto.SerializeToString())
    got = interp.run(import_onnx(tmp_path / "m.onnx"), {"x": X})["y"]
    np.testing.assert_allclose(got, oracle(convolutional(), {"x": X})[0], rtol=1e-4, atol=1e-5)
    (tmp_path / "a.bin").unlink()
    with pytest.raises(InputError) as caught:
        import_onnx(tmp_path / "m.onnx")
    assert caught.value.code == "GT1009" and "a.bin" in caught.value.message


# ---- names and what is left out ----------------------------------------------------------------

BRANCHES = """g (bool p, float[3] x) => (float[3] y, float[3] z) {
  t = Neg(x)
  y = If(p) <then_branch = a () => (float[3] r) { u = Abs(t) v = Exp(u) k = Sub(v, t)
      m = Mul(k, k) r = Add(m, v) },
    else_branch = b () => (float[3] r) { u = Sin(x) v = Mul(u, t) k = Add(v, u) m = Cos(k)
      r = Sub(m, t) }>
  s = Relu(x)
  z = Add(s, y)
}"""


@pytest.mark.parametrize("p", [True, False])
def test_the_same_names_in_both_branches_and_outside(p: bool) -> None:
    proto = onnx.parser.parse_model('<ir_version: 8, opset_import: ["" : 17]>\n' + BRANCHES)
    feed = {"p": np.array(p), "x": np.array([1.5, -2, 0.25], F32)}
    agree(proto, feed)
    want = evaluate(proto, feed)
    proto.graph.node[2].output[0] = proto.graph.node[3].input[0] = "u"  # onnxruntime refuses this
    np.testing.assert_array_equal(evaluate(proto, feed), want)


LEFT_OUT: dict[str, tuple[Any, dict[str, Any], str]] = {
    "no least": (node("y = Clip(x, , hi)"), {"hi": F32(0.1)}, "y f32 2 3 4 5"),
    "no roi and scales": (node("y = Resize(x, , , s)"), {"s": np.array([2, 3, 8, 5])},
                          "y f32 2 3 8 5"),
    "no steps": (node("y = Slice(x, a, b, c)"), {k: np.array([v]) for k, v in
                                                (("a", 1), ("b", 3), ("c", 2))}, "y f32 ? ? ? ?"),
    "no value and no axes": (node("y = Pad(x, p)"), {"p": np.array([0, 0, 1, 1] * 2)},
                             "y f32 ? ? ? ?"),
    "no bias but a state": (node("y, h, c = LSTM(t, w, r, , , h0, c0)", hidden_size=2),
                            {"t": random(3, 2, 3), "w": random(1, 8, 3, seed=1),
                             "r": random(1, 8, 2, seed=2), "h0": random(1, 2, 2, seed=3),
                             "c0": random(1, 2, 2, seed=4)}, "y f32 ? ? ? ?"),
    "only the last output": (node(", , c = LSTM(t, w, r)", hidden_size=2),
                             {"t": random(3, 2, 3), "w": random(1, 8, 3, seed=1),
                              "r": random(1, 8, 2, seed=2)}, "c f32 ? ? ?"),
    "trailing nothing": (node("y = Dropout(x, , )"), {}, "y f32 2 3 4 5"),
}


@pytest.mark.parametrize("name", LEFT_OUT)
def test_optional_inputs_and_outputs_left_out(name: str) -> None:
    call, weights, out = LEFT_OUT[name]
    reads = "x" in call.input
    agree(model([call], [IMAGE] if reads else [], [out], weights, 17), {"x": X} if reads else {},
          1e-4)


EMPTY: dict[str, tuple[list[Any], str]] = {
    "sum": (["y = ReduceSum(x)"], "y f32 1 1"), "join": ([node("y = Concat(x, x)", axis=0)],
                                                        "y f32 0 3"),
    "product": (["t = Transpose(x)", "y = MatMul(t, x)"], "y f32 3 3"),
    "elementwise": (["a = Exp(x)", "y = Add(a, x)"], "y f32 0 3"),
    "size": (["y = Size(x)"], "y i64"),
    "softmax": ([node("y = Softmax(x)", axis=1)], "y f32 0 3"),
}


@pytest.mark.parametrize("name", EMPTY)
def test_tensors_without_elements(name: str) -> None:
    nodes, out = EMPTY[name]
    agree(model(nodes, ["x f32 0 3"], [out]), {"x": np.zeros((0, 3), F32)})


def test_unused_initializers_and_inputs() -> None:
    proto = model(["y = Neg(x)"], ["x f32 2", "unused f32 3"], ["y f32 2"],
                  {"w": random(4, 4), "s": np.array(["a"], object)})
    module = checked(proto)
    assert [n.op.name for n in module.graph.nodes] == ["neg"]
    feed = {"x": random(2), "unused": random(3)}
    assert interp.run(module, feed)["y"].tolist() == (-feed["x"]).tolist()


# ---- functions and what is unknown -------------------------------------------------------------

def function(name: str, inputs: list[str], outputs: list[str], nodes: list[Any],
             opset: int = 17) -> Any:
    return helper.make_function("mine", name, inputs, outputs, nodes,
                                [helper.make_opsetid("", opset), helper.make_opsetid("mine", 1)])


def with_functions(nodes: list[Any], *functions: Any, opset: int = 21) -> ModelProto:
    proto = model(nodes, ["x f32 2 3"], ["y f32 2 3"], opset=opset)
    proto.opset_import.append(helper.make_opsetid("mine", 1))
    proto.functions.extend(functions)
    return proto


def test_functions_in_functions_with_their_own_opset() -> None:
    inner = function("Inner", ["a"], ["b"], [node("t = Softmax(a)", axis=0),
                                            node("b = Mul(t, a)")], 12)
    outer = function("Outer", ["a"], ["c"], [node("t = Inner(a)", domain="mine"),
                                            node("u = Inner(t)", domain="mine"),
                                            node("c = Sub(u, a)")])
    x = random(2, 3)
    flat = x.reshape(1, 6)  # opset 12 flattens what follows the axis

    def soft(v: Any) -> Any:
        e = np.exp(v.reshape(flat.shape) - v.max())
        return (e / e.sum()).reshape(2, 3) * v
    got, = evaluate(with_functions([node("y = Outer(x)", domain="mine")], inner, outer), {"x": x})
    np.testing.assert_allclose(got, soft(soft(x)) - x, rtol=1e-5)


def test_all_that_is_unknown_is_listed_with_its_places(tmp_path: Path) -> None:
    inner = function("Odd", ["a"], ["b"], [node("b = Whirl(a)", domain="theirs", name="deep")])
    branch = helper.make_graph([node("r = Twist(x)", domain="theirs", name="in_a_branch")], "b", [],
                               [helper.make_empty_tensor_value_info("r")])
    proto = with_functions([node("y0 = Odd(x)", domain="mine"), node("y1 = Odd(y0)", domain="mine"),
                            node("p = Whirl(x)", domain="theirs", name="here"),
                            node("y = If(p)", then_branch=branch, else_branch=branch)], inner)
    (tmp_path / "m.onnx").write_bytes(proto.SerializeToString())
    rows = {i.name: i.places for i in support(tmp_path / "m.onnx")}
    assert rows == {"theirs.Whirl": ("deep (Whirl)", "here (Whirl)"),
                    "theirs.Twist": ("in_a_branch (Twist)",) * 2}


def test_an_overloaded_function() -> None:
    one, two = (function("F", ["a"], ["b"], [node(f"b = {op}(a)")]) for op in ("Neg", "Abs"))
    nodes = [node("t = F(x)", domain="mine"), node("y = F(t)", domain="mine")]
    two.overload = nodes[1].overload = "second"
    x = random(2, 3)
    assert np.array_equal(evaluate(with_functions(nodes, one, two), {"x": x})[0], np.abs(-x))


def test_what_torch_wrote_before_there_was_a_word_for_it() -> None:
    fill = node("y = ConstantFill(s)", input_as_shape=1, value=2.5)
    for known in (True, False):
        proto = model(["s = Shape(x)", fill] if known else [fill],
                      ["x f32 2 3"] if known else ["s i64 2"], ["y f32 2 3"], opset=7)
        feed = {"x": random(2, 3)} if known else {"s": np.array([2, 3])}
        assert np.array_equal(evaluate(proto, feed)[0], np.full((2, 3), 2.5))


@pytest.mark.parametrize("size", [0, "N"])
@pytest.mark.parametrize("step", [-1, -2, 2])
def test_slice_of_no_elements(size: Any, step: int) -> None:
    """From the last element back: of none there is no last one."""
    last, first = (2**31 - 1, -(2**31)) if step < 0 else (0, 2**31 - 1)
    ends = {k: np.array([v]) for k, v in zip("abct", (last, first, 1, step), strict=True)}
    proto = model(["y = Slice(x, a, b, c, t)"], [f"x f32 2 {size}"], ["y f32 2 ?"], ends)
    for n in (0, 5) if size == "N" else (0,):
        x = random(2, n)
        module = checked(proto, **({"dynamic": {"N": (0, None)}} if size == "N" else {}))
        np.testing.assert_array_equal(interp.run(module, {"x": x})["y"], x[:, ::step])
