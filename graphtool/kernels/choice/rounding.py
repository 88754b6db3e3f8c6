"""The rounding error that a kernel adds, measured in numpy on one tile of random numbers.

It is the rms of the error over the rms of the result, compared with float64, for inputs and weights
of a normal distribution. Direct sums and products in float32 are the reference: their error counts
as 0.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from graphtool.kernels.packing.transformed import G

Array = np.ndarray[Any, Any]
_OUTPUTS = 16  # number of result channels that are computed
# Bᵀ and Aᵀ beside the G of kernels/packing; Lavin and Gray, arXiv:1509.09308
_B = {2: [[1, 0, -1, 0], [0, 1, 1, 0], [0, -1, 1, 0], [0, 1, 0, -1]],
      4: [[4, 0, -5, 0, 1, 0], [0, -4, -4, 1, 1, 0], [0, 4, -4, -1, 1, 0],
          [0, -2, -1, 2, 1, 0], [0, 2, -1, -2, 1, 0], [0, 4, 0, -5, 0, 1]]}
_A = {2: [[1, 1, 1, 0], [0, 1, -1, -1]],
      4: [[1, 1, 1, 1, 1, 0], [0, 1, -1, 2, -2, 0], [0, 1, 1, 4, 4, 0], [0, 1, -1, 8, -8, 1]]}


def _relative(got: Array, exact: Array) -> float:
    rms = np.sqrt(np.mean((got - exact) ** 2) / np.mean(exact ** 2))
    return float(f"{rms:.2g}")


@cache
def winograd(m: int, c: int) -> float:
    """The error of F(m × m, 3 × 3) with sums over c channels."""
    rng = np.random.default_rng(0)
    n = m + 2
    x = rng.standard_normal((8, c, n, n)).astype(np.float32)
    w = rng.standard_normal((c, _OUTPUTS, 3, 3)).astype(np.float32)
    wide = np.lib.stride_tricks.sliding_window_view(x.astype(np.float64), (3, 3), (2, 3))
    exact = np.einsum("tcijrs,cors->toij", wide, w.astype(np.float64))
    b, a = (np.asarray(t[m], np.float32) for t in (_B, _A))
    u = np.einsum("ir,cors,js->coij", G[m], w.astype(np.float64), G[m]).astype(np.float32)
    v = b @ x @ b.T
    products = np.stack([v[:, :, i, j] @ u[:, :, i, j] for i in range(n) for j in range(n)], -1)
    y = a @ products.reshape(8, _OUTPUTS, n, n) @ a.T
    return _relative(y.astype(np.float64), exact)


@cache
def line(m: int, depth: int) -> float:
    """The error of F(m, 3) along one axis, with sums of `depth` products."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((32, depth, m + 2)).astype(np.float32)
    w = rng.standard_normal((depth, _OUTPUTS, 3)).astype(np.float32)
    wide = np.lib.stride_tricks.sliding_window_view(x.astype(np.float64), 3, 2)
    exact = np.einsum("tcir,cor->toi", wide, w.astype(np.float64))
    b, a = (np.asarray(t[m], np.float32) for t in (_B, _A))
    u, v = (G[m] @ w.astype(np.float64).swapaxes(1, 2)).astype(np.float32), x @ b.T
    products = np.stack([v[:, :, i] @ u[:, i] for i in range(m + 2)], -1)
    return _relative((products @ a.T).astype(np.float64), exact)


@cache
def bf16(depth: int) -> float:
    """The error of float32 operands rounded to bfloat16, in sums of up to 4096 products."""
    depth = min(depth, 4096)
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal(s).astype(np.float32) for s in ((16, depth), (depth, _OUTPUTS)))
    exact = a.astype(np.float64) @ b.astype(np.float64)
    return _relative(_rounded(a) @ _rounded(b), exact)


@cache
def two_parts(depth: int) -> float:
    """The error of float32 operands that are sums of two bfloat16, in sums of up to 4096 products,
    without the products of two second parts."""
    depth = min(depth, 4096)
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal(s).astype(np.float32) for s in ((16, depth), (depth, _OUTPUTS)))
    exact = a.astype(np.float64) @ b.astype(np.float64)
    (a1, b1), (a2, b2) = ([_rounded(x) for x in pair] for pair in (
        (a, b), (a - _rounded(a).astype(np.float32), b - _rounded(b).astype(np.float32))))
    return _relative(a1 @ b1 + a1 @ b2 + a2 @ b1, exact)


@cache
def tf32(depth: int) -> float:
    """The error of float32 operands rounded to the 19 bits of tf32, in sums of up to 4096
    products."""
    depth = min(depth, 4096)
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal(s).astype(np.float32) for s in ((16, depth), (depth, _OUTPUTS)))
    bits = ((x.view(np.uint32) + 0x1000) & 0xffffe000 for x in (a, b))
    left, right = (x.astype(np.uint32).view(np.float32).astype(np.float64) for x in bits)
    return _relative(left @ right, a.astype(np.float64) @ b.astype(np.float64))


@cache
def q8(depth: int, block: int) -> float:
    """The error of a float32 operand rounded to 8 bits in blocks, in sums of up to 4096 products;
    the other operand is exact."""
    depth = min(depth, 4096)
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal(s) for s in ((16, depth), (depth, _OUTPUTS)))
    wide = np.concatenate([a, np.zeros((16, -depth % block))], 1).reshape(16, -1, block)
    steps = np.abs(wide).max(2, keepdims=True) / 127
    return _relative((np.rint(wide / steps) * steps).reshape(16, -1)[:, :depth] @ b, a @ b)


def _rounded(x: Array) -> Array:
    """x rounded to the nearest bfloat16, ties to even."""
    bits = x.view(np.uint32).astype(np.uint64)
    kept = (bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000
    return kept.astype(np.uint32).view(np.float32).astype(np.float64)
