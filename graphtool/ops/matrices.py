"""Helpers for factorisations: batches of matrices as one axis, indices, halves, and scans over
them."""

from __future__ import annotations

from typing import Any

from graphtool import dtypes
from graphtool import ops as o
from graphtool.ir.graph import TensorType
from graphtool.ir.trace import like, trace
from graphtool.ops.common import filled, need
from graphtool.symbolic import Dim, product


def need_matrix(x: TensorType, square: bool = True) -> None:
    """Raises TypeMismatch GT0412 unless x is a float matrix or a batch of them, square if so
    required."""
    need(x.rank >= 2 and x.dtype.is_float, f"a matrix of floats, got {x}")
    need(not square or x.shape[-1] == x.shape[-2], f"a square matrix, got {x}")


def flat(x: Any) -> Any:
    """[batch, rows, columns]"""
    return o.reshape(x, shape=(product(x.shape[:-2]), *x.shape[-2:]))


def places(x: Any, shape: tuple[Dim, ...], axis: int) -> Any:
    """Indices along `axis` as an i64 array of this shape."""
    return like(x, o.iota, shape=shape, axis=axis, dtype=dtypes.int64)


def as_tuple(x: Any) -> tuple[Any, ...]:
    """x as a tuple of results: an op with one output returns it alone."""
    return x if isinstance(x, tuple) else (x,)


def nothing(x: Any) -> bool:
    """Whether x has no elements."""
    return 0 in x.shape


def blank(x: Any, kinds: Any) -> Any:
    """Results without elements, of the types."""
    made = tuple(filled(x, 0.0, t.shape, t.dtype) for t in as_tuple(kinds))
    return made if isinstance(kinds, tuple) else made[0]


def scanned(step: Any, count: Dim, held: tuple[Any, ...], rows: tuple[Any, ...] = (),
          fixed: tuple[Any, ...] = (), reverse: bool = False) -> Any:
    """`step(*held, j, *rows, *fixed)` for each j below `count`, with a row of each of `rows`."""
    xs = (places(held[0], (count,), 0), *rows)
    types = [*(x.type for x in held), *(TensorType(x.dtype, x.shape[1:]) for x in xs),
             *(x.type for x in fixed)]
    return o.scan(*held, *xs, *fixed, body=trace(step, types), carries=len(held), xs=len(xs),
                  length=count, reverse=reverse)


def triangle(x: Any, lower: bool, diagonal: int = 0) -> Any:
    """x with zeros above (or below) the diagonal that lies `diagonal` to the right."""
    m, n = x.shape[-2:]
    offset = places(x, (1, n), 1) - places(x, (m, 1), 0)
    return o.select(o.le(offset, diagonal) if lower else o.ge(offset, diagonal), x, 0.0)


def turned(x: Any) -> Any:
    """x with its last two axes exchanged."""
    return o.transpose(x, perm=(*range(x.ndim - 2), x.ndim - 1, x.ndim - 2))


def identity(x: Any, n: Dim, batch: tuple[Dim, ...] = ()) -> Any:
    """[*batch, n, n] with ones on the diagonal."""
    one = o.eq(places(x, (1, n), 1), places(x, (n, 1), 0))
    plain = o.select(one, filled(x, 1.0, (n, n)), 0.0)
    return o.broadcast(plain, shape=(*batch, n, n))
