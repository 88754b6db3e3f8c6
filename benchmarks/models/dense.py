"""Convolutional models with images as outputs, in plain torch: a U-Net, a detector, a generator."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional as F


def conv(inputs: int, outputs: int, kernel: int = 3, stride: int = 1,
         act: Callable[[], nn.Module] = nn.ReLU) -> nn.Sequential:
    """Convolution, batch norm, activation."""
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, bias=False),
        nn.BatchNorm2d(outputs), act())


# ---- U-Net: 4 levels, 32 channels at the top ----------------------------------------------------


def _twice(inputs: int, outputs: int) -> nn.Sequential:
    return nn.Sequential(conv(inputs, outputs), conv(outputs, outputs))


class UNet(nn.Module):
    """Image [N, 3, H, W] to two classes a pixel."""

    def __init__(self, width: int = 32) -> None:
        super().__init__()
        levels = [width << i for i in range(4)]
        self.down = nn.ModuleList(_twice(i, o) for i, o in zip([3, *levels], levels, strict=False))
        self.bottom = _twice(levels[-1], 2 * levels[-1])
        self.up = nn.ModuleList(nn.ConvTranspose2d(2 * c, c, 2, 2) for c in reversed(levels))
        self.join = nn.ModuleList(_twice(2 * c, c) for c in reversed(levels))
        self.head = nn.Conv2d(width, 2, 1)

    def forward(self, x: Tensor) -> Tensor:
        kept = []
        for block in self.down:
            x = block(x)
            kept.append(x)
            x = F.max_pool2d(x, 2)
        x = self.bottom(x)
        for up, join in zip(self.up, self.join, strict=True):
            x = join(torch.cat([up(x), kept.pop()], 1))
        out: Tensor = self.head(x)
        return out


# ---- a one-stage detector on 320 × 320 with three scales ----------------------------------------


def _silu(inputs: int, outputs: int, kernel: int = 3, stride: int = 1) -> nn.Sequential:
    return conv(inputs, outputs, kernel, stride, nn.SiLU)


class Residual(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.body = nn.Sequential(_silu(width, width), _silu(width, width))

    def forward(self, x: Tensor) -> Tensor:
        return x + self.body(x)


class Split(nn.Module):
    """Half of the channels go through residual blocks, and every stage is kept and joined."""

    def __init__(self, inputs: int, outputs: int, blocks: int = 1) -> None:
        super().__init__()
        half = outputs // 2
        self.enter = _silu(inputs, outputs, 1)
        self.blocks = nn.ModuleList(Residual(half) for _ in range(blocks))
        self.leave = _silu((2 + blocks) * half, outputs, 1)

    def forward(self, x: Tensor) -> Tensor:
        parts = list(self.enter(x).chunk(2, 1))
        for block in self.blocks:
            parts.append(block(parts[-1]))
        out: Tensor = self.leave(torch.cat(parts, 1))
        return out


class Pyramid(nn.Module):
    """Three poolings in a row, all of them joined."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.enter, self.leave = _silu(width, width // 2, 1), _silu(width * 2, width, 1)

    def forward(self, x: Tensor) -> Tensor:
        parts = [self.enter(x)]
        for _ in range(3):
            parts.append(F.max_pool2d(parts[-1], 5, 1, 2))
        out: Tensor = self.leave(torch.cat(parts, 1))
        return out


class Detector(nn.Module):
    """Image [N, 3, 320, 320] to boxes and class scores [N, 4 + classes, 2100].

    Each side of a box is the expectation of a distribution over `bins` distances.
    """

    def __init__(self, classes: int = 80, w: int = 16, bins: int = 16, size: int = 320) -> None:
        super().__init__()
        self.classes, self.bins = classes, bins
        self.stem = nn.Sequential(_silu(3, w, 3, 2), _silu(w, 2 * w, 3, 2), Split(2 * w, 2 * w))
        self.stage3 = nn.Sequential(_silu(2 * w, 4 * w, 3, 2), Split(4 * w, 4 * w, 2))
        self.stage4 = nn.Sequential(_silu(4 * w, 8 * w, 3, 2), Split(8 * w, 8 * w, 2))
        self.stage5 = nn.Sequential(_silu(8 * w, 16 * w, 3, 2), Split(16 * w, 16 * w),
                                    Pyramid(16 * w))
        self.up4, self.up3 = Split(24 * w, 8 * w), Split(12 * w, 4 * w)
        self.shrink3, self.down4 = _silu(4 * w, 4 * w, 3, 2), Split(12 * w, 8 * w)
        self.shrink4, self.down5 = _silu(8 * w, 8 * w, 3, 2), Split(24 * w, 16 * w)
        widths = (4 * w, 8 * w, 16 * w)
        self.box = nn.ModuleList(_head(c, 64, 4 * bins) for c in widths)
        self.score = nn.ModuleList(_head(c, 80, classes) for c in widths)
        self.register_buffer("distances", torch.arange(bins).float())
        centres, steps = zip(*(_grid(size, step) for step in (8, 16, 32)), strict=True)
        self.register_buffer("centres", torch.cat(centres, 1)[None])
        self.register_buffer("steps", torch.cat(steps, 1)[None])

    def forward(self, x: Tensor) -> Tensor:
        a3 = self.stage3(self.stem(x))
        a4 = self.stage4(a3)
        a5 = self.stage5(a4)
        b4 = self.up4(torch.cat([_twice_as_large(a5), a4], 1))
        b3 = self.up3(torch.cat([_twice_as_large(b4), a3], 1))
        c4 = self.down4(torch.cat([self.shrink3(b3), b4], 1))
        c5 = self.down5(torch.cat([self.shrink4(c4), a5], 1))
        scales = [torch.cat([box(f), score(f)], 1).flatten(2)
                  for f, box, score in zip((b3, c4, c5), self.box, self.score, strict=True)]
        sides, scores = torch.cat(scales, 2).split((4 * self.bins, self.classes), 1)
        return torch.cat([self._boxes(sides), scores.sigmoid()], 1)

    def _boxes(self, sides: Tensor) -> Tensor:
        """Centre and size in pixels, from the distances to the four sides."""
        n, _, places = sides.shape
        shares = sides.view(n, 4, self.bins, places).softmax(2)
        near, far = (shares * self.distances.view(1, 1, -1, 1)).sum(2).chunk(2, 1)
        low, high = self.centres - near, self.centres + far
        return torch.cat([(low + high) / 2, high - low], 1) * self.steps


def _head(inputs: int, width: int, outputs: int) -> nn.Sequential:
    return nn.Sequential(_silu(inputs, width), nn.Conv2d(width, outputs, 1))


def _grid(size: int, step: int) -> tuple[Tensor, Tensor]:
    """Centres of the cells of one scale [2, cells], and their size in pixels [1, cells]."""
    n = size // step
    y, x = torch.meshgrid(torch.arange(n) + 0.5, torch.arange(n) + 0.5, indexing="ij")
    return torch.stack([x, y]).reshape(2, -1), torch.full((1, n * n), float(step))


def _twice_as_large(x: Tensor) -> Tensor:
    return F.interpolate(x, scale_factor=2.0, mode="nearest")


# ---- a generator: noise to a 64 × 64 image by transposed convolutions ----------------------------


def generator(noise: int = 100) -> nn.Sequential:
    layers: list[nn.Module] = []
    widths = (noise, 512, 256, 128, 64)
    for i, (a, b) in enumerate(itertools.pairwise(widths)):
        stride, padding = (2, 1) if i else (1, 0)
        layers += [nn.ConvTranspose2d(a, b, 4, stride, padding, bias=False), nn.BatchNorm2d(b),
                   nn.ReLU()]
    return nn.Sequential(*layers, nn.ConvTranspose2d(widths[-1], 3, 4, 2, 1), nn.Tanh())


MODELS = {
    "unet_small": lambda: (UNet(), (torch.randn(1, 3, 128, 128),)),
    "yolo_tiny": lambda: (Detector(), (torch.randn(1, 3, 320, 320),)),
    "dcgan_gen": lambda: (generator(), (torch.randn(1, 100, 1, 1),)),
}
