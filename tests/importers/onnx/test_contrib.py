"""`com.microsoft`: each form of the fused operators, with onnxruntime as the oracle."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from graphtool.errors import UnsupportedError
from tests.importers.onnx.build import agree, checked, evaluate, model, node, oracle, random

B, S, H, D = 2, 5, 2, 4
W, P = H * D, 3
X = random(B, S, W)
PROJECT = {"w": random(W, 3 * W, seed=1), "b": random(3 * W, seed=2)}
KINDS = {np.dtype(np.float32): "f32", np.dtype(np.int64): "i64", np.dtype(np.int32): "i32",
         np.dtype(np.uint8): "u8", np.dtype(np.int8): "i8", np.dtype(np.bool_): "bool"}


def fused(text: str, feed: dict[str, Any], weights: dict[str, Any] | None = None,
          kinds: str = "f32", outputs: list[str] | None = None, **attrs: Any) -> Any:
    """One operator of com.microsoft as a model and its inputs."""
    made = [n.strip() for n in text.partition("=")[0].split(",") if n.strip()]
    inputs = [" ".join((k, KINDS[v.dtype], *map(str, v.shape))) for k, v in feed.items()]
    outs = outputs or [f"{n} {kinds}" for n in made]
    return model([node(text, domain="com.microsoft", **attrs)], inputs, outs, weights), feed


def agrees(text: str, feed: dict[str, Any], weights: dict[str, Any] | None = None,
           **attrs: Any) -> None:
    agree(*fused(text, feed, weights, **attrs), tolerance=2e-5)


def i32(values: Any) -> Any:
    return np.array(values, np.int32)


MASKS = {
    "lengths": i32([5, 3]), "ends and starts": i32([5, 4, 1, 2]),
    "keys": i32([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]]),
    "keys of none": i32([[0, 0, 0, 0, 0], [1, 1, 1, 1, 0]]),
    "pairs": i32(np.random.default_rng(0).integers(0, 2, (B, S, S))),
}


@pytest.mark.parametrize("causal", [0, 1])
@pytest.mark.parametrize("mask", ["", *MASKS])
def test_attention(mask: str, causal: int) -> None:
    if mask and causal and mask in ("ends and starts", "keys of none"):
        return  # the runtime's own order of two kinds of hiding
    agrees(f"y = Attention(x, w, b{', m' if mask else ''})", {"x": X},
           PROJECT | ({"m": MASKS[mask]} if mask else {}), num_heads=H, unidirectional=causal)


@pytest.mark.parametrize("causal", [0, 1])
@pytest.mark.parametrize("mask", ["", "keys"])
def test_attention_over_a_past(mask: str, causal: int) -> None:
    past = random(2, B, H, P, D, seed=3)
    more = {"m": i32([[0, 0, 1, 1, 1, 1, 1, 1], [1] * 8])} if mask else {}
    agrees(f"y, z = Attention(x, w, b, {'m' if mask else ''}, p)", {"x": X, "p": past},
           PROJECT | more,
           num_heads=H, unidirectional=causal)


def test_attention_of_the_square_mask_that_gpt2_keeps() -> None:
    """A form that onnxruntime has on GPUs only: it is the causal one."""
    square = i32(np.tril(np.ones((1, 1, 9, 9)))).repeat(B, 0)
    got, want = (evaluate(*fused(f"y = Attention(x, w, b{m})", {"x": X}, PROJECT | more,
                                 num_heads=H, unidirectional=u))[0]
                 for m, more, u in ((", m", {"m": square}, 0), ("", {}, 1)))
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)


def test_attention_with_a_bias_of_scores() -> None:
    agrees("y = Attention(x, w, b, , , e)", {"x": X}, PROJECT | {"e": random(1, H, S, S)},
           num_heads=H)


def test_attention_with_values_of_another_width() -> None:
    agrees("y = Attention(x, w, b)", {"x": X}, {"w": random(W, 20), "b": random(20)},
           num_heads=H, qkv_hidden_sizes=[8, 8, 4], scale=0.3)


K, V = random(B, 7, W, seed=5), random(B, 7, W, seed=6)
PAST = {"pk": random(B, H, P, D, seed=7), "pv": random(B, H, P, D, seed=8)}
MULTI: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("y = MultiHeadAttention(x, k, v)", {"k": K, "v": V}, {}),
    ("y = MultiHeadAttention(x, k, v, b)", {"k": K, "v": V, "b": PROJECT["b"]}, {"scale": 0.2}),
    ("y = MultiHeadAttention(x, k, v, , m)",
     {"k": K, "v": V, "m": i32([[1] * 7, [1, 1, 1, 0, 0, 0, 0]])}, {}),
    ("y = MultiHeadAttention(x, k, v, , m)", {"k": K, "v": V, "m": i32([7, 3])}, {}),
    ("y = MultiHeadAttention(x, k, v, , , e)", {"k": K, "v": V, "e": random(1, H, S, 7)}, {}),
    ("y, kk, vv = MultiHeadAttention(x, k, v, b, , , pk, pv)",
     {"k": X, "v": X, "b": PROJECT["b"], **PAST}, {}),
    ("y, kk, vv = MultiHeadAttention(x, k, v, , , , pk, pv)", {"k": X, "v": X, **PAST},
     {"unidirectional": 1}),
    ("y = MultiHeadAttention(x, k, v)",
     {"k": random(B, H, 7, D, seed=5), "v": random(B, H, 7, D, seed=6)}, {}),
]


@pytest.mark.parametrize("text, weights, attrs", MULTI)
def test_multi_head_attention(text: str, weights: dict[str, Any], attrs: dict[str, Any]) -> None:
    agrees(text, {"x": X}, weights, num_heads=H, **attrs)


def test_packed_heads_are_what_they_are_unpacked() -> None:
    qkv, kv = random(B, S, H, 3, D), random(B, 7, H, 2, D)
    flat = [np.ascontiguousarray(qkv[:, :, :, i]).reshape(B, S, W) for i in range(3)]
    keys = [np.ascontiguousarray(kv[:, :, :, i]).reshape(B, 7, W) for i in range(2)]
    for packed, plain in (({"q": qkv}, flat), ({"q": X, "k": kv}, [X, *keys])):
        got = evaluate(*fused(f"y = MultiHeadAttention({', '.join(packed)})", packed, num_heads=H))
        want = evaluate(*fused("y = MultiHeadAttention(q, k, v)", dict(zip("qkv", plain,
                                                                         strict=True)),
                               num_heads=H))
        np.testing.assert_allclose(got[0], want[0], rtol=1e-6)


# ---- grouped queries ---------------------------------------------------------------------------

def grouped(steps: int, past: int, ends: list[int], room: int = 0, **attrs: Any) -> None:
    """Four heads of 16 over two of keys; `room` is the size of a buffer for the cache."""
    size, batch = room or past + steps, len(ends)
    feed: dict[str, Any] = {"x": random(batch, steps, 64), "k": random(batch, steps, 32, seed=1),
                            "v": random(batch, steps, 32, seed=2)}
    if past or room:
        for i, name in enumerate(("pk", "pv")):
            feed[name] = random(batch, 2, room or past, 16, seed=3 + i)
    names = "pk, pv" if past or room else ", "
    weights = {"n": i32(ends) - 1, "t": i32([max(ends)])}
    rotary = {"c": random(32, 8, seed=9), "s": random(32, 8, seed=10)}
    if attrs.get("do_rotary"):
        weights |= rotary
    text = f"y, kk, vv = GroupQueryAttention(x, k, v, {names}, n, t" + (
        ", c, s)" if attrs.get("do_rotary") else ")")
    outputs = [f"y f32 {batch} {steps} 64", *(f"{n} f32 {batch} 2 {size} 16" for n in ("kk", "vv"))]
    proto, _ = fused(text, feed, weights, outputs=outputs, num_heads=4, kv_num_heads=2, **attrs)
    for got, want in zip(evaluate(proto, feed), oracle(proto, feed), strict=True):
        assert got.shape == want.shape
        if got.ndim == 4:  # the runtime leaves what lies behind the last key as it happens to be
            got, want = got[:, :, :min(ends)], want[:, :, :min(ends)]
        np.testing.assert_allclose(got, want, rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("attrs", [{}, {"do_rotary": 1}, {"do_rotary": 1, "rotary_interleaved": 1},
                                   {"local_window_size": 3}, {"softcap": 2.0, "scale": 0.3}],
                         ids=str)
def test_group_query_attention(attrs: dict[str, Any]) -> None:
    grouped(5, 0, [5, 5], **attrs)  # a prompt
    grouped(1, 4, [5, 5], **attrs)  # a token behind a past
    grouped(3, 4, [7], **attrs)  # several
    grouped(1, 0, [5, 3], room=8, **attrs)  # a token into a buffer, sequences of two lengths
    grouped(3, 0, [6], room=8, **attrs)


def test_group_query_attention_of_packed_heads() -> None:
    agrees("y, kk, vv = GroupQueryAttention(x, , , , , n, t)", {"x": random(B, S, 128)},
           {"n": i32([4, 4]), "t": i32([5])}, num_heads=4, kv_num_heads=2)


# ---- the others --------------------------------------------------------------------------------

IDS = i32([[1, 0, 3], [2, 2, 5]])
TABLES = {"t": random(6, 8), "p": random(4, 8, seed=1), "s": random(2, 8, seed=2),
          "g": random(8, seed=3), "h": random(8, seed=4)}


@pytest.mark.parametrize("segments, mask", [(1, 1), (0, 1), (1, 0)])
def test_embed_layer_normalization(segments: int, mask: int) -> None:
    feed = {"i": IDS, "k": i32([[0, 0, 1]] * 2)}
    feed = feed if segments else {"i": IDS}
    tables = {k: v for k, v in TABLES.items() if segments or k != "s"}
    names = f"i, {'k' if segments else ''}, t, p, {'s' if segments else ''}, g, h"
    more = {"m": i32([[1, 1, 0], [1, 1, 1]])} if mask else {}
    agrees(f"y, c = EmbedLayerNormalization({names}{', m' if mask else ''})", feed, tables | more,
           outputs=["y f32", "c i32"])


@pytest.mark.parametrize("attrs", [{"transBatchA": 1}, {"transBatchB": 1, "transB": 1},
                                   {"transBatchA": 1, "transA": 1, "alpha": 0.5}], ids=str)
def test_fused_matmul_of_batches_inside(attrs: dict[str, Any]) -> None:
    agrees("y = FusedMatMul(x, w)", {"x": random(4, 4, 4)}, {"w": random(4, 4, 4, seed=1)}, **attrs)


def test_layouts_of_one_machine_are_refused_with_advice() -> None:
    proto = model([node("y = Conv(x, w)", domain="com.microsoft.nchwc")], ["x f32 1 8 4 4"],
                  ["y f32"], {"w": random(8, 8, 3, 3)})
    with pytest.raises(UnsupportedError, match=r"nchwc.Conv: in a memory layout.*EXTENDED"):
        checked(proto)


# ---- quantised ---------------------------------------------------------------------------------

RNG = np.random.default_rng(3)
Q8 = RNG.integers(0, 256, (2, 4, 6, 6)).astype(np.uint8)
SCALES = {"s": np.float32(0.03), "z": np.uint8(120), "t": np.float32(0.05), "u": np.uint8(100)}
QUANTISED: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("y = QLinearMul(x, s, z, w, t, u, s, z)", {"w": Q8[:, :, ::-1].copy()}, {}),
    ("y = QLinearLeakyRelu(x, s, z, t, u)", {}, {"alpha": 0.2}),
    ("y = QLinearSoftmax(x, s, z, r, v)", {"r": np.float32(1 / 256), "v": np.uint8(0)},
     {"axis": 3, "opset": 13}),
    ("y = QLinearSoftmax(x, s, z, r, v)", {"r": np.float32(1 / 256), "v": np.uint8(0)},
     {"axis": 2, "opset": 12}),
    ("y = QLinearConcat(t, u, x, s, z, w, t, u)", {"w": Q8[:, :3]}, {"axis": 1}),
    ("y = QLinearGlobalAveragePool(x, s, z, t, u)", {}, {"channels_last": 0}),
    ("y = QLinearGlobalAveragePool(x, s, z, t, u)", {}, {"channels_last": 1}),
    ("y = QLinearAveragePool(x, s, z, t, u)", {}, {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}),
    ("y = QLinearAveragePool(x, s, z, t, u)", {},
     {"kernel_shape": [2, 2], "strides": [2, 2], "channels_last": 1}),
    ("y = QLinearConv(x, s, z, k, t, m, t, u)",
     {"k": RNG.integers(-128, 128, (5, 4, 3, 3)).astype(np.int8), "m": np.int8(0)},
     {"pads": [1, 1, 1, 1]}),
    ("y = QLinearConv(x, s, z, k, t, m, t, u)",
     {"k": RNG.integers(-128, 128, (5, 6, 3, 3)).astype(np.int8), "m": np.int8(0)},
     {"channels_last": 1, "strides": [2, 2]}),
    ("y = NhwcMaxPool(x)", {}, {"kernel_shape": [3, 2], "strides": [2, 1], "pads": [1, 0, 0, 1]}),
    ("y = QLinearWhere(c, x, s, z, w, t, u, t, u)",
     {"w": Q8[::-1].copy(), "c": RNG.random((2, 4, 6, 6)) < 0.5}, {}),
]


def steps_apart(text: str, feed: dict[str, Any], weights: dict[str, Any], most: int,
                **attrs: Any) -> None:
    """Equal to onnxruntime but for how halves between two quanta fall."""
    proto, _ = fused(text, feed, weights, **attrs)
    for got, want in zip(evaluate(proto, feed), oracle(proto, feed), strict=True):
        assert got.dtype == want.dtype and got.shape == want.shape
        apart = np.abs(got.astype(np.int64) - want.astype(np.int64))
        assert apart.max() <= most and (apart > 0).mean() < 0.05


@pytest.mark.parametrize("text, weights, attrs", QUANTISED)
def test_quantised(text: str, weights: dict[str, Any], attrs: dict[str, Any]) -> None:
    steps_apart(text, {"x": Q8}, SCALES | weights, 1, kinds="u8", **attrs)


@pytest.mark.parametrize("real", [False, True])
def test_qgemm(real: bool) -> None:
    weights = SCALES | {"w": RNG.integers(-128, 128, (7, 6)).astype(np.int8),
                        "ws": RNG.uniform(0.01, 0.02, 7).astype(np.float32),
                        "wz": np.zeros(7, np.int8), "c": i32(RNG.integers(-900, 900, 7))}
    x = {"x": Q8[0, 0]}
    text = f"y = QGemm(x, s, z, w, ws, wz, c{'' if real else ', t, u'})"
    if real:
        agrees(text, x, weights, transB=1)
    else:
        steps_apart(text, x, weights, 1, kinds="u8", transB=1)


def test_products_of_what_is_quantised_on_the_way() -> None:
    w = {"w": RNG.integers(0, 256, (W, 3 * W)).astype(np.uint8), "ws": np.float32(0.01),
         "wz": np.uint8(128), "b": PROJECT["b"]}
    agrees("y = DynamicQuantizeMatMul(x, w, ws, wz, b)", {"x": X}, w)
    x = {"x": RNG.integers(0, 256, (B, S, W)).astype(np.uint8)}
    agrees("y = QAttention(x, w, b, s, ws, m, z, wz)", x, w | SCALES | {"m": MASKS["keys"]},
           num_heads=H)


@pytest.mark.parametrize("kind", [np.int8, np.uint8])
@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
def test_lstms_quantised_on_the_way(kind: Any, direction: str) -> None:
    d, k, h, steps = 1 + (direction == "bidirectional"), 6, 8, 5
    info = np.iinfo(kind)
    weights = {n: RNG.integers(info.min, info.max + 1, (d, rows, 4 * h)).astype(kind)
               for n, rows in (("w", k), ("r", h))}
    weights |= {"ws": RNG.uniform(0.002, 0.01, d).astype(np.float32),
                "rs": RNG.uniform(0.002, 0.01, d).astype(np.float32),
                "wz": RNG.integers(info.min + 99, info.max - 99, d).astype(kind),
                "rz": np.full(d, 128 if kind is np.uint8 else 0, kind),
                "b": RNG.standard_normal((d, 8 * h)).astype(np.float32)}
    x = {"x": RNG.standard_normal((steps, 1, k)).astype(np.float32)}
    state = {n: RNG.standard_normal((d, 1, h)).astype(np.float32) / 2 for n in ("h0", "c0")}
    more = {"hidden_size": h, "direction": direction}
    agrees("y, hn, cn = DynamicQuantizeLSTM(x, w, r, b, , , , , ws, wz, rs, rz)", x, weights,
           **more)
    agrees("y = DynamicQuantizeLSTM(x, w, r, b, , h0, c0, , ws, wz, rs, rz)", x | state, weights,
           **more)


@pytest.mark.parametrize("bits", [4, 8])
def test_matmul_nbits_with_reordered_groups(bits: int) -> None:
    weights = {"w": RNG.integers(0, 256, (5, 2, 4 * bits)).astype(np.uint8),
               "s": RNG.random(10).astype(np.float32),
               "g": i32(np.arange(64)[::-1] // 32)}
    if bits == 4:
        agrees("y = MatMulNBits(x, w, s, , g)", {"x": random(3, 64)}, weights, K=64, N=5,
               bits=bits, block_size=32)
    del weights["g"]
    agrees("y = MatMulNBits(x, w, s)", {"x": random(3, 64)}, weights, K=64, N=5, bits=bits,
           block_size=32)
