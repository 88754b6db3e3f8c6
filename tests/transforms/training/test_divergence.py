"""Where runs of equal steps part: a ReLU whose input changes its sign, and Adam on a gradient of 0.

The figures stand in docs/numerics.md. In float64, where neither happens, the runs agree.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import graphtool
from graphtool.transforms.training import Recipe, training
from tests.transforms.training import models

pytestmark = pytest.mark.slow


class Attention(nn.Module):
    """One layer whose keys have a bias, which does not change the result."""

    def __init__(self) -> None:
        super().__init__()
        self.qkv, self.o = nn.Linear(8, 24), nn.Linear(8, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = self.qkv(x).split(8, -1)
        return self.o(torch.softmax(q @ k.transpose(1, 2), -1) @ v).mean(1)


def both(model: nn.Module, optimizer: str, oracle: Any, shape: tuple[int, ...], count: int,
         lr: float) -> tuple[Any, Any, float]:
    """graphtool's state and torch's after the same steps, and how far the losses are apart."""
    kind = next(model.parameters()).dtype
    data = [(torch.randn(shape, dtype=kind), torch.randint(0, 5, shape[:1])) for _ in range(count)]
    module = graphtool.import_model(model, (data[0][0],))
    name = module.graph.inputs[0].hint
    losses, state = models.steps(
        training(module, Recipe("cross_entropy", optimizer=optimizer)),
        [{name: x.numpy(), "y": y.numpy()} for x, y in data], lr)
    steps, want = oracle(model.parameters()), []
    for x, y in data:
        steps.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()  # type: ignore[no-untyped-call]
        steps.step()
        want.append(loss.item())
    return state, {n: p.detach().numpy() for n, p in model.named_parameters()}, float(
        np.abs(np.subtract(losses, want)).max())


def test_adam_moves_a_weight_without_gradient() -> None:
    apart = {}
    for kind in (torch.float32, torch.float64):
        torch.manual_seed(0)
        state, want, curve = both(Attention().to(kind), "adam", lambda p: torch.optim.Adam(p, 1e-2),
                                  (8, 6, 8), 20, 1e-2)
        keys = slice(8, 16)
        apart[kind] = float(np.abs(state["qkv.bias"] - want["qkv.bias"])[keys].max())
        others = max(float(np.abs(np.delete(state[n] - w, np.r_[keys], 0) if n == "qkv.bias" else
                                  state[n] - w).max()) for n, w in want.items())
        limit = 2e-4 if kind is torch.float32 else 1e-10
        assert curve < limit / 10 and others < limit
    assert apart[torch.float32] > 1e-3 > 1e-6 > apart[torch.float64]


@pytest.mark.parametrize(("act", "kind", "limit"), [
    (nn.ReLU, torch.float64, 1e-12), (nn.Tanh, torch.float32, 1e-5)])
def test_smooth_steps_stay_together(act: type[nn.Module], kind: torch.dtype, limit: float) -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(64, 64), act(), nn.Linear(64, 64), act(),
                          nn.Linear(64, 5)).to(kind)
    state, want, _ = both(model, "momentum", lambda p: torch.optim.SGD(p, 0.1, momentum=0.9),
                          (16, 64), 40, 0.1)
    assert max(float(np.abs(state[n] - w).max()) for n, w in want.items()) < limit
