"""Eigenvectors and singular vectors against LAPACK, through numpy and torch, with gradients."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from graphtool import dtypes, transforms
from graphtool import ops as o
from graphtool.ir.graph import TensorType
from graphtool.ir.trace import trace
from tests.evaluating import run

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


def _spread(w: Any) -> Any:
    return np.sin(np.arange(np.prod(w.shape)) + 1.0).reshape(w.shape)


@pytest.mark.parametrize(("op", "shape"), [("eigh", (4, 4)), ("svd", (4, 4)), ("svd", (5, 3)),
                                           ("svd", (2, 3, 5))])
def test_gradients_are_torchs(op: str, shape: tuple[int, ...]) -> None:
    """Of functions that do not know the vectors' signs."""
    torch = pytest.importorskip("torch")
    a = RNG.normal(size=shape)
    a = a + a.T if op == "eigh" else a

    def ours(x: Any) -> Any:
        if op == "eigh":
            w, v = o.eigh(x)
            u, vt = v, o.transpose(v, perm=(1, 0))
        else:
            u, w, vt = o.svd(x)
        row = o.reshape(w, shape=(*w.shape[:-1], 1, w.shape[-1]))
        made = o.matmul(u * o.sin(row), vt) * x.builder.constant(_spread(x))
        return o.reduce_sum(made, axes=tuple(range(x.ndim))) + o.reduce_sum(
            o.abs(u) * x.builder.constant(_spread(u)), axes=tuple(range(x.ndim)))

    graph = trace(ours, [TensorType(dtypes.float64, shape)])
    got = run(transforms.grad(graph, 0, graph.inputs), [a])[1]
    t = torch.from_numpy(a).requires_grad_()
    if op == "eigh":
        w, u = torch.linalg.eigh(t)
        vt = u.mT
    else:
        u, w, vt = torch.linalg.svd(t, full_matrices=False)
    (((u * w.sin().unsqueeze(-2)) @ vt * torch.from_numpy(_spread(a))).sum()
     + (u.abs() * torch.from_numpy(_spread(u.detach()))).sum()).backward()
    want = t.grad.numpy()
    if op == "eigh":  # which half of a symmetric matrix moves is a matter of taste
        got, want = got + got.T, want + want.T
    np.testing.assert_allclose(got, want, rtol=1e-8, atol=1e-10)
