"""A small causal language model in plain torch: two layers with rotary positions, 512 tokens.

`learner()` reads whole texts and is what one trains. `model()` has the same parameters; it reads
tokens behind a past, whose keys and values it takes and gives back.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

VOCAB, WIDTH, HEADS, LAYERS, HIDDEN = 512, 64, 4, 2, 128
DEPTH = WIDTH // HEADS


def turned(x: Tensor, place: Tensor) -> Tensor:
    """[B, HEADS, T, DEPTH], each pair of numbers turned by an angle that grows with the place, [T]
    or [B, 1, T]: rotary positions (Su et al. 2021)."""
    rate = 10000 ** (-torch.arange(0, DEPTH, 2, dtype=torch.float32) / DEPTH)
    angle = place[..., None].to(torch.float32) * rate
    cos, sin = torch.cos(angle), torch.sin(angle)
    a, b = x.chunk(2, dim=-1)
    return torch.cat([a * cos - b * sin, b * cos + a * sin], dim=-1)


class Layer(nn.Module):
    """x + attention(norm(x)), then x + mlp(norm(x))."""

    def __init__(self) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.RMSNorm(WIDTH), nn.RMSNorm(WIDTH)
        self.q, self.k, self.v, self.out = (nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(4))
        self.gate, self.up = (nn.Linear(WIDTH, HIDDEN, bias=False) for _ in range(2))
        self.down = nn.Linear(HIDDEN, WIDTH, bias=False)

    def heads(self, x: Tensor) -> Tensor:
        """[B, T, WIDTH] to [B, HEADS, T, DEPTH]."""
        return torch.unflatten(x, -1, (HEADS, DEPTH)).transpose(1, 2)

    def forward(self, x: Tensor, place: Tensor, keys: Tensor | None = None,
                values: Tensor | None = None,
                seen: Tensor | None = None) -> tuple[Tensor, Tensor, Tensor]:
        """The new x, and the keys and values of the past and of x, [B, HEADS, P + T, DEPTH]; `seen`
        [B, 1, T, P + T] says which of them each x sees, if not all up to its place."""
        y = self.norm1(x)
        q, k, v = turned(self.heads(self.q(y)), place), turned(self.heads(self.k(y)), place), \
            self.heads(self.v(y))
        if keys is None or values is None:
            mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        else:
            k, v = torch.cat([keys, k], dim=2), torch.cat([values, v], dim=2)
            seen = torch.arange(k.shape[2]) <= place[:, None] if seen is None else seen
            mixed = F.scaled_dot_product_attention(q, k, v, attn_mask=seen)
        x = x + self.out(mixed.transpose(1, 2).flatten(2))
        y = self.norm2(x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y)), k, v


class Language(nn.Module):
    """int64 tokens [B, T] to float32 logits [B, T, VOCAB]; the head is the embedding."""

    def __init__(self) -> None:
        super().__init__()
        self.tokens = nn.Embedding(VOCAB, WIDTH)
        self.layers = nn.ModuleList(Layer() for _ in range(LAYERS))
        self.norm = nn.RMSNorm(WIDTH)
        nn.init.normal_(self.tokens.weight, std=WIDTH ** -0.5)

    def forward(self, tokens: Tensor) -> Tensor:
        """The scores of each next token."""
        x, place = self.tokens(tokens), torch.arange(tokens.shape[1])
        for layer in self.layers:
            x, _, _ = layer(x, place)
        return F.linear(self.norm(x), self.tokens.weight)


class Step(Language):
    """(tokens [B, T], keys and values of each layer [B, HEADS, P, DEPTH]) to the logits, and to
    keys and values of P + T."""

    def forward(self, tokens: Tensor, k0: Tensor, v0: Tensor,  # type: ignore[override]
                k1: Tensor, v1: Tensor) -> tuple[Tensor, ...]:
        """The scores of each next token, and the longer past."""
        x, place = self.tokens(tokens), torch.arange(tokens.shape[1]) + k0.shape[2]
        x, k0, v0 = self.layers[0](x, place, k0, v0)
        x, k1, v1 = self.layers[1](x, place, k1, v1)
        return F.linear(self.norm(x), self.tokens.weight), k0, v0, k1, v1


class Several(Step):
    """A step of B texts with prompts of different lengths: `mask` bool [B, ROOM] is false where a
    row's text has not begun, `positions` [B, T] are the places of the tokens in their text."""

    def forward(self, tokens: Tensor, mask: Tensor, positions: Tensor,  # type: ignore[override]
                k0: Tensor, v0: Tensor, k1: Tensor, v1: Tensor) -> tuple[Tensor, ...]:
        """The scores of each next token, and the longer past."""
        x, place = self.tokens(tokens), positions[:, None]
        column = torch.arange(tokens.shape[1]) + k0.shape[2]
        every = torch.arange(k0.shape[2] + tokens.shape[1])
        seen = (every <= column[:, None]) & mask[:, None, None, every]
        x, k0, v0 = self.layers[0](x, place, k0, v0, seen)
        x, k1, v1 = self.layers[1](x, place, k1, v1, seen)
        return F.linear(self.norm(x), self.tokens.weight), k0, v0, k1, v1


def _seeded(kind: type[Language]) -> Language:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return kind().eval()


def learner() -> Language:
    """The network that reads whole texts; the same weights at every call."""
    return _seeded(Language)


def model() -> Language:
    """The network that goes on from a past, with the weights of `learner()`."""
    return _seeded(Step)


def several() -> Language:
    """The step of several texts, with the weights of `learner()`."""
    return _seeded(Several)


def inputs() -> tuple[Tensor, ...]:
    """Four tokens for `model()`, int64 [1, 4], behind a past of five; the same at every call."""
    made = torch.Generator().manual_seed(1)
    past = (torch.randn(1, HEADS, 5, DEPTH, generator=made) for _ in range(2 * LAYERS))
    return torch.randint(0, VOCAB, (1, 4), generator=made), *past
