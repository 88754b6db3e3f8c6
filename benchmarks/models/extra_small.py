"""More small models in plain torch: recurrent, over time, over vectors, tiny images, one block."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import torch
from torch import Tensor, nn

from benchmarks.models.dense import conv

Sample = tuple[nn.Module, tuple[Tensor, ...]]


class States(nn.Module):
    """The states of a recurrent layer over all steps, and a head on the last one."""

    def __init__(self, layer: nn.Module, width: int, classes: int) -> None:
        super().__init__()
        self.layer, self.head = layer, nn.Linear(width, classes)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.head(self.layer(x)[0][:, -1])
        return out


class Dilated(nn.Module):
    """A residual block of two dilated convolutions over time that see the past only."""

    def __init__(self, inputs: int, outputs: int, dilation: int) -> None:
        super().__init__()
        self.pad = nn.ConstantPad1d((2 * dilation, 0), 0.0)
        self.first = nn.Conv1d(inputs, outputs, 3, dilation=dilation)
        self.second = nn.Conv1d(outputs, outputs, 3, dilation=dilation)
        self.skip = nn.Conv1d(inputs, outputs, 1) if inputs != outputs else nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        y = self.first(self.pad(x)).relu()
        out: Tensor = (self.second(self.pad(y)).relu() + self.skip(x)).relu()
        return out


def _tcn() -> Sample:
    widths = (8, 32, 32, 64, 64)
    blocks = [Dilated(i, o, 1 << k) for k, (i, o) in enumerate(pairwise(widths))]
    return nn.Sequential(*blocks, nn.Conv1d(64, 4, 1)), (torch.randn(1, 8, 400),)


def _dense(widths: tuple[int, ...], rows: int,
           act: Callable[[], nn.Module] = nn.ReLU) -> Callable[[], Sample]:
    def make() -> Sample:
        layers: list[nn.Module] = []
        for inputs, outputs in pairwise(widths):
            layers += [nn.Linear(inputs, outputs), act()]
        return nn.Sequential(*layers[:-1]), (torch.randn(rows, widths[0]),)
    return make


def _conv_autoencoder() -> Sample:
    model = nn.Sequential(
        conv(1, 16, 3, 2), conv(16, 32, 3, 2), nn.Conv2d(32, 64, 7), nn.ReLU(),
        nn.ConvTranspose2d(64, 32, 7), nn.ReLU(),
        nn.ConvTranspose2d(32, 16, 3, 2, 1, 1), nn.ReLU(),
        nn.ConvTranspose2d(16, 1, 3, 2, 1, 1), nn.Sigmoid())
    return model, (torch.rand(1, 1, 28, 28),)


def _cnn_32() -> Sample:
    model = nn.Sequential(
        conv(3, 32), conv(32, 32), nn.MaxPool2d(2), conv(32, 64), conv(64, 64), nn.MaxPool2d(2),
        conv(64, 128), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(128, 10))
    return model, (torch.randn(1, 3, 32, 32),)


def _attention() -> Sample:
    layer = nn.TransformerEncoderLayer(64, 4, 128, activation="gelu", batch_first=True)
    model = nn.Sequential(layer, nn.Linear(64, 16))
    return model, (torch.randn(1, 16, 64),)


MODELS = {
    "gru": lambda: (States(nn.GRU(40, 96, batch_first=True), 96, 12), (torch.randn(1, 50, 40),)),
    "rnn_b8": lambda: (States(nn.RNN(32, 64, 2, batch_first=True), 64, 5),
                       (torch.randn(8, 30, 32),)),
    "tcn": _tcn,
    "autoencoder": _dense((784, 128, 64, 12, 64, 128, 784), 1),
    "conv_autoencoder": _conv_autoencoder,
    "cnn_32": _cnn_32,
    "mlp_tiny": _dense((16, 64, 64, 4), 1, nn.Tanh),
    "mlp_wide_b16": _dense((512, 1024, 1024, 512, 10), 16, nn.GELU),
    "attention_tiny": _attention,
}
