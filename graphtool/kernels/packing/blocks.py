"""Right-hand sides and filters for matrix units: the groups of `integers.py` and `pairs.py`, with
rows of zeros up to the depth of a tile.

A group is four bytes of a column: four of int8, two of 16 bits. A tile has `TILE` rows of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

from graphtool import dtypes
from graphtool import ops as o
from graphtool.dtypes import DType
from graphtool.ir.facets import Trait
from graphtool.ir.graph import TensorType
from graphtool.ir.op import Op, register
from graphtool.kernels.packing.panels import element, grouped, unpacked
from graphtool.loops.pull import Names, Pull
from graphtool.ops.common import Array, need
from graphtool.symbolic import Dim, ceildiv

TILE = 16
GROUP: dict[DType, int] = {dtypes.int8: 4, **dict.fromkeys(dtypes.HALVES, 2)}
LEFT = {dtypes.int8: dtypes.uint8, **{d: d for d in dtypes.HALVES}}  # what each is multiplied by
# numbers in 16 bytes of a column
UNITS: dict[DType, int] = {dtypes.int8: 16, **dict.fromkeys(dtypes.HALVES, 8), dtypes.float32: 4}
STEP = 8  # times so many bytes are read together
SUM = {dtypes.int8: dtypes.int32, **dict.fromkeys(dtypes.HALVES, dtypes.float32)}


def rows(depth: Dim, kind: DType) -> Dim:
    """Rows of a panel for a sum of `depth` products."""
    return ceildiv(depth, TILE * GROUP[kind]) * TILE


def summed(x: TensorType, w: TensorType) -> DType:
    """The type of the sums. Raises TypeMismatch for operands that no matrix unit takes."""
    need(LEFT.get(w.dtype) is x.dtype,
         f"the operands must be u8 and i8, or both bf16 or f16, got {x} and {w}")
    return SUM[w.dtype]


# ---- pack_blocks: [..., K, N] → [..., ⌈N/nr⌉, 16·⌈K/(16·G)⌉, nr·G] ------------------------------

def _pack_eval(b: Array, *, nr: int, transpose: bool, groups: Mapping[DType, int] = GROUP,
               tile: int = TILE) -> Array:
    group = groups[dtypes.of_numpy(b.dtype)]
    b = np.swapaxes(b, -1, -2) if transpose else b
    more = -b.shape[-2] % (tile * group)
    wide = np.concatenate([b, np.zeros((*b.shape[:-2], more, b.shape[-1]), b.dtype)], -2)
    split = grouped(wide, nr, False, group)
    return split.reshape(*split.shape[:-2], nr * group)


def _pack(name: str, groups: Mapping[DType, int], tile: int, doc: str) -> None:
    """An op that packs panels of nr columns, of which each is filled up to whole tiles of so many
    groups."""
    def infer(b: TensorType, *, nr: int, transpose: bool = False) -> TensorType:
        known = " or ".join(d.short for d in groups)
        need(b.rank >= 2 and b.dtype in groups,
             f"the operand must be {known} of rank 2 or more, got {b}")
        k, n = b.shape[-2:][::-1] if transpose else b.shape[-2:]
        group = groups[b.dtype]
        return TensorType(b.dtype, (*b.shape[:-2], ceildiv(n, nr), ceildiv(k, tile * group) * tile,
                                    nr * group))

    def lower(_: Names, b: Pull, *, nr: int, transpose: bool) -> Pull:
        shape = infer(TensorType(b.dtype, b.shape), nr=nr, transpose=transpose).shape
        group = groups[b.dtype]
        return Pull(b.dtype, shape, lambda at: element(
            b, nr, transpose, (*at[:-1], at[-1] // group, at[-1] % group), group, tile * group))

    register(Op(name, infer, partial(_pack_eval, groups=groups, tile=tile), None, lower,
                category="memory", traits=Trait.NEST, doc=doc))


_pack("pack_blocks", GROUP, TILE,
      "the right-hand side of a product by a matrix unit, in panels of nr columns; the four bytes "
      "of a sum that one instruction adds are adjacent, and each column is filled up with zeros to "
      "whole tiles")
_pack("pack_units", UNITS, STEP,
      "the right-hand side of a product by four warps together, in panels of nr columns; 16 bytes "
      "of a column are adjacent, and each column is filled up with zeros to a multiple of 128")


def plain(w: Any, n: int, depth: Dim, groups: Mapping[DType, int] = GROUP) -> Any:
    """What `pack_blocks` packed, or `pack_units` by its groups: n columns of this depth."""
    return unpacked(w, n, depth, groups[w.dtype])


# ---- pack_conv_blocks: [O, C, KH, KW] → [⌈O/nr⌉, runs·16·⌈run/(16·G)⌉, nr·G] --------------------
# A run is the C elements of one tap; what is `gathered` is a single run of KH·KW·C.

def _pack_conv_infer(w: TensorType, *, nr: int, gathered: bool = False) -> TensorType:
    need(w.rank == 4 and w.dtype in GROUP, f"the filters must be i8, bf16 or f16, got {w}")
    out, c, kh, kw = w.shape
    return TensorType(w.dtype, (ceildiv(out, nr), rows_of_taps(c, kh * kw, gathered, w.dtype),
                                nr * GROUP[w.dtype]))


def rows_of_taps(c: Dim, taps: Dim, gathered: bool, kind: DType) -> Dim:
    """Rows of a panel for a window of so many taps of c channels."""
    return rows(taps * c, kind) if gathered else taps * rows(c, kind)


def _pack_conv_eval(w: Array, *, nr: int, gathered: bool) -> Array:
    out, c, kh, kw = w.shape
    runs = 1 if gathered else kh * kw
    taps = w.transpose(2, 3, 1, 0).reshape(runs, kh * kw * c // runs, out)
    packed = _pack_eval(taps, nr=nr, transpose=False)  # [runs, panels, rows, lanes]
    moved = np.ascontiguousarray(np.moveaxis(packed, 1, 0))
    return moved.reshape(packed.shape[1], -1, packed.shape[-1])


register(Op("pack_conv_blocks", _pack_conv_infer, _pack_conv_eval, category="memory",
            doc="convolution weights for a matrix unit, in panels of nr output channels; the four "
                "bytes of a sum that one instruction adds are adjacent, and the channels of each "
                "tap, or all that an output reads, are filled up with zeros to whole tiles"))


def plain_filters(w: Any, channels: int, depth: int, window: tuple[int, int],
                  gathered: bool) -> Any:
    """What `pack_conv_blocks` packed: filters [O, C, KH, KW]."""
    (panels, deep, wide), (kh, kw) = w.shape, window
    runs = 1 if gathered else kh * kw
    split = o.reshape(w, shape=(panels, runs, deep // runs, wide))
    matrix = plain(o.transpose(split, perm=(1, 0, 2, 3)), channels, kh * kw * depth // runs)
    return o.transpose(o.reshape(matrix, shape=(kh, kw, depth, channels)), perm=(3, 2, 0, 1))
