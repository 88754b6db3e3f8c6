"""Small models of other fields in plain torch: convolutions over graphs, and recommenders."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn

Sample = tuple[nn.Module, tuple[Tensor, ...]]
NODES, EDGES, FEATURES, WIDTH, CLASSES = 200, 1000, 32, 64, 7  # of a graph
FIELDS, WORDS, EMBEDDED, DENSE = 26, 1000, 16, 13  # of a recommender


class GraphConvolution(nn.Module):
    """Three layers that sum over neighbours by a dense adjacency matrix."""

    def __init__(self) -> None:
        super().__init__()
        widths = (FEATURES, WIDTH, WIDTH, CLASSES)
        self.layers = nn.ModuleList(nn.Linear(i, o) for i, o in pairwise(widths))

    def forward(self, x: Tensor, *edges: Tensor) -> Tensor:
        for k, layer in enumerate(self.layers):
            x = self.summed(layer(x), *edges)
            x = x.relu() if k < len(self.layers) - 1 else x
        return x

    def summed(self, x: Tensor, *edges: Tensor) -> Tensor:
        return edges[0] @ x


class EdgeList(GraphConvolution):
    """The same by a list of edges and their weights: gathered and scattered."""

    def summed(self, x: Tensor, *edges: Tensor) -> Tensor:
        ends, weights = edges
        return torch.zeros_like(x).index_add(0, ends[1], x[ends[0]] * weights[:, None])


def _stack(widths: Sequence[int]) -> nn.Sequential:
    layers: list[nn.Module] = []
    for inputs, outputs in pairwise(widths):
        layers += [nn.Linear(inputs, outputs), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


class Recommender(nn.Module):
    """Embedded fields and a dense part, and the products of each two of them, as DLRM has it."""

    def __init__(self) -> None:
        super().__init__()
        self.tables = nn.ModuleList(nn.Embedding(WORDS, EMBEDDED) for _ in range(FIELDS))
        self.bottom = _stack((DENSE, 64, 32, EMBEDDED))
        self.top = _stack((EMBEDDED + FIELDS * (FIELDS + 1) // 2, 64, 32, 1))
        row, column = torch.tril_indices(FIELDS + 1, FIELDS + 1, -1)
        self.register_buffer("pairs", row * (FIELDS + 1) + column)

    def forward(self, dense: Tensor, fields: Tensor) -> Tensor:
        x = self.bottom(dense)
        rows = torch.stack([x, *(t(fields[:, i]) for i, t in enumerate(self.tables))], 1)
        products = (rows @ rows.transpose(1, 2)).flatten(1)[:, self.pairs]
        return torch.sigmoid(self.top(torch.cat([x, products], 1)))


def recommender(batch: int) -> Sample:
    return Recommender(), (torch.rand(batch, DENSE), torch.randint(0, WORDS, (batch, FIELDS)))


MODELS = {
    "gcn_dense": lambda: (GraphConvolution(), (
        torch.randn(NODES, FEATURES), torch.rand(NODES, NODES))),
    "gcn_edges": lambda: (EdgeList(), (
        torch.randn(NODES, FEATURES), torch.randint(0, NODES, (2, EDGES)), torch.rand(EDGES))),
    "dlrm_b32": lambda: recommender(32),
}
