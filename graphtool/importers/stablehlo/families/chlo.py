"""CHLO's operations that repeat their operands, and its constants and products."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from graphtool import dtypes
from graphtool import ops as o
from graphtool.dtypes import DType
from graphtool.importers.stablehlo.driver.arrays import array_of
from graphtool.importers.stablehlo.driver.context import Context
from graphtool.importers.stablehlo.driver.parts import PAIRED, Pair
from graphtool.importers.stablehlo.driver.registry import Refused, add, stablehlo
from graphtool.importers.stablehlo.driver.values import dtype_of, shape_of
from graphtool.importers.stablehlo.families.create import constant
from graphtool.importers.stablehlo.families.elementwise import cast
from graphtool.importers.stablehlo.families.movement import ints, placed
from graphtool.importers.stablehlo.text.attributes import Dense
from graphtool.ops.common import broadcast_shapes
from graphtool.symbolic import Dim

_BROADCAST = ("add", "and", "atan2", "compare", "complex", "divide", "maximum", "minimum",
              "multiply", "or", "power", "remainder", "select", "shift_left",
              "shift_right_arithmetic", "shift_right_logical", "subtract", "xor")
_OWN = ("next_after", "polygamma", "zeta")


def _spread(ctx: Context, x: Any, shape: tuple[Dim, ...], dims: Any) -> Any:
    """x repeated to the shape: its axes at `dims` if they are given, else at the end."""
    if isinstance(x, Pair):
        return Pair(_spread(ctx, x.real, shape, dims), _spread(ctx, x.imag, shape, dims))
    rank = len(shape_of(x))
    at = ints(dims) if dims is not None and rank < len(shape) else range(
        len(shape) - rank, len(shape))
    return x if shape_of(x) == shape else placed(ctx, x, tuple(at), shape)


def _broadcast(name: str, base: str) -> None:
    def handler(ctx: Context, *xs: Any, broadcast_dimensions: Any = None,
                comparison_direction: Any = None) -> list[Any]:
        shape = broadcast_shapes(*map(shape_of, xs)) if broadcast_dimensions is None else (
            ctx.result().shape)
        wide = [_spread(ctx, x, shape, broadcast_dimensions) for x in xs]
        kept = {k: v for k, v in ctx.op.attrs.items() if k != "broadcast_dimensions"}
        op = replace(ctx.op, name=base, attrs=kept)
        return ctx.driver.apply(op, wide, ctx.env, ctx.vector)
    add(f"chlo.broadcast_{name}", handler)


for _name in _BROADCAST:
    _broadcast(_name, f"stablehlo.{_name}")
for _name in _OWN:
    _broadcast(_name, f"chlo.{_name}")


add("chlo.constant", constant)


@stablehlo("chlo.constant_like", elementwise=True)
def constant_like(ctx: Context, x: Any, *, value: Any) -> Any:
    """One number, in the shape and the type of x."""
    to = dtype_of(x)
    one = array_of(Dense(str(value).lower() if isinstance(value, bool) else str(value)), to, ())
    return _spread(ctx, one, shape_of(x), None)


@stablehlo("chlo.conj", elementwise=True)
def conj(ctx: Context, x: Any) -> Any:
    """A real number is its own conjugate."""
    return x


def _conjugate(ctx: Context, x: Pair) -> Pair:
    return Pair(x.real, ctx.apply(o.neg, x.imag))


PAIRED["chlo.conj"] = _conjugate


@stablehlo("chlo.mulhi", elementwise=True)
def mulhi(ctx: Context, a: Any, b: Any) -> Any:
    """The upper half of the bits of a product."""
    row = dtype_of(a)
    if row.bits < 64:
        wide = dtypes.BY_NAME[f"{row.kind}64"]
        product = ctx.apply(o.mul, cast(ctx, a, wide), cast(ctx, b, wide))
        return cast(ctx, ctx.apply(o.shift_right, product, np.full((), row.bits, wide.numpy)), row)
    return _upper(ctx, a, b, row)


def _upper(ctx: Context, a: Any, b: Any, row: DType) -> Any:
    """The upper 64 bits: of halves of 32 bits with the signs of the upper ones, as in Hacker's
    Delight, 8-2."""
    half, mask = np.full((), 32, row.numpy), np.full((), 0xFFFFFFFF, row.numpy)
    (a0, a1), (b0, b1) = ((ctx.apply(o.and_, x, mask), ctx.apply(o.shift_right, x, half))
                          for x in (a, b))
    low = _logical(ctx, ctx.apply(o.mul, a0, b0), row)
    middle = ctx.apply(o.add, ctx.apply(o.mul, a1, b0), low)
    other = ctx.apply(o.add, ctx.apply(o.mul, a0, b1), ctx.apply(o.and_, middle, mask))
    upper = ctx.apply(o.add, ctx.apply(o.mul, a1, b1), ctx.apply(o.shift_right, middle, half))
    return ctx.apply(o.add, upper, ctx.apply(o.shift_right, other, half))


def _logical(ctx: Context, x: Any, row: DType) -> Any:
    """The upper 32 bits of 64, filled with 0."""
    unsigned = dtypes.uint64
    moved = ctx.apply(o.shift_right, ctx.apply(o.bitcast, x, dtype=unsigned)
                      if row is not unsigned else x, np.full((), 32, unsigned.numpy))
    return moved if row is unsigned else ctx.apply(o.bitcast, moved, dtype=row)


@stablehlo("chlo.ragged_dot")
def ragged_dot(ctx: Context, x: Any, w: Any, sizes: Any, *, lhs_batching_dimensions: Any = (),
               rhs_batching_dimensions: Any = (), lhs_contracting_dimensions: Any = (),
               rhs_contracting_dimensions: Any = (),
               lhs_ragged_dimensions: Any = (), rhs_group_dimensions: Any = ()) -> Any:
    """x[m, k] · w[g, k, n], in which the next sizes[g] rows of x meet matrix g."""
    plain = ((), (), (1,), (1,), (0,), (0,))
    told = tuple(map(ints, (lhs_batching_dimensions, rhs_batching_dimensions,
                            lhs_contracting_dimensions, rhs_contracting_dimensions,
                            lhs_ragged_dimensions, rhs_group_dimensions)))
    if told != plain:
        raise Refused("only x[m, k] with w[g, k, n] is supported, of which the rows of x are "
                      "divided")
    a, b = cast(ctx, ctx.tensor(x), ctx.dtype), cast(ctx, ctx.tensor(w), ctx.dtype)
    g, k, n = b.shape
    ends = o.cumulative(o.cast(ctx.tensor(sizes), dtype=dtypes.int64), kind="sum", axis=0)
    starts = o.sub(ends, o.cast(ctx.tensor(sizes), dtype=dtypes.int64))
    rows = o.reshape(ctx.builder.emit(o.iota, (), {"shape": (a.shape[0],), "axis": 0,
                                                   "dtype": dtypes.int64}), shape=(a.shape[0], 1))
    mine = o.and_(o.ge(rows, starts), o.lt(rows, ends))
    wide = o.mul(o.reshape(a, shape=(a.shape[0], 1, k)),
                 o.cast(o.reshape(mine, shape=(a.shape[0], g, 1)), dtype=a.dtype))
    return o.matmul(o.reshape(wide, shape=(a.shape[0], g * k)), o.reshape(b, shape=(g * k, n)))
