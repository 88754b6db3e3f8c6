"""Language models of the training benchmark in plain torch: transformers and an LSTM."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F


def text(words: int, batch: int, length: int) -> tuple[Tensor, Tensor]:
    """Random tokens, and for each position the next one."""
    ids = torch.randint(0, words, (batch, length + 1))
    return ids[:, :-1].contiguous(), ids[:, 1:].reshape(-1)


class RMSNorm(nn.Module):
    """x / rms(x), times a weight."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * self.weight
        return y


class LlamaLayer(nn.Module):
    """Rotated queries and keys, fewer heads of keys than of queries, a gated MLP."""

    def __init__(self, width: int, heads: int, groups: int, inner: int) -> None:
        super().__init__()
        self.heads, self.groups, self.size = heads, groups, width // heads
        self.n1, self.n2 = RMSNorm(width), RMSNorm(width)
        self.q = nn.Linear(width, width, bias=False)
        self.k = nn.Linear(width, groups * self.size, bias=False)
        self.v = nn.Linear(width, groups * self.size, bias=False)
        self.o = nn.Linear(width, width, bias=False)
        self.gate, self.up = (nn.Linear(width, inner, bias=False) for _ in range(2))
        self.down = nn.Linear(inner, width, bias=False)

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        b, t, d = x.shape
        h = self.n1(x)
        q = self.q(h).view(b, t, self.heads, self.size).transpose(1, 2)
        k = self.k(h).view(b, t, self.groups, self.size).transpose(1, 2)
        v = self.v(h).view(b, t, self.groups, self.size).transpose(1, 2)
        q, k = rotated(q, cos, sin), rotated(k, cos, sin)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True,
                                           enable_gqa=self.groups != self.heads)
        x = x + self.o(y.transpose(1, 2).reshape(b, t, d))
        h = self.n2(x)
        out: Tensor = x + self.down(F.silu(self.gate(h)) * self.up(h))
        return out


def rotated(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Su and others 2021, with halves of a head as the pairs."""
    a, b = x.chunk(2, -1)
    return x * cos + torch.cat((-b, a), -1) * sin


class Llama(nn.Module):
    """Scores of the next token at each position."""

    def __init__(self, words: int, width: int, heads: int, groups: int, layers: int, inner: int,
                 length: int) -> None:
        super().__init__()
        self.e = nn.Embedding(words, width)
        self.b = nn.ModuleList(LlamaLayer(width, heads, groups, inner) for _ in range(layers))
        self.n, self.o = RMSNorm(width), nn.Linear(width, words, bias=False)
        nn.init.normal_(self.e.weight, std=.02)
        size = width // heads
        turns = torch.outer(torch.arange(length), 1e4 ** (-torch.arange(0, size, 2) / size))
        self.register_buffer("cos", torch.cat((turns, turns), -1).cos())
        self.register_buffer("sin", torch.cat((turns, turns), -1).sin())

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.e(x)
        for layer in self.b:
            y = layer(y, self.cos, self.sin)
        out: Tensor = self.o(self.n(y)).flatten(0, 1)
        return out


class RecurrentText(nn.Module):
    """Two layers of an LSTM, and scores of the next token at each position."""

    def __init__(self, words: int, width: int) -> None:
        super().__init__()
        self.e = nn.Embedding(words, width)
        self.r = nn.LSTM(width, width, 2, batch_first=True)
        self.o = nn.Linear(width, words)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.o(self.r(self.e(x))[0]).flatten(0, 1)
        return out
