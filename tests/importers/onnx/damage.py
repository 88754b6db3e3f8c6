"""A table of kinds of damage: each row turns a small valid model into an invalid one.

A row is a name, the codes that may refuse it, and a function that makes the damaged file.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from onnx import ModelProto, helper

from tests.importers.onnx.build import model, node, random, value

Damage = Callable[[], ModelProto | bytes]
ROWS: dict[str, tuple[str, Damage]] = {}
X, Y = ["x f32 2 3"], ["y f32 2 3"]
IMAGE, PLANES = ["x f32 1 2 6 6"], ["y f32 ? ? ? ?"]
W = {"w": random(4, 2, 3, 3)}


def damage(name: str, codes: str) -> Callable[[Damage], Damage]:
    """Enters a function into the table."""
    def enter(make: Damage) -> Damage:
        assert name not in ROWS
        ROWS[name] = (codes, make)
        return make
    return enter


def branch(text: str) -> Any:
    """The graph of a branch with this one node, whose output is f32[2,3]."""
    return helper.make_graph([node(text)], "branch", [], [value(text.split()[0] + " f32 2 3")])


def relu() -> ModelProto:
    """y = Relu(x), the smallest model."""
    return model(["y = Relu(x)"], X, Y)


def softmax() -> ModelProto:
    """y = Softmax(x) along axis 1."""
    return model([node("y = Softmax(x)", axis=1)], X, Y)


def conv(**attrs: Any) -> ModelProto:
    """A convolution with these attributes."""
    return model([node("y = Conv(x, w)", **attrs)], IMAGE, PLANES, W)


def row(name: str, codes: str, nodes: list[Any], inputs: list[str] = X, outputs: list[str] = Y,
        weights: dict[str, Any] | None = None, opset: int = 21) -> None:
    """A row whose model is wrong as it is written."""
    damage(name, codes)(lambda: model(nodes, inputs, outputs, weights, opset))


def changed(name: str, codes: str, change: Callable[[Any], Any],
            make: Callable[[], ModelProto] = relu) -> None:
    """A row that changes a valid model."""
    def damaged() -> ModelProto:
        proto = make()
        change(proto)
        return proto
    damage(name, codes)(damaged)


# ---- versions ----------------------------------------------------------------------------------

def _opset(version: int, domain: str = "") -> Callable[[Any], Any]:
    def change(m: Any) -> None:
        del m.opset_import[:]
        m.opset_import.append(helper.make_opsetid(domain, version))
    return change


for _v in (999, 0, -3):
    changed(f"opset {_v}", "GT1003", _opset(_v))
changed("no opset", "GT1003", lambda m: m.ClearField("opset_import"))
changed("an opset of another domain", "GT1003", _opset(1, "elsewhere"))
changed("two opsets of one domain", "GT1003",
        lambda m: m.opset_import.append(helper.make_opsetid("", 7)))
changed("two names of one domain", "GT1003",
        lambda m: m.opset_import.append(helper.make_opsetid("ai.onnx", 7)))
changed("no ir_version", "GT1003", lambda m: m.ClearField("ir_version"))
changed("ir_version 99", "GT1003", lambda m: setattr(m, "ir_version", 99))
row("an operator newer than the opset", "GT1017", ["y = Gelu(x)"], opset=13)
row("an operator removed by the opset", "GT1017", ["y = Upsample(x, s)"], IMAGE, PLANES,
    {"s": np.ones(4, np.float32)}, opset=11)
row("Scatter after its removal", "GT1017", ["y = Scatter(x, i, u)"], X, Y,
    {"i": np.zeros((1, 1), np.int64), "u": random(1, 1)}, opset=13)
row("a newer operator inside a branch", "GT1017", [node(
    "y = If(c)", then_branch=branch("t = Gelu(x)"),
    else_branch=branch("e = Relu(x)"))],
    [*X, "c bool"], opset=13)
row("a newer attribute than the opset", "GT1018 GT1020", [node("y = Cast(x)", to=1, saturate=0)],
    opset=13)
row("an attribute of an older opset", "GT1018 GT1020", [node("y = ReduceSum(x)", axes=[0])],
    outputs=["y f32 1 3"], opset=13)
row("an input of a newer opset", "GT1014 GT1018 GT1020", ["y = ReduceMax(x, a)"],
    outputs=["y f32 1 3"], weights={"a": np.array([0])}, opset=13)
row("an operator without its domain", "GT1017 GT1020", ["y = Frobnicate(x)"])
row("a domain without a version", "GT1003",
    [node("y = Normalizer(x)", domain="ai.onnx.ml", norm="L2")])

# ---- names -------------------------------------------------------------------------------------

row("a cycle", "GT1010", ["a = Neg(b)", "b = Neg(a)", "y = Add(a, x)"])
row("a node that reads itself", "GT1010", ["y = Add(x, y)"])
row("an undefined input", "GT1011", ["y = Add(x, nothing)"])
row("an undefined output", "GT1011", ["z = Neg(x)"])
row("a value from inside a branch", "GT1011", [node(
    "z = If(c)", then_branch=branch("t = Neg(x)"),
    else_branch=branch("e = Relu(x)")),
    "y = Neg(t)"], [*X, "c bool"])
row("an undefined value in a branch", "GT1011", [node(
    "y = If(c)", then_branch=branch("t = Neg(q)"),
    else_branch=branch("e = Relu(x)"))],
    [*X, "c bool"])
row("an undefined output of a branch", "GT1011", [node(
    "y = If(c)", then_branch=helper.make_graph([node("t = Neg(x)")], "t", [], [value("s f32 2 3")]),
    else_branch=branch("e = Relu(x)"))],
    [*X, "c bool"])
row("a value defined twice", "GT1012", ["y = Neg(x)", "y = Abs(x)"])
row("one node with one output twice", "GT1012", [node("y, y = MaxPool(x)", kernel_shape=[2, 2])],
    IMAGE, PLANES)
row("an input twice", "GT1012", ["y = Neg(x)"], X * 2)
row("an output twice", "GT1012", ["y = Neg(x)"], X, Y * 2)
row("a node output that is an input", "GT1012", ["y = Neg(x)", "z = Abs(y)"], [*X, "z f32 2 3"])
row("a node output that is an initializer", "GT1012", ["w = Neg(x)", "y = Abs(w)"],
    weights={"w": random(2, 3)})
row("a node output that is an unread initializer", "GT1012", ["y = Neg(x)", "w = Abs(x)"],
    weights={"w": random(2, 3)})
changed("an initializer twice", "GT1012",
        lambda m: m.graph.initializer.append(m.graph.initializer[0]), conv)
changed("an initializer without a name", "GT1012",
        lambda m: m.graph.initializer.add(data_type=1, dims=[1], raw_data=b"1234"))
changed("an input without a name", "GT1012", lambda m: setattr(m.graph.input[1], "name", ""),
        lambda: model(["y = Relu(x)"], [*X, "z f32 2"], Y))
changed("an output without a name", "GT1011 GT1012",
        lambda m: setattr(m.graph.output[1], "name", ""),
        lambda: model(["y = Relu(x)"], X, [*Y, "z f32 2"]))
changed("an input without a type", "GT1012 GT1020", lambda m: m.graph.input[0].ClearField("type"))
changed("a graph without outputs", "GT1002", lambda m: m.graph.ClearField("output"))
changed("a sparse and a dense initializer of one name", "GT1012",
        lambda m: m.graph.sparse_initializer.append(helper.make_sparse_tensor(
            helper.make_tensor("w", 1, [1], [5.0]), helper.make_tensor("i", 7, [1], [3]),
            [4, 2, 3, 3])), conv)
row("a branch that redefines an outer name", "GT1012", [node("h = Neg(x)"), node(
    "y = If(c)", then_branch=branch("h = Abs(x)"),
    else_branch=branch("e = Relu(h)"))],
    [*X, "c bool"])

# ---- arity -------------------------------------------------------------------------------------

row("too few inputs", "GT1014", ["y = Add(x)"])
row("no inputs", "GT1014", ["y = Relu()"])
row("too many inputs", "GT1014", ["y = Relu(x, x)"])
row("too many inputs of Conv", "GT1014", ["y = Conv(x, w, b, b)"], IMAGE, PLANES,
    {**W, "b": random(4)})
row("a required input left out", "GT1014", ["y = Add(, x)"])
row("a required input left out at the end", "GT1014", ["y = MatMul(x, )"])
row("too many outputs", "GT1016", ["y, z = Relu(x)"])
row("too many outputs without names", "GT1016", ["y,  = Relu(x)"])
row("no outputs", "GT1016", [helper.make_node("Neg", ["x"], []), "y = Relu(x)"])
row("more outputs than a branch gives", "GT1016", [node(
    "y,  = If(c)", then_branch=branch("t = Abs(x)"), else_branch=branch("e = Relu(x)"))],
    [*X, "c bool"])
row("more outputs than a Scan's body gives", "GT1016", [node(
    "y, ,  = Scan(x)", num_scan_inputs=1, body=helper.make_graph(
        [node("t = Abs(r)")], "b", [value("r f32 3")], [value("t f32 3")]))])
row("fewer outputs than a Loop's body gives", "GT1016", [node(
    "y = Loop(n, , x)", body=helper.make_graph(
        [node("k = Identity(c)"), node("t = Abs(s)"), node("u = Neg(s)")], "b",
        [value("i i64"), value("c bool"), value("s f32 2 3")],
        [value("k bool"), value("t f32 2 3"), value("u f32 2 3")]))], [*X, "n i64"])
row("Concat of nothing", "GT1014", [node("y = Concat()", axis=0)])

# ---- attributes --------------------------------------------------------------------------------

changed("an attribute twice", "GT1018", lambda m: m.graph.node[0].attribute.extend(
    [helper.make_attribute("group", 1)] * 2), conv)
changed("an attribute twice with other values", "GT1018",
        lambda m: m.graph.node[0].attribute.extend([helper.make_attribute("axis", 0)]), softmax)
row("an unknown attribute", "GT1018 GT1020", [node("y = Relu(x)", speed=3)])
row("an unknown attribute of Conv", "GT1018 GT1020", [node("y = Conv(x, w)", padding=[1, 1])],
    IMAGE, PLANES, W)
row("a required attribute missing", "GT1018", ["y = Concat(x, x)"], outputs=["y f32 4 3"])
row("Cast to nothing", "GT1018", ["y = Cast(x)"])
row("a kernel_shape missing", "GT1018", ["y = MaxPool(x)"], IMAGE, PLANES)
row("a float for an integer", "GT1018", [node("y = Softmax(x)", axis=1.0)])
row("an integer for a float", "GT1018", [node("y = LeakyRelu(x)", alpha=1)])
row("an integer for a list", "GT1018", [node("y = Transpose(x)", perm=1)])
row("a list for an integer", "GT1018", [node("y = Softmax(x)", axis=[1])])
row("a string for a list", "GT1018", [node("y = Transpose(x)", perm="10")])
row("floats for integers", "GT1018", [node("y = Transpose(x)", perm=[1.0, 0.0])])
row("a string for a number", "GT1018", [node("y = LeakyRelu(x)", alpha="0.1")])
row("a tensor for a number", "GT1018",
    [node("y = LeakyRelu(x)", alpha=helper.make_tensor("a", 1, [], [0.1]))])
row("a number for a graph", "GT1018", [node("y = If(c)", then_branch=1, else_branch=2)],
    ["c bool"])
row("a number for a tensor", "GT1018", [node("y = ConstantOfShape(s)", value=1.0)], ["s i64 2"])
changed("an attribute without a type", "GT1018",
        lambda m: m.graph.node[0].attribute[0].ClearField("type"), softmax)
changed("an attribute of another field", "GT1018",
        lambda m: setattr(m.graph.node[0].attribute[0], "f", 2.0), softmax)
changed("an attribute without a name", "GT1018 GT1020", lambda m: m.graph.node[0].attribute.append(
    helper.make_attribute("", 1)))
changed("a reference outside a function", "GT1018", lambda m: m.graph.node[0].attribute.add(
    name="axis", type=2, ref_attr_name="axis"), lambda: model(["y = Softmax(x)"], X, Y))
for _name, _attr, _call in (
        ("auto_pad", {"auto_pad": "SAME"}, "y = Conv(x, w)"),
        ("auto_pad of a pool", {"auto_pad": "same_upper", "kernel_shape": [2, 2]},
         "y = MaxPool(x)"),
        ("auto_pad of an average", {"auto_pad": "NONE", "kernel_shape": [2, 2]},
         "y = AveragePool(x)"),
        ("auto_pad of a transposed convolution", {"auto_pad": "X"}, "y = ConvTranspose(x, v)"),
        ("mode of Pad", {"mode": "mirror"}, "y = Pad(x, p)"),
        ("mode of Resize", {"mode": "area"}, "y = Resize(x, , s)"),
        ("coordinates of Resize", {"coordinate_transformation_mode": "half"}, "y = Resize(x, , s)"),
        ("rounding of Resize", {"nearest_mode": "up"}, "y = Resize(x, , s)"),
        ("aspect policy of Resize", {"keep_aspect_ratio_policy": "crop"}, "y = Resize(x, , s)"),
        ("mode of DepthToSpace", {"mode": "ABC", "blocksize": 1}, "y = DepthToSpace(x)"),
        ("mode of GridSample", {"mode": "lanczos"}, "y = GridSample(x, g)"),
        ("padding of GridSample", {"padding_mode": "wrap"}, "y = GridSample(x, g)"),
        ("approximation of Gelu", {"approximate": "erf"}, "y = Gelu(x)"),
        ("reduction of ScatterND", {"reduction": "div"}, "y = ScatterND(x, i, u)"),
        ("direction of BitShift", {"direction": "UP"}, "y = BitShift(b, b)")):
    row(f"an unknown {_name}", "GT1018", [node(_call, **_attr)], [*IMAGE, "b u8 4"], PLANES,
        {**W, "v": random(2, 4, 3, 3), "p": np.zeros(8, np.int64), "s": np.ones(4, np.float32),
         "g": random(1, 2, 2, 2), "i": np.zeros((1, 4), np.int64), "u": random(1)})
row("an unknown direction", "GT1018", [node("y = LSTM(t, w, r)", hidden_size=2, direction="both")],
    [], ["y f32 ? ? ? ?"], {"t": random(3, 2, 8), "w": random(1, 8, 8), "r": random(1, 8, 2)})
row("an unknown activation", "GT1018 GT1020",
    [node("y = GRU(t, w, r)", hidden_size=2, activations=["Swish", "Tanh"])],
    [], ["y f32 ? ? ? ?"], {"t": random(3, 2, 8), "w": random(1, 6, 8), "r": random(1, 6, 2)})
row("an unknown reduction of a loss", "GT1018",
    [node("y = SoftmaxCrossEntropyLoss(x, t)", reduction="avg")], X, ["y f32"],
    {"t": np.array([0, 1])})
row("a Cast to no type", "GT1004 GT1018", [node("y = Cast(x)", to=77)])
row("a Cast to type 0", "GT1004 GT1018", [node("y = Cast(x)", to=0)])
