"""A causal transformer language model in plain torch: two pre-norm layers over 32 tokens.

The output head has weights of its own; it does not share the token embedding.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

VOCAB, CONTEXT, WIDTH, HEADS, LAYERS = 128, 32, 64, 4, 2


def heads(x: Tensor) -> Tensor:
    """[B, T, WIDTH] to [B, HEADS, T, WIDTH / HEADS]."""
    return torch.unflatten(x, -1, (HEADS, WIDTH // HEADS)).transpose(1, 2)


class Attention(nn.Module):
    """Causal multi-head self-attention, [B, T, WIDTH] to [B, T, WIDTH]."""

    def __init__(self) -> None:
        super().__init__()
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH)
        self.out = nn.Linear(WIDTH, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.qkv(x).chunk(3, dim=-1)
        y = F.scaled_dot_product_attention(heads(q), heads(k), heads(v), is_causal=True)
        mixed: Tensor = self.out(y.transpose(1, 2).flatten(2))
        return mixed


class Layer(nn.Module):
    """x + attention(norm(x)), then x + mlp(norm(x))."""

    def __init__(self) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(WIDTH)
        self.attention = Attention()
        self.norm2 = nn.LayerNorm(WIDTH)
        self.up = nn.Linear(WIDTH, 4 * WIDTH)
        self.down = nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attention(self.norm1(x))
        x = x + self.down(F.gelu(self.up(self.norm2(x))))
        return x


class Transformer(nn.Module):
    """int64 tokens [B, T] with T ≤ CONTEXT to float32 logits [B, T, VOCAB]."""

    def __init__(self) -> None:
        super().__init__()
        self.tokens = nn.Embedding(VOCAB, WIDTH)
        self.places = nn.Embedding(CONTEXT, WIDTH)
        self.layers = nn.ModuleList(Layer() for _ in range(LAYERS))
        self.norm = nn.LayerNorm(WIDTH)
        self.head = nn.Linear(WIDTH, VOCAB, bias=False)

    def forward(self, tokens: Tensor) -> Tensor:
        place = torch.arange(tokens.shape[1], device=tokens.device)
        x = self.tokens(tokens) + self.places(place)
        for layer in self.layers:
            x = layer(x)
        logits: Tensor = self.head(self.norm(x))
        return logits


def model() -> Transformer:
    """The network in eval mode; the same weights at every call."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return Transformer().eval()


def inputs() -> tuple[Tensor]:
    """One row of random tokens, int64 [1, CONTEXT]; the same at every call."""
    generator = torch.Generator().manual_seed(1)
    return (torch.randint(VOCAB, (1, CONTEXT), generator=generator),)
