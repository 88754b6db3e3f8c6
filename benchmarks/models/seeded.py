"""Makes a model of the zoo: seeded weights, biases that are not zero, calibrated batch norms."""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm

from benchmarks.models import entry

Tensors = tuple[torch.Tensor, ...]
Definition = Callable[[], tuple[nn.Module, Tensors]]
SEED, BIAS_SEED, BATCH_NORM_SEED = 1234, 99, 7


def build(name: str) -> tuple[nn.Module, Tensors]:
    """The model in inference mode and its inputs; the same numbers in every process."""
    warnings.filterwarnings("ignore")
    module = importlib.import_module(f"benchmarks.models.{entry(name).module}")
    definitions: Mapping[str, Definition] = module.MODELS
    torch.manual_seed(SEED)
    model, inputs = definitions[name]()
    model.eval().requires_grad_(False)
    with torch.no_grad():
        fill_zeros(model)
        calibrate(model, inputs)
    return model, inputs


def fill_zeros(model: nn.Module) -> None:
    """Biases that start at zero, and layer scales near it, would hide faults: make them count."""
    g = torch.Generator().manual_seed(BIAS_SEED)
    for name, p in model.named_parameters():
        if p.abs().max() == 0:
            p.uniform_(-0.05, 0.05, generator=g)
        if name.endswith("layer_scale"):
            p.uniform_(0.1, 0.3, generator=g)


def calibrate(model: nn.Module, inputs: Tensors) -> None:
    """Batch norms take the statistics of one random batch, and scales and biases of their own."""
    norms = [m for m in model.modules() if isinstance(m, _BatchNorm)]
    if not norms:
        return
    g = torch.Generator().manual_seed(BATCH_NORM_SEED)
    for norm in norms:
        norm.reset_running_stats()
        norm.momentum = None  # the plain mean over batches
        norm.train()
    model(*(_batch(t, g) for t in inputs))
    for norm in norms:
        norm.momentum = 0.1
        norm.eval()
        if norm.affine:
            norm.weight.uniform_(0.7, 1.3, generator=g)
            norm.bias.uniform_(-0.2, 0.2, generator=g)


def _batch(like: torch.Tensor, g: torch.Generator, least: int = 4) -> torch.Tensor:
    """At least four samples of the input's kind."""
    if like.is_floating_point():
        return torch.randn((max(least, like.shape[0]), *like.shape[1:]), generator=g)
    return like if like.shape[0] >= least else like.repeat(least, *[1] * (like.ndim - 1))


def flat(outputs: Any) -> list[torch.Tensor]:
    return list(outputs) if isinstance(outputs, (tuple, list)) else [outputs]
