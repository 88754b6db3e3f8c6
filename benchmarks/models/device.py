"""What the GPU benchmark times: networks in plain torch, so that any machine with torch has them.

Weights are random; in float32, or all in bfloat16.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from benchmarks.models.dense import UNet
from benchmarks.models.small import mlp
from benchmarks.models.trained import Block, Transformer, labels
from benchmarks.models.trained_language import RMSNorm, rotated, text

SEED = 41
Made = tuple[nn.Module, tuple[Tensor, ...]]


@dataclass(frozen=True)
class Entry:
    """A row of the goal: `kind` is batch1, batch or train. A trained network has its labels as the
    last of its inputs, and a loss of class scores."""

    kind: str
    make: Callable[[], Made]
    rate: float = 0.0
    optimizer: str = ""


def made(name: str, dtype: torch.dtype) -> Made:
    """The network and its inputs; the same numbers in every process with the same torch."""
    torch.manual_seed(SEED)
    entry = CASES[name]
    model, inputs = entry.make()
    model.train(entry.kind == "train").requires_grad_(entry.kind == "train")
    return model.to(dtype), tuple(x.to(dtype) if x.is_floating_point() else x for x in inputs)


# ---- convolutions -------------------------------------------------------------------------------


def convolved(inner: int, outer: int, size: int, stride: int = 1, groups: int = 1) -> nn.Sequential:
    """A convolution and a batch norm."""
    return nn.Sequential(nn.Conv2d(inner, outer, size, stride, size // 2, groups=groups,
                                   bias=False), nn.BatchNorm2d(outer))


class Residual(nn.Module):
    """The block of He and others 2015: two windows of 3×3, or `deep` one between two of 1×1."""

    def __init__(self, inner: int, width: int, stride: int, deep: bool) -> None:
        super().__init__()
        outer = width * 4 if deep else width
        parts = [convolved(inner, width, 1), convolved(width, width, 3, stride),
                 convolved(width, outer, 1)] if deep else [
                 convolved(inner, width, 3, stride), convolved(width, outer, 3)]
        self.body = nn.Sequential(*(y for x in parts for y in (x, nn.ReLU())))[:-1]
        self.short = (convolved(inner, outer, 1, stride) if inner != outer or stride > 1
                      else nn.Identity())

    def forward(self, x: Tensor) -> Tensor:
        return F.relu(self.body(x) + self.short(x))


def resnet(blocks: tuple[int, ...], deep: bool) -> nn.Sequential:
    """Classes of an image."""
    layers: list[nn.Module] = [convolved(3, 64, 7, 2), nn.ReLU(), nn.MaxPool2d(3, 2, 1)]
    inner = 64
    for i, count in enumerate(blocks):
        for j in range(count):
            layers.append(Residual(inner, 64 << i, 2 if i and not j else 1, deep))
            inner = (64 << i) * (4 if deep else 1)
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inner, 1000))


class Inverted(nn.Module):
    """The block of Sandler and others 2018: wide inside, with a window for each channel alone."""

    def __init__(self, inner: int, outer: int, stride: int, factor: int) -> None:
        super().__init__()
        wide = inner * factor
        self.body = nn.Sequential(
            *(() if factor == 1 else (convolved(inner, wide, 1), nn.ReLU6())),
            convolved(wide, wide, 3, stride, wide), nn.ReLU6(), convolved(wide, outer, 1))
        self.whole = inner == outer and stride == 1

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.body(x)
        return x + y if self.whole else y


def mobilenet() -> nn.Sequential:
    """MobileNet V2; rows are factor, channels, blocks, stride."""
    rows = ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1),
            (6, 160, 3, 2), (6, 320, 1, 1))
    layers, inner = [convolved(3, 32, 3, 2), nn.ReLU6()], 32
    for factor, outer, count, stride in rows:
        for j in range(count):
            layers.append(Inverted(inner, outer, 1 if j else stride, factor))
            inner = outer
    return nn.Sequential(*layers, convolved(inner, 1280, 1), nn.ReLU6(), nn.AdaptiveAvgPool2d(1),
                         nn.Flatten(), nn.Linear(1280, 1000))


# ---- transformers -------------------------------------------------------------------------------


class Vision(nn.Module):
    """Patches of 16×16 of an image, a token for its class, twelve layers."""

    def __init__(self, width: int = 384, heads: int = 6, layers: int = 12) -> None:
        super().__init__()
        self.cut = nn.Conv2d(3, width, 16, 16)
        self.first = nn.Parameter(torch.randn(1, 1, width) * .02)
        self.place = nn.Parameter(torch.randn(1, 197, width) * .02)
        self.layers = nn.Sequential(*(Block(width, heads, False) for _ in range(layers)))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, 1000)

    def forward(self, x: Tensor) -> Tensor:
        y = self.cut(x).flatten(2).transpose(1, 2)
        y = torch.cat([self.first.expand(y.shape[0], -1, -1), y], 1) + self.place
        out: Tensor = self.head(self.norm(self.layers(y))[:, 0])
        return out


class Encoder(nn.Module):
    """Twelve layers over tokens, the norms behind each half as in BERT."""

    def __init__(self, words: int = 30522, width: int = 768, heads: int = 12,
                 layers: int = 12) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(words, width), nn.Embedding(512, width)
        self.norm = nn.LayerNorm(width)
        self.layers = nn.ModuleList(nn.TransformerEncoderLayer(
            width, heads, 4 * width, 0.0, "gelu", batch_first=True) for _ in range(layers))
        self.heads = heads

    def forward(self, ids: Tensor) -> Tensor:
        y: Tensor = self.norm(self.words(ids) + self.places.weight[:ids.shape[1]])
        for layer in self.layers:
            y = layer.norm1(y + self._attend(layer.self_attn, y))
            y = layer.norm2(y + layer.linear2(F.gelu(layer.linear1(y))))
        return y

    def _attend(self, layer: nn.MultiheadAttention, x: Tensor) -> Tensor:
        b, t, d = x.shape
        three = F.linear(x, layer.in_proj_weight, layer.in_proj_bias)
        q, k, v = three.view(b, t, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(b, t, d)
        out: Tensor = layer.out_proj(y)
        return out


class Gpt2Step(nn.Module):
    """One token of GPT-2 behind a past of keys and values [layers, 2, 1, heads, past, 64]; gives
    the scores of the next token, and the keys and values of this one."""

    def __init__(self, words: int = 50257, width: int = 768, heads: int = 12,
                 layers: int = 12) -> None:
        super().__init__()
        self.words, self.place = nn.Embedding(words, width), nn.Parameter(torch.randn(width) * .02)
        self.layers = nn.ModuleList(Block(width, heads, False) for _ in range(layers))
        self.norm = nn.LayerNorm(width)
        nn.init.normal_(self.words.weight, std=.02)

    def forward(self, ids: Tensor, past: Tensor) -> tuple[Tensor, Tensor]:
        x, kept = self.words(ids) + self.place, []
        for i, layer in enumerate(self.layers):
            q, k, v = layer.qkv(layer.n1(x)).view(1, 1, 3, layer.heads, -1).permute(2, 0, 3, 1, 4)
            kept.append(torch.stack((k, v)))
            keys, values = (torch.cat((past[i, j], new), 2) for j, new in enumerate((k, v)))
            y = F.scaled_dot_product_attention(q, keys, values)
            x = x + layer.o(y.transpose(1, 2).reshape(x.shape))
            x = x + layer.f2(F.gelu(layer.f1(layer.n2(x)), approximate="tanh"))
        return F.linear(self.norm(x), self.words.weight), torch.stack(kept)


class LlamaLayer(nn.Module):
    """A layer for one token: keys and values of the past are operands."""

    def __init__(self, width: int, heads: int, groups: int, inner: int) -> None:
        super().__init__()
        self.heads, self.groups, self.size = heads, groups, width // heads
        self.n1, self.n2 = RMSNorm(width), RMSNorm(width)
        self.qkv = nn.Linear(width, width + 2 * groups * self.size, bias=False)
        self.o = nn.Linear(width, width, bias=False)
        self.both, self.down = (nn.Linear(width, 2 * inner, bias=False),
                                nn.Linear(inner, width, bias=False))

    def forward(self, x: Tensor, past: Tensor, cos: Tensor, sin: Tensor) -> tuple[Tensor, Tensor]:
        parts = self.qkv(self.n1(x)).view(1, 1, -1, self.size).transpose(1, 2)
        q, k, v = parts.split((self.heads, self.groups, self.groups), 1)
        q, k = rotated(q, cos, sin), rotated(k, cos, sin)
        keys, values = torch.cat((past[0], k), 2), torch.cat((past[1], v), 2)
        y = F.scaled_dot_product_attention(q, keys, values, enable_gqa=True)
        x = x + self.o(y.transpose(1, 2).reshape(x.shape))
        gate, up = self.both(self.n2(x)).chunk(2, -1)
        return x + self.down(F.silu(gate) * up), torch.stack((k, v))


class LlamaStep(nn.Module):
    """One token of a llama of 0.25 billion parameters."""

    def __init__(self, words: int = 32000, width: int = 1024, heads: int = 16, groups: int = 8,
                 layers: int = 16, inner: int = 2816) -> None:
        super().__init__()
        self.words = nn.Embedding(words, width)
        self.layers = nn.ModuleList(
            LlamaLayer(width, heads, groups, inner) for _ in range(layers))
        self.norm, self.head = RMSNorm(width), nn.Linear(width, words, bias=False)
        nn.init.normal_(self.words.weight, std=.02)

    def forward(self, ids: Tensor, past: Tensor, cos: Tensor, sin: Tensor) -> tuple[Tensor, Tensor]:
        x, kept = self.words(ids), []
        for i, layer in enumerate(self.layers):
            x, new = layer(x, past[i], cos, sin)
            kept.append(new)
        return self.head(self.norm(x)), torch.stack(kept)


# ---- the table of the goal ----------------------------------------------------------------------


def image(batch: int, size: int = 224) -> tuple[Tensor, ...]:
    return (torch.randn(batch, 3, size, size),)


def tokens(words: int, *shape: int) -> Tensor:
    return torch.randint(0, words, shape)


def llama_inputs() -> tuple[Tensor, ...]:
    angles = torch.randn(64)
    return tokens(32000, 1, 1), torch.randn(16, 2, 1, 8, 255, 64), angles.cos(), angles.sin()


def trained_image() -> tuple[Tensor, Tensor]:
    return (*image(32), labels(32, 1000))


_18, _50 = (2, 2, 2, 2), (3, 4, 6, 3)
CASES: dict[str, Entry] = {
    "mlp_b1": Entry("batch1", lambda: (mlp(), (torch.rand(1, 784),))),
    "resnet18_b1": Entry("batch1", lambda: (resnet(_18, False), image(1))),
    "gpt2_decode": Entry("batch1", lambda: (Gpt2Step(), (
        tokens(50257, 1, 1), torch.randn(12, 2, 1, 12, 255, 64)))),
    "bert_b1": Entry("batch1", lambda: (Encoder(), (tokens(30522, 1, 128),))),
    "mobilenet_v2_b1": Entry("batch1", lambda: (mobilenet(), image(1))),
    "resnet50_b1": Entry("batch1", lambda: (resnet(_50, True), image(1))),
    "vit_small_b1": Entry("batch1", lambda: (Vision(), image(1))),
    "unet_b1": Entry("batch1", lambda: (UNet(), image(1, 256))),
    "llama_decode": Entry("batch1", lambda: (LlamaStep(), llama_inputs())),
    "train_mlp_b64": Entry("train", lambda: (mlp(), (torch.rand(64, 784), labels(64))), .01,
                           "sgd{momentum=0.9}"),
    "train_gpt2_tiny_b4": Entry("train", lambda: (
        Transformer(8192, 256, 4, 4, 128, True, 8192), text(8192, 4, 128)), 1e-3, "adam"),
    "bert_b16": Entry("batch", lambda: (Encoder(), (tokens(30522, 16, 128),))),
    "resnet50_b32": Entry("batch", lambda: (resnet(_50, True), image(32))),
    "resnet18_b32": Entry("batch", lambda: (resnet(_18, False), image(32))),
    "mobilenet_v2_b32": Entry("batch", lambda: (mobilenet(), image(32))),
    "vit_small_b32": Entry("batch", lambda: (Vision(), image(32))),
    "train_resnet18_b32": Entry("train", lambda: (resnet(_18, False), trained_image()), .01,
                                "sgd{momentum=0.9}"),
}
