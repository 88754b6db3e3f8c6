"""What our own exporter marks as a node: read as it is written, also where it has no effect."""

from __future__ import annotations

from typing import Any

import numpy as np

from graphtool import ops as o
from graphtool.front import Array
from graphtool.importers.stablehlo.driver.arrays import array_of
from graphtool.importers.stablehlo.driver.context import Context
from graphtool.importers.stablehlo.driver.registry import NODE, node
from graphtool.importers.stablehlo.families.movement import ints
from graphtool.io.weights import weight
from graphtool.ir.decode_values import split_dims
from graphtool.ir.op import OPS
from graphtool.symbolic import Dim
from graphtool.symbolic.parse import parse


@node("constant")
def constant(ctx: Context, *, value: Any) -> Any:
    """A constant of its own, also where there are equal ones."""
    shape = tuple(d or 0 for d in ctx.op.signature.results[0].shape or ())
    data = weight(np.array(array_of(value, ctx.dtype, shape)))
    return ctx.builder.record(OPS["constant"], (), {"data": data, "param": False}, "constant")


def _told(ctx: Context) -> tuple[Dim, ...]:
    """The sizes that the mark names, if they are open; else those of the result."""
    told = ctx.op.attrs[NODE]
    if not isinstance(told, str):
        return ctx.result().shape
    return tuple(parse(d.strip(), ctx.driver.sizes) for d in split_dims(told))


@node("broadcast_in_dim", "dynamic_broadcast_in_dim")
def broadcast(ctx: Context, x: Array, *shape: Array, **_: Any) -> Any:
    """`broadcast`, even if the next op would repeat its operand itself."""
    return ctx.builder.record(o.broadcast, (x,), {"shape": _told(ctx)})


@node("reshape", "dynamic_reshape")
def reshape(ctx: Context, x: Array, *shape: Array) -> Any:
    """`reshape`, also of what is one itself."""
    return ctx.builder.record(o.reshape, (x,), {"shape": _told(ctx)})


@node("iota", "dynamic_iota")
def iota(ctx: Context, *shape: Array, iota_dimension: int) -> Any:
    """`iota`, however few elements it has."""
    return ctx.builder.record(o.iota, (), {"shape": _told(ctx), "axis": iota_dimension,
                                           "dtype": ctx.dtype})


@node("convert")
def dim(ctx: Context, x: Array) -> Any:
    """`dim`: a size as a number, with which no further sizes are computed."""
    told = ctx.op.attrs[NODE]
    (of,) = _told(ctx) if isinstance(told, str) else x.sizes("the size")
    return ctx.builder.record(o.dim, (), {"of": of, "dtype": ctx.dtype})


@node("dot_general")
def matmul(ctx: Context, a: Array, b: Array, *, lhs_contracting_dimensions: Any,
           rhs_contracting_dimensions: Any, **_: Any) -> Any:
    """`matmul`, whose contracted axes are among the last two of each operand."""
    (i,), (j,) = ints(lhs_contracting_dimensions), ints(rhs_contracting_dimensions)
    return ctx.builder.record(o.matmul, (a, b), {"transpose_a": i != a.ndim - 1,
                                                 "transpose_b": j == b.ndim - 1})
