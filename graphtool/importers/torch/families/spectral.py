"""Eigenvectors of symmetric matrices, singular values, least squares and pseudo-inverses.

Vectors may differ from LAPACK's in sign. Eigenvalues of general matrices are complex, and their
ops are refused.
"""

from __future__ import annotations

from typing import Any

import ml_dtypes

from graphtool.importers.torch.kit import Array, Context, Refused, aten, broadcast_shapes, o
from graphtool.ops.matrices import swap_last_axes, triangle


def _sized(x: Array) -> tuple[int, int]:
    m, n = x.shape[-2:]
    if not isinstance(m, int) or not isinstance(n, int):
        raise Refused("a matrix of symbolic size is not supported here; fix its sizes for the "
                      "export")
    return m, n


def _symmetric(x: Array, uplo: str = "L") -> Array:
    """A symmetric matrix made from the half that LAPACK would read."""
    lower = x if uplo.upper() == "L" else swap_last_axes(x)
    whole: Array = triangle(lower, True) + swap_last_axes(triangle(lower, True, -1))
    return whole


@aten("_linalg_eigh")
def eigh(c: Context, A: Array, UPLO: str = "L", compute_v: bool = True) -> Any:
    """(eigenvalues ascending, eigenvectors as columns) by our eigh of the half UPLO."""
    _sized(A)
    w, v = o.eigh(_symmetric(A, UPLO))
    return w, v if c.used(1) and compute_v else None


@aten("_linalg_svd")
def svd(c: Context, A: Array, full_matrices: bool = False, compute_uv: bool = True, *,
        driver: str | None = None) -> Any:
    """(U, S, Vᵀ) by our svd; S alone without `compute_uv`."""
    _sized(A)
    u, s, vt = o.svd(A, full=full_matrices and compute_uv)
    return (u, s, vt) if compute_uv else (None, s, None)


@aten("linalg_pinv.atol_rtol_tensor", "linalg_pinv.atol_rtol_float")
def pinv(c: Context, self: Array, *, atol: Any = None, rtol: Any = None,
         hermitian: bool = False) -> Any:
    """V·diag(1/s)·Uᵀ over the singular values above the greater of atol and rtol·max(s)."""
    _sized(self)
    x = _symmetric(self) if hermitian else self
    if 0 in self.shape:
        return c.full(c.out.shape, 0.0, self.dtype)
    u, s, vt = o.svd(x)
    s = s.reshape((*s.shape[:-1], 1, s.shape[-1]))
    bound = o.reduce_max(s, axes=(s.ndim - 1,)) * _relative(c, self, atol, rtol)
    if atol is not None:
        bound = o.max(bound, _each(c, atol, self))
    kept = s > bound
    inverse = o.select(kept, 1.0 / o.select(kept, s, 1.0), 0.0)
    return o.matmul(swap_last_axes(vt) * inverse, u, transpose_b=True)


def _relative(c: Context, x: Array, atol: Any, rtol: Any) -> Any:
    """rtol; by default the dtype's precision times max(m, n), or 0 where there is an atol."""
    if rtol is not None:
        return _each(c, rtol, x)
    default = float(ml_dtypes.finfo(x.dtype.numpy).eps) * max(_sized(x))
    if isinstance(atol, Array):
        return o.select(_each(c, atol, x) > 0.0, 0.0, default)
    return 0.0 if atol else default


def _each(c: Context, bound: Any, x: Array) -> Any:
    """A bound for each matrix, in a shape that broadcasts against its singular values."""
    if not isinstance(bound, Array):
        return float(bound)
    bound = c.cast(bound, x.dtype)
    return bound.reshape((*bound.shape, 1, 1)) if bound.ndim else bound


@aten("linalg_lstsq")
def lstsq(c: Context, self: Array, b: Array, rcond: float | None = None, *,
          driver: str | None = None) -> Any:
    """argmin |a·x − b| for full rank: by QR of a if m ≥ n, else the least x, by QR of aᵀ."""
    m, n = _sized(self)
    vector = b.ndim == self.ndim - 1
    right = b.unsqueeze() if vector else b
    lead = broadcast_shapes(self.shape[:-2], right.shape[:-2])
    a, right = (x.broadcast((*lead, *x.shape[-2:])) for x in (self, right))
    packed, tau = o.householder(a if m >= n else swap_last_axes(a))
    axis, size = a.ndim - 2, min(m, n)
    r = packed.take(axis, 0, size)
    if m >= n:
        along = o.reflect(packed, tau, right, transpose=True).take(axis, 0, size)
        x = o.triangular_solve(r, along, lower=False)
    else:
        part = o.triangular_solve(swap_last_axes(r), right)
        rest = c.full((*lead, n - m, right.shape[-1]), 0.0, a.dtype)
        x = o.reflect(packed, tau, o.concat(part, rest, axis=axis))
    return x.reshape(x.shape[:-1] if vector else x.shape), None, None, None
