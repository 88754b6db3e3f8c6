"""Damage that breaks what the specification demands of shapes, though it could be computed."""

from __future__ import annotations

import numpy as np
from onnx import ModelProto, helper, numpy_helper

from tests.importers.onnx.build import model, node, random, value
from tests.importers.onnx.damage import IMAGE, PLANES, X, Y, damage, relu, row

TABLE = ["y f32 ? ?"]
WAVE, WAVES = ["x f32 1 16 3"], ["y f32 ? ? ?"]

row("Transpose of fewer axes", "GT1015", [node("y = Transpose(x)", perm=[0])])
row("Split into more sizes than outputs", "GT1015", [node("y, z = Split(x, s)", axis=1)],
    outputs=TABLE, weights={"s": np.array([1, 1, 1])})
row("Split into more parts than outputs", "GT1015",
    [node("y, z = Split(x)", axis=1, num_outputs=3)], outputs=TABLE)
row("GatherElements beyond the data", "GT1015", [node("y = GatherElements(x, i)", axis=1)],
    outputs=TABLE, weights={"i": np.zeros((5, 2), np.int64)})
row("ScatterElements beyond the data", "GT1015", [node("y = ScatterElements(x, i, u)", axis=1)],
    weights={"i": np.zeros((5, 2), np.int64), "u": random(5, 2)})
row("Gemm with a bias of rank 3", "GT1015", ["y = Gemm(x, w, b)"], outputs=TABLE,
    weights={"w": random(3, 5), "b": random(1, 2, 5)})
row("Mod of floats without fmod", "GT1015", ["y = Mod(x, x)"])
row("Clip by a row", "GT1015", ["y = Clip(x, m)"], weights={"m": random(3)})
row("Clip by a row above", "GT1015", ["y = Clip(x, , m)"], weights={"m": random(3)})
row("OneHot of three values", "GT1015", ["y = OneHot(i, d, v)"], ["i i64 2"], TABLE,
    {"d": np.array(3), "v": random(3)})
row("OneHot of two depths", "GT1015", ["y = OneHot(i, d, v)"], ["i i64 2"], TABLE,
    {"d": np.array([3, 4]), "v": random(2)})
row("TopK of two numbers", "GT1015", ["y, i = TopK(x, k)"], outputs=TABLE,
    weights={"k": np.array([1, 2])})
row("EyeLike of rank 3", "GT1015", ["y = EyeLike(x)"], ["x f32 4 2 2"], TABLE)
row("Einsum of a sign", "GT1015", [node("y = Einsum(x)", equation="i$->i")], outputs=["y f32 ?"])
row("Pad to a negative size", "GT1015", ["y = Pad(x, p)"], outputs=TABLE,
    weights={"p": np.array([-2, 0, -2, 0])})
row("Pad of an axis twice", "GT1015", ["y = Pad(x, p, , a)"], outputs=TABLE,
    weights={"p": np.array([1, 1, 0, 0]), "a": np.array([0, -2])})
row("LRN of size 0", "GT1015", [node("y = LRN(x)", size=0)], IMAGE, PLANES)
for _op in ("AveragePool", "MaxPool", "LpPool"):
    row(f"{_op} with negative pads", "GT1015",
        [node(f"y = {_op}(x)", kernel_shape=[2, 2], pads=[-1, 0, 0, 0])], IMAGE, PLANES)
for _extra in ([3, 3], [-1, 0]):
    row(f"ConvTranspose with an output_padding of {_extra}", "GT1015",
        [node("y = ConvTranspose(x, w)", output_padding=_extra, strides=[2, 2])], IMAGE, PLANES,
        {"w": random(2, 4, 3, 3)})
row("scales of other blocks", "GT1015", [node("y = DequantizeLinear(x, s)", axis=1, block_size=2)],
    ["x i8 2 4"], TABLE, {"s": random(2, 3)})
row("Resize by a negative scale", "GT1015", ["y = Resize(x, , s)"], IMAGE, PLANES,
    {"s": np.float32([1, 1, -1, 1])})
row("DFT of three numbers", "GT1015", ["y = DFT(x)"], WAVE, WAVES)
row("a one-sided DFT of complex numbers", "GT1015", [node("y = DFT(x)", onesided=1)],
    ["x f32 1 16 2"], WAVES)
row("weights of other classes", "GT1015", ["y = SoftmaxCrossEntropyLoss(x, l, w)"],
    outputs=["y f32"], weights={"l": np.array([0, 1]), "w": random(5)})
row("Scan in direction 5", "GT1015", [node(
    "y = Scan(x)", num_scan_inputs=1, scan_input_directions=[5], body=helper.make_graph(
        [node("o = Neg(v)")], "body", [value("v f32 3")], [value("o f32 3")]))])


@damage("an initializer of another shape than its input", "GT1019")
def _() -> ModelProto:
    proto = model(["y = Add(x, w)"], [*X, "w f32 4"], Y)
    proto.graph.initializer.append(numpy_helper.from_array(random(3), "w"))
    return proto


@damage("a function of a domain without version", "GT1003")
def _() -> ModelProto:
    proto = relu()
    proto.graph.node[0].domain = "mine"
    proto.functions.append(helper.make_function(
        "mine", "Relu", ["a"], ["b"], [node("b = Neg(a)")], [helper.make_opsetid("", 21)]))
    return proto


ROWS_OF = ["x f32 4 6"]
PROJECTION = {"w": random(6, 18), "b": random(18), "o": np.zeros((2, 3), np.int32)}
for _name, _starts in (("another number of starts", np.zeros(5, np.int32)),
                       ("starts that are floats", random(3))):
    row(f"packed sequences of {_name}", "GT1015",
        [node("y = PackedAttention(x, w, b, o, s)", num_heads=2, domain="com.microsoft")],
        ROWS_OF, TABLE, {**PROJECTION, "s": _starts})
row("packed tokens of other heads", "GT1015",
    [node("y = PackedMultiHeadAttention(x, , , , o, s)", num_heads=3, domain="com.microsoft")],
    ["x f32 4 2 3 6"], TABLE, {"o": PROJECTION["o"], "s": np.zeros(3, np.int32)})
row("a packed query of other heads", "GT1015",
    [node("y = MultiHeadAttention(x)", num_heads=3, domain="com.microsoft")],
    ["x f32 1 4 2 3 6"], WAVES)
