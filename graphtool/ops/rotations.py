"""Jacobi's rotations of pairs of rows, for `eigh` and `svd` of batches of matrices.

Each round rotates half as many pairs of rows as there are rows, all at once. In one sweep every row
is paired once with every other row, as in a round-robin tournament. The number of sweeps is fixed
and grows with the logarithm of the size.
"""

from __future__ import annotations

from typing import Any

import ml_dtypes

from graphtool import ops as o
from graphtool.ir.graph import TensorType
from graphtool.ops.common import filled, need
from graphtool.ops.matrices import axis_indices

_SWEEPS = 6  # plus one for each doubling of the size: convergence is quadratic once it begins


def rounds(n: int) -> int:
    """The rounds of all sweeps over n rows (n is even)."""
    return (_SWEEPS + n.bit_length()) * (n - 1)


def pieces(x: Any, axis: int, *bounds: tuple[int, int]) -> list[Any]:
    """The parts of x between these (start, limit) along the axis."""
    def piece(start: int, limit: int) -> Any:
        return o.slice(x, start=tuple(start if i == axis else 0 for i in range(x.ndim)),
                       limit=tuple(limit if i == axis else d for i, d in enumerate(x.shape)),
                       strides=(1,) * x.ndim)
    return [piece(*b) for b in bounds]


def halves(x: Any, axis: int) -> list[Any]:
    """Both halves of x along the axis; line i of one is paired with line i of the other."""
    n = x.shape[axis]
    return pieces(x, axis, (0, n // 2), (n // 2, n))


def _paired(top: Any, bottom: Any, axis: int) -> Any:
    """Both halves in the order of the next round: all rows but the first move on by one in a
    ring."""
    h = top.shape[axis]
    if h == 1:
        return o.concat(top, bottom, axis=axis)
    first, middle, last = pieces(top, axis, (0, 1), (1, h - 1), (h - 1, h))
    second, rest = pieces(bottom, axis, (0, 1), (1, h))
    return o.concat(first, second, *([middle] if h > 2 else []), rest, last, axis=axis)


def rotated(x: Any, turn: tuple[Any, Any], axis: int) -> Any:
    """p, q → c·p − s·q, s·p + c·q for the pairs of rows or columns, in the order of the next
    round."""
    (top, bottom), (c, s) = halves(x, axis), turn
    return _paired(c * top - s * bottom, s * top + c * bottom, axis)


def rotation(p: Any, q: Any, between: Any) -> tuple[Any, Any]:
    """(c, s) of the rotation by at most 45° that takes ((p, x), (x, q)) to a diagonal matrix.

    An x so small that it is rounding error beside p and q is not rotated: such rotations would add
    up over the sweeps.
    """
    noise = 0.5 * float(ml_dtypes.finfo(p.dtype.numpy).eps)
    none = o.le(o.abs(between), o.sqrt(o.abs(p)) * o.sqrt(o.abs(q)) * noise)
    ratio = (q - p) / (o.select(none, 1.0, between) * 2.0)
    tan = 1.0 / (o.abs(ratio) + o.sqrt(ratio * ratio + 1.0))
    tan = o.select(none, 0.0, o.select(o.lt(ratio, 0.0), -tan, tan))
    c = 1.0 / o.sqrt(tan * tan + 1.0)
    return c, tan * c


def even(x: Any, axes: tuple[int, ...]) -> Any:
    """x with one more line of zeros along the axes if their size is odd and cannot be paired."""
    for axis in axes:
        if x.shape[axis] % 2:
            shape = tuple(1 if i == axis else d for i, d in enumerate(x.shape))
            x = o.concat(x, filled(x, 0.0, shape), axis=axis)
    return x


def ordered(keys: Any, count: int, descending: bool, *vectors: Any) -> tuple[Any, ...]:
    """The first `count` keys [b, n, 1] in order, and the rows of `vectors` that belong to them."""
    _, order = o.sort(keys, axis=1, descending=descending)
    (order,) = pieces(order, 1, (0, count))
    return tuple(o.gather(x, order, axes=(1,), batch=1) for x in (keys, *vectors))


def row_lengths(rows: Any) -> Any:
    """The length of each row: many rotations have kept it near 1, not at 1."""
    return o.sqrt(o.reduce_sum(rows * rows, axes=(2,)))


def diagonal(x: Any) -> Any:
    """The diagonal, [b, n, 1]."""
    own = o.eq(axis_indices(x, (1, x.shape[1], 1), 1), axis_indices(x, (1, 1, x.shape[2]), 2))
    return o.reduce_sum(o.select(own, x, 0.0), axes=(2,))


def behind(keys: Any, vectors: Any, n: int, last: float) -> Any:
    """The keys, where the one of the line that `even` added is replaced by `last`, so that it
    is sorted last."""
    if vectors.shape[1] == n:
        return keys
    (place,) = pieces(vectors, 2, (n, n + 1))
    return o.select(o.ne(place, 0.0), last, keys)


def known_sizes(a: TensorType) -> tuple[int, int]:
    """Rows and columns of a matrix. Raises TypeMismatch GT0412 if one of them is open."""
    m, n = a.shape[-2:]
    need(isinstance(m, int) and isinstance(n, int),
         f"the size of the matrix must be a known number, got {a}")
    assert isinstance(m, int) and isinstance(n, int)
    return m, n
