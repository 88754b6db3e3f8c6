"""The norm of the gradients before clipping, against torch, in the evaluator and in C."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import graphtool
from graphtool import dtypes
from graphtool.compile.as_is import build
from graphtool.errors import GraphtoolError
from graphtool.interp import Setting, evaluate_graph
from graphtool.ir.graph import TensorType
from graphtool.ir.trace import trace
from graphtool.train.model import TrainModel
from graphtool.transforms.training import Recipe, training
from graphtool.transforms.training.optimizers import clipped
from tests.transforms.training import models

MORE: dict[str, dict[str, Any]] = {
    "plain": {}, "norm": {"clip_norm": 0.01}, "value": {"clip_value": 1e-3, "clip_norm": 0.5},
    "accumulate": {"accumulate": 2}}


def wanted(model: nn.Module, batches: Any, accumulate: int) -> list[float]:
    """torch's norm after each batch: that of the last whole gradient."""
    out, last = [], 0.0
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    for i, (x, y) in enumerate(batches):
        (nn.functional.cross_entropy(model(x), y) / accumulate).backward()
        if (i + 1) % accumulate == 0:
            grads = [p.grad for p in model.parameters() if p.grad is not None]
            last = float(nn.utils.get_total_norm(grads))
            optimizer.zero_grad()
        out.append(last)
    return out


@pytest.mark.part(2)
@pytest.mark.parametrize("more", MORE.values(), ids=MORE)
def test_the_norm_of_torch(more: dict[str, Any], tmp_path: Path) -> None:
    model, x = models.mlp()
    model, x = model.double(), x.double()
    train = training(graphtool.import_model(model, (x,)),
                     Recipe("cross_entropy", optimizer="sgd", grad_norm=True, **more))
    torch.manual_seed(1)
    batches = [(torch.randn_like(x), torch.randint(0, 5, (8,))) for _ in range(4)]
    name = train.graph.inputs[0].hint
    given = [{name: a.numpy(), "y": b.numpy()} for a, b in batches]
    want = wanted(model, batches, more.get("accumulate", 1))
    found = [models.steps(train, given[:n + 1], 0.0)[1]["grad_norm"] for n in range(4)]
    np.testing.assert_allclose(found, want, rtol=1e-12)
    compiled = TrainModel(build(train, tmp_path / "b"), 1)
    norms = []
    for batch in given:
        compiled.step(batch, 0.0)
        norms.append(compiled.grad_norm)
    np.testing.assert_allclose(np.array(norms, np.float64), want, rtol=1e-12)


def test_nothing_is_computed_unasked() -> None:
    model, x = models.mlp()
    train = training(graphtool.import_model(model, (x,)), Recipe("cross_entropy", optimizer="sgd"))
    assert "grad_norm" not in train.output_names
    assert not any("sqrt" in n.op.name for n in train.graph.nodes)


def test_it_needs_an_optimizer_and_a_free_name() -> None:
    model, x = models.mlp()
    with pytest.raises(GraphtoolError, match="grad_norm") as caught:
        training(graphtool.import_model(model, (x,)), Recipe("cross_entropy", grad_norm=True))
    assert caught.value.code == "GT0624"

    class Own(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.grad_norm = nn.Parameter(torch.ones(6))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x * self.grad_norm
    with pytest.raises(GraphtoolError, match="a parameter 'grad_norm' already") as caught:
        training(graphtool.import_model(Own(), (x,)),
                 Recipe("mse", optimizer="sgd", grad_norm=True))
    assert caught.value.code == "GT0615"


def test_squares_of_halves_do_not_overflow() -> None:
    graph = trace(lambda g: tuple(clipped([g], norm=1.0)), [TensorType(dtypes.float16, (4,))])
    found, = evaluate_graph(graph, [np.full(4, 300, np.float16)], Setting())
    np.testing.assert_allclose(found, 0.5, rtol=1e-3)
