"""Models with open sizes in plain torch: how each is made, its inputs of a size, and what is open.

`small` ones are the same models with few channels, for tests.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.export import Dim
from torch.nn import functional as F

SEED = 7
B, T = Dim("B", max=64), Dim("T", max=512)
H, W = 4 * Dim("h", min=2, max=64), 4 * Dim("w", min=2, max=64)


class Block(nn.Module):
    """A layer of a transformer on x [B, T, D]; `first`: its norms stand before what they norm."""

    def __init__(self, d: int, heads: int, first: bool) -> None:
        super().__init__()
        self.heads, self.first = heads, first
        self.qkv, self.out = nn.Linear(d, 3 * d), nn.Linear(d, d)
        self.up, self.down = nn.Linear(d, 4 * d), nn.Linear(4 * d, d)
        self.norm1, self.norm2 = nn.LayerNorm(d), nn.LayerNorm(d)

    def attention(self, x: Tensor) -> Tensor:
        b, t, d = x.shape
        q, k, v = (y.view(b, t, self.heads, d // self.heads).transpose(1, 2)
                   for y in self.qkv(x).chunk(3, 2))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=self.first)
        return self.out(y.transpose(1, 2).reshape(b, t, d))

    def forward(self, x: Tensor) -> Tensor:
        if self.first:
            x = x + self.attention(self.norm1(x))
            return x + self.down(F.gelu(self.up(self.norm2(x))))
        x = self.norm1(x + self.attention(x))
        return self.norm2(x + self.down(F.gelu(self.up(x))))


class Encoder(nn.Module):
    """Layers like BERT's on x [B, T, D]; with `words` on their numbers, and a result of each
    sequence."""

    def __init__(self, d: int, layers: int, words: int = 0) -> None:
        super().__init__()
        self.words = nn.Embedding(words, d) if words else nn.Identity()
        self.layers = nn.Sequential(*(Block(d, d // 32, False) for _ in range(layers)))
        self.head = nn.Linear(d, 10) if words else None

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.layers(self.words(x))
        return y if self.head is None else self.head(y[:, 0])


class Attention(nn.Module):
    """torch's own attention of heads, batch first."""

    def __init__(self, d: int) -> None:
        super().__init__()
        self.inner = nn.MultiheadAttention(d, d // 32, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.inner(x, x, x, need_weights=False)[0]
        return y


class Language(nn.Module):
    """Layers like GPT's on numbers of words [B, T]."""

    def __init__(self, d: int, layers: int, words: int = 1000) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(words, d), nn.Embedding(512, d)
        self.layers = nn.Sequential(*(Block(d, d // 32, True) for _ in range(layers)))
        self.norm, self.head = nn.LayerNorm(d), nn.Linear(d, words)

    def forward(self, x: Tensor) -> Tensor:
        y = self.words(x) + self.places(torch.arange(x.shape[1]))
        y = self.head(self.norm(self.layers(y)))
        return y


class Patches(nn.Module):
    """A ViT on images [B, 3, 64, 64]."""

    def __init__(self, d: int, layers: int) -> None:
        super().__init__()
        self.patch, self.places = nn.Conv2d(3, d, 8, 8), nn.Parameter(torch.randn(1, 65, d))
        self.first, self.head = nn.Parameter(torch.randn(1, 1, d)), nn.Linear(d, 10)
        self.layers = nn.Sequential(*(Block(d, d // 32, False) for _ in range(layers)))

    def forward(self, x: Tensor) -> Tensor:
        y = self.patch(x).flatten(2).transpose(1, 2)
        y = torch.cat([self.first.expand(x.shape[0], -1, -1), y], 1) + self.places
        y = self.head(self.layers(y)[:, 0])
        return y


def classifier(c: int) -> nn.Module:
    """A CNN on images [B, 3, 32, 32]."""
    def block(n: int, m: int) -> list[nn.Module]:
        return [nn.Conv2d(n, m, 3, padding=1), nn.BatchNorm2d(m), nn.ReLU()]
    return nn.Sequential(*block(3, c), nn.MaxPool2d(2), *block(c, 2 * c), nn.MaxPool2d(2),
                         *block(2 * c, 2 * c), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
                         nn.Linear(2 * c, 10))


def segmenter(c: int) -> nn.Module:
    """A CNN on images [B, 3, H, W] with a result for each pixel."""
    return nn.Sequential(
        nn.Conv2d(3, c, 3, 2, 1), nn.BatchNorm2d(c), nn.ReLU(), nn.Conv2d(c, 2 * c, 3, 1, 1),
        nn.GroupNorm(8, 2 * c), nn.ReLU(), nn.Conv2d(2 * c, 2 * c, 3, 2, 1, groups=2 * c),
        nn.Conv2d(2 * c, 4 * c, 1), nn.ReLU(), nn.Conv2d(4 * c, 4 * c, 3, 1, 1), nn.ReLU(),
        nn.Upsample(scale_factor=2), nn.Conv2d(4 * c, 16, 1))


def perceptron(c: int) -> nn.Module:
    """An MLP on x [B, 784]."""
    return nn.Sequential(nn.Linear(784, 2 * c), nn.ReLU(), nn.Linear(2 * c, c), nn.ReLU(),
                         nn.Linear(c, 10))


@dataclass(frozen=True)
class Open:
    """`make(small)` is the model, `input` one of a size, whose numbers are those of the axes
    `dims`; with an `optimizer` it is trained."""

    make: Callable[[bool], nn.Module]
    input: Callable[..., Tensor]
    dims: dict[int, Any]
    optimizer: str = ""
    precision: str = "default"

    def model(self, small: bool = False) -> nn.Module:
        torch.manual_seed(SEED)
        return self.make(small).eval()

    def program(self, size: tuple[int, ...] | None = None, small: bool = False) -> Any:
        """The exported program; with a size, it is fixed."""
        example = self.input(*(size or (2, *(32 for _ in self.dims))[:len(self.dims)]), small)
        dims = None if size else ({**self.dims},)
        return torch.export.export(self.model(small), (example,), dynamic_shapes=dims)


def _rows(b: int, t: int, small: bool) -> Tensor:
    return torch.randn(b, t, 64 if small else 256)


def _words(b: int, t: int, _: bool) -> Tensor:
    return torch.randint(0, 1000, (b, t))


def _images(side: int) -> Callable[..., Tensor]:
    return lambda b, _: torch.randn(b, 3, side, side)


ENCODER = Open(lambda small: Encoder(64, 1) if small else Encoder(256, 4), _rows, {0: B, 1: T})
CNN = Open(lambda small: classifier(16 if small else 32), _images(32), {0: B})
MLP = Open(lambda small: perceptron(64 if small else 256),
           lambda b, _: torch.randn(b, 784), {0: B})
MODELS: dict[str, Open] = {
    "encoder": ENCODER,
    "encoder_fast": Open(ENCODER.make, _rows, {0: B, 1: T}, precision="fast"),
    "attention": Open(lambda small: Attention(64 if small else 256), _rows, {0: B, 1: T}),
    "language": Open(lambda small: Language(64, 1) if small else Language(256, 4), _words,
                     {0: B, 1: T}),
    "patches": Open(lambda small: Patches(64, 1) if small else Patches(192, 4), _images(64),
                    {0: B}),
    "cnn": CNN,
    "segmenter": Open(lambda small: segmenter(16 if small else 32),
                      lambda b, h, w, _: torch.randn(b, 3, h, w), {0: B, 2: H, 3: W}),
    "mlp": MLP,
    "train_cnn": Open(CNN.make, CNN.input, CNN.dims, "sgd{momentum=0.9}"),
    "train_mlp": Open(MLP.make, MLP.input, MLP.dims, "sgd{momentum=0.9}"),
    "train_encoder": Open(lambda small: Encoder(64, 1, 100) if small else Encoder(128, 2, 1000),
                          lambda b, _: torch.randint(0, 100, (b, 64)), {0: B}, "adamw"),
}
