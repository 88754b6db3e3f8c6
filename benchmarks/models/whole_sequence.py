"""Whole models of sequences: recurrent, convolutional, attentive, structured."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from benchmarks.models.whole import labels, normal, whole

WORDS = 11


def text(n: int = 3, t: int = 7) -> tuple[Tensor, ...]:
    return (labels(WORDS, n, t),)


def next_word(logits: Tensor, words: Tensor) -> Tensor:
    return F.cross_entropy(logits[:, :-1].flatten(0, 1), words[:, 1:].flatten())


@whole(text, steps=True)
class RecurrentLanguageModel(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(WORDS, 8, padding_idx=0)
        self.net, self.head = nn.RNN(8, 12, batch_first=True), nn.Linear(12, WORDS)

    def forward(self, w: Tensor) -> Tensor:
        return next_word(self.head(self.net(self.table(w))[0]), w)


@whole(lambda: (*text(), labels(4, 3, 7)), steps=True)
class Tagger(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(WORDS, 8)
        self.net = nn.LSTM(8, 6, 2, batch_first=True, bidirectional=True)
        self.head = nn.Linear(12, 4)

    def forward(self, w: Tensor, tags: Tensor) -> Tensor:
        z = self.head(self.net(self.table(w))[0])
        return F.cross_entropy(z.flatten(0, 1), tags.flatten(), ignore_index=3)


@whole(lambda: (labels(WORDS, 3, 6), labels(WORDS, 3, 5)))
class Translator(nn.Module):
    """A GRU encoder, and a decoder that attends to it with the true words given."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(WORDS, 8)
        self.encode, self.decode = nn.GRU(8, 8, batch_first=True), nn.GRU(8, 8, batch_first=True)
        self.score, self.head = nn.Bilinear(8, 8, 1), nn.Linear(16, WORDS)

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        seen, last = self.encode(self.table(source))
        made, _ = self.decode(self.table(target), last)
        a = made.unsqueeze(2).expand(-1, -1, 6, -1).contiguous()
        b = seen.unsqueeze(1).expand(-1, 5, -1, -1).contiguous()
        context = self.score(a, b).squeeze(-1).softmax(-1) @ seen
        return next_word(self.head(torch.cat([made, context], -1)), target)


@whole(lambda: (normal(2, 9, 5), labels(4, 2, 3) + 1, torch.tensor([9, 8]), torch.tensor([3, 2])))
class SpeechRecogniser(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.net = nn.GRU(5, 6, batch_first=True, bidirectional=True)
        self.head = nn.Linear(12, 6)

    def forward(self, x: Tensor, y: Tensor, steps: Tensor, words: Tensor) -> Tensor:
        z = self.head(self.net(x)[0]).log_softmax(-1).transpose(0, 1)
        return F.ctc_loss(z, y, steps, words)


@whole(lambda: (normal(3, 2, 12), normal(3, 2, 12)), steps=True)
class CausalConvolutions(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.utils.parametrizations.weight_norm(
            nn.Conv1d(2, 4, 2, dilation=d)) for d in (1, 2, 4))
        self.mix = nn.ModuleList(nn.Conv1d(2, 2, 1) for _ in range(3))

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        total = torch.zeros_like(x)
        for layer, mix, d in zip(self.layers, self.mix, (1, 2, 4), strict=True):
            a, b = layer(F.pad(x, (d, 0))).chunk(2, 1)
            z = mix(a.tanh() * b.sigmoid())
            x, total = x + z, total + z
        return F.huber_loss(total, y)


@whole(lambda: (*text(), labels(3, 3)), steps=True)
class SentenceEncoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(WORDS, 16, padding_idx=0)
        layer = nn.TransformerEncoderLayer(16, 4, 32, 0.0, batch_first=True)
        self.body = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(16, 3)

    def forward(self, w: Tensor, y: Tensor) -> Tensor:
        none = w == 0
        z = self.body(self.table(w), src_key_padding_mask=none).masked_fill(none[..., None], 0)
        return F.cross_entropy(self.head(z.sum(1) / (~none).sum(1, keepdim=True).clamp(1)), y)


class Block(nn.Module):
    """Rotary attention of two groups of queries, RMSNorm, SwiGLU."""

    def __init__(self, width: int = 16) -> None:
        super().__init__()
        self.norm, self.norm2 = nn.RMSNorm(width), nn.RMSNorm(width)
        self.q, self.kv = nn.Linear(width, width, bias=False), nn.Linear(width, width, bias=False)
        self.o, self.gate = nn.Linear(width, width, bias=False), nn.Linear(width, 48, bias=False)
        self.down = nn.Linear(24, width, bias=False)

    def rotate(self, x: Tensor) -> Tensor:
        t, d = x.shape[-2:]
        angle = torch.arange(t, dtype=x.dtype)[:, None] * 100.0 ** -(
            torch.arange(0, d, 2, dtype=x.dtype) / d)
        a, b = x.chunk(2, -1)
        return torch.cat([a * angle.cos() - b * angle.sin(), b * angle.cos() + a * angle.sin()], -1)

    def forward(self, x: Tensor) -> Tensor:
        z, (n, t, _) = self.norm(x), x.shape
        q = self.q(z).view(n, t, 4, 4).transpose(1, 2)
        k, v = self.kv(z).view(n, t, 4, 4).transpose(1, 2).chunk(2, 1)
        y = F.scaled_dot_product_attention(self.rotate(q), self.rotate(k), v, is_causal=True,
                                           enable_gqa=True)
        x = x + self.o(y.transpose(1, 2).flatten(2))
        a, b = self.gate(self.norm2(x)).chunk(2, -1)
        return x + self.down(F.silu(a) * b)


@whole(text, steps=True)
class TiedLanguageModel(nn.Module):
    """The embedding is the last layer's weight too."""

    def __init__(self) -> None:
        super().__init__()
        self.table, self.head = nn.Embedding(WORDS, 16), nn.Linear(16, WORDS, bias=False)
        self.head.weight = self.table.weight
        self.body = nn.Sequential(Block(), Block(), nn.RMSNorm(16))

    def forward(self, w: Tensor) -> Tensor:
        return next_word(self.head(self.body(self.table(w))), w)


@whole(text)
class RelativeBias(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.table, self.bias = nn.Embedding(WORDS, 8), nn.Embedding(13, 2)
        self.qkv, self.head = nn.Linear(8, 24), nn.Linear(8, WORDS)

    def forward(self, w: Tensor) -> Tensor:
        n, t = w.shape
        q, k, v = self.qkv(self.table(w)).view(n, t, 3, 2, 4).permute(2, 0, 3, 1, 4).unbind(0)
        gap = torch.arange(t)[:, None] - torch.arange(t)[None] + 6
        scores = q @ k.mT + self.bias(gap).permute(2, 0, 1)
        scores = scores.masked_fill(gap < 6, -torch.inf)
        return next_word(self.head((scores.softmax(-1) @ v).transpose(1, 2).flatten(2)), w)


@whole(text)
class MixtureOfExperts(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.table, self.router = nn.Embedding(WORDS, 8), nn.Linear(8, 4)
        self.experts = nn.ModuleList(nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 8))
                                     for _ in range(4))
        self.head = nn.Linear(8, WORDS)

    def forward(self, w: Tensor) -> Tensor:
        x = self.table(w)
        p = self.router(x).softmax(-1)
        best, which = p.topk(2, -1)
        gates = torch.zeros_like(p).scatter(-1, which, best / best.sum(-1, keepdim=True))
        y = sum(gates[..., i:i + 1] * e(x) for i, e in enumerate(self.experts))
        load = (gates > 0).to(p.dtype).mean((0, 1)).detach()
        return next_word(self.head(x + y), w) + 0.1 * (load * p.mean((0, 1))).sum() * 4


@whole(text)
class LinearAttention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.table, self.qkv = nn.Embedding(WORDS, 8), nn.Linear(8, 24)
        self.head = nn.Linear(8, WORDS)

    def forward(self, w: Tensor) -> Tensor:
        q, k, v = self.qkv(self.table(w)).chunk(3, -1)
        q, k = F.elu(q) + 1, F.elu(k) + 1
        kv = (k.unsqueeze(-1) * v.unsqueeze(-2)).cumsum(1)
        y = (q.unsqueeze(-2) @ kv).squeeze(-2) / (q * k.cumsum(1)).sum(-1, keepdim=True)
        return next_word(self.head(y), w)


@whole(text)
class StateSpace(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.table, self.head = nn.Embedding(WORDS, 6), nn.Linear(6, WORDS)
        self.log_a = nn.Parameter(torch.rand(6, 4).log())
        self.step, self.bc, self.d = nn.Linear(6, 6), nn.Linear(6, 8), nn.Parameter(torch.ones(6))

    def forward(self, w: Tensor) -> Tensor:
        x = self.table(w)
        dt, (b, c) = F.softplus(self.step(x)), self.bc(x).chunk(2, -1)
        state, out = torch.zeros(x.shape[0], 6, 4, dtype=x.dtype), []
        for t in range(x.shape[1]):
            decay = torch.exp(-dt[:, t, :, None] * self.log_a.exp())
            state = decay * state + (dt[:, t] * x[:, t]).unsqueeze(-1) * b[:, t, None]
            out.append((state * c[:, t, None]).sum(-1) + self.d * x[:, t])
        return next_word(self.head(torch.stack(out, 1)), w)


@whole(lambda: (labels(WORDS, 6), labels(WORDS, 6), labels(WORDS, 6, 3)), steps=True)
class WordVectors(nn.Module):
    """Skip-grams with negative samples."""

    def __init__(self) -> None:
        super().__init__()
        self.word, self.context = nn.Embedding(WORDS, 8), nn.Embedding(WORDS, 8)

    def forward(self, word: Tensor, near: Tensor, far: Tensor) -> Tensor:
        w = self.word(word)
        right = F.logsigmoid((w * self.context(near)).sum(-1))
        wrong = F.logsigmoid(-(self.context(far) @ w.unsqueeze(-1)).squeeze(-1)).sum(-1)
        return -(right + wrong).mean()


@whole(lambda: (labels(WORDS, 4, 5), labels(3, 4)))
class BagOfWords(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.bag, self.head = nn.EmbeddingBag(WORDS, 8, mode="mean"), nn.Linear(8, 3)

    def forward(self, w: Tensor, y: Tensor) -> Tensor:
        return F.nll_loss(self.head(self.bag(w)).log_softmax(-1), y)


@whole(lambda: (normal(3, 5, 4), normal(3, 5, 4), normal(3, 5, 4)))
class Siamese(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.net = nn.GRU(4, 6, batch_first=True)

    def forward(self, anchor: Tensor, same: Tensor, other: Tensor) -> Tensor:
        a, p, n = (F.normalize(self.net(x)[1][-1], dim=-1) for x in (anchor, same, other))
        return F.triplet_margin_loss(a, p, n, margin=0.5)


@whole(lambda: (normal(2, 6, 5), labels(4, 2, 6)))
class RandomField(nn.Module):
    """A linear-chain conditional random field by the forward algorithm."""

    def __init__(self) -> None:
        super().__init__()
        self.emit, self.move = nn.Linear(5, 4), nn.Parameter(torch.randn(4, 4) * 0.1)

    def forward(self, x: Tensor, tags: Tensor) -> Tensor:
        z = self.emit(x)
        total = z[:, 0]
        for t in range(1, x.shape[1]):
            total = torch.logsumexp(total.unsqueeze(2) + self.move, 1) + z[:, t]
        path = z.gather(2, tags.unsqueeze(2)).sum((1, 2)) + self.move[
            tags[:, :-1], tags[:, 1:]].sum(1)
        return (total.logsumexp(1) - path).mean()


@whole(lambda: (normal(2, 5, 3), labels(5, 2, 4)))
class Pointer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.encode, self.cell = nn.LSTM(3, 6, batch_first=True), nn.LSTMCell(3, 6)
        self.a, self.b, self.v = nn.Linear(6, 6), nn.Linear(6, 6), nn.Linear(6, 1)

    def forward(self, x: Tensor, order: Tensor) -> Tensor:
        seen, (h, c) = self.encode(x)
        h, c, loss = h[0], c[0], torch.zeros((), dtype=x.dtype)
        given = x.mean(1)
        for t in range(order.shape[1]):
            h, c = self.cell(given, (h, c))
            scores = self.v(torch.tanh(self.a(seen) + self.b(h).unsqueeze(1))).squeeze(-1)
            loss = loss + F.cross_entropy(scores, order[:, t])
            given = x.gather(1, order[:, t].view(-1, 1, 1).expand(-1, 1, 3)).squeeze(1)
        return loss


@whole(lambda: (normal(2, 5, 16), labels(WORDS, 2, 4)), steps=True)
class Transcriber(nn.Module):
    """Convolutions over a spectrogram, an encoder, and a decoder with attention to it."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv1d(5, 8, 3, 2, 1)
        self.table = nn.Embedding(WORDS, 8)
        self.net = nn.Transformer(8, 2, 1, 1, 16, 0.0, "gelu", batch_first=True, norm_first=True)
        self.head = nn.Linear(8, WORDS)
        self.mask: Tensor
        self.register_buffer("mask", torch.triu(torch.ones(4, 4, dtype=torch.bool), 1))

    def forward(self, x: Tensor, w: Tensor) -> Tensor:
        seen = F.gelu(self.conv(x)).transpose(1, 2)
        made = self.net(seen, self.table(w), tgt_mask=self.mask, tgt_is_causal=True)
        return next_word(self.head(made), w)
