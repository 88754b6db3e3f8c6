"""Eigenvectors and singular vectors against LAPACK, through numpy and torch, with gradients."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from graphtool import ops as o

RNG = np.random.default_rng(0)
EXACT = {"float32": 2e-6, "float64": 1e-14}


def _symmetric(n: int, dtype: str) -> Any:
    a = RNG.normal(size=(2, n, n))
    a[1] = np.diag([1.0] * n) + 1e-6 * a[1]  # eigenvalues that are nearly one
    return ((a + a.transpose(0, 2, 1)) / 2).astype(dtype)


@pytest.mark.parametrize("dtype", EXACT)
@pytest.mark.parametrize("n", [1, 2, 5, 16, 33])
def test_eigenvectors_of_symmetric_matrices(n: int, dtype: str) -> None:
    a = _symmetric(n, dtype)
    w, v = o.eigh(a)
    want, tol = np.linalg.eigvalsh(a.astype(float)), EXACT[dtype]
    size = np.abs(want).max()
    np.testing.assert_allclose(w, want, atol=tol * size)
    np.testing.assert_allclose(a @ v, v * w[:, None], atol=4 * tol * size)
    np.testing.assert_allclose(v.transpose(0, 2, 1) @ v, np.broadcast_to(np.eye(n), v.shape),
                               atol=4 * tol)


@pytest.mark.parametrize("dtype", EXACT)
@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("shape", [(5, 3), (3, 6), (4, 4), (1, 3), (20, 9)])
def test_singular_values(shape: tuple[int, int], full: bool, dtype: str) -> None:
    a = RNG.normal(size=(3, *shape)).astype(dtype)
    a[1, :, -1] = a[1, :, 0]  # of lower rank
    a[2] = 0
    u, s, vt = o.svd(a, full=full)
    k, tol = min(shape), EXACT[dtype]
    want = np.linalg.svd(a.astype(float), compute_uv=False)
    np.testing.assert_allclose(s, want, atol=tol * want.max())
    np.testing.assert_allclose((u[..., :k] * s[:, None]) @ vt[:, :k], a, atol=tol * want.max())
    for basis in (u, vt.transpose(0, 2, 1)):
        product = basis.transpose(0, 2, 1) @ basis
        np.testing.assert_allclose(product, np.broadcast_to(np.eye(basis.shape[-1]),
                                                            product.shape), atol=4 * tol)


def test_small_singular_values_keep_their_digits() -> None:
    a = RNG.normal(size=(6, 4)) @ np.diag([1, 1e-4, 1e-8, 1e-12])
    s = o.svd(a)[1]
    assert s[3] / np.linalg.svd(a, compute_uv=False)[3] == pytest.approx(1, rel=1e-3)
