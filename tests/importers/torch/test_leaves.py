"""torch.fx with torch.nn's modules as leaves, and with functions and methods between them."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from graphtool.errors import UnsupportedError
from graphtool.importers.torch import import_torch
from tests.importers.torch.agreement import agree, normal

pytestmark = pytest.mark.filterwarnings("ignore")
IMAGE: tuple[nn.Module, ...] = (  # of [2, 4, 8, 8]
    nn.Conv2d(4, 6, 3, 2, 1), nn.ConvTranspose2d(4, 2, 2, 2), nn.BatchNorm2d(4), nn.GroupNorm(2, 4),
    nn.InstanceNorm2d(4, affine=True), nn.LocalResponseNorm(3), nn.MaxPool2d(2), nn.AvgPool2d(3, 1),
    nn.AdaptiveAvgPool2d((3, 2)), nn.AdaptiveMaxPool2d(2), nn.LPPool2d(2, 2), nn.PixelShuffle(2),
    nn.PixelUnshuffle(2), nn.Upsample(scale_factor=2, mode="bilinear"), nn.ReflectionPad2d(1),
    nn.ReplicationPad2d(2), nn.ConstantPad2d(1, 0.5), nn.CircularPad2d(1), nn.ChannelShuffle(2),
    nn.Flatten(), nn.Unfold(3), nn.Dropout2d(), nn.Softmax2d())
ROW: tuple[nn.Module, ...] = (  # of [2, 5, 8]
    nn.Linear(8, 3), nn.LayerNorm(8), nn.RMSNorm(8), nn.GELU(), nn.SiLU(), nn.Mish(), nn.ELU(),
    nn.PReLU(), nn.Softplus(), nn.Hardswish(), nn.GLU(), nn.Softmin(-1), nn.LogSoftmax(-1),
    nn.Conv1d(5, 4, 3), nn.Identity(), nn.Unflatten(2, (2, 4)), nn.CosineSimilarity(),
    nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), nn.Bilinear(8, 8, 2))


class Leaves(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.image, self.row = nn.ModuleList(IMAGE), nn.ModuleList(ROW)
        self.lstm = nn.LSTM(8, 6, batch_first=True)
        self.attention = nn.MultiheadAttention(8, 2, batch_first=True)

    def forward(self, x: Any, y: Any) -> Any:
        two = (nn.CosineSimilarity, nn.Bilinear)
        rows = [m(y, y * 2) if isinstance(m, two) else m(y) for m in self.row]
        state = self.lstm(y)
        return [m(x) for m in self.image], rows, state[0], self.attention(y, y, y)[0]


class Between(nn.Module):
    def forward(self, x: Any) -> Any:
        y = torch.cat([x.permute(0, 2, 3, 1), torch.ones_like(x).transpose(1, -1)], dim=-1)
        a, b = y.chunk(2, dim=-1)
        z = F.pad(a.clamp(min=-1).masked_fill(b > 2, 0.0), (1, 1)).roll(1, 0)
        return z.mean((1, 2), keepdim=True).expand(-1, 3, 3, -1)[..., ::2], -z[:, 0].size(0) * b


def test_modules_of_every_kind_as_leaves() -> None:
    torch.manual_seed(0)
    agree(Leaves().double().eval(), normal(2, 4, 8, 8), normal(2, 5, 8), capture="fx")


def test_functions_and_methods() -> None:
    agree(Between(), normal(2, 4, 8, 8), capture="fx")


class Odd(nn.Module):
    def forward(self, x: Any) -> Any:
        y = x * 2
        return torch.special.airy_ai(y)


def test_the_line_that_has_no_form_is_named() -> None:
    with pytest.raises(UnsupportedError, match=r"test_leaves.py:\d+"):
        import_torch(Odd(), (normal(3),), capture="fx")
