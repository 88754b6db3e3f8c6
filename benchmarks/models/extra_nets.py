"""More networks in plain torch, of kinds that the others are not: over waves, factorised, with
normalised instances or groups, dilated, depthwise at a batch.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from benchmarks.models.dense import conv

Sample = tuple[nn.Module, tuple[Tensor, ...]]


class Residual(nn.Module):
    """x plus what the layers make of it; a projection where the width changes."""

    def __init__(self, *layers: nn.Module, skip: nn.Module | None = None) -> None:
        super().__init__()
        self.body, self.skip = nn.Sequential(*layers), skip or nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.skip(x) + self.body(x)
        return out


# ---- separation of speakers: a filter bank, dilated depthwise blocks, masks ----------------------

def _dilated(width: int, hidden: int, dilation: int) -> Residual:
    return Residual(
        nn.Conv1d(width, hidden, 1), nn.PReLU(), nn.GroupNorm(1, hidden),
        nn.Conv1d(hidden, hidden, 3, padding=dilation, dilation=dilation, groups=hidden),
        nn.PReLU(), nn.GroupNorm(1, hidden), nn.Conv1d(hidden, width, 1))


class Separation(nn.Module):
    """A wave [1, 1, T] to two, of 128 filters."""

    def __init__(self) -> None:
        super().__init__()
        self.encode, self.decode = nn.Conv1d(1, 128, 16, 8), nn.ConvTranspose1d(128, 1, 16, 8)
        self.masks = nn.Sequential(
            nn.GroupNorm(1, 128), nn.Conv1d(128, 64, 1),
            *(_dilated(64, 128, 1 << k) for k in range(6)), nn.Conv1d(64, 256, 1), nn.Sigmoid())

    def forward(self, x: Tensor) -> Tensor:
        filters = self.encode(x).relu()
        masks = self.masks(filters).view(-1, 2, 128, filters.shape[-1])
        out: Tensor = self.decode((masks * filters[:, None]).flatten(0, 1))
        return out


# ---- heart beats: long filters over time --------------------------------------------------------

def _beats() -> Sample:
    def block(inputs: int, outputs: int) -> Residual:
        return Residual(
            nn.Conv1d(inputs, outputs, 15, 2, 7, bias=False), nn.BatchNorm1d(outputs), nn.ReLU(),
            nn.Conv1d(outputs, outputs, 15, 1, 7, bias=False), nn.BatchNorm1d(outputs),
            skip=nn.Conv1d(inputs, outputs, 1, 2))
    model = nn.Sequential(block(12, 32), block(32, 64), block(64, 64), block(64, 128),
                          nn.AdaptiveAvgPool1d(1), nn.Flatten(), nn.Linear(128, 9))
    return model, (torch.randn(1, 12, 2000),)


# ---- segmentation by factorised, dilated convolutions -------------------------------------------

def _factorised(width: int, dilation: int) -> nn.Sequential:
    def pair(d: int) -> list[nn.Module]:
        return [nn.Conv2d(width, width, (3, 1), padding=(d, 0), dilation=(d, 1)), nn.ReLU(),
                nn.Conv2d(width, width, (1, 3), padding=(0, d), dilation=(1, d), bias=False),
                nn.BatchNorm2d(width)]
    return nn.Sequential(Residual(*pair(1), nn.ReLU(), *pair(dilation)), nn.ReLU())


def _segments() -> Sample:
    def up(inputs: int, outputs: int) -> nn.Sequential:
        return nn.Sequential(nn.ConvTranspose2d(inputs, outputs, 3, 2, 1, 1),
                             nn.BatchNorm2d(outputs), nn.ReLU())
    model = nn.Sequential(
        conv(3, 16, 3, 2), conv(16, 64, 3, 2), *(_factorised(64, 1) for _ in range(3)),
        conv(64, 128, 3, 2), *(_factorised(128, d) for d in (2, 4, 8, 2)),
        up(128, 64), _factorised(64, 1), up(64, 16), nn.ConvTranspose2d(16, 20, 2, 2))
    return model, (torch.randn(1, 3, 192, 256),)


# ---- style transfer: reflected edges, normalised instances --------------------------------------

def _reflected(inputs: int, outputs: int, kernel: int, stride: int = 1) -> nn.Sequential:
    return nn.Sequential(
        nn.ReflectionPad2d(kernel // 2), nn.Conv2d(inputs, outputs, kernel, stride),
        nn.InstanceNorm2d(outputs, affine=True))


def _style() -> Sample:
    def block() -> Residual:
        return Residual(_reflected(128, 128, 3), nn.ReLU(), _reflected(128, 128, 3))
    model = nn.Sequential(
        _reflected(3, 32, 9), nn.ReLU(), _reflected(32, 64, 3, 2), nn.ReLU(),
        _reflected(64, 128, 3, 2), nn.ReLU(), *(block() for _ in range(3)),
        nn.Upsample(scale_factor=2), _reflected(128, 64, 3), nn.ReLU(),
        nn.Upsample(scale_factor=2), _reflected(64, 32, 3), nn.ReLU(),
        nn.ReflectionPad2d(4), nn.Conv2d(32, 3, 9))
    return model, (torch.randn(1, 3, 160, 160),)


# ---- a step of diffusion: group norms, the time, attention over pixels --------------------------

class Timed(nn.Module):
    """Two convolutions with group norms, between which the time is added."""

    def __init__(self, inputs: int, outputs: int, time: int) -> None:
        super().__init__()
        self.first = nn.Sequential(nn.GroupNorm(8, inputs), nn.SiLU(),
                                   nn.Conv2d(inputs, outputs, 3, 1, 1))
        self.time = nn.Sequential(nn.SiLU(), nn.Linear(time, outputs))
        self.second = nn.Sequential(nn.GroupNorm(8, outputs), nn.SiLU(),
                                    nn.Conv2d(outputs, outputs, 3, 1, 1))
        self.skip = nn.Conv2d(inputs, outputs, 1) if inputs != outputs else nn.Identity()

    def forward(self, x: Tensor, t: Tensor) -> Tensor:
        out: Tensor = self.skip(x) + self.second(self.first(x) + self.time(t)[:, :, None, None])
        return out


class OverPixels(nn.Module):
    """Attention of four heads among all pixels."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.GroupNorm(8, width)
        self.enter, self.leave = nn.Conv2d(width, 3 * width, 1), nn.Conv2d(width, width, 1)

    def forward(self, x: Tensor) -> Tensor:
        n, c, h, w = x.shape
        q, k, v = self.enter(self.norm(x)).view(n, 3, 4, c // 4, h * w).transpose(3, 4).unbind(1)
        y = F.scaled_dot_product_attention(q, k, v).transpose(2, 3).reshape(n, c, h, w)
        out: Tensor = x + self.leave(y)
        return out


class Diffusion(nn.Module):
    """Noise [N, 3, H, W] at times [N] to what is to be taken away."""

    def __init__(self, c: int = 64) -> None:
        super().__init__()
        self.time = nn.Sequential(nn.Linear(c, 4 * c), nn.SiLU(), nn.Linear(4 * c, 4 * c))
        self.enter, self.leave = nn.Conv2d(3, c, 3, 1, 1), nn.Conv2d(c, 3, 3, 1, 1)
        self.down, self.up = nn.Conv2d(c, c, 3, 2, 1), nn.Conv2d(2 * c, c, 3, 1, 1)
        self.outer, self.last = Timed(c, c, 4 * c), Timed(2 * c, c, 4 * c)
        self.inner, self.pixels = Timed(c, 2 * c, 4 * c), OverPixels(2 * c)
        self.width = c

    def forward(self, x: Tensor, t: Tensor) -> Tensor:
        steps = torch.arange(self.width // 2, device=x.device) / (self.width // 2)
        angles = t[:, None] * torch.exp(-math.log(10000) * steps).to(x.dtype)
        time = self.time(torch.cat([angles.sin(), angles.cos()], -1))
        kept = self.outer(self.enter(x), time)
        y = self.pixels(self.inner(self.down(kept), time))
        y = self.up(F.interpolate(y, scale_factor=2))
        out: Tensor = self.leave(self.last(torch.cat([y, kept], 1), time))
        return out


# ---- words heard, words read --------------------------------------------------------------------

def _keywords() -> Sample:
    blocks = [nn.Sequential(nn.Conv2d(64, 64, 3, 1, 1, groups=64, bias=False),
                            nn.BatchNorm2d(64), nn.ReLU(), conv(64, 64, 1)) for _ in range(4)]
    model = nn.Sequential(
        nn.Conv2d(1, 64, (10, 4), (2, 2), (5, 1), bias=False), nn.BatchNorm2d(64), nn.ReLU(),
        *blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 12))
    return model, (torch.randn(16, 1, 49, 10),)


class Lines(nn.Module):
    """An image [N, 1, 32, W] of a line of text to letters, over time."""

    def __init__(self) -> None:
        super().__init__()
        self.look = nn.Sequential(
            conv(1, 32), nn.MaxPool2d(2), conv(32, 64), nn.MaxPool2d(2), conv(64, 128),
            nn.MaxPool2d((2, 1)), conv(128, 256), nn.MaxPool2d((2, 1)), nn.Conv2d(256, 256, (2, 1)))
        self.read = nn.LSTM(256, 128, bidirectional=True, batch_first=True)
        self.head = nn.Linear(256, 37)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.head(self.read(self.look(x).squeeze(2).transpose(1, 2))[0])
        return out.log_softmax(-1)


MODELS = {
    "separation": lambda: (Separation(), (torch.randn(1, 1, 8000),)),
    "beats": _beats,
    "segments_factorised": _segments,
    "style_transfer": _style,
    "diffusion_step": lambda: (Diffusion(), (torch.randn(1, 3, 32, 32), torch.tensor([17.0]))),
    "keywords_b16": _keywords,
    "text_lines": lambda: (Lines(), (torch.randn(1, 1, 32, 128),)),
}
