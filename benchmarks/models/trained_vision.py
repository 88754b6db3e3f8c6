"""Networks over images of the training benchmark: a U-Net, a GAN and a VAE in plain torch."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F


def _double(inner: int, outer: int) -> nn.Sequential:
    layers: list[nn.Module] = []
    for a in (inner, outer):
        layers += [nn.Conv2d(a, outer, 3, 1, 1, bias=False), nn.BatchNorm2d(outer), nn.ReLU()]
    return nn.Sequential(*layers)


class UNet(nn.Module):
    """Three levels of 3×3 convolutions with batch norms, and a class for each pixel."""

    def __init__(self, width: int, classes: int) -> None:
        super().__init__()
        w = width
        self.d1, self.d2, self.d3 = _double(3, w), _double(w, 2 * w), _double(2 * w, 4 * w)
        self.u2, self.c2 = nn.ConvTranspose2d(4 * w, 2 * w, 2, 2), _double(4 * w, 2 * w)
        self.u1, self.c1 = nn.ConvTranspose2d(2 * w, w, 2, 2), _double(2 * w, w)
        self.o = nn.Conv2d(w, classes, 1)

    def forward(self, x: Tensor) -> Tensor:
        a = self.d1(x)
        b = self.d2(F.max_pool2d(a, 2))
        y = self.d3(F.max_pool2d(b, 2))
        y = self.c2(torch.cat((self.u2(y), b), 1))
        out: Tensor = self.o(self.c1(torch.cat((self.u1(y), a), 1)))
        return out


class GAN(nn.Module):
    """One step of both networks of a DCGAN over images of 32×32 as one loss: the discriminator
    sees the images of the generator without their gradient, and the generator is judged by a copy
    of the discriminator that does not learn. There, gradients add up to those of two steps."""

    def __init__(self, noise: int, width: int) -> None:
        super().__init__()
        w = width
        self.g = nn.Sequential(
            nn.ConvTranspose2d(noise, 4 * w, 4), nn.BatchNorm2d(4 * w), nn.ReLU(),
            nn.ConvTranspose2d(4 * w, 2 * w, 4, 2, 1), nn.BatchNorm2d(2 * w), nn.ReLU(),
            nn.ConvTranspose2d(2 * w, w, 4, 2, 1), nn.BatchNorm2d(w), nn.ReLU(),
            nn.ConvTranspose2d(w, 3, 4, 2, 1), nn.Tanh())
        self.d1, self.d2 = nn.Conv2d(3, w, 4, 2, 1), nn.Conv2d(w, 2 * w, 4, 2, 1)
        self.d3, self.d4 = nn.Conv2d(2 * w, 4 * w, 4, 2, 1), nn.Conv2d(4 * w, 1, 4)

    def scores(self, x: Tensor, learns: bool) -> Tensor:
        """Of the discriminator, for each image."""
        for conv in (self.d1, self.d2, self.d3, self.d4):
            w, b = conv.weight, conv.bias
            assert b is not None
            w, b = (w, b) if learns else (w.detach(), b.detach())
            x = F.conv2d(x, w, b, conv.stride, conv.padding)
            x = x if conv is self.d4 else F.leaky_relu(x, 0.2)
        return x

    def forward(self, real: Tensor, noise: Tensor) -> Tensor:
        made = self.g(noise)
        judged = (F.softplus(-self.scores(real, True)).mean()
                  + F.softplus(self.scores(made.detach(), True)).mean())
        return judged + F.softplus(-self.scores(made, False)).mean()


class VAE(nn.Module):
    """Kingma and Welling 2014 over images of 784 pixels: reconstruction and divergence."""

    def __init__(self, hidden: int, latent: int) -> None:
        super().__init__()
        self.a, self.mean = nn.Linear(784, hidden), nn.Linear(hidden, latent)
        self.spread, self.b = nn.Linear(hidden, latent), nn.Linear(latent, hidden)
        self.c = nn.Linear(hidden, 784)

    def forward(self, x: Tensor, noise: Tensor) -> Tensor:
        h = F.relu(self.a(x))
        mean, spread = self.mean(h), self.spread(h)
        z = mean + noise * torch.exp(0.5 * spread)
        y = self.c(F.relu(self.b(z)))
        apart = F.binary_cross_entropy_with_logits(y, x, reduction="none").sum(1)
        divergence = -0.5 * (1 + spread - mean.pow(2) - spread.exp()).sum(1)
        return (apart + divergence).mean()
