"""Activations against torch, at the kinks and far out too; and what must not overflow."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch.nn.functional as F

from graphtool import ops as o
from tests.torch_oracle import agree, normal

POINTS = np.array([-800, -30, -3, -1, -0.5, 0, 0.5, 1, 3, 30, 800.0])
PAIRS: list[tuple[Any, Callable[..., Any], dict[str, Any]]] = [
    (o.relu, F.relu, {}), (o.gelu, F.gelu, {}), (o.gelu, F.gelu, {"approximate": "tanh"}),
    (o.silu, F.silu, {}), (o.mish, F.mish, {}), (o.softplus, F.softplus, {}),
    (o.softplus, F.softplus, {"beta": 2.0, "threshold": 5.0}), (o.elu, F.elu, {}),
    (o.elu, F.elu, {"alpha": 0.3}), (o.selu, F.selu, {}), (o.celu, F.celu, {"alpha": 0.5}),
    (o.hard_sigmoid, F.hardsigmoid, {}), (o.hard_swish, F.hardswish, {}),
    (o.hardtanh, F.hardtanh, {}),
    (o.softsign, F.softsign, {}), (o.log_sigmoid, F.logsigmoid, {}),
]


@pytest.mark.parametrize(("ours", "theirs", "attrs"), PAIRS, ids=lambda x: getattr(x, "name", ""))
@pytest.mark.parametrize("x", [normal(3, 5), POINTS], ids=["normal", "points"])
def test_as_torch(ours: Any, theirs: Any, attrs: Any, x: Any) -> None:
    tol = 1e-7 if ours.name == "hard_sigmoid" else 1e-10  # torch's ⅙ is a float32 there
    agree(lambda x: ours(x, **attrs), lambda x: theirs(x, **attrs), [x], tol)


def test_leaky_prelu_and_thresholded_as_torch() -> None:
    agree(lambda x: o.leaky_relu(x, slope=0.2), lambda x: F.leaky_relu(x, 0.2), [POINTS])
    agree(lambda x: o.thresholded_relu(x, alpha=0.4), lambda x: F.threshold(x, 0.4, 0), [POINTS])
    agree(lambda x, s: o.prelu(x, o.reshape(s, shape=(3, 1))), F.prelu,
          [normal(2, 3, 4), normal(3)])


@pytest.mark.parametrize("name", sorted({p[0].name for p in PAIRS} - {"relu"}))
def test_float32_stays_float32_and_keeps_nan(name: str) -> None:
    y = getattr(o, name)(np.array([np.nan, 1], np.float32))
    assert y.dtype == np.float32 and np.isnan(y[0])


def test_far_values() -> None:
    x = np.array([100.0, -100.0])
    np.testing.assert_allclose(o.softplus(x), [100, np.exp(-100)])
    np.testing.assert_array_equal(o.elu(np.array([800.0, -800.0])), [800, -1])
    np.testing.assert_array_equal(o.relu(np.array([-np.inf, np.inf])), [0, np.inf])
