"""Right-hand sides of float32 for a matrix unit that multiplies bfloat16: each number w as parts,
bfloat16 numbers whose sum is w·2²⁴.

Three parts hold all 24 digits. A panel is what `blocks.py` makes of one part; here the parts of
each step along the depth, 32 rows, stand behind each other.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from graphtool import dtypes
from graphtool import ops as o
from graphtool.ir.graph import TensorType
from graphtool.ir.op import Op, register
from graphtool.kernels.packing.blocks import TILE, rows
from graphtool.kernels.packing.panels import unpacked
from graphtool.ops.common import Array, need
from graphtool.symbolic import Dim, ceildiv

SCALE = 2.0 ** 24  # of both operands: then no part of a number is subnormal
BELOW = 2.0 ** 29  # magnitudes that are split: of 2²⁰ such products the sum is finite
DEEPEST = 1 << 20
PAIR = 2


def splits(w: Array) -> bool:
    """Whether all numbers are finite and small enough to be split."""
    return not w.size or bool(w.max() < BELOW and w.min() > -BELOW)  # of a NaN this is not true


def tiles(depth: Dim) -> Dim:
    """Rows of a panel of one part: of all tiles along the depth."""
    return rows(depth, dtypes.bfloat16)


def _infer(b: TensorType, *, nr: int, parts: int = 3, transpose: bool = False) -> TensorType:
    need(b.rank >= 2 and b.dtype is dtypes.float32,
         f"the operand must be f32 of rank 2 or more, got {b}")
    need(parts in (2, 3), f"a number has 2 or 3 parts, not {parts}")
    k, n = b.shape[-2:][::-1] if transpose else b.shape[-2:]
    return TensorType(dtypes.bfloat16, (*b.shape[:-2], ceildiv(n, nr), tiles(k) * parts,
                                        nr * PAIR))


def _eval(b: Array, *, nr: int, parts: int, transpose: bool) -> Array:
    """Each part is the nearest bfloat16 to what the ones before leave."""
    rest, packed = b * np.float32(SCALE), []
    for _ in range(parts):
        part = rest.astype(dtypes.bfloat16.numpy)
        rest = rest - part.astype(np.float32)
        blocks: Any = o.pack_blocks(part, nr=nr, transpose=transpose)
        packed.append(blocks.reshape(*blocks.shape[:-2], -1, TILE, nr * PAIR))
    together = np.stack(packed, -3)  # [..., panels, steps, parts, 16, nr·2]
    return np.ascontiguousarray(together.reshape(*together.shape[:-4], -1, nr * PAIR))


register(Op("pack_parts", _infer, _eval, category="memory",
            doc="the right-hand side of a product of float32 by a matrix unit, in panels of nr "
                "columns: for each step of 32 rows the bfloat16 parts of w·2²⁴, one after the "
                "other, each as `pack_blocks` lays it out"))


def joined(b: Any, n: int, depth: Dim) -> Any:
    """What `pack_parts` packed, in float32: n columns of this depth."""
    *lead, panels, deep, wide = b.shape
    count = ceildiv(tiles(depth), TILE)
    split = o.reshape(o.cast(b, dtype=dtypes.float32),
                      shape=(*lead, panels, count, deep // (count * TILE), TILE, wide))
    whole = o.reduce_sum(split, axes=(len(lead) + 2,)) * (1 / SCALE)
    blocks = o.reshape(whole, shape=(*lead, panels, count * TILE, wide))
    return unpacked(blocks, n, depth, PAIR)
