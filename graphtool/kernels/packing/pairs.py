"""Right-hand sides and filters by pairs of bfloat16 numbers, for dot products of these.

Two elements that are summed stand side by side.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from graphtool import dtypes
from graphtool.ir.facets import Trait
from graphtool.ir.graph import TensorType
from graphtool.ir.op import Op, register
from graphtool.kernels.packing.panels import element, grouped, in_panels, padded
from graphtool.loops.pull import Names, Pull
from graphtool.ops.common import Array, need
from graphtool.symbolic import ceildiv

# ---- pack_pairs: [..., K, N] → [..., ⌈N/nr⌉, ⌈K/2⌉, nr, 2] --------------------------------------


def _pairs_infer(b: TensorType, *, nr: int, transpose: bool = False) -> TensorType:
    need(b.rank >= 2 and b.dtype is dtypes.bfloat16,
         f"the operand must be bfloat16 of rank 2 or more, got {b}")
    return TensorType(b.dtype, (*in_panels(b, nr, transpose, 2), nr, 2))


def _pairs_lower(_: Names, b: Pull, *, nr: int, transpose: bool) -> Pull:
    shape = _pairs_infer(TensorType(b.dtype, b.shape), nr=nr, transpose=transpose).shape
    return Pull(b.dtype, shape, lambda at: element(b, nr, transpose, at, 2))


register(Op("pack_pairs", _pairs_infer,
            lambda b, *, nr, transpose: grouped(b, nr, transpose, 2), None, _pairs_lower,
            category="memory",
            traits=Trait.NEST,
            doc="the right-hand side of a bfloat16 product, [..., K, N] → [..., ⌈N/nr⌉, ⌈K/2⌉, "
                "nr, 2]: two elements of the same sum are adjacent"))


# ---- pack_conv_pairs: [O, C, KH, KW] → [groups, ⌈O/nr⌉, KH, pairs, nr, 2] -----------------------
# With `whole` a pair may join two taps of a kernel row; otherwise each tap has its own pairs.


def row_pairs(c: int, kw: int, whole: bool) -> int:
    """The number of pairs in a kernel row; if each tap has its own pairs, an odd number of
    channels leaves the last pair of a tap half empty."""
    return -(-kw * c // 2) if whole else kw * -(-c // 2)


def whole_rows(groups: int, dilation: Any) -> bool:
    """Whether pairs may join two taps: only if the elements of a kernel row are adjacent in x."""
    return groups == 1 and dilation[1] == 1


def _pack_conv_infer(w: TensorType, *, nr: int, groups: int = 1,
                     whole: bool = True) -> TensorType:
    need(w.rank == 4 and w.dtype is dtypes.bfloat16, f"bfloat16 weights [O, C, KH, KW], got {w}")
    out, c, kh, kw = w.shape
    need(isinstance(c, int) and isinstance(kw, int),
         f"the channels and the window of {w} must be known numbers")
    assert isinstance(c, int) and isinstance(kw, int)
    return TensorType(w.dtype, (groups, ceildiv(out // groups, nr), kh, row_pairs(c, kw, whole),
                                nr, 2))


def _pack_conv_eval(w: Array, *, nr: int, groups: int, whole: bool) -> Array:
    out, c, kh, kw = w.shape
    og = out // groups
    panels, runs = -(-og // nr), 1 if whole else kw
    run = kw * c // runs
    wide = np.zeros((groups, panels * nr, kh, runs, -(-run // 2) * 2), w.dtype)
    rows = w.transpose(0, 2, 3, 1).reshape(groups, og, kh, runs, run)
    wide[:, :og, ..., :run] = rows
    split = wide.reshape(groups, panels, nr, kh, -1, 2)
    return np.ascontiguousarray(split.transpose(0, 1, 3, 4, 2, 5))


def _pack_conv_lower(names: Names, w: Pull, *, nr: int, groups: int, whole: bool) -> Pull:
    shape = _pack_conv_infer(TensorType(w.dtype, w.shape), nr=nr, groups=groups,
                             whole=whole).shape
    out, c, kw = *w.shape[:2], w.shape[3]
    size = out // groups
    assert isinstance(c, int) and isinstance(kw, int)

    def at(idx: Any) -> Any:
        group, panel, row, pair, lane, half = idx
        tap, inner = (0, pair) if whole else (pair // -(-c // 2), pair % -(-c // 2))
        return padded(
            lambda depth, column: w.at((group * size + column, depth % c, row, tap + depth // c)),
            [(inner * 2 + half, kw * c if whole else c, 2), (panel * nr + lane, size, nr)])
    return Pull(w.dtype, shape, at)


register(Op("pack_conv_pairs", _pack_conv_infer, _pack_conv_eval, None, _pack_conv_lower,
            category="memory",
            doc="bfloat16 convolution weights in panels of nr output channels, two elements of "
                "the same sum adjacent"))
