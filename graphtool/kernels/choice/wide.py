"""Products and convolutions of 16-bit floats, and of bytes, by the instructions that four warps of
a device have together: where they are possible, and what they are expected to cost.

A block computes a tile of 128 rows and columns. Two blocks share a multiprocessor, so that one
multiplies while the other begins or ends a tile.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from graphtool.dtypes import HALVES, DType, float32, uint8
from graphtool.ir.plan import Plan
from graphtool.kernels.choice.device import Cost
from graphtool.kernels.choice.machine import ceil
from graphtool.kernels.choice.rules import Rules
from graphtool.kernels.choice.sites import Conv, Product
from graphtool.kernels.packing.blocks import STEP, UNITS
from graphtool.loops.contract import SHARED, Macro
from graphtool.symbolic import Dim, ceildiv
from graphtool.target import Target

TILE = 128  # rows and columns of a block
STAGE = 2 * TILE * 128  # bytes of a step along the depth: 128 of each row and column
STAGES = 3
MACROS = (Macro("ROWS", "literal", "rows of a block's tile"),
          Macro(SHARED, "literal", "bytes of shared memory that a launch gives each block"))
GIVEN = {"ROWS": TILE, SHARED: STAGES * STAGE}
# Of the time that the instructions of a warp take: those are at 0.44 to 0.49 of cuBLAS for
# thousands of rows (an H100, 2026-11-26), and these are expected at 0.75. They were not measured.
_TIME = 0.62


def fits(s: Conv | Product, target: Target, rules: Rules) -> bool:
    """Whether the target has instructions for the operands, which may be rounded to bfloat16 where
    the rules allow that."""
    narrow = s.dtype in HALVES or s.dtype is uint8 or (rules.bf16 and s.constant
                                                       and s.dtype is float32)
    return target.warpgroups and narrow and not rules.in_order


def rounded(s: Conv | Product) -> bool:
    """Whether its operands are rounded to bfloat16."""
    return s.dtype is float32


def panels(n: Dim, k: Dim, kind: DType) -> tuple[Any, ...]:
    """The sizes of a right-hand side [k, n] in panels."""
    return ceildiv(n, TILE), ceildiv(k, STEP * UNITS[kind]) * STEP, TILE * UNITS[kind]


def tiles(groups: Dim, rows: Dim, columns: Dim) -> Dim:
    """The tiles of a result, each the work of a block."""
    return groups * ceildiv(rows, TILE) * ceildiv(columns, TILE)


def cost(usual: Callable[[Any], Cost]) -> Cost:
    """The cost of these instructions, by the one that `usual` gives for those of a warp: what they
    save, and what is lost where tiles reach over the result or are too few to keep all
    multiprocessors at work."""
    def of(s: Any, p: Plan, t: Target) -> float:
        size = (s.batch, s.m, s.n) if isinstance(s, Product) else (1, s.n * s.h * s.w, s.o)
        count = tiles(*size)
        assert isinstance(count, int)
        taken = ceil(max(count, 1), t.multiprocessors) * t.multiprocessors * TILE * TILE
        return usual(s)(s, p, t) * _TIME * taken / max(1, size[0] * size[1] * size[2])
    return of
