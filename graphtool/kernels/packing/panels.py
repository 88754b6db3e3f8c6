"""Right-hand sides and filters in panels of `nr` columns, the last one filled up with zeros."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from graphtool import dtypes
from graphtool import ops as o
from graphtool.ir.facets import Trait
from graphtool.ir.graph import TensorType
from graphtool.ir.op import Op, register
from graphtool.loops.pull import Names, PExpr, Pull, apply, const, index
from graphtool.ops.common import Array, need
from graphtool.symbolic import Dim, ceildiv, known, maximum, minimum


def in_panels(b: TensorType, nr: int, transpose: bool, group: int = 1) -> tuple[Dim, ...]:
    """The sizes of b [..., K, N] in panels, [..., ⌈N/nr⌉, ⌈K/group⌉], without those of a row."""
    k, n = b.shape[-2:][::-1] if transpose else b.shape[-2:]
    return (*b.shape[:-2], ceildiv(n, nr), ceildiv(k, group))


def grouped(b: Array, nr: int, transpose: bool, group: int) -> Array:
    """b [..., K, N] as [..., ⌈N/nr⌉, ⌈K/group⌉, nr, group], filled up with zeros."""
    b = np.swapaxes(b, -1, -2) if transpose else b
    k, n = b.shape[-2:]
    panels, rows = -(-n // nr), -(-k // group)
    wide = np.zeros((*b.shape[:-2], rows * group, panels * nr), b.dtype)
    wide[..., :k, :n] = b
    split = wide.reshape(*b.shape[:-2], rows, group, panels, nr)
    return np.ascontiguousarray(np.moveaxis(split, (-2, -4, -1, -3), (-4, -3, -2, -1)))


def element(b: Pull, nr: int, transpose: bool, at: Sequence[Dim], group: int = 1,
            deep: int = 0) -> PExpr:
    """The element of b in panels at [..., panel, row, lane, member of the group]; a column is
    filled up to a multiple of `deep` elements, or of a group."""
    *lead, panel, row, lane, member = at
    k, n = b.shape[-2:][::-1] if transpose else b.shape[-2:]
    return padded(lambda k, n: b.at((*lead, n, k) if transpose else (*lead, k, n)),
                  [(row * group + member, k, deep or group), (panel * nr + lane, n, nr)])


def padded(read: Callable[..., PExpr], places: Sequence[tuple[Dim, Dim, int]]) -> PExpr:
    """The value that `read` gives at these positions (index, size, step), or 0 if an index is past
    its size.

    An index goes up to the next multiple of its step. Only if that can be greater than the size,
    the index is compared with it.
    """
    past = [known(size % step, "==", 0) is not True for _, size, step in places]
    value = read(*(maximum(minimum(i, size - 1), 0) if asked else i
                   for (i, size, _), asked in zip(places, past, strict=True)))
    zero = const(0.0 if value.dtype.is_float else 0, value.dtype)
    for (i, size, _), asked in zip(places, past, strict=True):
        if asked:
            value = apply("select", apply("lt", index(i), index(size), dtype=dtypes.bool_), value,
                          zero, dtype=value.dtype)
    return value


# ---- pack: [..., K, N] → [..., ⌈N/nr⌉, K, nr] ---------------------------------------------------

def _pack_infer(b: TensorType, *, nr: int, transpose: bool = False) -> TensorType:
    need(b.rank >= 2, f"the operand must have rank 2 or more, got {b}")
    return TensorType(b.dtype, (*in_panels(b, nr, transpose), nr))


def _pack(b: Any, *, nr: int, transpose: bool) -> Any:
    rank = b.ndim - 2
    b = o.transpose(b, perm=(*range(rank), rank + 1, rank)) if transpose else b
    *lead, k, n = b.shape
    panels = ceildiv(n, nr)
    wide = o.pad(b, lo=(0,) * b.ndim, hi=(*(0,) * (b.ndim - 1), panels * nr - n))
    split = o.reshape(wide, shape=(*lead, k, panels, nr))
    return o.transpose(split, perm=(*range(rank), rank + 1, rank, rank + 2))


def _pack_lower(_: Names, b: Pull, *, nr: int, transpose: bool) -> Pull:
    shape = _pack_infer(TensorType(b.dtype, b.shape), nr=nr, transpose=transpose).shape
    return Pull(b.dtype, shape, lambda at: element(b, nr, transpose, (*at, 0)))


register(Op("pack", _pack_infer, None, None, _pack_lower, _pack, category="memory",
            traits=Trait.NEST,
            doc="the right-hand side of a product, [..., K, N] → [..., ⌈N/nr⌉, K, nr]: panels of "
                "nr columns, the last one padded with zeros"))


def unpacked(b: Any, n: Dim, depth: Dim | None = None, group: int = 1) -> Any:
    """[..., P, ⌈K/group⌉, nr·group] → [..., K, n] with `depth` as K, where `group` elements of a
    column are adjacent."""
    *lead, panels, rows, wide = b.shape
    rank, k = len(lead), rows * group if depth is None else depth
    split = o.reshape(b, shape=(*lead, panels, rows, wide // group, group))
    sides = o.transpose(split, perm=(*range(rank), rank + 1, rank + 3, rank, rank + 2))
    whole = o.reshape(sides, shape=(*lead, rows * group, panels * (wide // group)))
    return o.slice(whole, start=(0,) * whole.ndim, limit=(*lead, k, n), strides=(1,) * whole.ndim)


# ---- pack_conv: [O, C, KH, KW] → [groups, ⌈O/nr⌉, KH, KW·C, nr] ---------------------------------

def _pack_conv_infer(w: TensorType, *, nr: int, groups: int = 1) -> TensorType:
    o, c, kh, kw = w.shape
    return TensorType(w.dtype, (groups, ceildiv(o // groups, nr), kh, kw * c, nr))


def _pack_conv(w: Any, *, nr: int, groups: int) -> Any:
    out, c, kh, kw = w.shape
    size = out // groups
    panels = ceildiv(size, nr)
    wide = o.pad(o.reshape(w, shape=(groups, size, c, kh, kw)), lo=(0,) * 5,
                 hi=(0, panels * nr - size, 0, 0, 0))
    split = o.transpose(o.reshape(wide, shape=(groups, panels, nr, c, kh, kw)),
                        perm=(0, 1, 4, 5, 3, 2))
    return o.reshape(split, shape=(groups, panels, kh, kw * c, nr))


def _pack_conv_lower(_: Names, w: Pull, *, nr: int, groups: int) -> Pull:
    shape = _pack_conv_infer(TensorType(w.dtype, w.shape), nr=nr, groups=groups).shape
    out, c = w.shape[:2]
    size = out // groups

    def at(idx: Any) -> Any:
        group, panel, row, depth, lane = idx
        return padded(lambda column: w.at((group * size + column, depth % c, row, depth // c)),
                      [(panel * nr + lane, size, nr)])
    return Pull(w.dtype, shape, at)


register(Op("pack_conv", _pack_conv_infer, None, None, _pack_conv_lower, _pack_conv,
            category="memory",
            doc="convolution weights [O, C, KH, KW] → [groups, ⌈O/nr⌉, KH, KW·C, nr]: panels of "
                "nr output channels"))
