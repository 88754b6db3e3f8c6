"""Helpers for factorisations: one batch axis, row and column numbers, triangles, and scans over
rows."""

from __future__ import annotations

from typing import Any

from graphtool import dtypes
from graphtool import ops as o
from graphtool.ir.graph import TensorType
from graphtool.ir.trace import like, trace
from graphtool.ops.common import filled, need
from graphtool.symbolic import Dim, product


def need_matrix(x: TensorType, square: bool = True) -> None:
    """Raise TypeMismatch GT0412 unless x is a float matrix or a batch of them, square if
    required."""
    need(x.rank >= 2 and x.dtype.is_float, f"the operand must be a matrix of floats, got {x}")
    need(not square or x.shape[-1] == x.shape[-2], f"the operand must be a square matrix, got {x}")


def flat(x: Any) -> Any:
    """x with one batch axis: [batch, rows, columns]."""
    return o.reshape(x, shape=(product(x.shape[:-2]), *x.shape[-2:]))


def axis_indices(x: Any, shape: tuple[Dim, ...], axis: int) -> Any:
    """The index of each element along `axis`, as an i64 array of this shape."""
    return like(x, o.iota, shape=shape, axis=axis, dtype=dtypes.int64)


def as_tuple(x: Any) -> tuple[Any, ...]:
    """The results of an op as a tuple; an op with one result returns it without one."""
    return x if isinstance(x, tuple) else (x,)


def is_empty(x: Any) -> bool:
    """Whether x has no elements."""
    return 0 in x.shape


def blank(x: Any, kinds: Any) -> Any:
    """Results of these types, which have no elements."""
    zeros = tuple(filled(x, 0.0, t.shape, t.dtype) for t in as_tuple(kinds))
    return zeros if isinstance(kinds, tuple) else zeros[0]


def scanned(step: Any, count: Dim, held: tuple[Any, ...], rows: tuple[Any, ...] = (),
          fixed: tuple[Any, ...] = (), reverse: bool = False) -> Any:
    """Run `step(*held, j, *rows, *fixed)` for each j below `count`, with row j of each of
    `rows`."""
    xs = (axis_indices(held[0], (count,), 0), *rows)
    types = [*(x.type for x in held), *(TensorType(x.dtype, x.shape[1:]) for x in xs),
             *(x.type for x in fixed)]
    return o.scan(*held, *xs, *fixed, body=trace(step, types), carries=len(held), xs=len(xs),
                  length=count, reverse=reverse)


def triangle(x: Any, lower: bool, diagonal: int = 0) -> Any:
    """x with zeros above (or, unless `lower`, below) a diagonal: the main one moved right by
    `diagonal`."""
    m, n = x.shape[-2:]
    offset = axis_indices(x, (1, n), 1) - axis_indices(x, (m, 1), 0)
    return o.select(o.le(offset, diagonal) if lower else o.ge(offset, diagonal), x, 0.0)


def swap_last_axes(x: Any) -> Any:
    """x with its last two axes exchanged."""
    return o.transpose(x, perm=(*range(x.ndim - 2), x.ndim - 1, x.ndim - 2))


def identity(x: Any, n: Dim, batch: tuple[Dim, ...] = ()) -> Any:
    """[*batch, n, n] with ones on the diagonal."""
    one = o.eq(axis_indices(x, (1, n), 1), axis_indices(x, (n, 1), 0))
    plain = o.select(one, filled(x, 1.0, (n, n)), 0.0)
    return o.broadcast(plain, shape=(*batch, n, n))
