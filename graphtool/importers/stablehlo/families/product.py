"""Matrix products: `dot_general` as `matmul`, with axes transposed and joined where needed."""

from __future__ import annotations

from typing import Any

from graphtool import dtypes
from graphtool import ops as o
from graphtool.importers.stablehlo.driver.context import Context
from graphtool.importers.stablehlo.driver.registry import stablehlo
from graphtool.importers.stablehlo.driver.values import dtype_of
from graphtool.importers.stablehlo.families.elementwise import cast
from graphtool.importers.stablehlo.families.movement import ints, reshaped, transposed
from graphtool.symbolic import Dim, product


@stablehlo("dot_general")
def dot_general(ctx: Context, a: Any, b: Any, *, lhs_batching_dimensions: Any = (),
                rhs_batching_dimensions: Any = (), lhs_contracting_dimensions: Any = (),
                rhs_contracting_dimensions: Any = ()) -> Any:
    """Σ over the contracting axes; the result has the batch axes, then the free axes of a, of b."""
    return contracted(ctx, a, b, (ints(lhs_batching_dimensions), ints(rhs_batching_dimensions)),
                      (ints(lhs_contracting_dimensions), ints(rhs_contracting_dimensions)))


@stablehlo("dot")
def dot(ctx: Context, a: Any, b: Any) -> Any:
    """The product of two vectors or matrices over the last axis of a and the first of b."""
    return contracted(ctx, a, b, ((), ()), ((len(a.shape) - 1,), (0,)))


Axes = tuple[tuple[int, ...], tuple[int, ...]]


def contracted(ctx: Context, a: Any, b: Any, batch: Axes, inner: Axes) -> Any:
    """The general product in the result's element type."""
    to = ctx.dtype
    xs = []
    for x in (ctx.tensor(a), ctx.tensor(b)):
        narrow = to is not dtype_of(x) and not (to.bits > dtype_of(x).bits and to.is_float)
        wide = dtypes.int32 if dtype_of(x) is dtypes.bool_ else to
        xs.append(cast(ctx, x, wide) if narrow or dtype_of(x) is dtypes.bool_ else x)
    x, y = xs
    if dtype_of(x) is not dtype_of(y):
        x, y = cast(ctx, x, to), cast(ctx, y, to)
    free = [[i for i in range(v.ndim) if i not in batch[k] and i not in inner[k]]
            for k, v in enumerate((x, y))]
    lead = tuple(x.shape[i] for i in batch[0])
    shape = (*lead, *(x.shape[i] for i in free[0]), *(y.shape[i] for i in free[1]))
    left, flip = _matrix(ctx, x, batch[0], free[0], inner[0], False)
    right, turn = _matrix(ctx, y, batch[1], free[1], inner[1], True)
    joined = {} if to is dtype_of(x) else {"dtype": to}
    out = o.matmul(left, right, transpose_a=flip, transpose_b=turn, **joined)
    return cast(ctx, reshaped(ctx, out, shape), to)


def _matrix(ctx: Context, x: Any, batch: tuple[int, ...], free: list[int],
            inner: tuple[int, ...], right: bool) -> tuple[Any, bool]:
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
    moved = transposed(ctx, x, order)
    return reshaped(ctx, moved, (*lead, sizes[first], sizes[not first])), flip
