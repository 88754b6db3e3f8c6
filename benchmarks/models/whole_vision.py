"""Whole models that see: classifiers, detectors, segmentation, attention over patches."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from benchmarks.models.whole import labels, normal, uniform, whole


def images(classes: int = 5, n: int = 4, c: int = 3, size: int = 8) -> Any:
    return lambda: (normal(n, c, size, size), labels(classes, n))


def conv_bn(i: int, o: int, k: int = 3, stride: int = 1, groups: int = 1) -> nn.Sequential:
    return nn.Sequential(nn.Conv2d(i, o, k, stride, k // 2, groups=groups, bias=False),
                         nn.BatchNorm2d(o), nn.ReLU())


class Classifier(nn.Module):
    """Features, a global mean, one layer, cross entropy."""

    def __init__(self, features: nn.Module, width: int, classes: int = 5) -> None:
        super().__init__()
        self.features, self.head = features, nn.Linear(width, classes)

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        return F.cross_entropy(self.head(self.features(x).mean((2, 3))), y)


@whole(lambda: (normal(8, 10), labels(3, 8)), steps=True)
class Perceptron(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Linear(10, 16), nn.Tanh(), nn.Linear(16, 16), nn.GELU(),
                                 nn.Linear(16, 3))

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        return F.cross_entropy(self.net(x), y)


@whole(lambda: (normal(4, 1, 12, 12), labels(10, 4)), steps=True)
class LeNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(1, 6, 3, padding=1), nn.Conv2d(6, 8, 3)
        self.fc1, self.fc2 = nn.Linear(32, 20), nn.Linear(20, 10)

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        x = F.max_pool2d(F.relu(self.conv1(x)), 2)
        x = F.max_pool2d(F.relu(self.conv2(x)), 2)
        return F.nll_loss(F.log_softmax(self.fc2(F.relu(self.fc1(x.flatten(1)))), 1), y)


@whole(images(), steps=True)
class VggWithBatchNorm(Classifier):
    def __init__(self) -> None:
        super().__init__(nn.Sequential(conv_bn(3, 8), conv_bn(8, 8), nn.MaxPool2d(2),
                                       conv_bn(8, 12)), 12)


class Residual(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.a, self.b = conv_bn(width, width), nn.Conv2d(width, width, 3, padding=1)
        self.norm = nn.BatchNorm2d(width)

    def forward(self, x: Tensor) -> Tensor:
        return F.relu(x + self.norm(self.b(self.a(x))))


@whole(images(), steps=True)
class ResNet(Classifier):
    def __init__(self) -> None:
        super().__init__(nn.Sequential(conv_bn(3, 8), Residual(8), conv_bn(8, 8, 3, 2),
                                       Residual(8)), 8)


class PreActivated(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm, self.conv = nn.GroupNorm(2, width), nn.Conv2d(width, width, 3, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.conv(F.silu(self.norm(x)))


@whole(images(), steps=True)
class PreActivatedResNet(Classifier):
    def __init__(self) -> None:
        super().__init__(nn.Sequential(nn.Conv2d(3, 8, 3), PreActivated(8), nn.AvgPool2d(2),
                                       PreActivated(8)), 8)


class DenseLayer(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.conv = conv_bn(width, 4)

    def forward(self, x: Tensor) -> Tensor:
        return torch.cat([x, self.conv(x)], 1)


@whole(images())
class DenseNet(Classifier):
    def __init__(self) -> None:
        super().__init__(nn.Sequential(nn.BatchNorm2d(3, momentum=None), DenseLayer(3),
                                       DenseLayer(7), DenseLayer(11)), 15)


class Inverted(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Conv2d(width, 16, 1), nn.ReLU6(), conv_bn(16, 16, groups=16),
                                 nn.Conv2d(16, width, 1))

    def forward(self, x: Tensor) -> Tensor:
        return x + self.net(x)


@whole(images(), steps=True)
class MobileNet(Classifier):
    def __init__(self) -> None:
        super().__init__(nn.Sequential(conv_bn(3, 8, 3, 2), Inverted(8), nn.Hardswish()), 8)


@whole(images(c=8))
class ShuffleNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv, self.head = conv_bn(8, 8, groups=2), nn.Linear(8, 5)

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        x = F.channel_shuffle(self.conv(x), 2) + x
        left, right = x.chunk(2, 1)
        return F.cross_entropy(self.head(torch.cat([left, F.relu(right)], 1).mean((2, 3))), y)


@whole(images())
class SqueezeAndExcite(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv, self.head = nn.Conv2d(3, 8, 3), nn.Linear(8, 5)
        self.gate = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Conv2d(8, 2, 1), nn.ReLU(),
                                  nn.Conv2d(2, 8, 1), nn.Sigmoid())
        self.weight: Tensor
        self.register_buffer("weight", torch.linspace(0.5, 1.5, 5))

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        x = self.conv(x)
        pooled = F.adaptive_max_pool2d(x * self.gate(x), 1).flatten(1)
        return F.cross_entropy(self.head(pooled), y, weight=self.weight)


@whole(images())
class Inception(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = nn.Conv2d(3, 4, 1), nn.Conv2d(3, 4, (1, 3), padding=(0, 1))
        self.c, self.head = nn.Conv2d(3, 4, 5, padding=2), nn.Linear(15, 5)

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        parts = [self.a(x), self.b(x), self.c(x), F.avg_pool2d(x, 3, 1, 1)]
        return F.cross_entropy(self.head(F.elu(torch.cat(parts, 1)).mean((2, 3))), y)


@whole(images(), steps=True)
class ConvNext(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stem, self.depth = nn.Conv2d(3, 8, 2, 2), nn.Conv2d(8, 8, 3, padding=1, groups=8)
        self.norm, self.up, self.down = nn.LayerNorm(8), nn.Linear(8, 32), nn.Linear(32, 8)
        self.scale, self.head = nn.Parameter(torch.full((8,), 0.5)), nn.Linear(8, 5)

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        x = self.stem(x)
        z = self.norm(self.depth(x).permute(0, 2, 3, 1))
        z = self.scale * self.down(F.gelu(self.up(z)))
        return F.cross_entropy(self.head((x + z.permute(0, 3, 1, 2)).mean((2, 3))), y,
                               label_smoothing=0.1)


@whole(lambda: (normal(2, 3, 8, 8), labels(2, 2, 8, 8)), steps=True)
class UNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = conv_bn(3, 8), conv_bn(8, 16)
        self.up, self.c = nn.ConvTranspose2d(16, 8, 2, 2), conv_bn(16, 8)
        self.head = nn.Conv2d(8, 2, 1)

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        a = self.a(x)
        z = self.head(self.c(torch.cat([a, self.up(self.b(F.max_pool2d(a, 2)))], 1)))
        p = z.softmax(1)[:, 1]
        dice = 1 - (2 * (p * y).sum() + 1) / (p.sum() + y.sum() + 1)
        return F.cross_entropy(z, y, ignore_index=0) + dice


@whole(lambda: (normal(2, 3, 8, 8), labels(3, 2, 8, 8)))
class DilatedSegmentation(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 6, 3, 2, 1)
        self.rates = nn.ModuleList(nn.Conv2d(6, 4, 3, padding=r, dilation=r) for r in (1, 2, 3))
        self.pool, self.head = nn.Conv2d(6, 4, 1), nn.Conv2d(16, 3, 1)

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        x = F.leaky_relu(self.stem(x))
        top = F.interpolate(self.pool(x.mean((2, 3), keepdim=True)), x.shape[2:], mode="bilinear")
        z = self.head(torch.cat([*(r(x) for r in self.rates), top], 1))
        return F.cross_entropy(F.interpolate(z, scale_factor=2, mode="bilinear"), y)


@whole(lambda: (normal(2, 3, 8, 8), normal(2, 3, 8, 8)))
class FeaturePyramid(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = nn.Conv2d(3, 6, 3, 2, 1), nn.Conv2d(6, 6, 3, 2, 1)
        self.side, self.out = nn.Conv2d(6, 6, 1), nn.Conv2d(6, 12, 3, padding=1)

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        a = F.relu(self.a(x))
        merged = self.side(a) + F.interpolate(self.b(a), scale_factor=2, mode="nearest")
        return F.smooth_l1_loss(F.pixel_shuffle(self.out(merged), 2), y, beta=0.5)


def complete_iou(a: Tensor, b: Tensor) -> Tensor:
    """The CIoU loss of boxes (x, y, width, height), whose weight torch's authors detach."""
    (ax, ay, aw, ah), (bx, by, bw, bh) = a.unbind(-1), b.unbind(-1)
    left, right = torch.max(ax - aw / 2, bx - bw / 2), torch.min(ax + aw / 2, bx + bw / 2)
    top, low = torch.max(ay - ah / 2, by - bh / 2), torch.min(ay + ah / 2, by + bh / 2)
    inner = (right - left).clamp(0) * (low - top).clamp(0)
    iou = inner / (aw * ah + bw * bh - inner + 1e-7)
    wide = torch.max(ax + aw / 2, bx + bw / 2) - torch.min(ax - aw / 2, bx - bw / 2)
    high = torch.max(ay + ah / 2, by + bh / 2) - torch.min(ay - ah / 2, by - bh / 2)
    apart = ((ax - bx) ** 2 + (ay - by) ** 2) / (wide ** 2 + high ** 2 + 1e-7)
    v = 4 / torch.pi ** 2 * (torch.atan(bw / bh) - torch.atan(aw / ah)) ** 2
    with torch.no_grad():
        alpha = v / (v - iou + 1 + 1e-7)
    return 1 - iou + apart + alpha * v


@whole(lambda: (normal(2, 3, 8, 8), uniform(2, 16, 4) + 0.5, labels(2, 2, 16).float()), steps=True)
class Detector(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Conv2d(3, 8, 3, 2, 1), nn.Mish(), nn.Conv2d(8, 5, 1))

    def forward(self, x: Tensor, boxes: Tensor, there: Tensor) -> Tensor:
        z = self.net(x).flatten(2).transpose(1, 2)
        where = torch.cat([z[..., :2].sigmoid() * 2, z[..., 2:4].exp()], -1)
        loss = complete_iou(where, boxes) * there
        return loss.sum() / there.sum().clamp(1) + F.binary_cross_entropy_with_logits(
            z[..., 4], there, pos_weight=torch.tensor(2.0, dtype=x.dtype))


@whole(images(size=8), steps=True)
class VisionTransformer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.patch, self.token = nn.Conv2d(3, 16, 4, 4), nn.Parameter(torch.zeros(1, 1, 16))
        self.place = nn.Parameter(torch.randn(1, 5, 16) * 0.02)
        layer = nn.TransformerEncoderLayer(16, 2, 32, 0.0, "gelu", batch_first=True,
                                           norm_first=True)
        self.body, self.head = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False), \
            nn.Linear(16, 5)

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        x = self.patch(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(x.shape[0], -1, -1), x], 1) + self.place
        return F.cross_entropy(self.head(self.body(x)[:, 0]), y)


@whole(lambda: (normal(2, 8, 8, 12), labels(5, 2)))
class ShiftedWindows(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.qkv, self.out, self.head = nn.Linear(12, 36), nn.Linear(12, 12), nn.Linear(12, 5)
        self.bias = nn.Parameter(torch.randn(16, 16) * 0.1)

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        x = torch.roll(x, (-2, -2), (1, 2))
        w = x.view(2, 2, 4, 2, 4, 12).permute(0, 1, 3, 2, 4, 5).reshape(8, 16, 12)
        q, k, v = self.qkv(w).chunk(3, -1)
        w = w + self.out((q @ k.mT / 12 ** 0.5 + self.bias).softmax(-1) @ v)
        x = w.view(2, 2, 2, 4, 4, 12).permute(0, 1, 3, 2, 4, 5).reshape(2, 8, 8, 12)
        return F.cross_entropy(self.head(torch.roll(x, (2, 2), (1, 2)).mean((1, 2))), y)


@whole(images(c=1))
class SpatialTransformer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.where = nn.Linear(64, 6)
        nn.init.normal_(self.where.weight, std=0.01)
        self.where.bias.data.copy_(torch.tensor([0.9, 0.1, 0, 0, 0.8, 0.1]))
        self.conv, self.head = nn.Conv2d(1, 6, 3), nn.Linear(6, 5)

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        theta = self.where(x.flatten(1)).view(-1, 2, 3)
        grid = F.affine_grid(theta, list(x.shape), align_corners=False)
        x = F.grid_sample(x, grid, align_corners=False, padding_mode="border")
        return F.cross_entropy(self.head(F.relu(self.conv(x)).mean((2, 3))), y)


@whole(images())
class Capsules(nn.Module):
    """Routing by agreement: all but the last round work on detached votes."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.votes = nn.Conv2d(3, 8, 5, 2), nn.Parameter(torch.randn(8, 5, 4, 4) * 0.3)

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        low = self.conv(x).flatten(2).reshape(-1, 8, 4)
        votes = torch.einsum("nid,iode->nioe", low, self.votes)
        logits = torch.zeros_like(votes[..., 0])
        for last in (False, False, True):
            seen = votes if last else votes.detach()
            high = (logits.softmax(2).unsqueeze(-1) * seen).sum(1)
            size = high.norm(dim=-1, keepdim=True)
            high = high * size / (1 + size ** 2)
            if not last:
                logits = logits + (seen * high.unsqueeze(1)).sum(-1)
        lengths, true = high.norm(dim=-1), F.one_hot(y, 5)
        return (true * (0.9 - lengths).relu() ** 2
                + 0.5 * (1 - true) * (lengths - 0.1).relu() ** 2).sum(1).mean()


@whole(lambda: (normal(1, 3, 8, 8), normal(1, 3, 8, 8)))
class StyleLoss(nn.Module):
    """The network is frozen; the picture is what is learnt."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Conv2d(8, 8, 3))
        self.net.requires_grad_(False)
        self.picture = nn.Parameter(torch.rand(1, 3, 8, 8))

    def gram(self, x: Tensor) -> Tensor:
        f = self.net(x).flatten(2)
        return f @ f.mT / f.shape[-1]

    def forward(self, content: Tensor, style: Tensor) -> Tensor:
        return F.mse_loss(self.gram(self.picture), self.gram(style)) + F.l1_loss(
            self.net(self.picture), self.net(content).detach())


@whole(lambda: (normal(2, 2, 4, 6, 6), labels(3, 2)))
class Volumes(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv, self.norm = nn.Conv3d(2, 6, 3, padding=1), nn.InstanceNorm3d(6, affine=True)
        self.head = nn.Linear(6, 3)

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        x = F.max_pool3d(F.celu(self.norm(self.conv(x))), 2)
        return F.cross_entropy(self.head(x.mean((2, 3, 4))), y)
