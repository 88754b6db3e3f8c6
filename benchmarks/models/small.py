"""Models that run in well under a millisecond or step through time, in plain torch."""

from __future__ import annotations

import torch
from torch import Tensor, nn

CARDINALITIES = (12, 31, 7, 100, 1000, 50, 24, 5)
NUMERIC, ROWS = 16, 256


def lenet() -> nn.Sequential:
    """A digit classifier over [N, 1, 28, 28]."""
    return nn.Sequential(
        nn.Conv2d(1, 6, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(6, 16, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
        nn.Linear(400, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(), nn.Linear(84, 10))


def mlp() -> nn.Sequential:
    return nn.Sequential(nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 128), nn.ReLU(),
                         nn.Linear(128, 10))


class Tabular(nn.Module):
    """Categories [N, 8] by embeddings and numbers [N, 16] by batch norm, to one probability."""

    def __init__(self) -> None:
        super().__init__()
        widths = [min(32, (n + 1) // 2) for n in CARDINALITIES]
        self.tables = nn.ModuleList(
            nn.Embedding(n, w) for n, w in zip(CARDINALITIES, widths, strict=True))
        self.norm = nn.BatchNorm1d(NUMERIC)
        self.body = nn.Sequential(
            nn.Linear(sum(widths) + NUMERIC, 256), nn.ReLU(), nn.BatchNorm1d(256),
            nn.Dropout(0.1), nn.Linear(256, 128), nn.GELU(), nn.LayerNorm(128),
            nn.Linear(128, 1))

    def forward(self, categories: Tensor, numbers: Tensor) -> Tensor:
        parts = [table(categories[:, i]) for i, table in enumerate(self.tables)]
        x = torch.cat([*parts, self.norm(numbers)], 1)
        return torch.sigmoid(self.body(x)).squeeze(-1)


class Tagger(nn.Module):
    """Two LSTM layers over [N, T, 128], a score per step and tag."""

    def __init__(self) -> None:
        super().__init__()
        self.recurrent = nn.LSTM(128, 256, 2, batch_first=True)
        self.head = nn.Linear(256, 32)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.head(self.recurrent(x)[0])
        return out


def _tabular() -> tuple[nn.Module, tuple[Tensor, ...]]:
    model = Tabular()
    categories = torch.stack([torch.randint(0, n, (ROWS,)) for n in CARDINALITIES], 1)
    return model, (categories, torch.randn(ROWS, NUMERIC))


MODELS = {
    "lenet": lambda: (lenet(), (torch.rand(1, 1, 28, 28),)),
    "mlp_b1": lambda: (mlp(), (torch.rand(1, 784),)),
    "mlp_b64": lambda: (mlp(), (torch.rand(64, 784),)),
    "tabular_mlp": _tabular,
    "lstm": lambda: (Tagger(), (torch.randn(1, 64, 128),)),
}
