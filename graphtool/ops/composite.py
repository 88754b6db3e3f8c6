"""Small composites that belong to no family: means, linear, embedding."""

from __future__ import annotations

from typing import Any

from graphtool import ops as o
from graphtool.ir.axes import OVER
from graphtool.ir.facets import Indexing, Movement, Precision, Weighing
from graphtool.ir.graph import TensorType
from graphtool.ops.common import check_axis, composite, count, equal_dims, equal_types, need
from graphtool.ops.costs import taken
from graphtool.ops.reduce import kept_dims


def _reduced(x: TensorType, *, axes: tuple[int, ...], **_: Any) -> TensorType:
    return TensorType(x.dtype, kept_dims(x.shape, axes))


def _mean_vjp(g: Any, _y: Any, x: Any, *, axes: tuple[int, ...]) -> tuple[Any, ...]:
    return (o.broadcast(g / count(x, axes), shape=x.shape),)


@composite(axes=OVER, types=_reduced, vjp=_mean_vjp)
def reduce_mean(x: Any, *, axes: tuple[int, ...]) -> Any:
    """Σ x / n over axes, kept as 1; integers truncate."""
    return o.reduce_sum(x, axes=axes) / count(x, axes)


@composite(axes=OVER, types=_reduced)
def reduce_var(x: Any, *, axes: tuple[int, ...], correction: int = 0) -> Any:
    """Σ (x − mean)² / (n − correction) over axes, in two passes."""
    centred = x - o.reduce_mean(x, axes=axes)
    return o.reduce_sum(centred * centred, axes=axes) / (count(x, axes) - float(correction))


def _linear_types(x: TensorType, w: TensorType, bias: TensorType | None = None) -> TensorType:
    need(x.rank >= 1 and w.rank == 2, f"x {x} and w {w}: w must be [out, in]")
    need(x.dtype is w.dtype, f"element types differ: {x.dtype.short} and {w.dtype.short}")
    equal_dims(x.shape[-1:], w.shape[1:], f"inner dimensions differ: x {x}, w {w}")
    if bias is not None:
        want = TensorType(x.dtype, w.shape[:1])
        equal_types(bias, want, f"the bias is {bias}, {want} expected")
    return TensorType(x.dtype, (*x.shape[:-1], w.shape[0]))


@composite(types=_linear_types, precision=Precision.LOW, weighing=Weighing("product"))
def linear(x: Any, w: Any, bias: Any = None) -> Any:
    """x·wᵀ + bias with w [out, in]."""
    rows = x if x.ndim >= 2 else o.reshape(x, shape=(1, *x.shape))
    y = o.matmul(rows, w, transpose_b=True)
    y = y if x.ndim >= 2 else o.reshape(y, shape=w.shape[:1])
    return y if bias is None else y + bias


def _embedding_types(table: TensorType, ids: TensorType) -> TensorType:
    need(ids.dtype.is_integer, "the ids must be integers")
    need(table.rank >= 1, "the table needs an axis")
    return TensorType(table.dtype, (*ids.shape, *table.shape[1:]))


@composite(types=_embedding_types, category="data", precision=Precision.FOLLOW, traffic=taken,
           indexing=Indexing((0,), draws=True), weighing=Weighing("table", data=1, weight=0))
def embedding(table: Any, ids: Any) -> Any:
    """y[i…] = table[ids[i…]]: one row of the table for each id; ids are not negative."""
    return o.gather(table, o.reshape(ids, shape=(*ids.shape, 1)), axes=(0,))


@composite(precision=Precision.FOLLOW, movement=Movement.JOINS)
def stack(*xs: Any, axis: int) -> Any:
    """The operands joined along a new axis."""
    axis = check_axis(axis, xs[0].ndim + 1)
    wide = [o.reshape(x, shape=(*x.shape[:axis], 1, *x.shape[axis:])) for x in xs]
    return o.concat(*wide, axis=axis)
