"""Operations without operands: constants and iota; and the sizes of a value."""

from __future__ import annotations

from typing import Any

import numpy as np

from graphtool import ops as o
from graphtool.dtypes import DType
from graphtool.importers.stablehlo.driver.arrays import array_of
from graphtool.importers.stablehlo.driver.context import Context
from graphtool.importers.stablehlo.driver.registry import Refused, stablehlo
from graphtool.importers.stablehlo.driver.values import (
    FOLD_LIMIT,
    Sizes,
    dims_of,
    element_type,
    shape_of,
    spread,
)
from graphtool.importers.stablehlo.text.attributes import Dense
from graphtool.symbolic import Dim


@stablehlo("constant", elementwise=True)
def constant(ctx: Context, *, value: Any) -> Any:
    """The array that the text says; of our own text, a parameter with its name."""
    if not isinstance(value, Dense):
        raise Refused("only dense constants are supported")
    kind = ctx.op.signature.results[0]
    array = array_of(value, element_type(kind), tuple(d or 0 for d in kind.shape or ()))
    name = ctx.op.attrs.get("graphtool.parameter")
    return array if name is None else ctx.kept(
        ctx.builder.constant(array, str(name), param=True))


@stablehlo("iota")
def iota(ctx: Context, *, iota_dimension: int) -> Any:
    """0, 1, 2, … along an axis, repeated along the others."""
    return line(ctx, ctx.result().dtype, ctx.result().shape, iota_dimension)


@stablehlo("dynamic_iota")
def dynamic_iota(ctx: Context, shape: Any, *, iota_dimension: int) -> Any:
    """`iota` of a computed shape."""
    return line(ctx, ctx.dtype, dims_of(shape, "the shape"), iota_dimension)


def line(ctx: Context, dtype: DType, shape: tuple[Dim, ...], axis: int) -> Any:
    """0, 1, 2, … along one axis of a shape: stored for that axis only."""
    if not 0 <= axis < len(shape):
        raise ValueError(f"there is no axis {axis} of {len(shape)}")
    n, rest = shape[axis], (1,) * (len(shape) - axis - 1)
    if isinstance(n, int) and n <= FOLD_LIMIT:
        return spread(np.arange(n).astype(dtype.numpy).reshape((n, *rest)), shape)
    made = ctx.builder.emit(o.iota, (), {"shape": (n, *rest), "axis": 0, "dtype": dtype})
    return spread(made, shape)


@stablehlo("get_dimension_size")
def get_dimension_size(ctx: Context, x: Any, *, dimension: int) -> Any:
    """The size of one axis, known at import or an open size."""
    size = shape_of(x)[dimension]
    if isinstance(size, int):
        return np.array(size, ctx.dtype.numpy)
    out = np.empty((), object)
    out[()] = size
    return Sizes(out, ctx.dtype)
