"""A multilayer perceptron, 784-256-128-10, the size of the MNIST textbook example."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class MLP(nn.Module):
    """float32 x [B, 784] to float32 logits [B, 10]."""

    def __init__(self) -> None:
        super().__init__()
        self.fc1 = nn.Linear(784, 256)
        self.fc2 = nn.Linear(256, 128)
        self.fc3 = nn.Linear(128, 10)

    def forward(self, x: Tensor) -> Tensor:
        x = torch.relu(self.fc1(x))
        x = torch.relu(self.fc2(x))
        logits: Tensor = self.fc3(x)
        return logits


def model() -> MLP:
    """The network in eval mode; the same weights at every call."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return MLP().eval()


def inputs() -> tuple[Tensor]:
    """One flattened image of noise in 0..1, float32 [1, 784]; the same at every call."""
    return (torch.rand(1, 784, generator=torch.Generator().manual_seed(1)),)
