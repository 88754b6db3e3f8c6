"""Whole models: a loss and every parameter's gradient against torch, in float64."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import graphtool
from graphtool import dtypes, transforms
from graphtool import ops as o
from graphtool.interp import Setting, evaluate_graph
from graphtool.ir.graph import Graph, TensorType
from graphtool.ir.replay import inline
from graphtool.ir.trace import trace

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
    graph = with_loss(graphtool.import_model(model, (x,)).graph)
    params = [n.outputs[0] for n in graph.nodes
              if n.op.name == "constant" and n.attrs["param"] and n.outputs[0].type.dtype.is_float]
    joint = transforms.grad(graph, 0, params)
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


# ---- the zoo's kinds of models -----------------------------------------------------------------

class Recurrent(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.r, self.o = nn.LSTM(6, 8, 2, batch_first=True, bidirectional=True), nn.Linear(16, 5)

    def forward(self, x: torch.Tensor) -> Any:
        return self.o(self.r(x)[0][:, -1])


class Lenet(nn.Sequential):
    def __init__(self) -> None:
        super().__init__(nn.Conv2d(1, 6, 5, padding=2), nn.Tanh(), nn.AvgPool2d(2),
                         nn.Conv2d(6, 16, 5), nn.Tanh(), nn.AvgPool2d(2), nn.Flatten(),
                         nn.Linear(400, 84), nn.Tanh(), nn.Linear(84, 10))


class Unet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.down, self.low = nn.Conv2d(3, 8, 3, padding=1), nn.Conv2d(8, 16, 3, padding=1)
        self.norm, self.up = nn.GroupNorm(4, 16), nn.ConvTranspose2d(16, 8, 2, 2)
        self.out = nn.Conv2d(16, 2, 1)

    def forward(self, x: torch.Tensor) -> Any:
        high = self.down(x).relu()
        low = nn.functional.silu(self.norm(self.low(nn.functional.max_pool2d(high, 2))))
        return self.out(torch.cat([self.up(low), high], 1))


def needed(package: str) -> Any:
    """The package, also where torchvision was built for another torch."""
    from benchmarks.models.vision import declare_operators
    declare_operators()
    return pytest.importorskip(package)


def vision(name: str, **options: Any) -> tuple[nn.Module, torch.Tensor]:
    torchvision = needed("torchvision")
    return getattr(torchvision.models, name)(weights=None, **options), torch.randn(2, 3, 64, 64)


def vit() -> tuple[nn.Module, torch.Tensor]:
    torchvision = needed("torchvision")
    model = torchvision.models.VisionTransformer(32, 8, 2, 2, 32, 64, num_classes=10)
    nn.init.normal_(model.heads.head.weight)  # zeros, and with them no gradient behind
    return model, torch.randn(2, 3, 32, 32)


def language(name: str, **options: Any) -> tuple[nn.Module, torch.Tensor]:
    transformers = needed("transformers")
    config = getattr(transformers, f"{name}Config")(vocab_size=50, **options)
    heads = {"Bert": "BertModel", "GPT2": "GPT2LMHeadModel", "Llama": "LlamaForCausalLM"}
    model = getattr(transformers, heads[name])(config)

    class Logits(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(self, ids: torch.Tensor) -> Any:
            return self.model(ids, return_dict=False)[0]
    return Logits(), torch.randint(0, 50, (2, 7))


_WIDE = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4,
         "intermediate_size": 48}
SMALL: dict[str, Any] = {
    "lenet": lambda: (Lenet(), torch.randn(2, 1, 28, 28)),
    "lstm": lambda: (Recurrent(), torch.randn(3, 4, 6)),
    "unet": lambda: (Unet(), torch.randn(2, 3, 16, 16))}
LARGE: dict[str, Any] = {
    "resnet18": lambda: vision("resnet18"), "mobilenet": lambda: vision("mobilenet_v2"),
    "convnext": lambda: vision("convnext_tiny"), "vit": vit,
    "bert": lambda: language("Bert", **_WIDE), "llama": lambda: language(
        "Llama", num_key_value_heads=2, **_WIDE),
    "gpt2": lambda: language("GPT2", n_embd=32, n_layer=2, n_head=4, n_positions=16)}


@pytest.mark.parametrize("name", [*SMALL, *(pytest.param(n, marks=pytest.mark.slow)
                                            for n in LARGE)])
def test_every_gradient_of_a_model(name: str) -> None:
    torch.manual_seed(0)
    model, x = {**SMALL, **LARGE}[name]()
    model = model.eval()
    graph = graphtool.import_model(model, (x,)).graph

    def squared(x: Any) -> Any:
        y = inline(x.builder, graph, [x])[0]
        return o.reduce_mean(y * y, axes=tuple(range(y.ndim)))
    whole = trace(squared, [graph.inputs[0].type])
    params = [n.outputs[0] for n in whole.nodes
              if n.op.name == "constant" and n.attrs["param"] and n.outputs[0].type.dtype.is_float]
    joint = transforms.grad(whole, 0, params)
    arrays = [x.double().numpy() if x.is_floating_point() else x.numpy()]
    loss, *grads = evaluate_graph(joint, arrays, Setting({}, dtypes.float64))
    model.double()
    y = model(x.double() if x.is_floating_point() else x)
    y.square().mean().backward()
    np.testing.assert_allclose(loss.item(), y.square().mean().item(), rtol=1e-6)
    found = {v.hint.lstrip("@"): g for v, g in zip(params, grads, strict=True)}
    for key, p in model.named_parameters():
        if p.grad is not None:
            # angles and constants that a model computes in float32 whatever its type
            np.testing.assert_allclose(found[key], p.grad.numpy(), rtol=1e-6, err_msg=key,
                                       atol=1e-6 * max(float(p.grad.abs().max()), 1e-3))
