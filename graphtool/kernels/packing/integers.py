"""Right-hand sides and filters of small integers; elements of a sum that one instruction adds are
adjacent: four of int8, two of int16.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from graphtool import dtypes
from graphtool import ops as o
from graphtool.dtypes import DType
from graphtool.ir.facets import Trait
from graphtool.ir.graph import TensorType
from graphtool.ir.op import Op, register
from graphtool.kernels.packing.panels import element, grouped, in_panels
from graphtool.loops.pull import Names, Pull
from graphtool.ops.common import Array, need
from graphtool.symbolic import Dim, ceildiv

GROUP: dict[DType, int] = {dtypes.int8: 4, dtypes.int16: 2}  # weights that meet in one lane


def group_of(x: TensorType, w: TensorType) -> int:
    """Weights that meet in one lane. Raises TypeMismatch for operands that no kernel takes."""
    pair = (x.dtype, w.dtype)
    need(pair in ((dtypes.uint8, dtypes.int8), (dtypes.int16, dtypes.int16)),
         f"the operands must be u8 and i8, or i16 and i16, got {x} and {w}")
    return GROUP[w.dtype]


def exact(x: Any) -> Any:
    """Integers as float64, which holds their products and sums exactly."""
    return o.cast(x, dtype=dtypes.float64)


def wrapped(x: Any) -> Any:
    """Exact sums as int32, which wrap around."""
    return o.cast(o.cast(x, dtype=dtypes.int64), dtype=dtypes.int32)


# ---- pack_int: [..., K, N] → [..., ⌈N/nr⌉, ⌈K/G⌉, nr·G] ----------------------------------------

def _pack_infer(b: TensorType, *, nr: int, transpose: bool = False) -> TensorType:
    need(b.rank >= 2 and b.dtype in GROUP,
         f"the operand must be i8 or i16 of rank 2 or more, got {b}")
    group = GROUP[b.dtype]
    return TensorType(b.dtype, (*in_panels(b, nr, transpose, group), nr * group))


def _pack_eval(b: Array, *, nr: int, transpose: bool) -> Array:
    split = grouped(b, nr, transpose, GROUP[dtypes.of_numpy(b.dtype)])
    return split.reshape(*split.shape[:-2], split.shape[-2] * split.shape[-1])


def _pack_lower(_: Names, b: Pull, *, nr: int, transpose: bool) -> Pull:
    shape = _pack_infer(TensorType(b.dtype, b.shape), nr=nr, transpose=transpose).shape
    group = GROUP[b.dtype]
    return Pull(b.dtype, shape, lambda at: element(
        b, nr, transpose, (*at[:-1], at[-1] // group, at[-1] % group), group))


register(Op("pack_int", _pack_infer, _pack_eval, None, _pack_lower, category="memory",
            traits=Trait.NEST,
            doc="the right-hand side of an integer product in panels of nr columns; the elements "
                "of a sum that one instruction adds are adjacent"))


# ---- pack_int_conv: [O, C, KH, KW] → [groups, ⌈O/nr⌉, KH, runs·⌈run/G⌉, nr·G] -------------------
# A run is a sequence of elements that are adjacent in x: C of one tap, or with `joined` KW·C of a
# kernel row.

def _runs(w: tuple[Dim, ...], joined: bool) -> tuple[Dim, Dim]:
    """The number of runs in a kernel row, and the elements of one run."""
    _, c, _, kw = w
    return (1, kw * c) if joined else (kw, c)


def _pack_conv_infer(w: TensorType, *, nr: int, groups: int = 1,
                     joined: bool = False) -> TensorType:
    need(w.rank == 4 and w.dtype in GROUP, f"the filters must be i8 or i16, got {w}")
    (count, run), group = _runs(w.shape, joined), GROUP[w.dtype]
    return TensorType(w.dtype, (groups, ceildiv(w.shape[0] // groups, nr), w.shape[2],
                                count * ceildiv(run, group), nr * group))


def _pack_conv_eval(w: Array, *, nr: int, groups: int, joined: bool) -> Array:
    out, c, kh, kw = w.shape
    outputs, group = out // groups, GROUP[dtypes.of_numpy(w.dtype)]
    count, run = (1, kw * c) if joined else (kw, c)
    rows = w.reshape(groups, outputs, c, kh, kw).transpose(0, 3, 4, 2, 1)  # [g, kh, kw, c, o]
    packed = _pack_eval(rows.reshape(groups, kh, count, run, outputs), nr=nr, transpose=False)
    moved = np.moveaxis(packed, 3, 1)  # [g, kh, runs, panels, quads, lanes], panels to the front
    return np.ascontiguousarray(moved).reshape(groups, packed.shape[3], kh, -1, nr * group)


register(Op("pack_int_conv", _pack_conv_infer, _pack_conv_eval, category="memory",
            doc="integer convolution weights in panels of nr output channels; the elements of a "
                "sum that one instruction adds are adjacent"))


# ---- pack_int_depthwise: [C, 1, KH, KW] → [Q, high, KW, C, G] -----------------------------------


def _pack_depthwise_infer(w: TensorType, *, high: int, stride: int) -> TensorType:
    need(w.rank == 4 and w.shape[1] == 1 and w.dtype in GROUP,
         f"the filters must be i8 or i16, got {w}")
    (c, _, kh, kw), group = w.shape, GROUP[w.dtype]
    return TensorType(w.dtype, (ceildiv((high - 1) * stride + kh, group), high, kw, c, group))


def _pack_depthwise_eval(w: Array, *, high: int, stride: int) -> Array:
    (c, _, kh, kw), group = w.shape, GROUP[dtypes.of_numpy(w.dtype)]
    rows = -(-((high - 1) * stride + kh) // group) * group
    out = np.zeros((rows, high, kw, c), w.dtype)
    for h in range(high):
        out[h * stride:h * stride + kh, h] = w[:, 0].transpose(1, 2, 0)
    return np.ascontiguousarray(out.reshape(-1, group, high, kw, c).transpose(0, 2, 3, 4, 1))


register(Op("pack_int_depthwise", _pack_depthwise_infer, _pack_depthwise_eval, category="memory",
            doc="integer weights of one filter for each channel; rows of a filter that one "
                "instruction adds are adjacent, for `high` rows of results"))
