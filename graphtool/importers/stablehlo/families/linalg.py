"""Linear algebra: StableHLO's own two operations, and the calls of LAPACK that JAX makes on CPUs.

Where LAPACK reports a failure by a number, ours is 0: the result is NaN or infinite instead.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from graphtool import dtypes
from graphtool import ops as o
from graphtool.importers.stablehlo.driver.context import Context
from graphtool.importers.stablehlo.driver.parts import Pair
from graphtool.importers.stablehlo.driver.registry import Refused, stablehlo
from graphtool.importers.stablehlo.driver.values import spread
from graphtool.importers.stablehlo.families import complex_matrices
from graphtool.importers.stablehlo.families.composite import TARGETS
from graphtool.ops.matrices import identity, swap_last_axes


@stablehlo("cholesky")
def cholesky(ctx: Context, a: Any, *, lower: Any = False) -> Any:
    """L with L·Lᵀ = a, or its transpose."""
    x = ctx.tensor(a)
    return o.cholesky(x) if lower else swap_last_axes(o.cholesky(swap_last_axes(x)))


@stablehlo("triangular_solve")
def triangular_solve(ctx: Context, a: Any, b: Any, *, left_side: Any, lower: Any,
                     unit_diagonal: Any, transpose_a: str) -> Any:
    """x with op(a)·x = b, or x·op(a) = b."""
    return solved(ctx.tensor(a), ctx.tensor(b), bool(left_side), bool(lower), bool(unit_diagonal),
                  "NO_TRANSPOSE" not in str(transpose_a))


def solved(a: Any, b: Any, left: bool, lower: bool, unit: bool, turned: bool) -> Any:
    """x with op(a)·x = b; from the right that is op(a)ᵀ·xᵀ = bᵀ."""
    if turned == left:
        a, lower = swap_last_axes(a), not lower
    if left:
        return o.triangular_solve(a, b, lower=lower, unit=unit)
    return swap_last_axes(o.triangular_solve(a, swap_last_axes(b), lower=lower, unit=unit))


# ---- LAPACK ------------------------------------------------------------------------------------

def _letter(ctx: Context, name: str) -> str:
    """An option of LAPACK, which JAX writes as the number of its letter."""
    config = ctx.op.attrs.get("mhlo.backend_config") or ctx.op.attrs.get("backend_config")
    code = config.get(name) if isinstance(config, Mapping) else None
    return chr(code) if isinstance(code, int) else ""


def _fine(ctx: Context, a: Any) -> Any:
    """The code of success for each matrix."""
    return spread(np.zeros((), np.int32), a.shape[:-2])


def _potrf(ctx: Context, a: Any) -> list[Any]:
    return [cholesky(ctx, a, lower=_letter(ctx, "uplo") == "L"), _fine(ctx, a)]


def _trsm(ctx: Context, a: Any, b: Any) -> list[Any]:
    if _letter(ctx, "trans_x") == "C" and ctx.dtype.kind != "float":
        raise Refused("only real matrices are supported")
    return [solved(ctx.tensor(a), ctx.tensor(b), _letter(ctx, "side") == "L",
                   _letter(ctx, "uplo") == "L", _letter(ctx, "diag") == "U",
                   _letter(ctx, "trans_x") != "N")]


def _getrf(ctx: Context, a: Any) -> list[Any]:
    """Factors, and rows that are swapped, which LAPACK counts from 1."""
    factors, swaps = o.lu(ctx.tensor(a))
    return [factors, o.add(o.cast(swaps, dtype=dtypes.int32), 1), _fine(ctx, a)]


def _geqrf(ctx: Context, a: Any) -> list[Any]:
    return list(o.householder(ctx.tensor(a)))


def _orgqr(ctx: Context, a: Any, tau: Any) -> list[Any]:
    """The columns of Q: Q times the first columns of the identity."""
    x = ctx.tensor(a)
    m, n = x.shape[-2:]
    lead = x.shape[:-2]
    eye = identity(x, m, lead)
    eye = o.slice(eye, start=(0,) * eye.ndim, limit=(*lead, m, n), strides=(1,) * eye.ndim)
    return [o.reflect(x, ctx.tensor(tau), eye)]


def _syevd(ctx: Context, a: Any) -> list[Any]:
    x = ctx.tensor(a)
    values, vectors = o.eigh(x if _letter(ctx, "uplo") == "L" else swap_last_axes(x))
    return [vectors, values, _fine(ctx, a)]


def _gesdd(ctx: Context, a: Any) -> list[Any]:
    """a (which LAPACK overwrites), s, U, Vᵀ; U and V are square in mode A."""
    x = ctx.tensor(a)
    left, s, right = o.svd(x, full=_letter(ctx, "mode") == "A")
    if _letter(ctx, "mode") == "N":
        left, right = (o.broadcast(x.builder.constant(np.zeros((1,) * x.ndim, x.dtype.numpy)),
                                   shape=ctx.result(i).shape) for i in (2, 3))
    return [x, s, left, right, _fine(ctx, a)]


def _complex_potrf(ctx: Context, a: Any, b: Any) -> list[Any]:
    made = complex_matrices.cholesky(ctx, Pair(a, b), lower=_letter(ctx, "uplo") == "L")
    return [made.real, made.imag, _fine(ctx, a)]


def _complex_trsm(ctx: Context, a: Any, b: Any, c: Any, d: Any) -> list[Any]:
    made = complex_matrices.solved(
        ctx, Pair(a, b), Pair(c, d), _letter(ctx, "side") == "L", _letter(ctx, "uplo") == "L",
        _letter(ctx, "diag") == "U", _letter(ctx, "trans_x"))
    return [made.real, made.imag]


for _type in "cz":
    TARGETS[f"lapack_{_type}potrf_ffi"] = _complex_potrf
    TARGETS[f"lapack_{_type}trsm_ffi"] = _complex_trsm
for _name, _fn in (("potrf", _potrf), ("trsm", _trsm), ("getrf", _getrf), ("geqrf", _geqrf),
                   ("orgqr", _orgqr), ("syevd", _syevd), ("gesdd", _gesdd)):
    for _type in "sd":
        TARGETS[f"lapack_{_type}{_name}_ffi"] = _fn
