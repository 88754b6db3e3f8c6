"""What our own exporter marks as a node: read as it is written, also where it has no effect."""

from __future__ import annotations

from typing import Any

import numpy as np

from graphtool import ops as o
from graphtool.importers.stablehlo.driver.arrays import array_of
from graphtool.importers.stablehlo.driver.context import Context
from graphtool.importers.stablehlo.driver.registry import NODE, node
from graphtool.importers.stablehlo.driver.values import dims_of
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
    return ctx.builder.emit(OPS["constant"], (), {"data": data, "param": False}, "constant")


def _told(ctx: Context) -> tuple[Dim, ...]:
    """The sizes that the mark names, if they are open; else those of the result."""
    told = ctx.op.attrs[NODE]
    if not isinstance(told, str):
        return ctx.result().shape
    return tuple(parse(d.strip(), ctx.driver.sizes) for d in split_dims(told))


@node("broadcast_in_dim", "dynamic_broadcast_in_dim")
def broadcast(ctx: Context, x: Any, *shape: Any, **_: Any) -> Any:
    """`broadcast`, even if the next op would repeat its operand itself."""
    return o.broadcast(ctx.tensor(x), shape=_told(ctx))


@node("reshape", "dynamic_reshape")
def reshape(ctx: Context, x: Any, *shape: Any) -> Any:
    """`reshape`, also of what is one itself."""
    return o.reshape(ctx.tensor(x), shape=_told(ctx))


@node("iota", "dynamic_iota")
def iota(ctx: Context, *shape: Any, iota_dimension: int) -> Any:
    """`iota`, however few elements it has."""
    return ctx.builder.emit(o.iota, (), {"shape": _told(ctx), "axis": iota_dimension,
                                         "dtype": ctx.dtype})


@node("convert")
def dim(ctx: Context, x: Any) -> Any:
    """`dim`: a size as a number, with which no further sizes are computed."""
    told = ctx.op.attrs[NODE]
    (of,) = _told(ctx) if isinstance(told, str) else dims_of(x, "the size")
    return ctx.builder.emit(o.dim, (), {"of": of, "dtype": ctx.dtype})


@node("dot_general")
def matmul(ctx: Context, a: Any, b: Any, *, lhs_contracting_dimensions: Any,
           rhs_contracting_dimensions: Any, **_: Any) -> Any:
    """`matmul`, whose contracted axes are among the last two of each operand."""
    x, y = ctx.tensor(a), ctx.tensor(b)
    (i,), (j,) = ints(lhs_contracting_dimensions), ints(rhs_contracting_dimensions)
    return o.matmul(x, y, transpose_a=i != x.ndim - 1, transpose_b=j == y.ndim - 1)
