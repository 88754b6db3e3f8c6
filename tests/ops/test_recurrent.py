"""LSTM, GRU and RNN against torch's modules, with gradients (torch's gates reordered to ONNX's)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from graphtool import ops as o
from tests.torch_oracle import agree, normal

T, B, IN, H = 4, 2, 3, 5
LSTM_ORDER, GRU_ORDER = (0, 3, 1, 2), (1, 0, 2)  # torch i f g o → i o f c; torch r z n → z r h


def gates(x: np.ndarray[Any, Any], order: tuple[int, ...]) -> np.ndarray[Any, Any]:
    parts = np.split(x, len(order), 0)
    return np.concatenate([parts[i] for i in order], 0)


def packed(module: Any, order: tuple[int, ...], directions: int) -> list[np.ndarray[Any, Any]]:
    """torch's parameters as w, r and bias."""
    w, r, b = [], [], []
    for d in range(directions):
        wi, ri, bi, bh = (p.detach().numpy() for p in module._flat_weights[4 * d:4 * d + 4])
        w.append(gates(wi, order))
        r.append(gates(ri, order))
        b.append(np.concatenate([gates(bi, order), gates(bh, order)]))
    return [np.stack(x) for x in (w, r, b)]


@pytest.mark.parametrize("directions", [1, 2])
@pytest.mark.parametrize("kind", ["lstm", "gru", "rnn"])
def test_as_torch(kind: str, directions: int) -> None:
    torch.manual_seed(0)
    cls = {"lstm": torch.nn.LSTM, "gru": torch.nn.GRU, "rnn": torch.nn.RNN}[kind]
    order = {"lstm": LSTM_ORDER, "gru": GRU_ORDER, "rnn": (0,)}[kind]
    module = cls(IN, H, bidirectional=directions == 2).double()
    direction = "bidirectional" if directions == 2 else "forward"
    more = {"linear_before_reset": True} if kind == "gru" else {}
    w, r, bias = packed(module, order, directions)
    states = [normal(directions, B, H, seed=i) for i in range(2 if kind == "lstm" else 1)]

    def ours(x: Any, *s: Any) -> Any:
        c = x.builder.constant
        return getattr(o, kind)(x, c(w), c(r), c(bias), *s, direction=direction, **more)

    def theirs(x: Any, *s: Any) -> Any:
        y, last = module(x, s if kind == "lstm" else s[0])
        y = y.reshape(T, B, directions, H).transpose(1, 2)
        return (y, *last) if kind == "lstm" else (y, last)
    agree(ours, theirs, [normal(T, B, IN), *states])


@pytest.mark.parametrize("kind", ["lstm", "gru", "rnn"])
def test_reverse_is_forward_on_the_reversed(kind: str) -> None:
    n = {"lstm": 4, "gru": 3, "rnn": 1}[kind] * H
    x, w, r = normal(T, B, IN), normal(1, n, IN), normal(1, n, H)
    forward = getattr(o, kind)(x[::-1].copy(), w, r)
    back = getattr(o, kind)(x, w, r, direction="reverse")
    np.testing.assert_allclose(back[0], forward[0][::-1])
    np.testing.assert_allclose(back[1], forward[1])


def test_gru_resets_before_the_product() -> None:
    x, w, r, h = normal(1, 1, 1), normal(1, 3, 1), normal(1, 3, 1), normal(1, 1, 1)
    wz, wr, wn = w[0, :, 0] * x[0, 0, 0]
    rz, rr, rn = r[0, :, 0]
    h0 = h[0, 0, 0]
    z, reset = 1 / (1 + np.exp(-(wz + rz * h0))), 1 / (1 + np.exp(-(wr + rr * h0)))
    want = (1 - z) * np.tanh(wn + rn * (reset * h0)) + z * h0
    np.testing.assert_allclose(o.gru(x, w, r, None, h)[1].item(), want)
