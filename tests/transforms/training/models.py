"""Small torch models, and how to run a training graph's steps in the evaluator."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import nn

from graphtool import interp
from graphtool.ir.graph import Module
from graphtool.ir.text import value_names

Array = np.ndarray[Any, Any]


def mlp() -> tuple[nn.Module, torch.Tensor]:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 5)), torch.randn(8, 6)


def cnn() -> tuple[nn.Module, torch.Tensor]:
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(1, 4, 3, padding=1, bias=False), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(4, 8, 3, stride=2, padding=1), nn.ReLU(), nn.Flatten(),
        nn.Linear(32, 5)), torch.randn(8, 1, 8, 8)


def steps(module: Module, batches: list[dict[str, Array]], lr: float) -> tuple[
        list[float], dict[str, Array]]:
    """The losses of the steps and the state after them, by the evaluator."""
    names = value_names(module.graph)
    inputs = [names[v] for v in module.graph.inputs]
    state: dict[str, Array] = {}
    for _, i in module.donations:
        t = module.graph.inputs[i].type
        state[inputs[i]] = (module.initial[i].source if i in module.initial
                            else np.zeros([int(d) for d in t.shape], t.dtype.numpy))
    kind = next(v.type.dtype.numpy for v in module.graph.inputs if names[v] == "lr")
    losses = []
    for batch in batches:
        out = interp.run(module, {**batch, **state, "lr": np.asarray(lr, kind)})
        losses.append(float(out["loss"]))
        state = {inputs[i]: out[module.output_names[o]] for o, i in module.donations}
    return losses, state
