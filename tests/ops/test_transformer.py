"""Attention in all its forms and rotary embedding against torch, with gradients."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from graphtool import ops as o
from tests.torch_oracle import agree, normal

Q, K, V = normal(2, 4, 3, 8), normal(2, 4, 5, 8), normal(2, 4, 5, 6)
BOOL = np.array([[1, 0, 1, 1, 0], [0, 0, 0, 0, 1], [1, 1, 1, 1, 1]], bool)


@pytest.mark.parametrize("attrs", [{}, {"causal": True}, {"scale": 0.3}], ids=str)
def test_as_torch(attrs: dict[str, Any]) -> None:
    theirs = {"causal": "is_causal"}
    agree(lambda q, k, v: o.attention(q, k, v, **attrs),
          lambda q, k, v: F.scaled_dot_product_attention(
              q, k, v, **{theirs.get(n, n): a for n, a in attrs.items()}), [Q, K, V])


@pytest.mark.parametrize("mask", [BOOL, normal(3, 5), normal(2, 1, 3, 5), normal(4, 3, 1)],
                         ids=["bool", "float", "per sample", "per head"])
def test_masks_as_torch(mask: Any) -> None:
    agree(o.attention, F.scaled_dot_product_attention, [Q, K, V, mask])


def test_grouped_queries_as_torch() -> None:
    def theirs(q: Any, k: Any, v: Any, *m: Any) -> Any:
        return F.scaled_dot_product_attention(q, k, v, *m, enable_gqa=True)
    agree(o.attention, theirs, [Q, K[:, :2], V[:, :2]])
    agree(o.attention, theirs, [Q, K[:, :2], V[:, :2], BOOL])
    agree(lambda q, k, v: o.attention(q, k, v, causal=True), lambda q, k, v:
          F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True),
          [Q, K[:, :1], V[:, :1]])


def test_softcap() -> None:
    def theirs(q: Any, k: Any, v: Any) -> Any:
        s = torch.tanh(q @ k.transpose(-1, -2) / 8**0.5 / 2.0) * 2.0
        return torch.softmax(s, -1) @ v
    agree(lambda q, k, v: o.attention(q, k, v, softcap=2.0), theirs, [Q, K, V])


@pytest.mark.parametrize("nothing", [np.zeros((3, 5), bool), np.full((3, 5), -np.inf)])
def test_a_row_that_sees_nothing_gives_zero(nothing: Any) -> None:
    assert not o.attention(Q, K, V, nothing).any()


@pytest.mark.parametrize("interleaved", [False, True])
def test_rotary_embedding_turns_by_the_angle(interleaved: bool) -> None:
    angle = normal(5, 3)
    x = normal(2, 5, 8)
    y = o.rotary_embedding(x, np.cos(angle), np.sin(angle), interleaved=interleaved)
    part = (slice(0, 6, 2), slice(1, 6, 2)) if interleaved else (slice(0, 3), slice(3, 6))
    turned = (x[..., part[0]] + 1j * x[..., part[1]]) * np.exp(1j * angle)
    np.testing.assert_allclose(y[..., part[0]], turned.real)
    np.testing.assert_allclose(y[..., part[1]], turned.imag)
    np.testing.assert_array_equal(y[..., 6:], x[..., 6:])


def test_linear_and_embedding_as_torch() -> None:
    agree(o.linear, F.linear, [normal(2, 5, 3), normal(4, 3), normal(4)])
    agree(lambda t, i: o.embedding(t, i), lambda t, i: F.embedding(i, t),
          [normal(5, 3), np.array([[0, 4], [4, 1]])])
