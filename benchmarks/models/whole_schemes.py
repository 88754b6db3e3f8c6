"""Whole ways of learning: parts that are frozen, detached, averaged, adversarial, quantised."""

from __future__ import annotations

import itertools
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from benchmarks.models.whole import labels, normal, uniform, whole


def dense(*widths: int) -> nn.Sequential:
    layers: list[nn.Module] = []
    for i, o in itertools.pairwise(widths):
        layers += [nn.Linear(i, o), nn.Tanh()]
    return nn.Sequential(*layers[:-1])


@whole(lambda: (uniform(5, 8), normal(5, 3)), steps=True)
class VariationalAutoencoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.encode, self.decode = dense(8, 12, 6), dense(3, 12, 8)

    def forward(self, x: Tensor, noise: Tensor) -> Tensor:
        mean, log_var = self.encode(x).chunk(2, -1)
        made = self.decode(mean + noise * (0.5 * log_var).exp())
        kl = -0.5 * (1 + log_var - mean ** 2 - log_var.exp()).sum(-1).mean()
        return F.binary_cross_entropy(made.sigmoid(), x, reduction="sum") / len(x) + kl


@whole(lambda: (normal(5, 8),), steps=True)
class QuantisedAutoencoder(nn.Module):
    """VQ-VAE: the straight-through estimator, the codebook's and the commitment loss."""

    def __init__(self) -> None:
        super().__init__()
        self.encode, self.decode = dense(8, 12, 4), dense(4, 12, 8)
        self.codes = nn.Embedding(6, 4)

    def forward(self, x: Tensor) -> Tensor:
        z = self.encode(x)
        which = torch.cdist(z, self.codes.weight).argmin(1)
        q = self.codes(which)
        loss = F.mse_loss(q, z.detach()) + 0.25 * F.mse_loss(z, q.detach())
        return F.mse_loss(self.decode(z + (q - z).detach()), x) + loss


@whole(lambda: (normal(5, 6),), steps=True)
class Flow(nn.Module):
    """RealNVP: coupling layers and the logarithm of their determinant."""

    def __init__(self) -> None:
        super().__init__()
        self.nets = nn.ModuleList(dense(3, 8, 6) for _ in range(3))

    def forward(self, x: Tensor) -> Tensor:
        log_det = torch.zeros(len(x), dtype=x.dtype)
        for net in self.nets:
            a, b = x.chunk(2, -1)
            scale, shift = net(a).chunk(2, -1)
            x = torch.cat([b * scale.tanh().exp() + shift, a], -1)
            log_det = log_det + scale.tanh().sum(-1)
        return (0.5 * (x ** 2).sum(-1) - log_det).mean()


class Adversarial(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.make, self.judge = dense(3, 10, 6), dense(6, 10, 1)


@whole(lambda: (normal(5, 3),))
class Generator(Adversarial):
    """A generator's step: the judge is frozen."""

    def __init__(self) -> None:
        super().__init__()
        self.judge.requires_grad_(False)

    def forward(self, noise: Tensor) -> Tensor:
        return F.softplus(-self.judge(self.make(noise))).mean()


@whole(lambda: (normal(5, 6), normal(5, 3)), steps=True)
class Discriminator(Adversarial):
    """A judge's step: what was made is detached."""

    def forward(self, real: Tensor, noise: Tensor) -> Tensor:
        fake = self.make(noise).detach()
        ones, zeros = torch.ones(5, 1, dtype=real.dtype), torch.zeros(5, 1, dtype=real.dtype)
        return F.binary_cross_entropy_with_logits(self.judge(real), ones) \
            + F.binary_cross_entropy_with_logits(self.judge(fake), zeros)


@whole(lambda: (normal(5, 6), normal(5, 3), uniform(5, 1)), steps=True)
class GradientPenalty(Adversarial):
    """WGAN-GP: the loss has the judge's own gradient in it."""

    def forward(self, real: Tensor, noise: Tensor, share: Tensor) -> Tensor:
        fake = self.make(noise).detach()
        between = (share * real + (1 - share) * fake).requires_grad_()
        slope, = torch.autograd.grad(self.judge(between).sum(), between, create_graph=True)
        penalty = ((slope.norm(dim=1) - 1) ** 2).mean()
        return self.judge(fake).mean() - self.judge(real).mean() + 10 * penalty


@whole(lambda: (normal(5, 6), labels(3, 5)))
class SpectralNorm(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        norm = nn.utils.parametrizations.spectral_norm
        self.a, self.b = norm(nn.Linear(6, 8)), norm(nn.Linear(8, 3))

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        return F.cross_entropy(self.b(F.leaky_relu(self.a(x), 0.2)), y)


def chosen(values: Tensor, actions: Tensor) -> Tensor:
    return values.gather(1, actions[:, None]).squeeze(1)


@whole(lambda: (normal(6, 4), labels(3, 6), normal(6), normal(6, 4)), steps=True)
class DeepQ(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.online, self.target = dense(4, 10, 3), dense(4, 10, 3)
        self.target.requires_grad_(False)

    def forward(self, s: Tensor, a: Tensor, reward: Tensor, after: Tensor) -> Tensor:
        with torch.no_grad():
            best = self.online(after).argmax(1)  # double: the online net chooses
            goal = reward + 0.9 * chosen(self.target(after), best)
        return F.smooth_l1_loss(chosen(self.online(s), a), goal)


@whole(lambda: (normal(6, 4), labels(3, 6), normal(6), normal(6)), steps=True)
class ProximalPolicy(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body, self.policy, self.value = dense(4, 10), nn.Linear(10, 3), nn.Linear(10, 1)

    def forward(self, s: Tensor, a: Tensor, before: Tensor, gain: Tensor) -> Tensor:
        z = self.body(s).tanh()
        logs = self.policy(z).log_softmax(-1)
        value = self.value(z).squeeze(-1)
        advantage = (gain - value).detach()
        ratio = (chosen(logs, a) - before.clamp(max=0)).exp()
        clipped = torch.min(ratio * advantage, ratio.clamp(0.8, 1.2) * advantage)
        entropy = -(logs.exp() * logs).sum(-1).mean()
        return -clipped.mean() + 0.5 * F.mse_loss(value, gain) - 0.01 * entropy


@whole(lambda: (normal(6, 4), labels(3, 6), normal(6)))
class Reinforce(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.policy, self.base = dense(4, 8, 3), dense(4, 8, 1)

    def forward(self, s: Tensor, a: Tensor, gain: Tensor) -> Tensor:
        base = self.base(s).squeeze(-1)
        logs = F.log_softmax(self.policy(s), -1)
        return -(chosen(logs, a) * (gain - base.data)).mean() + F.mse_loss(base, gain)


@whole(lambda: (normal(5, 6), normal(5, 6)), steps=True)
class BootstrapYourOwn(nn.Module):
    """BYOL: the target network is a moving average of the online one, kept in buffers."""

    def __init__(self) -> None:
        super().__init__()
        self.online, self.predict = nn.Linear(6, 8), dense(8, 8, 8)
        self.target: Tensor
        self.register_buffer("target", self.online.weight.detach().clone())

    def forward(self, a: Tensor, b: Tensor) -> Tensor:
        with torch.no_grad():
            self.target.mul_(0.9).add_(self.online.weight, alpha=0.1)
            goal = F.normalize(b @ self.target.t(), dim=-1)
        return 2 - 2 * (F.normalize(self.predict(self.online(a)), dim=-1) * goal).sum(-1).mean()


@whole(lambda: (normal(5, 6), normal(5, 6)), steps=True)
class StopGradientTwins(nn.Module):
    """SimSiam."""

    def __init__(self) -> None:
        super().__init__()
        self.encode, self.predict = nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8)), dense(8, 8)

    def forward(self, a: Tensor, b: Tensor) -> Tensor:
        za, zb = self.encode(a), self.encode(b)
        pa, pb = self.predict(za), self.predict(zb)
        return -(F.cosine_similarity(pa, zb.detach()) + F.cosine_similarity(pb, za.detach())).mean()


@whole(lambda: (normal(4, 6), normal(4, 6)))
class Contrastive(nn.Module):
    """SimCLR's NT-Xent, with a temperature that is learnt, as CLIP's."""

    def __init__(self) -> None:
        super().__init__()
        self.net, self.heat = dense(6, 8, 4), nn.Parameter(torch.tensor(1.0))

    def forward(self, a: Tensor, b: Tensor) -> Tensor:
        z = F.normalize(self.net(torch.cat([a, b])), dim=-1)
        scores = z @ z.t() * self.heat.exp().clamp(max=100)
        scores = scores.masked_fill(torch.eye(8, dtype=torch.bool), -torch.inf)
        return F.cross_entropy(scores, torch.arange(8).roll(4))


@whole(lambda: (normal(4, 6), normal(4, 6)))
class MomentumContrast(nn.Module):
    """MoCo: keys of a frozen network, and a queue of older ones in a buffer."""

    def __init__(self) -> None:
        super().__init__()
        self.query, self.key = dense(6, 8, 4), dense(6, 8, 4)
        self.key.requires_grad_(False)
        self.queue: Tensor
        self.register_buffer("queue", F.normalize(torch.randn(8, 4), dim=-1))

    def forward(self, a: Tensor, b: Tensor) -> Tensor:
        q, k = F.normalize(self.query(a), dim=-1), F.normalize(self.key(b), dim=-1).detach()
        logits = torch.cat([(q * k).sum(-1, keepdim=True), q @ self.queue.clone().t()], 1) / 0.2
        self.queue.copy_(torch.cat([k, self.queue[:4]]))
        return F.cross_entropy(logits, torch.zeros(4, dtype=torch.long))


@whole(lambda: (normal(5, 6), labels(4, 5)), steps=True)
class Distillation(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.teacher, self.student = dense(6, 16, 4).requires_grad_(False), dense(6, 6, 4)

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        z = self.student(x)
        soft = F.kl_div(F.log_softmax(z / 2, -1), F.softmax(self.teacher(x) / 2, -1),
                        reduction="batchmean")
        return 0.5 * F.cross_entropy(z, y) + 0.5 * 4 * soft


class LowRank(nn.Module):
    def __init__(self, i: int, o: int) -> None:
        super().__init__()
        self.base = nn.Linear(i, o).requires_grad_(False)
        self.a = nn.Parameter(torch.randn(2, i) * 0.3)
        self.b = nn.Parameter(torch.randn(o, 2) * 0.1)

    def forward(self, x: Tensor) -> Tensor:
        return self.base(x) + 2 * (x @ self.a.t() @ self.b.t())


@whole(lambda: (normal(5, 6), labels(4, 5)), steps=True)
class LowRankAdaption(nn.Module):
    """LoRA: only the adapters learn."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Sequential(LowRank(6, 8), nn.ReLU(), LowRank(8, 4))

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        return F.cross_entropy(self.net(x), y)


@whole(lambda: (normal(4, 3, 6, 6), labels(4, 4)))
class FrozenBackbone(nn.Module):
    """Frozen features whose batch norm still counts, and a head that learns."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(3, 6, 3), nn.BatchNorm2d(6), nn.ReLU())
        self.body.requires_grad_(False)
        self.head = nn.Linear(6, 4)

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        return F.cross_entropy(self.head(self.body(x).mean((2, 3))), y)


class Rounded(nn.Module):
    """Fake quantisation by hand, with a scale that is learnt (LSQ)."""

    def __init__(self, i: int, o: int) -> None:
        super().__init__()
        self.net, self.scale = nn.Linear(i, o), nn.Parameter(torch.tensor(0.1))

    def forward(self, x: Tensor) -> Tensor:
        w = (self.net.weight / self.scale).clamp(-8, 7)
        w = w + (w.round() - w).detach()
        return F.linear(x, w * self.scale, self.net.bias)


@whole(lambda: (normal(5, 6), labels(4, 5)), steps=True)
class QuantisationAware(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = Rounded(6, 8), Rounded(8, 4)

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        z = torch.fake_quantize_per_tensor_affine(F.relu(self.a(x)), 2 ** -5, 0, 0, 255)
        return F.cross_entropy(self.b(z), y)


@whole(lambda: (normal(5, 6),))
class TiedAutoencoder(nn.Module):
    """One weight, forwards and transposed; sparse codes."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(10, 6) * 0.3)

    def forward(self, x: Tensor) -> Tensor:
        z = F.softshrink(F.linear(x, self.weight), 0.1)
        return F.mse_loss(F.linear(z, self.weight.t()), x) + 0.01 * z.abs().sum(1).mean()


@whole(lambda: (normal(5, 4), labels(3, 5), normal(5, 4), labels(3, 5)))
class LearningToLearn(nn.Module):
    """MAML: the loss after one inner step, differentiated through that step."""

    def __init__(self) -> None:
        super().__init__()
        self.w, self.b = nn.Parameter(torch.randn(3, 4) * 0.5), nn.Parameter(torch.zeros(3))

    def forward(self, x: Tensor, y: Tensor, later: Tensor, truth: Tensor) -> Tensor:
        inner = F.cross_entropy(F.linear(x, self.w, self.b), y)
        dw, db = torch.autograd.grad(inner, (self.w, self.b), create_graph=True)
        return F.cross_entropy(F.linear(later, self.w - 0.4 * dw, self.b - 0.4 * db), truth)


@whole(lambda: (normal(5, 6), uniform(5, 4) * 0.98 + 0.01))
class GumbelChoice(nn.Module):
    """Hard choices by the straight-through Gumbel softmax."""

    def __init__(self) -> None:
        super().__init__()
        self.net, self.codes = nn.Linear(6, 4), nn.Parameter(torch.randn(4, 6))

    def forward(self, x: Tensor, noise: Tensor) -> Tensor:
        soft = ((self.net(x) - (-noise.log()).log()) / 0.7).softmax(-1)
        hard = F.one_hot(soft.argmax(-1), 4).to(x.dtype)
        return F.mse_loss((hard + soft - soft.detach()) @ self.codes, x)


@whole(lambda: (normal(6, 5), labels(4, 6)))
class Centres(nn.Module):
    """A centre of each class in a buffer, moved by what was seen."""

    def __init__(self) -> None:
        super().__init__()
        self.net = dense(5, 8, 3)
        self.centres: Tensor
        self.register_buffer("centres", torch.randn(4, 3))

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        z = self.net(x)
        gap = z.detach() - self.centres[y]
        moved: Any = self.centres.index_add(0, y, gap, alpha=0.1)
        with torch.no_grad():
            self.centres.copy_(moved)
        return ((z - moved[y].detach()) ** 2).sum(1).mean()
