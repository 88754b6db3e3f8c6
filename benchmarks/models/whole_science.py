"""Whole models of science and tables: equations, graphs, sets, densities, recommendations."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from benchmarks.models.whole import labels, normal, uniform, whole
from benchmarks.models.whole_schemes import dense


@whole(lambda: (uniform(8, 2),))
class HeatEquation(nn.Module):
    """A physics-informed net: second derivatives of the net by its input, in the loss."""

    def __init__(self) -> None:
        super().__init__()
        self.net = dense(2, 10, 10, 1)

    def forward(self, points: Tensor) -> Tensor:
        x = points.requires_grad_()
        u = self.net(x)
        first, = torch.autograd.grad(u.sum(), x, create_graph=True)
        second, = torch.autograd.grad(first[:, 0].sum(), x, create_graph=True)
        return ((first[:, 1] - 0.1 * second[:, 0]) ** 2).mean() + (u ** 2).mean()


@whole(lambda: (normal(4, 3), normal(4, 3)), steps=True)
class NeuralOde(nn.Module):
    """Four Runge-Kutta steps."""

    def __init__(self) -> None:
        super().__init__()
        self.net = dense(3, 10, 3)

    def forward(self, x: Tensor, goal: Tensor) -> Tensor:
        for _ in range(4):
            a = self.net(x)
            b = self.net(x + 0.125 * a)
            c = self.net(x + 0.125 * b)
            d = self.net(x + 0.25 * c)
            x = x + 0.25 / 6 * (a + 2 * b + 2 * c + d)
        return F.mse_loss(x, goal)


@whole(lambda: (normal(3, 4), normal(3, 4)))
class Equilibrium(nn.Module):
    """A fixed point without gradients, then one step with them."""

    def __init__(self) -> None:
        super().__init__()
        self.w, self.u = nn.Linear(4, 4, bias=False), nn.Linear(4, 4)

    def forward(self, x: Tensor, goal: Tensor) -> Tensor:
        z = torch.zeros_like(x)
        with torch.no_grad():
            for _ in range(5):
                z = torch.tanh(0.5 * self.w(z) + self.u(x))
        return F.mse_loss(torch.tanh(0.5 * self.w(z) + self.u(x)), goal)


@whole(lambda: (normal(6, 4), labels(6, 2, 10), labels(3, 6)), steps=True)
class GraphConvolution(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = nn.Linear(4, 8), nn.Linear(8, 3)

    def pass_on(self, x: Tensor, edges: Tensor) -> Tensor:
        count = torch.ones(len(x), dtype=x.dtype).index_add(
            0, edges[1], torch.ones(edges.shape[1], dtype=x.dtype))
        return (x + torch.zeros_like(x).index_add(0, edges[1], x[edges[0]])) / count[:, None]

    def forward(self, x: Tensor, edges: Tensor, y: Tensor) -> Tensor:
        x = F.relu(self.a(self.pass_on(x, edges)))
        return F.cross_entropy(self.b(self.pass_on(x, edges)), y)


@whole(lambda: (normal(6, 4), labels(6, 2, 10), normal(6)))
class GraphAttention(nn.Module):
    """A softmax over the edges of each node, by scatters."""

    def __init__(self) -> None:
        super().__init__()
        self.w, self.a, self.out = nn.Linear(4, 6), nn.Linear(12, 1), nn.Linear(6, 1)

    def forward(self, x: Tensor, edges: Tensor, y: Tensor) -> Tensor:
        h, (source, target) = self.w(x), edges.unbind(0)
        scores = F.leaky_relu(self.a(torch.cat([h[source], h[target]], -1)).squeeze(-1), 0.2)
        top = torch.full((6,), -10.0, dtype=x.dtype).scatter_reduce(0, target, scores, "amax")
        weights = (scores - top[target].detach()).exp()
        total = torch.zeros(6, dtype=x.dtype).scatter_add(0, target, weights)
        mixed = torch.zeros_like(h).index_add(
            0, target, (weights / total[target])[:, None] * h[source])
        return F.mse_loss(self.out(F.elu(mixed + h)).squeeze(-1), y)


@whole(lambda: (normal(5, 3), labels(7, 5, 2), uniform(5).round()), steps=True)
class Recommender(nn.Module):
    """DLRM: embeddings, pairwise products of them, a small net."""

    def __init__(self) -> None:
        super().__init__()
        self.tables = nn.ModuleList(nn.Embedding(7, 4) for _ in range(2))
        self.bottom, self.top = dense(3, 6, 4), dense(7, 8, 1)

    def forward(self, x: Tensor, which: Tensor, y: Tensor) -> Tensor:
        parts = torch.stack([self.bottom(x), *(
            t(which[:, i]) for i, t in enumerate(self.tables))], 1)
        i, j = torch.triu_indices(3, 3, 1)
        pairs = (parts @ parts.mT)[:, i, j]
        z = self.top(torch.cat([parts[:, 0], pairs], 1)).squeeze(1)
        return F.binary_cross_entropy(z.sigmoid(), y)


@whole(lambda: (labels(5, 8), labels(6, 8), normal(8)), steps=True)
class MatrixFactorisation(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.user, self.item = nn.Embedding(5, 3), nn.Embedding(6, 3)
        self.user_bias, self.item_bias = nn.Embedding(5, 1), nn.Embedding(6, 1)

    def forward(self, u: Tensor, i: Tensor, stars: Tensor) -> Tensor:
        guess = (self.user(u) * self.item(i)).sum(1) + (
            self.user_bias(u) + self.item_bias(i)).squeeze(1)
        return F.mse_loss(guess, stars) + 0.01 * (self.user(u) ** 2).mean()


@whole(lambda: (normal(6, 3), normal(6)))
class MixtureDensity(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.net = dense(3, 8, 12)

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        share, mean, log_scale = self.net(x).chunk(3, -1)
        gap = (y[:, None] - mean) / log_scale.exp()
        return -torch.logsumexp(share.log_softmax(-1) - log_scale - 0.5 * gap ** 2, -1).mean()


@whole(lambda: (normal(6, 2), normal(6)))
class GaussianProcess(nn.Module):
    """The marginal likelihood, by Cholesky."""

    def __init__(self) -> None:
        super().__init__()
        self.log_length = nn.Parameter(torch.tensor(0.1))
        self.log_noise = nn.Parameter(torch.tensor(-1.0))

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        square = ((x[:, None] - x[None]) / self.log_length.exp()).square().sum(-1)
        k = torch.exp(-0.5 * square) + self.log_noise.exp() * torch.eye(6, dtype=x.dtype)
        root = torch.linalg.cholesky(k)
        z = torch.linalg.solve_triangular(root, y[:, None], upper=False)
        return 0.5 * (z ** 2).sum() + root.diagonal().log().sum()


@whole(lambda: (normal(4, 6, 3), labels(3, 4)))
class DeepSet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.each, self.all = dense(3, 8, 6), dense(18, 8, 3)

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        z = self.each(x)
        pooled = torch.cat([z.mean(1), z.amax(1), z.std(1)], -1)
        return F.cross_entropy(self.all(pooled), y)


@whole(lambda: (normal(4, 6, 3), labels(3, 4)))
class PointCloud(nn.Module):
    """PointNet++ in small: neighbours by distance, a maximum over them."""

    def __init__(self) -> None:
        super().__init__()
        self.net, self.head = dense(3, 8, 6), nn.Linear(6, 3)

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        near = torch.cdist(x, x).topk(3, largest=False).indices
        around = x.unsqueeze(1).expand(-1, 6, -1, -1).gather(
            2, near.unsqueeze(-1).expand(-1, -1, -1, 3)) - x.unsqueeze(2)
        return F.cross_entropy(self.head(self.net(around).amax(2).mean(1)), y)


@whole(lambda: (normal(3, 1, 6, 6), uniform(3), normal(3, 1, 6, 6)), steps=True)
class Diffusion(nn.Module):
    """A net that guesses the noise, with the time put in by sines."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.time = nn.Conv2d(1, 8, 3, padding=1), nn.Linear(4, 8)
        self.norm, self.b = nn.GroupNorm(4, 8), nn.Conv2d(8, 1, 3, padding=1)

    def forward(self, x: Tensor, t: Tensor, noise: Tensor) -> Tensor:
        keep = torch.cos(t * torch.pi / 2).view(-1, 1, 1, 1)
        mixed = keep * x + (1 - keep ** 2).clamp(1e-4).sqrt() * noise
        angle = t[:, None] * torch.tensor([1.0, 10.0], dtype=x.dtype)
        z = self.a(mixed) + self.time(torch.cat([angle.sin(), angle.cos()], 1))[..., None, None]
        return F.mse_loss(self.b(F.silu(self.norm(z))), noise)


@whole(lambda: (normal(6, 4),))
class EnergyModel(nn.Module):
    """Samples from two steps of Langevin dynamics, detached."""

    def __init__(self) -> None:
        super().__init__()
        self.net = dense(4, 8, 1)

    def forward(self, x: Tensor) -> Tensor:
        fake = x.roll(1, 0)
        for _ in range(2):
            fake = fake.detach().requires_grad_()
            slope, = torch.autograd.grad(self.net(fake).sum(), fake)
            fake = fake - 0.1 * slope
        return self.net(x).mean() - self.net(fake.detach()).mean()


@whole(lambda: (normal(6, 4), labels(5, 6)))
class AngularMargin(nn.Module):
    """ArcFace."""

    def __init__(self) -> None:
        super().__init__()
        self.net, self.weight = dense(4, 8, 6), nn.Parameter(torch.randn(5, 6))

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        cosine = F.linear(F.normalize(self.net(x)), F.normalize(self.weight)).clamp(-0.999, 0.999)
        wider = torch.cos(torch.acos(cosine) + 0.3)
        return F.cross_entropy(8 * torch.where(F.one_hot(y, 5).bool(), wider, cosine), y)


@whole(lambda: (normal(6, 4), labels(2, 6).float()))
class FocalLoss(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.net = dense(4, 8, 1)

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        z = self.net(x).squeeze(1)
        loss = F.binary_cross_entropy_with_logits(z, y, reduction="none")
        hit = torch.exp(-loss)
        return (torch.where(y > 0, 0.25, 0.75) * (1 - hit) ** 2 * loss).mean()


@whole(lambda: (normal(4, 3), normal(4, 5), normal(4, 2)))
class HyperNetwork(nn.Module):
    """One net makes the weights of another."""

    def __init__(self) -> None:
        super().__init__()
        self.net = dense(3, 8, 12)

    def forward(self, task: Tensor, x: Tensor, y: Tensor) -> Tensor:
        made = self.net(task)
        w, b = made[:, :10].view(-1, 2, 5), made[:, 10:]
        return F.l1_loss(torch.einsum("nij,nj->ni", w, x) + b, y)


@whole(lambda: (normal(3, 16), normal(3, 16)))
class FourierOperator(nn.Module):
    """A layer that mixes the low frequencies of a signal."""

    def __init__(self) -> None:
        super().__init__()
        self.re, self.im = nn.Parameter(torch.randn(5)), nn.Parameter(torch.randn(5))
        self.skip = nn.Linear(16, 16)

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        f = torch.fft.rfft(x)[:, :5] * torch.complex(self.re, self.im)
        return F.mse_loss(F.gelu(torch.fft.irfft(f, n=16) + self.skip(x)), y)


@whole(lambda: (uniform(5, 4), labels(3, 5)))
class SoftTree(nn.Module):
    """A decision tree whose splits are sigmoids."""

    def __init__(self) -> None:
        super().__init__()
        self.split, self.leaf = nn.Linear(4, 3), nn.Parameter(torch.randn(4, 3))

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        p = self.split(x).sigmoid()
        reach = torch.stack([p[:, 0] * p[:, 1], p[:, 0] * (1 - p[:, 1]),
                             (1 - p[:, 0]) * p[:, 2], (1 - p[:, 0]) * (1 - p[:, 2])], 1)
        return F.nll_loss((reach @ self.leaf.softmax(-1)).log(), y)
