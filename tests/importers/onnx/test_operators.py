"""Operators against onnxruntime, at the opsets where their meaning or form differs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import helper

from tests.importers.onnx.build import agree, evaluate, model, node, random

X = random(2, 6, 5, 5)
M = random(4, 6)


def case(text: str, opset: int, feed: Any = None, weights: Any = None, outputs: Any = None,
         **attrs: Any) -> Any:
    """One node on x (and more, by name); outputs are floats of unknown shape unless said."""
    feed = {"x": X} if feed is None else feed
    return pytest.param(text, opset, feed, weights or {}, outputs, attrs,
                        id=f"{text}-{opset}-{','.join(f'{k}={v}' for k, v in attrs.items())}"[:80])


KIND = {"float32": "f32", "float64": "f64", "float16": "f16", "int64": "i64", "int32": "i32",
        "bool": "bool", "int8": "i8", "uint8": "u8"}


def built(text: str, opset: int, feed: Any, weights: Any, outputs: Any, attrs: Any) -> Any:
    ins = [f"{k} {KIND[str(v.dtype)]} {' '.join(map(str, v.shape))}" for k, v in feed.items()]
    outs = outputs or [f"{n.strip()} f32" for n in text.partition("=")[0].split(",")]
    proto = model([node(text, **attrs)], ins, outs, weights, opset)
    for o in proto.graph.output:
        o.type.tensor_type.ClearField("shape")
    proto.ir_version = 8 if opset < 20 else 10
    return proto


I = np.array  # noqa: E741
F = np.float32
OLD_AND_NEW = [
    *(case("y = Softmax(x)", v, axis=a) for v, a in ((7, 1), (11, 2), (12, -1), (13, 1), (13, -1))),
    *(case("y = LogSoftmax(x)", v, axis=2) for v in (7, 13)),
    *(case("y = Hardmax(x)", v, axis=2) for v in (7, 13)),
    case("y = Squeeze(x)", 7, {"x": random(1, 3, 1)}, axes=[0]),
    case("y = Squeeze(x, a)", 13, {"x": random(1, 3, 1)}, {"a": I([-1])}),
    case("y = Unsqueeze(x)", 11, axes=[0, -1]),
    case("y = Unsqueeze(x, a)", 13, None, {"a": I([0, 3])}),
    case("y = ReduceMean(x)", 7, axes=[1, 3], keepdims=0),
    case("y = ReduceMean(x, a)", 18, None, {"a": I([1, -1])}, keepdims=0),
    case("y = ReduceSum(x)", 11, axes=[-2]),
    case("y = ReduceSum(x, a)", 13, None, {"a": I([], np.int64)}, noop_with_empty_axes=1),
    case("y = ReduceLogSumExp(x)", 11, {"x": M * 300}, axes=[1]),
    case("y = ReduceL2(x)", 7, axes=[2]),
    case("a, b = Split(x)", 7, axis=1, split=[2, 4]),
    case("a, b = Split(x, s)", 13, None, {"s": I([2, 4])}, axis=1),
    case("a, b, c = Split(x)", 18, axis=2, num_outputs=3),
    case("y = Slice(x)", 9, axes=[1, 2], starts=[1, -3], ends=[100, -1]),
    case("y = Slice(x, s, e, a, t)", 10, None, {
        "s": I([-1, 0, 4]), "e": I([-100, 4, -2**40]), "a": I([1, 2, 3]), "t": I([-2, 3, -1])}),
    case("y = Pad(x)", 7, mode="reflect", pads=[0, 0, 2, 1, 0, 0, 1, 2]),
    case("y = Pad(x, p, v)", 11, None, {"p": I([0, 1, 2, 0, 0, 0, -1, 2]), "v": F(3)}),
    case("y = Pad(x, p, , a)", 18, None, {"p": I([2, 3]), "a": I([-1])}, mode="edge"),
    case("y = Pad(x, p)", 19, None, {"p": I([0, 0, 2, 4, 0, 0, 4, 3])}, mode="wrap"),
    case("y = Clip(x)", 7, min=-0.5, max=0.25),
    case("y = Clip(x, , h)", 12, None, {"h": F(0.25)}),
    case("y = Dropout(x)", 7, ratio=0.5), case("y = Dropout(x, r)", 12, None, {"r": F(0.5)}),
    case("v, i = TopK(x)", 9, outputs=["v f32", "i i64"], k=3),
    case("v, i = TopK(x, k)", 11, None, {"k": I([2])}, ["v f32", "i i64"], axis=1, largest=0),
    case("y = Upsample(x, s)", 9, None, {"s": I([1, 1, 2, 3], F)}, mode="nearest"),
    case("y = Resize(x, s)", 10, None, {"s": I([1, 1, 2, 2.4], F)}, mode="linear"),
    case("y = Resize(x, , s)", 13, None, {"s": I([1, 1, 2, 0.6], F)}, mode="cubic"),
    case("y = Resize(x, , , z)", 18, None, {"z": I([7, 3])}, mode="linear", axes=[2, 3],
         coordinate_transformation_mode="align_corners"),
    case("y = Gemm(x, w, c)", 9, {"x": M}, {"w": random(6, 3), "c": random(3)}, alpha=0.5),
    case("y = Gemm(x, w)", 11, {"x": M}, {"w": random(3, 6)}, transB=1),
    case("y = BatchNormalization(x, s, b, m, v)", 9, None, {
        "s": random(6), "b": random(6), "m": random(6), "v": random(6) ** 2}),
    case("y = ArgMax(x)", 11, outputs=["y i64"], axis=2, keepdims=0),
    case("y = ArgMin(x)", 13, outputs=["y i64"], axis=-1, select_last_index=1),
    case("y = Flatten(x)", 9, axis=2), case("y = Flatten(x)", 13, axis=-1),
    case("y = CumSum(x, a)", 14, None, {"a": I(1)}, reverse=1, exclusive=1),
]
LAYERS = [
    case("y = Conv(x, w, b)", 11, None, {"w": random(4, 3, 3, 2), "b": random(4)}, group=2,
         strides=[2, 1], pads=[1, 0, 2, 1], dilations=[1, 2]),
    *(case("y = Conv(x, w)", 11, None, {"w": random(4, 6, 3, 2)}, auto_pad=p, strides=[2, 2])
      for p in ("SAME_UPPER", "SAME_LOWER", "VALID")),
    case("y = ConvTranspose(x, w, b)", 11, None, {"w": random(6, 2, 3, 3), "b": random(4)},
         group=2, strides=[2, 3], pads=[1, 0, 0, 1], output_padding=[1, 0], dilations=[2, 1]),
    case("y = ConvTranspose(x, w)", 11, None, {"w": random(6, 2, 3, 3)}, strides=[2, 2],
         output_shape=[10, 11]),
    *(case("y = MaxPool(x)", 12, kernel_shape=[3, 2], strides=[2, 2], ceil_mode=c,
           pads=[1, 0, 1, 1]) for c in (0, 1)),
    case("y, i = MaxPool(x)", 12, outputs=["y f32", "i i64"], kernel_shape=[2, 2],
         strides=[2, 1], pads=[1, 0, 0, 1]),
    *(case("y = AveragePool(x)", 11, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1],
           ceil_mode=c, count_include_pad=p) for c in (0, 1) for p in (0, 1)),
    case("y = LpPool(x)", 11, kernel_shape=[2, 2], p=3),
    case("y = GlobalAveragePool(x)", 11), case("y = GlobalMaxPool(x)", 11),
    case("y = LRN(x)", 13, size=3, alpha=0.1, beta=0.7, bias=2.0),
    case("y = InstanceNormalization(x, s, b)", 11, None, {"s": random(6), "b": random(6)}),
    case("y, m, d = LayerNormalization(x, s, b)", 17, None, {"s": random(5), "b": random(5)}),
    case("y = GroupNormalization(x, s, b)", 21, None, {"s": random(6), "b": random(6)},
         num_groups=3),
    case("y = Einsum(x, z)", 12, {"x": random(2, 3, 4), "z": random(4, 5, 3)},
         equation="bij,jki->bk"),
    case("y = GridSample(x, g)", 16, None, {"g": random(2, 3, 4, 2)}, mode="bilinear",
         padding_mode="reflection"),
    case("y = Gather(x, i)", 13, None, {"i": I([[-1, 0], [2, -6]])}, axis=1),
    case("y = GatherElements(x, i)", 13, {"x": M}, {"i": I([[-1, 0, 2], [1, 1, -4]])}, axis=0),
    case("y = GatherND(x, i)", 13, {"x": M, "i": I([1, -1])}),  # one element, without axes
    case("y = Shrink(x)", 9, {"x": F([0.1, -0.1, np.nan, 2, -np.inf])}, lambd=1.0, bias=0.5),
    case("y = GatherND(x, i)", 13, None, {"i": I([[[0, -1], [3, 4]], [[1, 1], [2, 2]]])},
         batch_dims=1),
    case("y = ScatterElements(x, i, u)", 16, {"x": M}, {
        "i": I([[-1, 0, 2]]), "u": random(1, 3)}, axis=1, reduction="add"),
    case("y = ScatterND(x, i, u)", 16, {"x": M}, {"i": I([[-1], [0]]), "u": random(2, 6)}),
    case("y = Trilu(x, k)", 14, None, {"k": I(-1)}, upper=0),
    case("y = OneHot(x, d, v)", 11, {"x": I([0, -1, 9, -9])}, {"d": I(4), "v": I([2, 5], F)}),
    case("y = DepthToSpace(x)", 11, {"x": random(1, 8, 2, 3)}, blocksize=2, mode="CRD"),
    case("y = Det(x)", 11, {"x": random(3, 5, 5)}),
]


def recurrent(op: str, gates: int, directions: int, **attrs: Any) -> Any:
    hidden, width = 4, 3
    weights = {"w": random(directions, gates * hidden, width, seed=1),
               "r": random(directions, gates * hidden, hidden, seed=2),
               "b": random(directions, 2 * gates * hidden, seed=3),
               "n": I([5, 2], np.int32), "h": random(directions, 2, hidden, seed=4)}
    outputs = "y, h1, c1" if op == "LSTM" else "y, h1"
    return case(f"{outputs} = {op}(x, w, r, b, {'n' if attrs.pop('lengths', 0) else ''}, h)", 14,
                {"x": random(5, 2, width)}, weights, hidden_size=hidden, **attrs)


RECURRENT = [recurrent(op, gates, 1 if d != "bidirectional" else 2, direction=d, lengths=n)
             for op, gates in (("LSTM", 4), ("GRU", 3), ("RNN", 1))
             for d in ("forward", "reverse", "bidirectional") for n in (0, 1)]
RECURRENT += [recurrent("LSTM", 4, 1, activations=["HardSigmoid", "Softsign", "Tanh"], clip=0.5),
              recurrent("LSTM", 4, 1, input_forget=1), recurrent("RNN", 1, 1, activations=["Relu"]),
              recurrent("GRU", 3, 2, linear_before_reset=1, direction="bidirectional",
                        activations=["Sigmoid", "Tanh", "HardSigmoid", "Relu"])]

Q = I([[3, 200, 128, 0], [255, 7, 1, 90]], np.uint8)
S, Z = F(0.02), np.uint8(120)
MS = {"domain": "com.microsoft"}
HIDDEN = random(2, 5, 8)
FUSED = [
    case("y = Gelu(x)", 17, **MS), case("y = QuickGelu(x)", 17, **MS),
    case("y = FastGelu(x, b)", 17, None, {"b": random(5)}, **MS),
    case("y = BiasGelu(x, b)", 17, None, {"b": random(5)}, **MS),
    case("y = FusedMatMul(x, w)", 17, None, {"w": random(3, 5)}, alpha=0.5, transB=1, **MS),
    case("y = FusedConv(x, w)", 17, None, {"w": random(4, 6, 3, 3)}, activation="Relu", **MS),
    case("y = FusedGemm(x, w, c)", 17, {"x": M}, {"w": random(6, 3), "c": random(3)},
         activation="LeakyRelu", activation_alpha=0.25, **MS),
    case("y, , , t = SkipLayerNormalization(x, z, g, b)", 17, {"x": HIDDEN, "z": HIDDEN[::-1] * 2},
         {"g": random(8), "b": random(8)}, ["y f32", "t f32"], **MS),
    case("y = SkipSimplifiedLayerNormalization(x, z, g)", 17, {"x": HIDDEN, "z": HIDDEN[::-1] * 2},
         {"g": random(8)}, **MS),
    case("y = SimplifiedLayerNormalization(x, g)", 17, None, {"g": random(5)}),
    *(case("y = Attention(x, w, b)", 17, {"x": HIDDEN}, {"w": random(8, 24), "b": random(24)},
           num_heads=2, unidirectional=u, **MS) for u in (0, 1)),
    case("y = MultiHeadAttention(x, k, v, b)", 17, {"x": HIDDEN}, {
        "k": random(2, 7, 8, seed=1), "v": random(2, 7, 8, seed=2), "b": random(24)},
         num_heads=2, **MS),
    case("y, k1, v1 = GroupQueryAttention(x, k, v, , , n, t, c, s)", 17, {"x": random(2, 5, 64)}, {
        "k": random(2, 5, 32, seed=1), "v": random(2, 5, 32, seed=2), "n": I([4, 4], np.int32),
        "t": I([5], np.int32), "c": random(8, 8), "s": random(8, 8, seed=5)},
         num_heads=4, kv_num_heads=2, do_rotary=1, **MS),
    case("y = RotaryEmbedding(x, p, c, s)", 17, {"x": random(2, 2, 5, 8)}, {
        "p": I([[3, 1, 0, 2, 4]] * 2), "c": random(6, 4), "s": random(6, 4, seed=5)}, **MS),
    case("y = MatMulNBits(x, w, s, z)", 17, {"x": random(3, 40)}, {
        "w": np.random.default_rng(0).integers(0, 256, (5, 2, 16)).astype(np.uint8),
        "s": random(10), "z": I([0x78] * 5, np.uint8)}, K=40, N=5, bits=4, block_size=32, **MS),
    case("y = QLinearAdd(x, s, z, w, s2, z, s3, z)", 17, {"x": Q}, {
        "s": S, "z": Z, "w": Q[:, ::-1].copy(), "s2": F(0.03), "s3": F(0.05)}, ["y u8"], **MS),
    case("y = QLinearSigmoid(x, s, z, s2, z2)", 17, {"x": Q}, {
        "s": S, "z": Z, "s2": F(1 / 256), "z2": np.uint8(0)}, ["y u8"], **MS),
]


@pytest.mark.parametrize("text, opset, feed, weights, outputs, attrs",
                         OLD_AND_NEW + LAYERS + RECURRENT + FUSED)
def test_like_onnxruntime(text: str, opset: int, feed: Any, weights: Any, outputs: Any,
                          attrs: Any) -> None:
    agree(built(text, opset, feed, weights, outputs, attrs), feed, 2e-5)


def test_broadcasting_before_opset_7() -> None:
    w, v = random(6, 5), random(6)
    proto = built("y = Add(x, w)", 6, {"x": X}, {"w": w}, None, {"broadcast": 1, "axis": 1})
    np.testing.assert_array_equal(evaluate(proto, {"x": X})[0], X + w[None, :, :, None])
    proto = built("y = PRelu(x, w)", 6, {"x": X}, {"w": v}, None, {})
    want = np.where(X < 0, X * v[:, None, None], X)
    np.testing.assert_array_equal(evaluate(proto, {"x": X})[0], want)


def test_scan_of_the_old_form() -> None:
    body = helper.make_graph(
        [helper.make_node("Add", ["s", "a"], ["t"]), helper.make_node("Identity", ["t"], ["u"])],
        "body", [helper.make_tensor_value_info(n, 1, [2]) for n in "sa"],
        [helper.make_tensor_value_info(n, 1, [2]) for n in "tu"])
    proto = built("y, z = Scan(, i, x)", 8, {"i": random(2, 2), "x": random(2, 3, 2)}, {}, None,
                  {"body": body, "num_scan_inputs": 1})
    agree(proto, {"i": random(2, 2), "x": random(2, 3, 2)})
