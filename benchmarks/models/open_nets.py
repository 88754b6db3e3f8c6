"""Networks in plain torch that take several sizes of inputs, for builds with open sizes."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from benchmarks.models.extra_graphs import EdgeList


class Block(nn.Module):
    """A layer of a transformer on x [B, T, D]; `first`: its norms stand before what they norm."""

    def __init__(self, d: int, first: bool, causal: bool = False) -> None:
        super().__init__()
        self.heads, self.first, self.causal = d // 32, first, causal
        self.qkv, self.out = nn.Linear(d, 3 * d), nn.Linear(d, d)
        self.up, self.down = nn.Linear(d, 4 * d), nn.Linear(4 * d, d)
        self.norm1, self.norm2 = nn.LayerNorm(d), nn.LayerNorm(d)

    def attention(self, x: Tensor) -> Tensor:
        b, t, d = x.shape
        q, k, v = (y.view(b, t, self.heads, d // self.heads).transpose(1, 2)
                   for y in self.qkv(x).chunk(3, 2))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=self.causal)
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
        self.layers = nn.Sequential(*(Block(d, False) for _ in range(layers)))
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
        self.layers = nn.Sequential(*(Block(d, True, True) for _ in range(layers)))
        self.norm, self.head = nn.LayerNorm(d), nn.Linear(d, words)

    def forward(self, x: Tensor) -> Tensor:
        y = self.words(x) + self.places(torch.arange(x.shape[1]))
        y = self.head(self.norm(self.layers(y)))
        return y


class Listener(nn.Module):
    """An encoder like Whisper's on bands [B, 80, 2T]: two convolutions over time, then layers."""

    def __init__(self, d: int, layers: int) -> None:
        super().__init__()
        self.c1, self.c2 = nn.Conv1d(80, d, 3, 1, 1), nn.Conv1d(d, d, 3, 2, 1)
        self.places = nn.Parameter(torch.randn(512, d))
        self.layers = nn.Sequential(*(Block(d, True) for _ in range(layers)))
        self.norm = nn.LayerNorm(d)

    def forward(self, x: Tensor) -> Tensor:
        y = F.gelu(self.c2(F.gelu(self.c1(x)))).transpose(1, 2)
        y = self.norm(self.layers(y + self.places[:y.shape[1]]))
        return y


class Conformer(nn.Module):
    """A layer of Gulati and others 2020 on x [B, T, D]: attention and a convolution over time
    between two halves of a perceptron."""

    def __init__(self, d: int, taps: int = 15) -> None:
        super().__init__()
        self.before, self.after = (nn.Sequential(
            nn.LayerNorm(d), nn.Linear(d, 4 * d), nn.SiLU(), nn.Linear(4 * d, d))
            for _ in range(2))
        self.inner, self.norms = Block(d, True), nn.ModuleList(nn.LayerNorm(d) for _ in range(3))
        self.conv = nn.Sequential(
            nn.Conv1d(d, 2 * d, 1), nn.GLU(1), nn.Conv1d(d, d, taps, padding=taps // 2, groups=d),
            nn.BatchNorm1d(d), nn.SiLU(), nn.Conv1d(d, d, 1))

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.before(x) / 2
        x = x + self.inner.attention(self.norms[0](x))
        x = x + self.conv(self.norms[1](x).transpose(1, 2)).transpose(1, 2)
        y: Tensor = self.norms[2](x + self.after(x) / 2)
        return y


class Patches(nn.Module):
    """A ViT on images [B, 3, 64, 64]."""

    def __init__(self, d: int, layers: int) -> None:
        super().__init__()
        self.patch, self.places = nn.Conv2d(3, d, 8, 8), nn.Parameter(torch.randn(1, 65, d))
        self.first, self.head = nn.Parameter(torch.randn(1, 1, d)), nn.Linear(d, 10)
        self.layers = nn.Sequential(*(Block(d, False) for _ in range(layers)))

    def forward(self, x: Tensor) -> Tensor:
        y = self.patch(x).flatten(2).transpose(1, 2)
        y = torch.cat([self.first.expand(x.shape[0], -1, -1), y], 1) + self.places
        y = self.head(self.layers(y)[:, 0])
        return y


class Edges(nn.Module):
    """Sums over the edges of a graph; its inputs by name, as torch.export wants them."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = EdgeList()

    def forward(self, x: Tensor, ends: Tensor, weights: Tensor) -> Tensor:
        y: Tensor = self.inner(x, ends, weights)
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
