"""A convolutional network for scikit-learn's 8×8 handwritten digits.

The weights are seeded, not trained; `train_digits.py` trains them and writes `digits.onnx`.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

# The first image of the data set, a zero; ink from 0 to 16.
ZERO = (
    (0, 0, 5, 13, 9, 1, 0, 0),
    (0, 0, 13, 15, 10, 15, 5, 0),
    (0, 3, 15, 2, 0, 11, 8, 0),
    (0, 4, 12, 0, 0, 8, 8, 0),
    (0, 5, 8, 0, 0, 9, 8, 0),
    (0, 4, 11, 0, 1, 12, 7, 0),
    (0, 2, 14, 5, 10, 12, 0, 0),
    (0, 0, 6, 13, 10, 0, 0, 0),
)


class Block(nn.Module):
    """3×3 convolution, batch norm, ReLU; keeps height and width."""

    def __init__(self, channels_in: int, channels_out: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(channels_in, channels_out, 3, padding=1, bias=False)
        self.bn = nn.BatchNorm2d(channels_out)

    def forward(self, x: Tensor) -> Tensor:
        return torch.relu(self.bn(self.conv(x)))


class Digits(nn.Module):
    """float32 image [B, 1, 8, 8] in 0..1 to float32 logits [B, 10]."""

    def __init__(self) -> None:
        super().__init__()
        self.block1 = Block(1, 16)
        self.block2 = Block(16, 32)
        self.block3 = Block(32, 64)
        self.pool = nn.MaxPool2d(2)
        self.head = nn.Linear(64 * 2 * 2, 10)

    def forward(self, image: Tensor) -> Tensor:
        x = self.block1(image)
        x = self.pool(self.block2(x))
        x = self.pool(self.block3(x))
        x = torch.flatten(x, 1)
        logits: Tensor = self.head(x)
        return logits


def model() -> Digits:
    """The network in eval mode; the same weights at every call."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return Digits().eval()


def inputs() -> tuple[Tensor]:
    """One image, float32 [1, 1, 8, 8]."""
    return (torch.tensor(ZERO, dtype=torch.float32).reshape(1, 1, 8, 8) / 16,)
