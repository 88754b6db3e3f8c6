"""Matrix products, as `matmul` with axes transposed and joined where needed; and linear algebra:
StableHLO's own two operations. `lapack.py` has the calls that JAX makes."""

from __future__ import annotations

from typing import Any

from graphtool.importers.stablehlo.families.elementwise import cast
from graphtool.importers.stablehlo.families.movement import ints
from graphtool.importers.stablehlo.kit import Array, Context, dtypes, o, stablehlo, swap_last_axes
from graphtool.symbolic import Dim, product


@stablehlo("dot_general")
def dot_general(ctx: Context, a: Array, b: Array, *, lhs_batching_dimensions: Any = (),
                rhs_batching_dimensions: Any = (), lhs_contracting_dimensions: Any = (),
                rhs_contracting_dimensions: Any = ()) -> Array:
    """Σ over the contracting axes; the result has the batch axes, then the free axes of a, of b."""
    return contracted(ctx, a, b, (ints(lhs_batching_dimensions), ints(rhs_batching_dimensions)),
                      (ints(lhs_contracting_dimensions), ints(rhs_contracting_dimensions)))


@stablehlo("dot")
def dot(ctx: Context, a: Array, b: Array) -> Array:
    """The product of two vectors or matrices over the last axis of a and the first of b."""
    return contracted(ctx, a, b, ((), ()), ((a.ndim - 1,), (0,)))


Axes = tuple[tuple[int, ...], tuple[int, ...]]


def contracted(ctx: Context, a: Array, b: Array, batch: Axes, inner: Axes) -> Array:
    """The general product in the result's element type."""
    to = ctx.dtype
    xs = []
    for x in (a, b):
        narrow = to is not x.dtype and not (to.bits > x.dtype.bits and to.is_float)
        wide = dtypes.int32 if x.dtype is dtypes.bool_ else to
        xs.append(cast(x, wide) if narrow or x.dtype is dtypes.bool_ else x)
    x, y = xs
    if x.dtype is not y.dtype:
        x, y = cast(x, to), cast(y, to)
    free = [[i for i in range(v.ndim) if i not in batch[k] and i not in inner[k]]
            for k, v in enumerate((x, y))]
    lead = tuple(x.shape[i] for i in batch[0])
    shape = (*lead, *(x.shape[i] for i in free[0]), *(y.shape[i] for i in free[1]))
    left, flip = _matrix(x, batch[0], free[0], inner[0], False)
    right, turn = _matrix(y, batch[1], free[1], inner[1], True)
    joined = {} if to is x.dtype else {"dtype": to}
    out = o.matmul(left, right, transpose_a=flip, transpose_b=turn, **joined)
    return cast(out.reshape(shape), to)


def _matrix(x: Array, batch: tuple[int, ...], free: list[int], inner: tuple[int, ...],
            right: bool) -> tuple[Array, bool]:
    """x as [batch…, rows, columns] and whether it is transposed: the contracted axes are the
    columns of the left operand and the rows of the right one."""
    plain = (*batch, *inner, *free) if right else (*batch, *free, *inner)
    turned = (*batch, *free, *inner) if right else (*batch, *inner, *free)
    flip = plain != tuple(range(x.ndim)) and turned == tuple(range(x.ndim))
    order = turned if flip else plain
    sizes: dict[bool, Dim] = {True: product(x.shape[i] for i in inner),
                              False: product(x.shape[i] for i in free)}
    lead = tuple(x.shape[i] for i in batch)
    first = right != flip  # whether the contracted axes come first
    return x.transpose(order).reshape((*lead, sizes[first], sizes[not first])), flip


# ---- linear algebra -----------------------------------------------------------------------------

@stablehlo("cholesky")
def cholesky(ctx: Context, a: Array, *, lower: Any = False) -> Any:
    """L with L·Lᵀ = a, or its transpose."""
    return o.cholesky(a) if lower else swap_last_axes(o.cholesky(swap_last_axes(a)))


@stablehlo("triangular_solve")
def triangular_solve(ctx: Context, a: Array, b: Array, *, left_side: Any, lower: Any,
                     unit_diagonal: Any, transpose_a: str) -> Any:
    """x with op(a)·x = b, or x·op(a) = b."""
    return solved(a, b, bool(left_side), bool(lower), bool(unit_diagonal),
                  "NO_TRANSPOSE" not in str(transpose_a))


def solved(a: Array, b: Array, left: bool, lower: bool, unit: bool, turned: bool) -> Any:
    """x with op(a)·x = b; from the right that is op(a)ᵀ·xᵀ = bᵀ."""
    if turned == left:
        a, lower = swap_last_axes(a), not lower
    if left:
        return o.triangular_solve(a, b, lower=lower, unit=unit)
    return swap_last_axes(o.triangular_solve(a, swap_last_axes(b), lower=lower, unit=unit))
