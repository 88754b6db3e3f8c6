"""Linear algebra: StableHLO's own two operations. `lapack.py` has the calls that JAX makes."""

from __future__ import annotations

from typing import Any

from graphtool import ops as o
from graphtool.importers.stablehlo.driver.context import Context
from graphtool.importers.stablehlo.driver.registry import stablehlo
from graphtool.ops.matrices import swap_last_axes


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
