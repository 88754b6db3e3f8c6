"""Small networks trained on scikit-learn's digits, as `samples/` has them: 8×8 images."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

SAMPLES = Path(__file__).parents[2] / "samples"
COUNT = 360  # test images
_EPOCHS = 15


class Transformer(nn.Module):
    """Two encoder layers over the eight rows of an image."""

    def __init__(self) -> None:
        super().__init__()
        self.into = nn.Linear(8, 64)
        self.place = nn.Parameter(torch.randn(8, 64) * 0.1)
        self.layers = nn.ModuleList(nn.TransformerEncoderLayer(
            64, 4, 128, dropout=0.0, batch_first=True, activation="gelu") for _ in range(2))
        self.head = nn.Linear(64, 10)

    def forward(self, x: torch.Tensor) -> Any:
        y = self.into(x.squeeze(1)) + self.place
        for layer in self.layers:
            y = layer(y)
        return self.head(y.mean(1))


def _mlp() -> nn.Module:
    return nn.Sequential(nn.Flatten(), nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 128),
                         nn.ReLU(), nn.Linear(128, 10))


def _cnn() -> nn.Module:
    def block(a: int, b: int, groups: int = 1) -> list[nn.Module]:
        return [nn.Conv2d(a, b, 3, padding=1, groups=groups, bias=False), nn.BatchNorm2d(b),
                nn.ReLU()]
    return nn.Sequential(*block(1, 16), *block(16, 32), nn.MaxPool2d(2), *block(32, 32, 32),
                         *block(32, 64), nn.AvgPool2d(2), nn.Flatten(), nn.Linear(256, 10))


MAKERS: dict[str, Any] = {"digits_mlp": _mlp, "digits_cnn": _cnn,
                          "digits_transformer": Transformer}


def made(name: str) -> tuple[nn.Module, Any, Any, Any]:
    """(the trained network, images it was trained on, test images, their labels)."""
    torch.manual_seed(0)
    torch.backends.mha.set_fastpath_enabled(False)  # its fused op has no form in ONNX
    train, test = (np.load(SAMPLES / f"digits_{part}.npz") for part in ("train", "test"))
    model = MAKERS[name]()
    x, y = torch.from_numpy(train["image"]), torch.from_numpy(train["y"]).long()
    optimizer = torch.optim.Adam(model.parameters(), 2e-3)
    for _ in range(_EPOCHS):
        for rows in torch.randperm(len(x)).split(64):
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(x[rows]), y[rows]).backward()
            optimizer.step()
    return model.eval(), train["image"], test["image"], test["y"]
