"""Packed sequences of `com.microsoft`: what they are with padding, which onnxruntime computes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graphtool import interp
from graphtool.errors import InputError, UnsupportedError
from graphtool.importers.onnx import import_model
from tests.importers.onnx.build import checked, evaluate, model, node, oracle, random
from tests.importers.onnx.test_contrib import agrees, fused, i32
from tests.lower.compiling import compiled, optimised

B, S, H, W = 3, 5, 2, 8
COUNTS = [5, 0, 2]
TOKENS = sum(COUNTS)
STARTS = i32(np.cumsum([0, *COUNTS]))
INSIDE = np.arange(S) < np.array(COUNTS)[:, None]
OFFSETS = i32(np.argsort(~INSIDE.reshape(-1), kind="stable").reshape(B, S))
X = random(B, S, W)
WEIGHTS = {"w": random(W, 3 * W, seed=1), "b": random(3 * W, seed=2)}
PLACES = {"o": OFFSETS, "s": STARTS}
EXTRA = {"e": random(1, H, S, S, seed=3)}


def padded(extra: dict[str, Any], **attrs: Any) -> Any:
    """The tokens' rows of the same attention with padding, by onnxruntime."""
    proto, feed = fused("y = Attention(x, w, b, m, , e)" if extra else "y = Attention(x, w, b, m)",
                        {"x": X}, WEIGHTS | extra | {"m": i32(COUNTS)}, num_heads=H, **attrs)
    return oracle(proto, feed)[0][INSIDE]


@pytest.mark.parametrize("extra", [{}, EXTRA], ids=["", "a bias of scores"])
@pytest.mark.parametrize("attrs", [{}, {"scale": 0.3}], ids=str)
def test_attention(extra: dict[str, Any], attrs: dict[str, Any], tmp_path: Path) -> None:
    names = ", ".join(["x, w, b, o, s", *extra])
    proto, feed = fused(f"y = PackedAttention({names})", {"x": X[INSIDE], **PLACES},
                        WEIGHTS | extra, num_heads=H, **attrs)
    module = checked(proto)
    for got in (interp.run(module, feed), compiled(optimised(module), tmp_path / "m").run(feed)):
        np.testing.assert_allclose(got["y"], padded(extra, **attrs), rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("packed", [False, True])
def test_attention_of_separate_heads(packed: bool) -> None:
    rows = np.split(X[INSIDE] @ WEIGHTS["w"], 3, 1)
    one = np.stack([r.reshape(TOKENS, H, W // H) for r in rows], 2)
    feed = {"q": one} if packed else dict(zip("qkv", rows, strict=True))
    names = "q, , , b, o, s" if packed else "q, k, v, b, o, s"
    got, = evaluate(*fused(f"y = PackedMultiHeadAttention({names})", {**feed, **PLACES},
                           {"b": WEIGHTS["b"]}, num_heads=H))
    np.testing.assert_allclose(got, padded({}), rtol=2e-5, atol=2e-5)


def test_a_sequence_does_not_see_the_others() -> None:
    x = X[INSIDE].copy()
    x[STARTS[2]:] = np.nan
    got, = evaluate(*fused("y = PackedAttention(x, w, b, o, s)", {"x": x, **PLACES}, WEIGHTS,
                           num_heads=H))
    np.testing.assert_allclose(got[:STARTS[2]], padded({})[:STARTS[2]], rtol=2e-5, atol=2e-5)
    assert np.isnan(got[STARTS[2]:]).all()


def test_padding_is_removed_and_restored() -> None:
    """onnxruntime has both on GPUs only: the numbers are those of numpy."""
    proto = model([node("t, o, s, n = RemovePadding(x, c)", domain="com.microsoft"),
                   node("p = PackedAttention(t, w, b, o, s)", domain="com.microsoft", num_heads=H),
                   node("y = RestorePadding(p, o)", domain="com.microsoft")],
                  ["x f32 B S 8", "c i32 B"],
                  ["y f32 B S 8", "t f32 T 8", "o i32 B S", "s i32 U", "n i32 1"], WEIGHTS)
    got = interp.run(checked(proto), {"x": X, "c": i32(COUNTS)})
    whole = np.zeros_like(X)
    whole[INSIDE] = padded({})
    np.testing.assert_allclose(got["y"], whole, rtol=2e-5, atol=2e-5)
    for name, want in (("t", X[INSIDE]), ("o", OFFSETS), ("s", STARTS), ("n", i32([5]))):
        np.testing.assert_array_equal(got[name], want)


def test_a_token_of_no_sequence_is_an_error() -> None:
    proto, feed = fused("y = PackedAttention(x, w, b, o, s)", {"x": X[INSIDE], **PLACES}, WEIGHTS,
                        num_heads=H)
    feed["s"] = np.minimum(feed["s"], TOKENS - 1)
    with pytest.raises(InputError, match="index"):
        interp.run(import_model(proto), feed)


def test_key_lengths_beside_the_starts_of_packed_rows() -> None:
    mask = i32([5, 3, 0, 5, 10, 0, 5, 8])
    agrees("y = MultiHeadAttention(q, k, v, , m)", {n: random(2, S, W, seed=i)
                                                   for i, n in enumerate("qkv")}, {"m": mask},
           num_heads=H)


def test_rows_that_are_longer_than_the_tables() -> None:
    agrees("y = RotaryEmbedding(x, i, c, s)", {"x": random(1, 6, 16)},
           {"i": np.array([[0, 1, 2, 0, 1, 2]]), "c": random(3, 4), "s": random(3, 4, seed=1)},
           num_heads=2, is_packed_batching=1)


@pytest.mark.parametrize("name, why", [
    ("PagedAttention", "in blocks that all sequences share"),
    ("SparseAttention", "only chosen blocks of keys"),
    ("DecoderMaskedMultiHeadAttention", "a step of a beam search"),
    ("LongformerAttention", "a kernel of GPUs"), ("DecoderAttention", "computed flags")])
def test_other_attention_is_refused_by_name(name: str, why: str) -> None:
    proto, _ = fused(f"y = {name}(x)", {"x": X})
    with pytest.raises(UnsupportedError, match=rf"com\.microsoft\.{name}: .*{why}"):
        import_model(proto)
