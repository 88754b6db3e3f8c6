"""Gradients of recurrent layers: compiled ones against torch, and as large for any length."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import graphtool
from graphtool.transforms.training import Recipe, training

T, B, IN, H = 6, 5, 4, 7


class Layers(nn.Module):
    """All kinds of recurrent layers side by side, with first states given and left out."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(IN, H, num_layers=2, bidirectional=True)
        self.gru = nn.GRU(IN, H, bidirectional=True)
        self.tanh, self.relu = nn.RNN(IN, H), nn.RNN(IN, H, nonlinearity="relu", bias=False)

    def forward(self, x: Any, h: Any, c: Any, g: Any) -> Any:
        y, (hn, cn) = self.lstm(x, (h, c))
        z, gn = self.gru(x, g)
        return torch.cat([a.flatten() for a in (y, hn, cn, z, gn, *self.tanh(x),
                                                self.relu(x)[0])]).square().sum()


def test_gradients_of_all_layers_as_torch(tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = Layers()
    xs = [torch.randn(T, B, IN), *(torch.randn(d, B, H) for d in (4, 4, 2))]
    module = graphtool.import_model(model, tuple(xs))
    names = [*(n for n, _ in model.named_parameters()), *module_inputs(module)]
    joint = training(module, Recipe(module.output_names[0], wrt=names))
    graphtool.build(joint, tmp_path / "b")
    found = graphtool.load(tmp_path / "b")(**dict(zip(module_inputs(module), (
        x.numpy() for x in xs), strict=True)))
    xs = [x.requires_grad_() for x in xs]
    model(*xs).backward()
    want = {**{n: p.grad for n, p in model.named_parameters()},
            **{n: x.grad for n, x in zip(module_inputs(module), xs, strict=True)}}
    for n, g in want.items():
        np.testing.assert_allclose(found[f"grad.{n}"], g.numpy(), rtol=1e-3, atol=1e-4, err_msg=n)


def module_inputs(module: Any) -> list[str]:
    return [v.hint for v in module.graph.inputs]


class First(nn.Module):
    """A layer's results of all steps, without its last states."""

    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self.layer = layer

    def forward(self, x: Any) -> Any:
        return self.layer(x)[0]


@pytest.mark.part(3)
@pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN"])
def test_a_longer_sequence_has_no_more_nodes(kind: str) -> None:
    def size(steps: int) -> int:
        layer = First(getattr(nn, kind)(IN, H))
        module = graphtool.import_model(layer, (torch.randn(steps, B, IN),))
        joint = training(module, Recipe("mse"))
        return len(graphtool.optimize(joint).graph.nodes)
    assert size(4) == size(400)
