"""The models of the training benchmark in plain torch, with one batch of random data each."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from benchmarks.models.small import lenet, mlp
from benchmarks.models.trained_language import Llama, RecurrentText, text
from benchmarks.models.trained_other import DLRM, GCN, Speech, clicks
from benchmarks.models.trained_vision import GAN, VAE, UNet
from benchmarks.models.vision import MODELS as VISION
from benchmarks.models.vision import declare_operators

SEED = 5
Made = tuple[nn.Module, Tensor, Tensor]


def make(name: str) -> Made:
    """The model in training mode, inputs and labels; the same numbers in every process."""
    torch.manual_seed(SEED)
    return NETWORKS[name]().train(), *DATA[name]()


def batches(name: str, count: int) -> list[tuple[Tensor, Tensor]]:
    """Batches like the model's own, of other random numbers."""
    out = []
    for i in range(count):
        torch.manual_seed(SEED + 1 + i)
        out.append(DATA[name]())
    return out


def labels(batch: int, classes: int = 10) -> Tensor:
    return torch.randint(0, classes, (batch,))


class Residual(nn.Module):
    """Two 3×3 convolutions with batch norms beside a shortcut."""

    def __init__(self, inner: int, outer: int, stride: int) -> None:
        super().__init__()
        self.c1 = nn.Conv2d(inner, outer, 3, stride, 1, bias=False)
        self.b1 = nn.BatchNorm2d(outer)
        self.c2 = nn.Conv2d(outer, outer, 3, 1, 1, bias=False)
        self.b2 = nn.BatchNorm2d(outer)
        self.sc = nn.Sequential(nn.Conv2d(inner, outer, 1, stride, bias=False),
                                nn.BatchNorm2d(outer)) if inner != outer else nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.b2(self.c2(F.relu(self.b1(self.c1(x)))))
        return F.relu(y + self.sc(x))


class ResNet8(nn.Module):
    """Three residual blocks over images of 32×32."""

    def __init__(self) -> None:
        super().__init__()
        self.c = nn.Conv2d(3, 16, 3, 1, 1, bias=False)
        self.b = nn.BatchNorm2d(16)
        self.l = nn.Sequential(Residual(16, 16, 1), Residual(16, 32, 2), Residual(32, 64, 2))
        self.fc = nn.Linear(64, 10)

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.fc(self.l(F.relu(self.b(self.c(x)))).mean((2, 3)))
        return y


class Block(nn.Module):
    """A pre-norm transformer layer."""

    def __init__(self, width: int, heads: int, causal: bool) -> None:
        super().__init__()
        self.heads, self.causal = heads, causal
        self.n1, self.n2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.o = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.f1, self.f2 = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        b, t, d = x.shape
        q, k, v = self.qkv(self.n1(x)).view(b, t, 3, self.heads, d // self.heads).permute(
            2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=self.causal)
        x = x + self.o(y.transpose(1, 2).reshape(b, t, d))
        out: Tensor = x + self.f2(F.gelu(self.f1(self.n2(x)), approximate="tanh"))
        return out


class Transformer(nn.Module):
    """Tokens to a class, or where `causal` to the next token of each position."""

    def __init__(self, words: int, width: int, heads: int, layers: int, length: int,
                 causal: bool, outputs: int) -> None:
        super().__init__()
        self.e, self.p = nn.Embedding(words, width), nn.Parameter(torch.randn(length, width) * .02)
        self.b = nn.ModuleList(Block(width, heads, causal) for _ in range(layers))
        self.n, self.o = nn.LayerNorm(width), nn.Linear(width, outputs)
        self.causal = causal
        nn.init.normal_(self.e.weight, std=.02)

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.e(x) + self.p
        for block in self.b:
            y = block(y)
        y = self.n(y)
        out: Tensor = self.o(y).flatten(0, 1) if self.causal else self.o(y.mean(1))
        return out


class Recurrent(nn.Module):
    """An LSTM, and a class from its last step."""

    def __init__(self) -> None:
        super().__init__()
        self.r, self.o = nn.LSTM(64, 128, 1, batch_first=True), nn.Linear(128, 10)

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.o(self.r(x)[0][:, -1])
        return y


def _timm(name: str, **options: int) -> nn.Module:
    declare_operators()
    model: nn.Module = import_module("timm").create_model(name, pretrained=False, **options)
    return model


def _mobilenet() -> nn.Module:
    """Depthwise convolutions, gates and hard_swish; no dropout, whose losses no two libraries
    share."""
    declare_operators()
    model: nn.Module = import_module("torchvision.models").mobilenet_v3_large(
        weights=None, dropout=0.0)
    return model


DATA: dict[str, Callable[[], tuple[Tensor, Tensor]]] = {
    "mlp_b64": lambda: (torch.rand(64, 784), labels(64)),
    "lenet_b64": lambda: (torch.rand(64, 1, 28, 28), labels(64)),
    "resnet8_cifar_b32": lambda: (torch.randn(32, 3, 32, 32), labels(32)),
    "resnet18_b8": lambda: (torch.randn(8, 3, 224, 224), labels(8, 1000)),
    "mobilenet_b8": lambda: (torch.randn(8, 3, 224, 224), labels(8, 1000)),
    "transformer_enc_b16": lambda: (torch.randint(0, 1000, (16, 64)), labels(16)),
    "gpt2_tiny_b4": lambda: text(8192, 4, 128),
    "lstm_b32": lambda: (torch.randn(32, 32, 64), labels(32)),
    "vit_tiny_b8": lambda: (torch.randn(8, 3, 224, 224), labels(8, 1000)),
    "lm_14m": lambda: text(8192, 8, 128),
    "lm_49m": lambda: text(16384, 4, 256),
    "lstm_lm_b16": lambda: text(8192, 16, 64),
    "unet_b8": lambda: (torch.randn(8, 3, 64, 64), torch.randint(0, 8, (8, 64, 64))),
    "convnext_b8": lambda: (torch.randn(8, 3, 96, 96), labels(8, 100)),
    "gan_b32": lambda: (torch.rand(32, 3, 32, 32) * 2 - 1, torch.randn(32, 100, 1, 1)),
    "vae_b64": lambda: (torch.rand(64, 784), torch.randn(64, 20)),
    "gcn_cora": lambda: ((torch.rand(2708, 1433) < 0.0127).float(), labels(2708, 7)),
    "dlrm_b256": lambda: clicks(256, 10000),
    "speech_b4": lambda: (torch.randn(4, 80, 400), labels(800, 64)),
    "linear_b1": lambda: (torch.randn(1, 4), labels(1, 2)),
}
NETWORKS: dict[str, Callable[[], nn.Module]] = {
    "mlp_b64": mlp,
    "lenet_b64": lenet,
    "resnet8_cifar_b32": ResNet8,
    "resnet18_b8": lambda: VISION["resnet18"]()[0],
    "mobilenet_b8": _mobilenet,
    "transformer_enc_b16": lambda: Transformer(1000, 128, 4, 2, 64, False, 10),
    "gpt2_tiny_b4": lambda: Transformer(8192, 256, 4, 4, 128, True, 8192),
    "lstm_b32": Recurrent,
    "vit_tiny_b8": lambda: _timm("vit_tiny_patch16_224"),
    "lm_14m": lambda: Llama(8192, 384, 6, 2, 6, 1024, 128),
    "lm_49m": lambda: Transformer(16384, 640, 10, 6, 256, True, 16384),
    "lstm_lm_b16": lambda: RecurrentText(8192, 256),
    "unet_b8": lambda: UNet(16, 8),
    "convnext_b8": lambda: _timm("convnext_atto", num_classes=100),
    "gan_b32": lambda: GAN(100, 32),
    "vae_b64": lambda: VAE(400, 20),
    "gcn_cora": lambda: GCN(2708, 5278, 1433, 16, 7),
    "dlrm_b256": lambda: DLRM(10000, 16),
    "speech_b4": lambda: Speech(256, 4, 4, 64),
    "linear_b1": lambda: nn.Linear(4, 2),
}
