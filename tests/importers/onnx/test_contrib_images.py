"""Operators on images that lie channels last, against those that do not."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
import torch.nn.functional as F

from tests.importers.onnx.build import evaluate, model, node, random

MS = {"domain": "com.microsoft"}
X, G, B = random(2, 5, 4, 6), random(6, seed=1), random(6, seed=2)


def norm(x: Any, silu: bool) -> Any:
    y = F.group_norm(torch.tensor(x).permute(0, 3, 1, 2), 3, torch.tensor(G), torch.tensor(B), 1e-5)
    return (F.silu(y) if silu else y).permute(0, 2, 3, 1).numpy()


def test_convolution() -> None:
    w, b = random(4, 3, 3, 3, seed=1), random(4, seed=2)
    conv = node("y = NhwcConv(x, w, b)", pads=[1, 1, 1, 1], strides=[2, 1], group=2, **MS)
    got, = evaluate(model([conv], ["x f32 2 5 4 6"], ["y f32 ? ? ? ?"], {"w": w, "b": b}), {"x": X})
    want = F.conv2d(torch.tensor(X).permute(0, 3, 1, 2), torch.tensor(w).permute(0, 3, 1, 2),
                    torch.tensor(b), (2, 1), 1, 1, 2).permute(0, 2, 3, 1)
    np.testing.assert_allclose(got, want.numpy(), rtol=1e-4, atol=1e-5)


def test_norms_of_groups() -> None:
    for silu in (0, 1):
        call = node("y = GroupNorm(x, g, b)", groups=3, activation=silu, **MS)
        got, = evaluate(model([call], ["x f32 2 5 4 6"], ["y f32 2 5 4 6"], {"g": G, "b": B}),
                        {"x": X})
        np.testing.assert_allclose(got, norm(X, bool(silu)), rtol=1e-4, atol=1e-5)
    first = node("y = GroupNorm(x, g, b)", groups=3, activation=0, channels_last=0, **MS)
    turned = np.ascontiguousarray(X.transpose(0, 3, 1, 2))
    got, = evaluate(model([first], ["x f32 2 6 5 4"], ["y f32 2 6 5 4"], {"g": G, "b": B}),
                    {"x": turned})
    np.testing.assert_allclose(got, norm(X, False).transpose(0, 3, 1, 2), rtol=1e-4, atol=1e-5)


def test_norms_of_sums() -> None:
    call = node("y, s = SkipGroupNorm(x, g, b, k, c)", groups=3, activation=1, **MS)
    skip, bias = random(2, 6, seed=3), random(6, seed=4)
    y, s = evaluate(model([call], ["x f32 2 5 4 6"], ["y f32 2 5 4 6", "s f32 2 5 4 6"],
                          {"g": G, "b": B, "k": skip, "c": bias}), {"x": X})
    total = X + skip[:, None, None] + bias
    np.testing.assert_allclose(s, total, rtol=1e-5)
    np.testing.assert_allclose(y, norm(total, True), rtol=1e-4, atol=1e-5)


def test_biases() -> None:
    x, bias = random(2, 3, 8), random(8, seed=1)
    gated, = evaluate(model([node("y = BiasSplitGelu(x, b)", **MS)], ["x f32 2 3 8"],
                            ["y f32 2 3 4"], {"b": bias}), {"x": x})
    total = torch.tensor(x + bias)
    np.testing.assert_allclose(gated, (total[..., :4] * F.gelu(total[..., 4:])).numpy(), rtol=1e-4,
                               atol=1e-6)
    plain, = evaluate(model([node("y = BiasAdd(x, b, x)", **MS)], ["x f32 2 3 8"], ["y f32 2 3 8"],
                            {"b": bias}), {"x": x})
    np.testing.assert_allclose(plain, x + bias + x, rtol=1e-6)
