"""What the benchmark of the browser times: networks of a size that pages load, in plain torch with
seeded weights, each with its inputs."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from benchmarks.models import tiny
from benchmarks.models.dense import UNet
from benchmarks.models.device import Encoder, convolved, image, mobilenet, tokens
from benchmarks.models.extra_graphs import Recommender

SEED = 43
Made = tuple[nn.Module, tuple[Tensor, ...]]


class Squeeze(nn.Module):
    """A factor for each channel, from the means of all."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        inner = max(8, channels // 4 // 8 * 8)
        self.down, self.up = nn.Conv2d(channels, inner, 1), nn.Conv2d(inner, channels, 1)

    def forward(self, x: Tensor) -> Tensor:
        return x * F.hardsigmoid(self.up(F.relu(self.down(x.mean((2, 3), keepdim=True)))))


class Bottleneck(nn.Module):
    """The block of Howard and others 2019, with a squeeze where `squeeze` is true."""

    def __init__(self, inner: int, wide: int, outer: int, size: int, stride: int, squeeze: bool,
                 hard: bool) -> None:
        super().__init__()
        active = nn.Hardswish if hard else nn.ReLU
        self.body = nn.Sequential(
            *((convolved(inner, wide, 1), active()) if wide != inner else ()),
            convolved(wide, wide, size, stride, wide), active(),
            *((Squeeze(wide),) if squeeze else ()), convolved(wide, outer, 1))
        self.whole = inner == outer and stride == 1

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.body(x)
        return x + y if self.whole else y


def mobilenet_v3() -> nn.Sequential:
    """MobileNet V3 small; rows are size, width, channels, squeeze, hard swish, stride."""
    rows = ((3, 16, 16, 1, 0, 2), (3, 72, 24, 0, 0, 2), (3, 88, 24, 0, 0, 1), (5, 96, 40, 1, 1, 2),
            (5, 240, 40, 1, 1, 1), (5, 240, 40, 1, 1, 1), (5, 120, 48, 1, 1, 1),
            (5, 144, 48, 1, 1, 1), (5, 288, 96, 1, 1, 2), (5, 576, 96, 1, 1, 1),
            (5, 576, 96, 1, 1, 1))
    layers, inner = [convolved(3, 16, 3, 2), nn.Hardswish()], 16
    for size, wide, outer, squeeze, hard, stride in rows:
        layers.append(Bottleneck(inner, wide, outer, size, stride, bool(squeeze), bool(hard)))
        inner = outer
    return nn.Sequential(*layers, convolved(96, 576, 1), nn.Hardswish(), nn.AdaptiveAvgPool2d(1),
                         nn.Flatten(), nn.Linear(576, 1024), nn.Hardswish(), nn.Linear(1024, 1000))


class FaceBlock(nn.Module):
    """A window of 5×5 for each channel alone, 1×1, and past them the input."""

    def __init__(self, inner: int, outer: int, stride: int) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(inner, inner, 5, stride, 2, groups=inner), nn.Conv2d(inner, outer, 1))
        self.stride, self.more = stride, outer - inner

    def forward(self, x: Tensor) -> Tensor:
        past = F.max_pool2d(x, 2) if self.stride == 2 else x
        return torch.relu(self.body(x) + F.pad(past, (0, 0, 0, 0, 0, self.more)))


class Faces(nn.Module):
    """A detector of faces in 128×128: scores and boxes of two grids."""

    def __init__(self) -> None:
        super().__init__()
        widths = (24, 24, 28, -32, 36, 42, -48, 56, 64, 72, 80, 88)  # < 0: a stride of 2
        blocks, inner = [], 24
        for outer in widths:
            blocks.append(FaceBlock(inner, abs(outer), 2 if outer < 0 else 1))
            inner = abs(outer)
        self.first = nn.Sequential(nn.Conv2d(3, 24, 5, 2, 2), nn.ReLU(), *blocks)
        deep = [FaceBlock(88, 96, 2), *(FaceBlock(96, 96, 1) for _ in range(4))]
        self.second = nn.Sequential(*deep)
        self.heads = nn.ModuleList(nn.Conv2d(c, 17 * n, 1) for c, n in ((88, 2), (96, 6)))

    def forward(self, x: Tensor) -> Tensor:
        y = self.first(x)
        grids = [head(z) for head, z in zip(self.heads, (y, self.second(y)), strict=True)]
        return torch.cat([g.permute(0, 2, 3, 1).reshape(1, -1, 17) for g in grids], 1)


class Speech(nn.Module):
    """An encoder of 10 s of speech as Whisper's smallest: 1,000 frames of 80 bands."""

    def __init__(self, width: int = 384, heads: int = 6, layers: int = 4) -> None:
        super().__init__()
        self.first, self.second = nn.Conv1d(80, width, 3, 1, 1), nn.Conv1d(width, width, 3, 2, 1)
        self.place = nn.Parameter(torch.randn(1, 500, width) * .02)
        self.layers = nn.ModuleList(nn.TransformerEncoderLayer(
            width, heads, 4 * width, 0.0, "gelu", batch_first=True, norm_first=True)
            for _ in range(layers))
        self.norm = nn.LayerNorm(width)

    def forward(self, x: Tensor) -> Tensor:
        y = F.gelu(self.second(F.gelu(self.first(x)))).transpose(1, 2) + self.place
        for layer in self.layers:
            y = layer(y)
        out: Tensor = self.norm(y)
        return out


def _tiny(name: str) -> Callable[[], Made]:
    def make() -> Made:
        model, examples = tiny.made(name, 1)
        return model, (examples,)
    return make


MODELS: dict[str, Callable[[], Made]] = {
    "mobilenet_v2": lambda: (mobilenet(), image(1)),
    "mobilenet_v3_small": lambda: (mobilenet_v3(), image(1)),
    "face_detector": lambda: (Faces(), image(1, 128)),
    "keyword_spotter": _tiny("kws"),
    "text_encoder": lambda: (Encoder(5000, 256, 4, 4), (tokens(5000, 1, 128),)),
    "segmentation": lambda: (UNet(16), image(1, 128)),
    "whisper_tiny_enc": lambda: (Speech(), (torch.randn(1, 80, 1000),)),
    "autoencoder": _tiny("ad"),
    "recommender": lambda: (Recommender(), (torch.rand(1, 13), torch.randint(0, 1000, (1, 26)))),
    "resnet8": _tiny("ic"),
    "visual_wake_words": _tiny("vww"),
}


def made(name: str) -> Made:
    """The network in eval mode and its inputs; the same numbers with the same torch."""
    torch.manual_seed(SEED)
    model, inputs = MODELS[name]()
    return model.eval().requires_grad_(False), inputs
