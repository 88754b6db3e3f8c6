"""Factorisations against LAPACK, through numpy and torch, values and gradients."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from graphtool import ops as o

RNG = np.random.default_rng(0)
SQUARE, TALL, WIDE = (RNG.normal(size=s) for s in ((2, 4, 4), (2, 5, 3), (3, 5)))
POSITIVE = SQUARE @ SQUARE.transpose(0, 2, 1) + np.eye(4)


def test_cholesky() -> None:
    np.testing.assert_allclose(o.cholesky(POSITIVE), np.linalg.cholesky(POSITIVE), atol=1e-14)


def test_a_matrix_that_is_not_positive_gives_nan() -> None:
    assert np.isnan(o.cholesky(-POSITIVE)).any()


def test_a_system_by_lu() -> None:
    x = o.lu_solve(*o.lu(SQUARE), SQUARE[:, :, :2])
    np.testing.assert_allclose(SQUARE @ x, SQUARE[:, :, :2], atol=1e-13)


@pytest.mark.parametrize("a", [SQUARE, TALL, WIDE], ids=["square", "tall", "wide"])
def test_lu_and_reflections_are_lapacks(a: Any) -> None:
    torch = pytest.importorskip("torch")
    factors, swaps = torch.linalg.lu_factor(torch.from_numpy(a))
    np.testing.assert_allclose(o.lu(a)[0], factors, atol=1e-14)
    np.testing.assert_array_equal(o.lu(a)[1] + 1, swaps)
    for got, want in zip(o.householder(a), torch.geqrf(torch.from_numpy(a)), strict=True):
        np.testing.assert_allclose(got, want, atol=1e-14)
