"""Whole models: a loss and every parameter's gradient against torch, in float64."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from graphtool import api, autodiff, dtypes
from graphtool import ops as o
from graphtool.interp import Setting, evaluate_graph
from graphtool.ir.graph import Graph, TensorType
from graphtool.ir.trace import inline, trace

CNN = nn.Sequential(
    nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2),
    nn.Conv2d(4, 8, 3, stride=2, padding=1, groups=2), nn.GELU(), nn.AdaptiveAvgPool2d(1),
    nn.Flatten(), nn.Linear(8, 10))
ENCODER = nn.Sequential(
    nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0, batch_first=True, norm_first=True),
    nn.Flatten(), nn.Linear(80, 10))


def with_loss(graph: Graph) -> Graph:
    """The model with cross entropy behind it; the labels are a further input."""
    def step(x: Any, labels: Any) -> Any:
        (logits,) = inline(x.builder, graph, [x])
        return o.cross_entropy(logits, labels)
    batch = graph.inputs[0].type.shape[0]
    return trace(step, [graph.inputs[0].type, TensorType(dtypes.int64, (batch,))])


@pytest.mark.parametrize(("model", "shape"), [(CNN, (4, 1, 8, 8)), (ENCODER, (4, 5, 16))],
                         ids=["cnn", "encoder"])
def test_a_training_step_as_torch(model: nn.Module, shape: tuple[int, ...]) -> None:
    torch.manual_seed(0)
    model = model.eval().float()
    x, labels = torch.randn(shape), torch.randint(0, 10, shape[:1])
    graph = with_loss(api.import_model(model, (x,)).graph)
    params = [n.outputs[0] for n in graph.nodes
              if n.op.name == "constant" and n.attrs["param"] and n.outputs[0].type.dtype.is_float]
    joint = autodiff.grad(graph, 0, params)
    loss, *grads = evaluate_graph(joint, [x.double().numpy(), labels.numpy()],
                                  Setting({}, dtypes.float64))
    model.double()
    want = nn.functional.cross_entropy(model(x.double()), labels)
    want.backward()  # type: ignore[no-untyped-call]
    np.testing.assert_allclose(loss, want.item(), rtol=1e-12)
    by_name = {n: p.grad for n, p in model.named_parameters()}
    found = {v.hint.lstrip("@"): g for v, g in zip(params, grads, strict=True)}
    for name, g in by_name.items():
        assert g is not None
        np.testing.assert_allclose(found[name], g.numpy(), rtol=1e-9, atol=1e-12)
