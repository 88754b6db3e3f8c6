"""Views: where a value's elements are in memory, as a buffer, an offset and a stride for each
axis."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from graphtool.dtypes import DType
from graphtool.loops.ir import Load
from graphtool.loops.pull import Pull
from graphtool.symbolic import Dim


@dataclass(frozen=True, slots=True)
class View:
    """Element idx is at offset + Σ idx·strides of `buffer`, counted in elements."""

    buffer: str
    dtype: DType
    shape: tuple[Dim, ...]
    strides: tuple[Dim, ...]
    offset: Dim = 0

    def index(self, idx: tuple[Dim, ...]) -> Dim:
        """The index in the buffer of the element at `idx`."""
        at = self.offset
        for i, s in zip(idx, self.strides, strict=True):
            at = at + i * s
        return at

    @property
    def contiguous(self) -> bool:
        """Whether the elements are adjacent and in row-major order; axes of size 1 do not count."""
        return all(d == 1 or s == c for d, s, c in zip(
            self.shape, self.strides, dense_strides(self.shape), strict=True))


def dense_strides(shape: tuple[Dim, ...]) -> tuple[Dim, ...]:
    """The strides, in elements, of a row-major array of this shape."""
    out: list[Dim] = []
    step: Dim = 1
    for d in reversed(shape):
        out.append(step)
        step = step * d
    return tuple(reversed(out))


def dense(buffer: str, dtype: DType, shape: tuple[Dim, ...]) -> View:
    """A view of a whole buffer as a row-major array, at offset 0."""
    return View(buffer, dtype, shape, dense_strides(shape))


def pull_of(view: View) -> Pull:
    """The pull that reads a view, element by element."""
    return Pull(view.dtype, view.shape,
                lambda idx: Load(view.buffer, view.index(idx), view.dtype))


def row_stride(v: View) -> Dim | None:
    """The distance between rows if one loop can walk all axes but the last; else None."""
    lead = [(d, s) for d, s in zip(v.shape[:-1], v.strides[:-1], strict=True) if d != 1]
    for (_, outer), (d, inner) in pairwise(lead):
        if outer != d * inner:
            return None
    return lead[-1][1] if lead else 0


def transposed(v: View) -> bool:
    """Whether it is a matrix whose columns are adjacent in memory, as the left operand of a
    product may be."""
    return len(v.shape) >= 2 and v.strides[-2] == 1 and v.shape[-2] != 1 and (
        v.strides[-1] != 1 and v.shape[-1] != 1)
