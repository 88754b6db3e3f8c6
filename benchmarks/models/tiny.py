"""The four networks of MLPerf Tiny v1, by its public definitions, with seeded weights: keywords
(DS-CNN), visual wake words (MobileNet v1, a quarter of the channels), images (ResNet-8), and
anomalies (an autoencoder). And a streaming wake word, as v1.3 has one, of our own definition: the
window is 60 frames of 40 features, and no layer pads the time."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import torch
from torch import nn


def _unit(inputs: int, outputs: int, size: Any, stride: Any = 1, padding: Any = 0,
          groups: int = 1, active: bool = True) -> nn.Sequential:
    """A convolution, a batch norm, and mostly a relu."""
    parts = [nn.Conv2d(inputs, outputs, size, stride, padding, groups=groups, bias=False),
             nn.BatchNorm2d(outputs), nn.ReLU()]
    return nn.Sequential(*parts[:3 if active else 2])


def _below(*pads: int) -> nn.Module:
    """Padding as a framework with "same" adds it: more below and at the right."""
    return nn.ZeroPad2d(pads)  # left, right, top, bottom


class _Pooled(nn.Module):
    """A body, the mean of its image, and the probabilities of the classes."""

    def __init__(self, body: nn.Module, channels: int, classes: int) -> None:
        super().__init__()
        self.body, self.head = body, nn.Linear(channels, classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.softmax(self.head(self.body(x).mean((2, 3))), 1)


class _Residual(nn.Module):
    """Two convolutions of 3×3, and past them the input, through one of 1×1 if the size changes."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        same = inputs == outputs
        self.first = _unit(inputs, outputs, 3, 1, 1) if same else nn.Sequential(
            _below(0, 1, 0, 1), _unit(inputs, outputs, 3, 2))
        self.second = _unit(outputs, outputs, 3, 1, 1, active=False)
        self.past = nn.Identity() if same else nn.Conv2d(inputs, outputs, 1, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.second(self.first(x)) + self.past(x))


def kws() -> nn.Module:
    body = [_below(1, 1, 4, 5), _unit(1, 64, (10, 4), 2)]
    for _ in range(4):
        body += [_unit(64, 64, 3, 1, 1, 64), _unit(64, 64, 1)]
    return _Pooled(nn.Sequential(*body), 64, 12)


def vww() -> nn.Module:
    body = [_below(0, 1, 0, 1), _unit(3, 8, 3, 2)]
    channels = 8
    for outputs in (16, -32, 32, -64, 64, -128, *(128,) * 5, -256, 256):  # < 0: a stride of 2
        if outputs < 0:
            body += [_below(0, 1, 0, 1), _unit(channels, channels, 3, 2, 0, channels)]
        else:
            body.append(_unit(channels, channels, 3, 1, 1, channels))
        body.append(_unit(channels, abs(outputs), 1))
        channels = abs(outputs)
    return _Pooled(nn.Sequential(*body), channels, 2)


def ic() -> nn.Module:
    return _Pooled(nn.Sequential(_unit(3, 16, 3, 1, 1), _Residual(16, 16), _Residual(16, 32),
                                 _Residual(32, 64)), 64, 10)


def ad() -> nn.Module:
    widths = (640, 128, 128, 128, 128, 8, 128, 128, 128, 128)
    layers: list[nn.Module] = []
    for inputs, outputs in pairwise(widths):
        layers += [nn.Linear(inputs, outputs), nn.BatchNorm1d(outputs), nn.ReLU()]
    return nn.Sequential(*layers, nn.Linear(widths[-1], widths[0]))


def sww() -> nn.Module:
    body = [_unit(40, 64, (3, 1), (2, 1))]
    for _ in range(4):
        body += [_unit(64, 64, (5, 1), 1, 0, 64), _unit(64, 64, 1)]
    return _Pooled(nn.Sequential(*body), 64, 3)


STEPS = {"sww": 2}  # the axis of time of networks that also run step by step
MODELS: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...]]] = {
    "kws": (kws, (1, 49, 10)), "vww": (vww, (3, 96, 96)), "ic": (ic, (3, 32, 32)),
    "ad": (ad, (640,)), "sww": (sww, (40, 60, 1))}


def made(name: str, examples: int = 32) -> tuple[nn.Module, torch.Tensor]:
    """The network, whose norms have seen random examples, and such examples."""
    torch.manual_seed(0)
    make, shape = MODELS[name]
    model = make().train()
    with torch.no_grad():
        for _ in range(20):
            model(torch.randn(32, *shape))
    return model.eval(), torch.randn(examples, *shape)
