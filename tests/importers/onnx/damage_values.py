"""Damage to values and types: attributes and constants that no operator takes."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import helper

from tests.importers.onnx.build import model, node, random, value
from tests.importers.onnx.damage import IMAGE, PLANES, W, X, Y, branch, changed, conv, damage, row

# ---- values of attributes and of constant inputs ------------------------------------------------

WRONG_VALUES: dict[str, Any] = {
    "group 0": dict(group=0), "group -1": dict(group=-1),
    "group that does not divide": dict(group=3),
    "strides of 0": dict(strides=[0, 1]), "negative strides": dict(strides=[-1, 1]),
    "dilations of 0": dict(dilations=[0, 0]), "too few strides": dict(strides=[1]),
    "too many dilations": dict(dilations=[1, 1, 1]), "odd pads": dict(pads=[1, 1, 1]),
    "too many pads": dict(pads=[1] * 6),
    "a kernel_shape of another size": dict(kernel_shape=[5, 5]),
    "a kernel_shape of another rank": dict(kernel_shape=[3])}
for _name, _attrs in WRONG_VALUES.items():
    damage(f"Conv with {_name}", "GT10 GT04")(lambda a=_attrs: conv(**a))  # type: ignore[misc]
POOLS: dict[str, Any] = {
    "strides of 0": dict(strides=[0, 0]), "a kernel of 0": dict(kernel_shape=[0, 2]),
    "a kernel of another rank": dict(kernel_shape=[2]), "pads as large as the kernel":
    dict(pads=[2, 2, 2, 2]), "pads of another rank": dict(pads=[1, 1]),
    "a negative dilation": dict(dilations=[-1, 1]), "storage_order 7": dict(storage_order=7)}
for _name, _attrs in POOLS.items():
    row(f"MaxPool with {_name}", "GT10 GT04",
        [node("y = MaxPool(x)", **{"kernel_shape": [2, 2], **_attrs})], IMAGE, PLANES)
for _name, _shape in (("two -1", [-1, -1]), ("a size below -1", [-2, 3]), ("another count", [4, 2]),
                      ("an impossible -1", [4, -1]), ("a 0 beyond the rank", [6, 1, 0])):
    row(f"Reshape with {_name}", "GT10 GT04", ["y = Reshape(x, s)"], outputs=["y f32 ? ?"],
        weights={"s": np.array(_shape)})
row("Reshape by floats", "GT10", ["y = Reshape(x, s)"], weights={"s": np.float32([2, 3])})
row("Reshape by a table", "GT10", ["y = Reshape(x, s)"], weights={"s": np.array([[2, 3]])})
row("Transpose with an axis twice", "GT10 GT04", [node("y = Transpose(x)", perm=[0, 0])])
row("Transpose of another rank", "GT10 GT04", [node("y = Transpose(x)", perm=[0, 2, 1])])
row("Softmax beyond the rank", "GT10 GT04", [node("y = Softmax(x)", axis=2)])
row("Concat beyond the rank", "GT10 GT04", [node("y = Concat(x, x)", axis=5)])
row("Concat of ranks that differ", "GT10 GT04", [node("y = Concat(x, w)", axis=0)],
    weights={"w": random(2, 3, 1)})
row("Concat of sizes that differ", "GT10 GT04", [node("y = Concat(x, w)", axis=0)],
    weights={"w": random(2, 4)})
row("Gather beyond the rank", "GT10 GT04", [node("y = Gather(x, i)", axis=3)],
    weights={"i": np.array([0])})
row("Gather of a constant out of range", "GT10 GT04", ["y = Gather(w, i)"], [], ["y f32 1"],
    {"i": np.array([5]), "w": random(3)})
row("Squeeze of an axis that is not 1", "GT10 GT04", ["y = Squeeze(x, a)"], outputs=["y f32 3"],
    weights={"a": np.array([0])})
row("Unsqueeze of an axis twice", "GT10 GT04", ["y = Unsqueeze(x, a)"], outputs=["y f32 ? ? ? ?"],
    weights={"a": np.array([1, 1])})
row("Unsqueeze beyond the rank", "GT10 GT04", ["y = Unsqueeze(x, a)"], outputs=["y f32 ? ? ?"],
    weights={"a": np.array([7])})
row("a reduction over an axis twice", "GT10 GT04", ["y = ReduceSum(x, a)"], outputs=["y f32 ? ?"],
    weights={"a": np.array([1, 1])})
row("a reduction beyond the rank", "GT10 GT04", ["y = ReduceMean(x, a)"], outputs=["y f32 ? ?"],
    weights={"a": np.array([4])})
row("Split into sizes that do not add up", "GT10 GT04", [node("y, z = Split(x, s)", axis=1)],
    outputs=["y f32 2 ?"], weights={"s": np.array([1, 1])})
row("Split into negative sizes", "GT10 GT04", [node("y, z = Split(x, s)", axis=1)],
    outputs=["y f32 2 ?"], weights={"s": np.array([-1, 4])})
row("Split by sizes and by a number", "GT10 GT04",
    [node("y, z = Split(x, s)", axis=1, num_outputs=2)], outputs=["y f32 2 ?"],
    weights={"s": np.array([1, 2])})
row("Split that is not even", "GT10 GT04", [node("y, z = Split(x)", axis=1)],
    outputs=["y f32 2 ?"], opset=13)
row("Resize by scales and by sizes", "GT10 GT04", ["y = Resize(x, , s, n)"], IMAGE, PLANES,
    {"s": np.ones(4, np.float32), "n": np.array([1, 2, 6, 6])})
row("past keys without past values", "GT10 GT04", ["y = Attention(q, q, q, , q)"],
    ["q f32 1 2 4 8"], PLANES, opset=23)
row("DeformConv with a kernel_shape of another size", "GT10 GT04",
    [node("y = DeformConv(x, w, o)", kernel_shape=[5, 5])], IMAGE, PLANES,
    {**W, "o": random(1, 18, 4, 4)})
row("Slice with a step of 0", "GT10 GT04", ["y = Slice(x, a, b, c, d)"], outputs=["y f32 ? ?"],
    weights={"a": np.array([0]), "b": np.array([1]), "c": np.array([0]), "d": np.array([0])})
row("Slice along an axis twice", "GT10 GT04", ["y = Slice(x, a, b, c)"], outputs=["y f32 ? ?"],
    weights={"a": np.array([0, 0]), "b": np.array([1, 1]), "c": np.array([0, 0])})
row("Slice with fewer ends", "GT10 GT04", ["y = Slice(x, a, b)"], outputs=["y f32 ? ?"],
    weights={"a": np.array([0, 0]), "b": np.array([1])})
row("Expand that does not broadcast", "GT10 GT04", ["y = Expand(x, s)"], outputs=["y f32 ? ?"],
    weights={"s": np.array([5, 3])})
row("Expand to a negative size", "GT10 GT04", ["y = Expand(x, s)"], outputs=["y f32 ? ?"],
    weights={"s": np.array([-1, 3])})
row("Tile of another rank", "GT10 GT04", ["y = Tile(x, s)"], outputs=["y f32 ? ?"],
    weights={"s": np.array([2])})
row("Tile a negative number of times", "GT10 GT04", ["y = Tile(x, s)"], outputs=["y f32 ? ?"],
    weights={"s": np.array([-2, 1])})
row("Pad of another rank", "GT10 GT04", ["y = Pad(x, p)"], weights={"p": np.array([1, 1])})
row("TopK of more than there are", "GT10 GT04", ["y, i = TopK(x, k)"], weights={"k": np.array([9])})
row("TopK of a negative number", "GT10 GT04", ["y, i = TopK(x, k)"], weights={"k": np.array([-1])})
row("OneHot of a depth of -1", "GT10 GT04", ["y = OneHot(i, d, v)"], ["i i64 2"], ["y f32 ? ?"],
    {"d": np.array(-1), "v": np.float32([0, 1])})
row("ConstantOfShape of a negative size", "GT10 GT04", ["y = ConstantOfShape(s)"], [],
    ["y f32 ?"], {"s": np.array([-4])})
row("ConstantOfShape of two values", "GT10 GT04", [node("y = ConstantOfShape(s)",
    value=helper.make_tensor("v", 1, [2], [1.0, 2.0]))], [], ["y f32 ?"], {"s": np.array([4])})
row("Range with a step of 0", "GT10 GT04", ["y = Range(a, b, c)"], [], ["y i64 ?"],
    {"a": np.array(0), "b": np.array(5), "c": np.array(0)})
row("Einsum of another rank", "GT10 GT04", [node("y = Einsum(x)", equation="ijk->kji")])
row("Einsum of an unknown letter", "GT10 GT04", [node("y = Einsum(x)", equation="ij->ik")])
row("MatMul of other sizes", "GT10 GT04", ["y = MatMul(x, x)"])
row("Gemm of rank 3", "GT10 GT04", ["y = Gemm(x, w)"], weights={"w": random(1, 3, 4)})
row("Conv of other channels", "GT10 GT04", ["y = Conv(x, w)"], IMAGE, PLANES,
    {"w": random(4, 3, 3, 3)})
row("a BatchNormalization of other channels", "GT10 GT04",
    ["y = BatchNormalization(x, g, g, g, g)"], IMAGE, PLANES, {"g": np.abs(random(5))})
row("an LSTM of another hidden_size", "GT10 GT04", [node("y = LSTM(t, w, r)", hidden_size=3)], [],
    ["y f32 ? ? ? ?"], {"t": random(3, 2, 8), "w": random(1, 8, 8), "r": random(1, 8, 2)})
row("DepthToSpace of a blocksize of 0", "GT10 GT04", [node("y = DepthToSpace(x)", blocksize=0)],
    IMAGE, PLANES)
row("DepthToSpace that does not divide", "GT10 GT04", [node("y = DepthToSpace(x)", blocksize=2)],
    IMAGE, PLANES)
row("Flatten beyond the rank", "GT10 GT04", [node("y = Flatten(x)", axis=5)])
row("Trilu beyond the rank", "GT10 GT04", ["y = Trilu(w)"], [], ["y f32 ?"], {"w": random(3)})
row("a Constant without a value", "GT10", [node("y = Constant()")], [])
row("a Constant with two values", "GT10", [node("y = Constant()", value_float=1.0, value_int=2)],
    [], ["y f32"])
row("Where of shapes that do not fit", "GT10 GT04", ["y = Where(c, x, w)"], [*X, "c bool 2 3"],
    weights={"w": random(5)})
row("keepdims 7", "GT10", [node("y = ReduceMax(x)", keepdims=7)], outputs=["y f32 ? ?"])

# ---- types -------------------------------------------------------------------------------------

row("Add of two types", "GT1019", ["y = Add(x, i)"], [*X, "i i64 2 3"])
row("MatMul of two types", "GT1019", ["y = MatMul(x, d)"], [*X, "d f64 3 3"])
row("Relu of booleans", "GT1019", ["y = Relu(b)"], ["b bool 2"], ["y bool 2"])
row("Relu of strings", "GT1019", ["y = Relu(s)"], ["s str 2"], ["y str 2"])
row("Sigmoid of integers", "GT1019", ["y = Sigmoid(i)"], ["i i64 2"], ["y i64 2"])
row("Conv of integers", "GT1019", ["y = Conv(i, w)"], ["i i64 1 2 6 6"], PLANES,
    {"w": np.ones((4, 2, 3, 3), np.int64)})
row("And of floats", "GT1019", ["y = And(x, x)"], X, ["y bool 2 3"])
row("Not of integers", "GT1019", ["y = Not(i)"], ["i i64 2"], ["y bool 2"])
row("Where by integers", "GT1019", ["y = Where(i, x, x)"], [*X, "i i64 2 3"])
row("Gather by floats", "GT1019", ["y = Gather(x, x)"], X, ["y f32 ? ? ?"])
row("If by a float", "GT1019", [node(
    "y = If(c)", then_branch=branch("t = Neg(x)"),
    else_branch=branch("e = Relu(x)"))],
    [*X, "c f32"])
row("Concat of two types", "GT1019", [node("y = Concat(x, i)", axis=0)], [*X, "i i64 2 3"])
row("Clip by integers", "GT1019", ["y = Clip(x, i)"], X, Y, {"i": np.array(0)})
row("BitwiseAnd of floats", "GT1019", ["y = BitwiseAnd(x, x)"])
row("Add of bytes at opset 13", "GT1019", ["y = Add(b, b)"], ["b u8 2"], ["y u8 2"], opset=13)
row("a Cast to a type newer than the opset", "GT1019", [node("y = Cast(x)", to=17)], X,
    ["y f32 2 3"], opset=13)
row("Max with an input left out", "GT1014", ["y = Max(x, , x)"])
row("a sequence for a tensor", "GT1015 GT1019", ["s = SequenceConstruct(x, x)", "y = Relu(s)"])
row("a tensor for a sequence", "GT1015 GT1019", ["y = SequenceLength(x)"], X, ["y i64"])
row("an output of another type", "GT1019", ["y = Relu(x)"], X, ["y i64 2 3"])
row("an argument index declared as float", "GT1019", ["y = ArgMax(x)"], X, ["y f32 1 3"])
changed("an inner value of another type", "GT1019",
        lambda m: m.graph.value_info.append(value("h i64 2 3")),
        lambda: model(["h = Neg(x)", "y = Relu(h)"], X, Y))
changed("an input of an unknown type", "GT1004",
        lambda m: setattr(m.graph.input[0].type.tensor_type, "elem_type", 99))
changed("an input of type 0", "GT1004",
        lambda m: setattr(m.graph.input[0].type.tensor_type, "elem_type", 0))
changed("an initializer of another type than its input", "GT1019",
        lambda m: m.graph.input.append(value("w i64 4 2 3 3")), conv)
row("QuantizeLinear by an integer scale", "GT1019", ["y = QuantizeLinear(x, s, z)"], X,
    ["y u8 2 3"], {"s": np.array(1), "z": np.uint8(0)})
