"""Distributions of torch in a loss: their checks of arguments are off while a model is captured."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
import torch.distributions as d
from torch import Tensor, nn

import graphtool
from graphtool.importers import import_source
from graphtool.verify.imports import check_import


class Likelihoods(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.a = nn.Linear(3, 4)

    def forward(self, x: Tensor) -> Tensor:
        p = self.a(x)
        one = torch.ones_like(p)
        found = (d.Normal(p[:, :2], p[:, 2:].exp()).log_prob(p[:, :2] * 2).sum(),
                 d.Categorical(logits=p).entropy().sum(),
                 d.Independent(d.Laplace(p, p.exp()), 1).log_prob(p * 2).sum(),
                 d.kl_divergence(d.Normal(p, p.exp()), d.Normal(one, one)).sum(),
                 d.Bernoulli(logits=p).log_prob((p > 0).to(p.dtype)).sum(),
                 d.Beta(p.exp(), p.exp() + 1).log_prob(torch.sigmoid(p)).sum(),
                 d.TransformedDistribution(d.Normal(p, one), [d.TanhTransform()]).log_prob(
                     torch.tanh(p) * 0.9).sum(),
                 d.MixtureSameFamily(d.Categorical(logits=p), d.Normal(p, one)).log_prob(
                     p[:, 0]).sum())
        return torch.stack(found).sum()


def test_gradients_are_torchs_and_the_checks_are_back() -> None:
    torch.manual_seed(0)
    model, x = Likelihoods().double(), torch.randn(5, 3).double()
    module = graphtool.import_model(model, (x,))
    step = graphtool.grad(module, graphtool.Recipe(module.output_names[0]))
    feeds = {v.hint: x.numpy() for v in module.graph.inputs}
    out = graphtool.evaluate(step, {n: feeds[n] for n in feeds})
    model(x).backward()
    assert model.a.weight.grad is not None
    np.testing.assert_allclose(out["grad.a.weight"], model.a.weight.grad.numpy(), rtol=1e-6)
    assert d.Distribution._validate_args


def test_an_import_is_compared_where_the_checks_would_fail(tmp_path: Path) -> None:
    file = tmp_path / "m.py"
    file.write_text(WIDE)
    module = import_source(f"{file}:model")
    assert check_import(f"{file}:model", module).ok


WIDE = """
import torch
from torch.distributions import Normal

def model(x, s):
    return Normal(x, s).log_prob(x + 1).sum()

inputs = (torch.ones(3), torch.ones(3))
"""
