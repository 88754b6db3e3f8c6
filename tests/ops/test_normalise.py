"""The softmax family and the normalisations against torch, with gradients, and their far values."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from graphtool import ops as o
from tests.torch_oracle import agree, normal

X = normal(2, 6, 4, 3)
C = [normal(6, seed=1), normal(6, seed=2)]


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_softmax_family(axis: int) -> None:
    agree(lambda x: o.softmax(x, axis=axis), lambda x: torch.softmax(x, axis), [X])
    agree(lambda x: o.log_softmax(x, axis=axis), lambda x: torch.log_softmax(x, axis), [X])
    agree(lambda x: o.logsumexp(x, axes=(axis,)), lambda x: torch.logsumexp(x, axis, True), [X])


def test_softmax_far_out() -> None:
    x = np.array([1000.0, 1000.0, -np.inf])
    agree(lambda x: o.logsumexp(x, axes=(0,)), lambda x: torch.logsumexp(x, 0, True), [x])
    agree(lambda x: o.log_softmax(x, axis=0), lambda x: torch.log_softmax(x, 0), [x[:2] * [1, -1]])
    assert o.logsumexp(np.full(3, -np.inf), axes=(0,)) == -np.inf
    assert o.logsumexp(np.array([np.inf, 0]), axes=(0,)) == np.inf


def test_layer_and_rms_norm() -> None:
    w, b = normal(4, 3, seed=1), normal(4, 3, seed=2)
    agree(lambda x, w, b: o.layer_norm(x, w, b, axes=(-2, -1), epsilon=1e-3),
          lambda x, w, b: F.layer_norm(x, (4, 3), w, b, 1e-3), [X, w, b])
    agree(lambda x, w: o.rms_norm(x, w, axes=(2, 3), epsilon=1e-3),
          lambda x, w: F.rms_norm(x, (4, 3), w, 1e-3), [X, w])


def test_group_and_instance_norm() -> None:
    agree(lambda x, w, b: o.group_norm(x, w, b, groups=3), lambda x, w, b: F.group_norm(x, 3, w, b),
          [X, *C])
    agree(o.instance_norm, lambda x, w, b: F.instance_norm(x, weight=w, bias=b), [X, *C])


def test_batch_norm() -> None:
    mean, var = normal(6, seed=3), np.abs(normal(6, seed=4)) + 0.1
    agree(o.batch_norm, lambda x, w, b, m, v: F.batch_norm(x, m.detach(), v.detach(), w, b),
          [X, *C, mean, var], grads=False)
    agree(lambda x, w, b: o.batch_norm_training(x, w, b)[0],
          lambda x, w, b: F.batch_norm(x, None, None, w, b, training=True), [X, *C])
    _, got_mean, got_var = o.batch_norm_training(X)
    np.testing.assert_allclose(got_mean, X.mean((0, 2, 3)))
    np.testing.assert_allclose(got_var, X.var((0, 2, 3)))


def test_lrn() -> None:
    agree(lambda x: o.lrn(x, size=3, alpha=0.1), lambda x: F.local_response_norm(x, 3, 0.1), [X])


@pytest.mark.parametrize("order", [0.0, 1.0, 1.5, 2.0, 3.0, float("inf"), float("-inf")])
def test_norm(order: float) -> None:
    agree(lambda x: o.norm(x, axes=(1,), order=order),
          lambda x: torch.linalg.vector_norm(x, order, 1, True), [X], grads=order != 0)


@pytest.mark.parametrize("order", [1.0, 2.0, 3.0])
def test_norm_at_zero_has_gradient_zero(order: float) -> None:
    agree(lambda x: o.norm(x, axes=(0,), order=order),
          lambda x: torch.linalg.vector_norm(x, order, 0, True), [np.zeros(3)])


@pytest.mark.parametrize("name", ["reduce_mean", "reduce_var"])
def test_variance_does_not_cancel(name: str) -> None:
    x = (normal(1000) + 1e4).astype(np.float32)
    want: Any = {"reduce_mean": np.mean, "reduce_var": np.var}[name](x.astype(np.float64))
    np.testing.assert_allclose(getattr(o, name)(x, axes=(0,))[0], want, rtol=1e-4)


def test_mean_and_variance_as_torch() -> None:
    agree(lambda x: o.reduce_mean(x, axes=(0, 2)), lambda x: x.mean((0, 2), True), [X])
    agree(lambda x: o.reduce_var(x, axes=(1, 3), correction=1),
          lambda x: x.var((1, 3), keepdim=True), [X])
