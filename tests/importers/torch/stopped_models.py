"""Models whose authors say where gradients stop, in every way that torch has for it."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn


class Base(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.a = nn.Linear(3, 3)

    def target(self, x: torch.Tensor) -> Any:
        return self.a(x)

    def forward(self, x: torch.Tensor) -> Any:
        return ((self.a(x) - 2 * self.target(x)) ** 2).mean()


class Detach(Base):
    def target(self, x: torch.Tensor) -> Any:
        return self.a(x).detach()


class DetachInPlace(Base):
    def target(self, x: torch.Tensor) -> Any:
        t = self.a(x)
        t.detach_()
        return t


class NoGrad(Base):
    def target(self, x: torch.Tensor) -> Any:
        with torch.no_grad():
            return self.a(x)


class SetGradEnabled(Base):
    def target(self, x: torch.Tensor) -> Any:
        with torch.set_grad_enabled(False):
            return self.a(x)


class InferenceMode(Base):
    def target(self, x: torch.Tensor) -> Any:
        with torch.inference_mode():
            t = self.a(x)
        return t.clone()


class Decorated(Base):
    @torch.no_grad()
    def target(self, x: torch.Tensor) -> Any:
        return self.a(x)


class Data(Base):
    def target(self, x: torch.Tensor) -> Any:
        return self.a(x).data


class DataOfParameter(Base):
    def target(self, x: torch.Tensor) -> Any:
        return x @ self.a.weight.data.t()


class EnabledInside(Base):
    def forward(self, x: torch.Tensor) -> Any:
        with torch.no_grad():
            t = self.a(x)
            with torch.enable_grad():
                u = self.a(x)
        return ((u - 2 * t) ** 2).mean()


class View(Base):
    def forward(self, x: torch.Tensor) -> Any:
        y = self.a(x)
        with torch.no_grad():
            v = y.view(-1)
        return (y.view(-1) * v).sum()


class StraightThrough(Base):
    def forward(self, x: torch.Tensor) -> Any:
        y = self.a(x)
        return ((y + (y.round() - y).detach()) ** 2).sum()


class Frozen(Base):
    def __init__(self) -> None:
        super().__init__()
        self.b = nn.Linear(3, 3).requires_grad_(False)

    def forward(self, x: torch.Tensor) -> Any:
        return (self.b(self.a(x)) ** 2).mean()


class Shared(Base):
    """Stopped and not stopped, twice over: equal parts must not become one."""

    def forward(self, x: torch.Tensor) -> Any:
        y = torch.tanh(self.a(x))
        return (y * y.detach() + y.detach().exp() * self.a(x)).sum()


class InBranch(Base):
    def forward(self, x: torch.Tensor) -> Any:
        y = self.a(x)
        z = torch.cond(x.sum() > 0, lambda v: v * v.detach(), lambda v: v.detach() * 3 + v, (y,))
        return z.sum()


class EmaBuffer(Base):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("m", torch.zeros(3))

    def forward(self, x: torch.Tensor) -> Any:
        y = self.a(x)
        with torch.no_grad():
            self.m.mul_(0.9).add_(y.mean(0), alpha=0.1)
        return ((y - self.m) ** 2).sum()


# ---- gradients inside forward --------------------------------------------------------------

class Penalty(Base):
    def forward(self, x: torch.Tensor) -> Any:
        x = x.detach().requires_grad_()
        y = nn.functional.gelu(self.a(x)).tanh()
        g, = torch.autograd.grad(y.sum(), x, create_graph=True)
        return (g.norm(dim=1) - 1).pow(2).mean() + y.mean()


class CopyBesideOriginal(Base):
    def forward(self, x: torch.Tensor) -> Any:
        copy = x.clone().requires_grad_()
        g, = torch.autograd.grad((self.a(copy) * x).pow(3).sum(), copy, create_graph=True)
        return (g ** 2).sum()


class SecondDerivative(Base):
    def forward(self, x: torch.Tensor) -> Any:
        t = x[:, :1].clone().requires_grad_()
        u = torch.tanh(self.a(torch.cat([t, x[:, 1:]], 1)))[:, :1]
        du, = torch.autograd.grad(u, t, torch.ones_like(u), create_graph=True)
        ddu, = torch.autograd.grad(du, t, torch.ones_like(du), create_graph=True)
        return ((ddu + du * u) ** 2).mean()


class NotKept(Base):
    def forward(self, x: torch.Tensor) -> Any:
        x = x.detach().requires_grad_()
        y = torch.tanh(self.a(x))
        g, = torch.autograd.grad(y.sum(), x, retain_graph=True)
        return (y * g).sum()


class StepInside(Base):
    def forward(self, x: torch.Tensor) -> Any:
        loss = (self.a(x) ** 2).mean()
        g, = torch.autograd.grad(loss, self.a.weight, create_graph=True)
        return (nn.functional.linear(x, self.a.weight - 0.1 * g) ** 3).mean()


class OfFunction(Base):
    def forward(self, x: torch.Tensor) -> Any:
        g, y = torch.func.grad_and_value(lambda z: torch.logsumexp(self.a(z), 1).sum())(x)
        h = torch.func.grad(lambda z: torch.tanh(self.a(z)).sum())(x)
        return (g ** 2 + h ** 3).sum() + y


# ---- what is refused -----------------------------------------------------------------------

class Sign(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> Any:
        return x.sign()

    @staticmethod
    def backward(ctx: Any, g: torch.Tensor) -> Any:
        return g.clamp(-1, 1)


class OwnBackward(Base):
    def forward(self, x: torch.Tensor) -> Any:
        return Sign.apply(self.a(x)).sum()


class Hook(Base):
    def forward(self, x: torch.Tensor) -> Any:
        y = self.a(x)
        y.register_hook(lambda g: g * 2)
        return y.sum()


class InPlace(Base):
    def forward(self, x: torch.Tensor) -> Any:
        y = self.a(x) * 1
        with torch.no_grad():
            y.clamp_(-0.1, 0.1)
        return (y ** 2).sum()


class ClippedWeights(Base):
    def forward(self, x: torch.Tensor) -> Any:
        with torch.no_grad():
            self.a.weight.clamp_(-0.1, 0.1)
        return (self.a(x) ** 2).sum()


class WriteThroughDetach(Base):
    def forward(self, x: torch.Tensor) -> Any:
        y = self.a(x) * 1
        y.detach().mul_(2)
        return (y ** 2).sum()


class Toggled(Base):
    def forward(self, x: torch.Tensor) -> Any:
        self.a.requires_grad_(False)
        y = self.a(x)
        self.a.requires_grad_(True)
        return ((self.a(x) - y) ** 2).sum()


class ToggledWeight(Base):
    def forward(self, x: torch.Tensor) -> Any:
        self.a.weight.requires_grad_(False)
        return (self.a(x) ** 2).sum()


class SetWeight(Base):
    def forward(self, x: torch.Tensor) -> Any:
        self.a.weight.requires_grad = False
        return (self.a(x) ** 2).sum()


class Backward(Base):
    def forward(self, x: torch.Tensor) -> Any:
        y = self.a(x).sum()
        y.backward()
        return y


STOPPED = (Detach, DetachInPlace, NoGrad, SetGradEnabled, InferenceMode, Decorated, Data,
           DataOfParameter, EnabledInside, View, StraightThrough, Frozen, Shared)
INSIDE = (Penalty, CopyBesideOriginal, SecondDerivative, NotKept, StepInside, OfFunction)
REFUSED = (Hook, InPlace, ClippedWeights, WriteThroughDetach, Toggled, ToggledWeight, SetWeight,
           Backward)


# ---- layers and losses whose gradients have a rule of their own ----------------------------

class PaddedEmbedding(Base):
    def __init__(self) -> None:
        super().__init__()
        self.e = nn.Embedding(5, 3, padding_idx=2)

    def forward(self, x: torch.Tensor) -> Any:
        return ((self.e(torch.tensor([[1, 2], [2, 0]])) + 1) ** 2).sum() + self.a(x).sum()


class CountedEmbedding(Base):
    def __init__(self) -> None:
        super().__init__()
        self.e = nn.Embedding(5, 3, scale_grad_by_freq=True)

    def forward(self, x: torch.Tensor) -> Any:
        return (self.e(torch.tensor([1, 2, 2])) ** 2).sum() + self.a(x).sum()


class CertainProbabilities(Base):
    def forward(self, x: torch.Tensor) -> Any:
        p = torch.cat([self.a(x) * 0, self.a(x) * 0 + 1, torch.sigmoid(self.a(x))])
        return nn.functional.binary_cross_entropy(p, torch.ones_like(p), reduction="sum") * 1e-9


class Alignment(Base):
    steps = 6

    def forward(self, x: torch.Tensor) -> Any:
        lines = self.a(x.repeat(self.steps, 1)).view(self.steps, 4, 3).log_softmax(-1)
        return nn.functional.ctc_loss(
            lines, torch.tensor([[1, 2], [2, 1], [1, 1], [2, 2]]), torch.full((4,), self.steps),
            torch.tensor([2, 1, 2, 2]), zero_infinity=True)


class ImpossibleAlignment(Alignment):
    steps = 2


class AveragedStatistics(Base):
    def __init__(self) -> None:
        super().__init__()
        self.n = nn.BatchNorm1d(3, momentum=None)

    def forward(self, x: torch.Tensor) -> Any:
        return (self.n(self.a(x)) ** 3).sum()


RULES = (PaddedEmbedding, CertainProbabilities, Alignment, ImpossibleAlignment, AveragedStatistics)
