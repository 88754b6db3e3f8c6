"""torch.utils.checkpoint inside a model: the same gradients from less memory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint, checkpoint_sequential

import graphtool
from graphtool.ops.random import state_of
from graphtool.transforms.training import Recipe, training


class Block(nn.Module):
    def __init__(self, rate: float) -> None:
        super().__init__()
        self.a, self.b, self.n = nn.Linear(16, 64), nn.Linear(64, 16), nn.LayerNorm(16)
        self.drop = nn.Dropout(rate)

    def forward(self, x: Any) -> Any:
        return x + self.b(self.drop(torch.nn.functional.gelu(self.a(self.n(x)))))


class Net(nn.Module):
    def __init__(self, kind: str, rate: float = 0.0) -> None:
        super().__init__()
        self.kind, self.blocks = kind, nn.Sequential(*(Block(rate) for _ in range(4)))

    def forward(self, x: Any) -> Any:
        match self.kind:
            case "sequential":
                return checkpoint_sequential(self.blocks, 2, x, use_reentrant=False)
            case "plain":
                return self.blocks(x)
            case "nested":
                return checkpoint(lambda x: self.by_block(x, False), x, use_reentrant=False)
        return self.by_block(x, self.kind == "reentrant")

    def by_block(self, x: Any, reentrant: bool) -> Any:
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=reentrant)
        return x


def joint(kind: str, rate: float = 0.0) -> Any:
    torch.manual_seed(0)
    model = Net(kind, rate).train()
    module = graphtool.import_model(model, (torch.randn(64, 16),))
    return training(module, Recipe("mse")), model


@pytest.mark.part(2)
@pytest.mark.parametrize("kind", ["checkpoint", "reentrant", "sequential", "nested"])
def test_same_gradients_in_a_smaller_arena(kind: str, tmp_path: Path) -> None:
    made, model = joint(kind)
    graphtool.build(made, tmp_path / "b")
    graphtool.build(joint("plain")[0], tmp_path / "plain")
    x, y = torch.randn(64, 16), torch.randn(64, 16)
    found = graphtool.load(tmp_path / "b")(x=x.numpy(), y=y.numpy())
    nn.functional.mse_loss(model(x.requires_grad_()), y).backward()  # reentrant ones want that
    for n, p in model.named_parameters():
        np.testing.assert_allclose(found[f"grad.{n}"], p.grad.numpy(), rtol=1e-3, atol=1e-5)
    assert arena(tmp_path / "b") < 0.8 * arena(tmp_path / "plain") or kind == "nested"
    assert made.meta["recomputed"] >= 10
    assert not any(n.op.name == "checkpoint" for n in made.graph.nodes)


def arena(build: Path) -> int:
    return int(graphtool.load(build).manifest.arena)


def test_dropout_is_the_same_when_computed_again() -> None:
    x, y = (np.random.default_rng(i).normal(size=(64, 16)).astype(np.float32) for i in range(2))
    plain, marked = (graphtool.evaluate(joint(kind, 0.3)[0], {"x": x, "rng": state_of(7), "y": y})
                     for kind in ("plain", "checkpoint"))
    for n, g in plain.items():
        np.testing.assert_allclose(marked[n], g, rtol=1e-5, atol=1e-7)


def test_fx_sees_them_too() -> None:
    module = graphtool.import_model(Net("checkpoint").eval(), (torch.randn(4, 16),), capture="fx")
    assert sum(n.op.name == "checkpoint" for n in module.graph.nodes) == 8


class Branch(nn.Module):
    def forward(self, x: Any) -> Any:
        return torch.cond(x.sum() > 0, torch.sin, torch.cos, (x,))


def test_branches_are_captured_as_ever() -> None:
    module = graphtool.import_model(Branch(), (torch.randn(4),))
    assert any(n.op.name == "cond" for n in module.graph.nodes)


def test_inference_has_no_marks() -> None:
    module = graphtool.import_model(Net("checkpoint").eval(), (torch.randn(4, 16),))
    assert sum(n.op.name == "checkpoint" for n in module.graph.nodes) == 8
    assert not any(n.op.name == "checkpoint" for n in graphtool.optimize(module).graph.nodes)
