"""Models of the zoo and more of its kinds with open sizes: batch and length, or height and width.

Their names begin with `zoo.`; they need what the models of the zoo need.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.export import Dim

from benchmarks.models.extra_graphs import FEATURES
from benchmarks.models.extra_nets import Residual
from benchmarks.models.open_sizes import MODELS, B, E, Inputs, N, Open
from benchmarks.models.seeded import build

HIGH, WIDE = 32 * Dim("h", min=2, max=16), 32 * Dim("w", min=2, max=16)
FRAMES = Dim("T", min=8, max=1024)


def _edges(n: int, e: int, _: bool) -> tuple[Tensor, ...]:
    return torch.randn(n, FEATURES), torch.randint(0, n, (2, e))


class GraphAttention(nn.Module):
    """Two layers of Veličković and others 2018 over a list of edges: four heads of 16."""

    def __init__(self, heads: int = 4, width: int = 16) -> None:
        super().__init__()
        self.heads, self.width = heads, width
        both = heads * width
        self.layers = nn.ModuleList(nn.Linear(i, both) for i in (FEATURES, both))
        self.scores = nn.ParameterList(torch.randn(2, heads, width) / 4 for _ in range(2))

    def forward(self, x: Tensor, ends: Tensor) -> Tensor:
        source, target = ends[0], ends[1]
        for layer, score in zip(self.layers, self.scores, strict=True):
            rows = layer(x).view(-1, self.heads, self.width)
            sides = (rows * score[0]).sum(-1)[source] + (rows * score[1]).sum(-1)[target]
            weights = nn.functional.leaky_relu(sides, 0.2).clamp(max=20).exp()
            total = torch.zeros_like(rows[..., 0]).index_add(0, target, weights)
            shares = weights / (total[target] + 1e-9)
            x = torch.zeros_like(rows).index_add(
                0, target, rows[source] * shares[..., None]).flatten(1)
            x = nn.functional.elu(x)
        return x


def _vocoder() -> nn.Module:
    """Bands [B, 80, T] to a wave, 64 samples a frame, as HiFi-GAN has it."""
    def spread(width: int, taps: int) -> Residual:
        return Residual(*(layer for d in (1, 3, 5) for layer in (
            nn.LeakyReLU(0.1), nn.Conv1d(width, width, taps, padding=d * (taps // 2), dilation=d))))
    layers: list[nn.Module] = [nn.Conv1d(80, 128, 7, padding=3)]
    for width, stride in ((128, 8), (64, 8)):
        layers += [nn.LeakyReLU(0.1),
                   nn.ConvTranspose1d(width, width // 2, 2 * stride, stride, stride // 2),
                   spread(width // 2, 3), spread(width // 2, 7)]
    return nn.Sequential(*layers, nn.LeakyReLU(0.1), nn.Conv1d(32, 1, 7, padding=3), nn.Tanh())


def _autoencoder() -> nn.Module:
    """An image to a mean of an eighth of its size and back, with group norms."""
    def block(c: int) -> Residual:
        return Residual(nn.GroupNorm(8, c), nn.SiLU(), nn.Conv2d(c, c, 3, padding=1))
    widths = (32, 64, 96)
    down: list[nn.Module] = [nn.Conv2d(3, 32, 3, padding=1)]
    up: list[nn.Module] = [nn.GroupNorm(8, 32), nn.SiLU(), nn.Conv2d(32, 3, 3, padding=1)]
    for a, b in zip(widths, (*widths[1:], 96), strict=True):
        down += [block(a), nn.Conv2d(a, b, 3, 2, 1)]
        up = [nn.Upsample(scale_factor=2), nn.Conv2d(b, a, 3, padding=1), block(a), *up]
    return nn.Sequential(*down, nn.Conv2d(96, 4, 1), nn.Conv2d(4, 96, 1), *up)


def _zoo(name: str, inputs: Inputs, *dims: dict[int, Any]) -> Open:
    return Open(lambda _: build(name)[0], inputs, dims)


def _own(make: Callable[[], nn.Module], inputs: Inputs, *dims: dict[int, Any]) -> Open:
    return Open(lambda _: make(), inputs, dims)


ZOO: dict[str, Open] = {f"zoo.{name}": row for name, row in {
    "lenet": _zoo("lenet", lambda b, _: (torch.rand(b, 1, 28, 28),), {0: B}),
    "tcn": _zoo("tcn", lambda b, t, _: (torch.randn(b, 8, t),), {0: B, 2: FRAMES}),
    "autoencoder": _own(_autoencoder, lambda b, h, w, _: (torch.randn(b, 3, h, w),),
                        {0: B, 2: HIGH, 3: WIDE}),
    "vocoder": _own(_vocoder, lambda b, t, _: (torch.randn(b, 80, t),), {0: B, 2: FRAMES}),
    "graph_attention": _own(GraphAttention, _edges, {0: N}, {1: E}),
}.items()}
ALL = MODELS | ZOO
