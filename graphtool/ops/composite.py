"""Small composites that belong to no family: means, linear (also with packed weights),
embedding."""

from __future__ import annotations

from typing import Any

from graphtool import dtypes
from graphtool import ops as o
from graphtool.ir.axes import OVER
from graphtool.ir.facets import Indexing, Lowering, Movement, Precision
from graphtool.ir.graph import TensorType
from graphtool.ops.common import check_axis, composite, count, equal_dims, equal_types, need
from graphtool.ops.costs import taken
from graphtool.ops.reduce import kept_dims
from graphtool.symbolic import known


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


@composite(types=_linear_types, precision=Precision.LOW)
def linear(x: Any, w: Any, bias: Any = None) -> Any:
    """x·wᵀ + bias with w [out, in]."""
    rows = x if x.ndim >= 2 else o.reshape(x, shape=(1, *x.shape))
    y = o.matmul(rows, w, transpose_b=True)
    y = y if x.ndim >= 2 else o.reshape(y, shape=w.shape[:1])
    return y if bias is None else y + bias


def _nbits_types(x: TensorType, packed: TensorType, scales: TensorType,
                 zeros: TensorType | None = None, *, bits: int, block: int) -> TensorType:
    need(bits in (2, 4, 8) and block * bits % 8 == 0,
         f"bits must be 2, 4 or 8 and a block must fill whole bytes, got {bits} bits in blocks of "
         f"{block}")
    need(x.rank == 2 and x.dtype.is_float, f"x must be a matrix of floats, got {x}")
    rows = TensorType(dtypes.uint8, (*packed.shape[:2], block * bits // 8))
    need(packed == rows, f"the weights are {packed}, expected {rows}")
    want = TensorType(x.dtype, packed.shape[:2])
    need(scales == want and zeros in (None, want),
         f"the scales {scales} or zeros {zeros} have another shape or type")
    need(known(x.shape[1], "<=", packed.shape[1] * block) is True,
         f"{packed.shape[1]} blocks of {block} are fewer than the columns of {x}")
    return TensorType(x.dtype, (x.shape[0], packed.shape[0]))


@composite(types=_nbits_types, lowering=Lowering.STATEMENTS)
def linear_nbits(x: Any, packed: Any, scales: Any, zeros: Any = None, *, bits: int,
                 block: int) -> Any:
    """x·wᵀ with w[n, k] = (q − zero)·scale; each q has `bits` bits.

    A byte holds the lowest bits first. Each block of `block` elements along k has one scale and one
    zero; the zero is 2^(bits − 1) unless given. The last block may be longer than what is left of
    w.
    """
    n, blocks = packed.shape[:2]
    parts = [o.and_(o.shift_right(packed, s), 2**bits - 1) if s else (
        packed if bits == 8 else o.and_(packed, 2**bits - 1)) for s in range(0, 8, bits)]
    q = o.cast(o.reshape(o.stack(*parts, axis=3), shape=(n, blocks, block)), dtype=x.dtype)
    centre = float(2 ** (bits - 1)) if zeros is None else o.reshape(zeros, shape=(n, blocks, 1))
    w = o.reshape((q - centre) * o.reshape(scales, shape=(n, blocks, 1)),
                  shape=(n, blocks * block))
    k = x.shape[1]
    return o.linear(x, o.slice(w, start=(0, 0), limit=(n, k), strides=(1, 1)))


def _embedding_types(table: TensorType, ids: TensorType) -> TensorType:
    need(ids.dtype.is_integer, "the ids must be integers")
    need(table.rank >= 1, "the table needs an axis")
    return TensorType(table.dtype, (*ids.shape, *table.shape[1:]))


@composite(types=_embedding_types, category="data", precision=Precision.FOLLOW, traffic=taken,
           indexing=Indexing((0,), draws=True))
def embedding(table: Any, ids: Any) -> Any:
    """y[i…] = table[ids[i…]]: one row of the table for each id; ids are not negative."""
    return o.gather(table, o.reshape(ids, shape=(*ids.shape, 1)), axes=(0,))


@composite(precision=Precision.FOLLOW, movement=Movement.JOINS)
def stack(*xs: Any, axis: int) -> Any:
    """The operands joined along a new axis."""
    axis = check_axis(axis, xs[0].ndim + 1)
    wide = [o.reshape(x, shape=(*x.shape[:axis], 1, *x.shape[axis:])) for x in xs]
    return o.concat(*wide, axis=axis)
