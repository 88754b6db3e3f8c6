"""Losses against torch, with gradients, weights, ignored labels, smoothing; and far values."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from graphtool import ops as o
from tests.torch_oracle import agree, normal

X, Y = normal(4, 5), normal(4, 5, seed=1)
LABELS, WEIGHT = np.array([1, -100, 4, 0]), np.abs(normal(5)) + 0.1
P = 1 / (1 + np.exp(-Y))
reductions = pytest.mark.parametrize("reduction", ["mean", "sum", "none"])


@reductions
def test_regression_losses(reduction: str) -> None:
    agree(lambda x, y: o.mse_loss(x, y, reduction=reduction),
          lambda x, y: F.mse_loss(x, y, reduction=reduction), [X, Y])
    agree(lambda x, y: o.huber_loss(x, y, delta=0.7, reduction=reduction),
          lambda x, y: F.huber_loss(x, y, delta=0.7, reduction=reduction), [X, Y])


@reductions
def test_binary_cross_entropy(reduction: str) -> None:
    agree(lambda x, y: o.bce_loss(x, y, reduction=reduction),
          lambda x, y: F.binary_cross_entropy(x, y, reduction=reduction), [1 - P / 2, P])
    agree(lambda x, y, w: o.bce_loss(x, y, w, from_logits=True, reduction=reduction),
          lambda x, y, w: F.binary_cross_entropy_with_logits(x, y, w.detach(), reduction=reduction)
          + 0 * w.sum(), [X * 50, P, np.ones(5)], grads=False)


def test_binary_cross_entropy_far_out() -> None:
    x, y = np.array([-800.0, 800, 0]), np.array([0.0, 1, 1])
    agree(lambda x, y: o.bce_loss(x, y, from_logits=True),
          lambda x, y: F.binary_cross_entropy_with_logits(x, y.detach()) + 0 * y.sum(), [x, y],
          grads=False)
    zero_one = np.array([0.0, 1, 0, 1]), np.array([0.0, 1, 1, 0])
    agree(o.bce_loss, F.binary_cross_entropy, zero_one, grads=False)


@pytest.mark.filterwarnings("ignore:reduction. 'mean'")
@pytest.mark.parametrize("reduction", ["mean", "sum", "none", "batchmean"])
@pytest.mark.parametrize("log_target", [False, True])
def test_kl_div(reduction: str, log_target: bool) -> None:
    target = Y if log_target else P
    agree(lambda x, y: o.kl_div(x, y, log_target=log_target, reduction=reduction),
          lambda x, y: F.kl_div(x, y, reduction=reduction, log_target=log_target), [X, target])


@reductions
@pytest.mark.parametrize("name", ["nll_loss", "cross_entropy"])
def test_class_losses(name: str, reduction: str) -> None:
    ours: Any = getattr(o, name)
    theirs = getattr(F, name)
    agree(lambda x, y: ours(x, y, reduction=reduction),
          lambda x, y: theirs(x, y, reduction=reduction), [X, LABELS])
    agree(lambda x: ours(x, x.builder.constant(LABELS), x.builder.constant(WEIGHT),
                         reduction=reduction),
          lambda x: theirs(x, torch.from_numpy(LABELS), torch.from_numpy(WEIGHT),
                           reduction=reduction), [X])
    labels = np.array([[1, 0, 4], [2, 2, -100]])
    agree(lambda x, y: ours(x, y, reduction=reduction),
          lambda x, y: theirs(x, y, reduction=reduction), [normal(2, 5, 3), labels])


@reductions
@pytest.mark.parametrize("weighted", [False, True])
def test_label_smoothing(reduction: str, weighted: bool) -> None:
    def ours(x: Any) -> Any:
        w = x.builder.constant(WEIGHT) if weighted else None
        return o.cross_entropy(x, x.builder.constant(LABELS), w, reduction=reduction,
                               label_smoothing=0.2)
    w = torch.from_numpy(WEIGHT) if weighted else None
    agree(ours, lambda x: F.cross_entropy(x, torch.from_numpy(LABELS), w, reduction=reduction,
                                          label_smoothing=0.2), [X])


@reductions
def test_soft_labels(reduction: str) -> None:
    agree(lambda x, y: o.cross_entropy(x, y, reduction=reduction, label_smoothing=0.1),
          lambda x, y: F.cross_entropy(x, y, reduction=reduction, label_smoothing=0.1)
          if reduction != "mean" else F.cross_entropy(x, y, label_smoothing=0.1), [X, P])


def test_cross_entropy_does_not_overflow() -> None:
    x = np.array([[1000.0, -1000.0]])
    agree(o.cross_entropy, F.cross_entropy, [x, np.array([1])])
