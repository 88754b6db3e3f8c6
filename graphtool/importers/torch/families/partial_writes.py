"""Copies of a tensor with one part replaced: a slice, one index of an axis, a diagonal."""

from __future__ import annotations

from typing import Any

from graphtool.importers.torch.families.index import back
from graphtool.importers.torch.families.shape import bound, from_front
from graphtool.importers.torch.kit import Array, Context, Dim, aten, axis_of, dtypes, o


def _into(c: Context, x: Array, src: Array, axis: int, start: Dim, step: int) -> Any:
    """x with src at start, start + step, … along one axis: select(padded mask, padded src, x)."""
    count, size = src.shape[axis], x.shape[axis]
    if count == size:
        return src
    covered = (count - 1) * step + 1
    lo, hi = ([n if i == axis else 0 for i in range(x.ndim)]
              for n in (start, size - start - covered))
    gap = [step - 1 if i == axis else 0 for i in range(x.ndim)]
    line = c.full([count if i == axis else 1 for i in range(x.ndim)], True, dtypes.bool_)
    return o.select(line.pad(lo, hi, False, gap), src.pad(lo, hi, 0, gap), x)


@aten("slice_scatter")
def slice_scatter(c: Context, self: Array, src: Array, dim: int = 0, start: Any = None,
                  end: Any = None, step: int = 1) -> Any:
    """x with src at start:end:step along one axis: select(padded mask, padded src, x)."""
    axis = axis_of(dim, self.ndim)
    if src.shape[axis] == 0:
        return self
    first = bound(start, self.shape[axis], 0)
    shape = (*self.shape[:axis], src.shape[axis], *self.shape[axis + 1:])
    return _into(c, self, c.cast(src, self.dtype).broadcast(shape), axis, first, step)


@aten("select_scatter")
def select_scatter(c: Context, self: Array, src: Array, dim: int, index: Any) -> Any:
    """x with src at one index of an axis: select(padded mask, padded src, x)."""
    axis = axis_of(dim, self.ndim)
    at = from_front(index, self.shape[axis])
    return _into(c, self, c.cast(src, self.dtype).unsqueeze(axis), axis, at, 1)


@aten("diagonal_scatter")
def diagonal_scatter(c: Context, self: Array, src: Array, offset: int = 0, dim1: int = 0,
                     dim2: int = 1) -> Any:
    """x with src on a diagonal of two axes: a scatter at (i, i + offset)."""
    a, b = axis_of(dim1, self.ndim), axis_of(dim2, self.ndim)
    perm = [a, b, *(i for i in range(self.ndim) if i not in (a, b))]
    line = c.iota((src.shape[-1], 1), 0)
    at = o.concat(line + max(-offset, 0), line + max(offset, 0), axis=1)
    y = o.scatter(self.transpose(perm), at, src.moveaxis(-1, 0), axes=(0, 1))
    return y.transpose(back(perm))
