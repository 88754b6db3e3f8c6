"""Other networks of the training benchmark: over graphs, clicks and speech, in plain torch."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F


class GCN(nn.Module):
    """Kipf and Welling 2017: two layers over the edges of one graph, of the size of Cora."""

    def __init__(self, nodes: int, edges: int, features: int, hidden: int, classes: int) -> None:
        super().__init__()
        pairs = torch.randint(0, nodes, (2, edges))
        own = torch.arange(nodes).expand(2, -1)
        source, target = torch.cat((pairs, pairs.flip(0), own), 1)
        degree = torch.bincount(target, minlength=nodes).float()
        self.register_buffer("source", source)
        self.register_buffer("target", target)
        self.register_buffer("weight", (degree[source] * degree[target]).rsqrt()[:, None])
        self.a, self.b = nn.Linear(features, hidden), nn.Linear(hidden, classes)

    def spread(self, x: Tensor) -> Tensor:
        """The weighted sum of each node's neighbours."""
        return torch.zeros_like(x).index_add(0, self.target, x[self.source] * self.weight)

    def forward(self, x: Tensor) -> Tensor:
        return self.spread(self.b(F.relu(self.spread(self.a(x)))))


class DLRM(nn.Module):
    """Naumov and others 2019: 13 counts and 26 categories, their products by pairs, a click."""

    def __init__(self, rows: int, width: int) -> None:
        super().__init__()
        self.e = nn.ModuleList(nn.Embedding(rows, width) for _ in range(26))
        self.bottom = nn.Sequential(nn.Linear(13, 512), nn.ReLU(), nn.Linear(512, 256), nn.ReLU(),
                                    nn.Linear(256, width), nn.ReLU())
        self.top = nn.Sequential(nn.Linear(width + 351, 512), nn.ReLU(), nn.Linear(512, 256),
                                 nn.ReLU(), nn.Linear(256, 1))
        at = torch.tril_indices(27, 27, -1)
        self.register_buffer("pairs", at[0] * 27 + at[1])

    def forward(self, x: Tensor) -> Tensor:
        dense = self.bottom(torch.log1p(x[:, :13].to(self.bottom[0].weight.dtype)))
        all_of = torch.stack([dense, *(e(x[:, 13 + i]) for i, e in enumerate(self.e))], 1)
        products = torch.bmm(all_of, all_of.transpose(1, 2)).flatten(1)
        out: Tensor = self.top(torch.cat((dense, products[:, self.pairs]), 1))
        return out


class Speech(nn.Module):
    """Two convolutions over 80 bands, transformer layers, and a sound for each frame."""

    def __init__(self, width: int, heads: int, layers: int, sounds: int) -> None:
        super().__init__()
        self.c1, self.c2 = nn.Conv1d(80, width, 3, 1, 1), nn.Conv1d(width, width, 3, 2, 1)
        self.b = nn.ModuleList(nn.TransformerEncoderLayer(
            width, heads, 4 * width, 0.0, "gelu", batch_first=True, norm_first=True)
            for _ in range(layers))
        self.n, self.o = nn.LayerNorm(width), nn.Linear(width, sounds)

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = F.gelu(self.c2(F.gelu(self.c1(x)))).transpose(1, 2)
        for layer in self.b:
            y = layer(y)
        out: Tensor = self.o(self.n(y)).flatten(0, 1)
        return out


def clicks(batch: int, rows: int) -> tuple[Tensor, Tensor]:
    """Counts and categories side by side, and whether there was a click."""
    x = torch.cat((torch.randint(0, 100, (batch, 13)), torch.randint(0, rows, (batch, 26))), 1)
    return x, torch.randint(0, 2, (batch, 1)).float()
