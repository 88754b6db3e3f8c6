"""Sequences of computed length: elements of one type as rows of a table, and their number.

A loop carries them as a table with room for all that its iterations can insert.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from graphtool import dtypes
from graphtool import ops as o
from graphtool.front import Refused
from graphtool.importers.onnx.driver.computed import bind
from graphtool.importers.onnx.driver.values import (
    axis_of,
    dim_tensor,
)
from graphtool.importers.wrapping import from_end
from graphtool.ir.graph import TensorType
from graphtool.ir.trace import Builder, Tracer
from graphtool.symbolic import Dim


@dataclass(frozen=True)
class SequenceRows:
    """The first `count` rows of `table`. `inserted` counts the rows inserted by this iteration of a
    loop."""

    table: Tracer
    count: Tracer
    carried: bool = False  # by a loop: the table has room for all that comes
    inserted: int = 0

    @property
    def kind(self) -> TensorType:
        """The type of an element."""
        return TensorType(self.table.dtype, self.table.shape[1:])

    @property
    def room(self) -> Dim:
        """How many rows the table can hold."""
        return self.table.shape[0]


def of_tensor(x: Tracer) -> SequenceRows:
    """A sequence of the rows of a tensor, x[0], x[1] and so on."""
    return SequenceRows(x, dim_tensor(x.shape[0], x.builder))


def of_tuple(xs: tuple[Any, ...], kind: TensorType | None, room: Dim,
             builder: Builder) -> SequenceRows:
    """A sequence of known length, with room for `room` more elements.

    Raises Refused if its elements are of several types, or of an unknown type.
    """
    kinds = {x.type for x in xs if isinstance(x, Tracer)} | ({kind} if kind else set())
    if len(kinds) != 1 or not all(isinstance(x, Tracer) for x in xs):
        raise Refused("the elements of a sequence of computed length must have one type"
                      if kinds else "the element type of this sequence of computed length is not "
                                    "known; declare it in the model")
    (kind,) = kinds
    zero = builder.constant(_zero(kind))
    space = o.broadcast(zero, shape=(room, *kind.shape))
    parts = [x.reshape((1, *kind.shape)) for x in xs]
    table = o.concat(*parts, space, axis=0) if parts else space
    return SequenceRows(table, dim_tensor(len(xs), builder))


def _zero(kind: TensorType) -> Any:
    return np.zeros((), kind.dtype.numpy)


def wider(xs: SequenceRows, room: Dim) -> SequenceRows:
    """The same elements, with room for `room` more."""
    space = o.broadcast(xs.table.builder.constant(_zero(xs.kind)), shape=(room, *xs.kind.shape))
    return SequenceRows(o.concat(xs.table, space, axis=0), xs.count)


def chosen(cond: Any, a: SequenceRows, b: SequenceRows) -> SequenceRows:
    """a if the condition holds, else b; their tables have one type."""
    return SequenceRows(o.select(cond, a.table, b.table), o.select(cond, a.count, b.count),
                        a.carried, max(a.inserted, b.inserted))


def _place(xs: SequenceRows, i: Any) -> Tracer:
    """A position as an int64 scalar; a negative one counts from the end."""
    at = i.reshape(()).cast(dtypes.int64)
    return from_end(at, xs.count)  # type: ignore[no-any-return]


def at(xs: SequenceRows, i: Any) -> Tracer:
    """The element at a position, as a `gather` from the table."""
    where = _place(xs, i).reshape((1, 1))
    return o.gather(xs.table, where, axes=(0,)).reshape(xs.kind.shape)  # type: ignore[no-any-return]


def insert(xs: SequenceRows, x: Any, i: Any = None) -> SequenceRows:
    """The sequence with x at its end, or in front of a position. Raises Refused for another
    type."""
    if x.type != xs.kind:
        raise Refused(f"a sequence of computed length holds elements of one type; {x.type} does "
                      f"not fit {xs.kind}")
    xs = xs if xs.carried else wider(xs, 1)
    table, where = xs.table, xs.count
    if i is not None:
        where = _place(xs, i)
        each = _numbers(xs)
        table = _moved(table, o.select(each > where, each - 1, each))
    row = x.reshape((1, *xs.kind.shape))
    table = o.scatter(table, where.reshape((1, 1)), row, axes=(0,))
    return SequenceRows(table, xs.count + 1, xs.carried, xs.inserted + 1)


def erase(xs: SequenceRows, i: Any = None) -> SequenceRows:
    """The sequence without the element at a position, or without its last one."""
    left = xs.count - 1
    if i is None:
        return SequenceRows(xs.table, left, xs.carried, xs.inserted)
    each, where = _numbers(xs), _place(xs, i)
    later = o.min(each + 1, dim_tensor(xs.room, xs.table.builder) - 1)
    table = _moved(xs.table, o.select(each < where, each, later))
    return SequenceRows(table, left, xs.carried, xs.inserted)


def _numbers(xs: SequenceRows) -> Tracer:
    return xs.table.builder.emit(  # type: ignore[no-any-return]
        o.iota, (), {"shape": (xs.room,), "axis": 0, "dtype": dtypes.int64})


def _moved(table: Tracer, source: Tracer) -> Tracer:
    """The table with row i read from row source[i]."""
    return o.gather(table, source.unsqueeze(), axes=(0,))  # type: ignore[no-any-return]


def joined(xs: SequenceRows, axis: int, new_axis: int) -> Tracer:
    """All elements joined along an axis (a new one with `new_axis`), as a view of the table."""
    n = bind(xs.count, 0, xs.room)
    rows = xs.table.take(0, 0, n)
    shape, rank = xs.kind.shape, rows.ndim
    where = axis_of(axis, rank if new_axis else rank - 1)
    rows = rows.transpose((*range(1, where + 1), 0, *range(where + 1, rank)))
    if new_axis:
        return rows
    return rows.reshape((*shape[:where], n * shape[where], *shape[where + 1:]))


def cut(x: Any, axis: int, keepdims: int) -> SequenceRows:
    """Slices of size 1 along an axis of symbolic size."""
    rows = x.transpose((axis, *(a for a in range(x.ndim) if a != axis)))
    shape = x.shape[:axis] + ((1,) if keepdims else ()) + x.shape[axis + 1:]
    return of_tensor(rows.reshape((x.shape[axis], *shape)))
