"""Products and convolutions by the instructions that four warps of a device have together: where
they are possible, and what they are expected to cost.

A block computes a tile of 128 rows and columns, or of 64 rows if floats are multiplied in parts,
whose sums need twice the registers. Two blocks share a multiprocessor, so that one multiplies while
the other begins or ends a tile.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from graphtool import dtypes
from graphtool.dtypes import HALVES, DType, bfloat16, float32, uint8
from graphtool.ir.graph import TensorType
from graphtool.ir.plan import Plan
from graphtool.kernels.choice import device
from graphtool.kernels.choice.device import Cost
from graphtool.kernels.choice.machine import ceil
from graphtool.kernels.choice.rules import Rules
from graphtool.kernels.choice.sites import Conv, Product
from graphtool.kernels.packing import blocks
from graphtool.kernels.packing.blocks import STEP, UNITS
from graphtool.loops.contract import SHARED, Macro
from graphtool.loops.ir import MacroValue
from graphtool.loops.touches import Sizes
from graphtool.ops.common import need
from graphtool.symbolic import Dim, ceildiv
from graphtool.target import Target

TILE = 128  # columns of a block, and rows
ROW = 128  # bytes of a row, or of a column, in a step along the depth
STAGES = 3  # steps whose operands are in shared memory
MACROS = (Macro("ROWS", "literal", "rows of a block's tile"),
          Macro(SHARED, "literal", "bytes of shared memory that a launch gives each block"),
          device.HOW)
# Of the time that the instructions of a warp take: those are at 0.44 to 0.49 of cuBLAS for
# thousands of rows (an H100, 2026-11-26), and these are expected at 0.75. They were not measured.
_TIME = 0.62


def ways(s: Conv | Product, target: Target, rules: Rules, rounds: bool) -> list[dict[str, int]]:
    """The ways to multiply these operands, as parameters of a plan: none without the instructions.
    float32 is multiplied as `device.UNIT` says; without it, it is rounded to bfloat16, if the rules
    and `rounds` allow that."""
    if not target.warpgroups or rules.in_order:
        return []
    if s.dtype is not float32:
        return [{}] if s.dtype in HALVES or s.dtype is uint8 else []
    own = device.unit(target, rules)
    return ([{}] if rules.bf16 and s.constant and rounds else []) + (
        [own] if own["unit"] != device.FMA else [])


def rounded(s: Conv | Product, plan: Plan) -> bool:
    """Whether its operands are rounded to bfloat16."""
    return s.dtype is float32 and not plan.get("unit", 0)


def given(kind: DType, unit: int) -> dict[str, MacroValue]:
    """The macros of a block that multiplies numbers of this type; floats by this `device.UNIT`."""
    rows, rests = TILE, 0
    own: dict[str, MacroValue] = {}
    if kind is float32:
        own = {"UNIT": device.unit_name(unit)}
        rows, rests = (TILE, 0) if unit == device.TF32 else (TILE // 2, TILE)
    return {"ROWS": rows, SHARED: (STAGES * (rows + TILE) + rests) * ROW, **own}


def operands(t: Sizes) -> tuple[DType, DType]:
    """The element types of the left and of the right operand."""
    right = (float32 if t.has("UNIT") else
             dtypes.dtype(t.get("HALF")) if t.has("HALF") else dtypes.int8)
    return blocks.LEFT.get(right, right), right


def summed(x: TensorType, w: TensorType) -> DType:
    """The type of the sums. Raises TypeMismatch for operands that the instructions do not take."""
    need(x.dtype is float32 or w.dtype is not float32, f"{x} and {w} are not of one type")
    return float32 if w.dtype is float32 else blocks.summed(x, w)


def panels(n: Dim, k: Dim, kind: DType) -> tuple[Any, ...]:
    """The sizes of a right-hand side [k, n] in panels."""
    return ceildiv(n, TILE), ceildiv(k, STEP * UNITS[kind]) * STEP, TILE * UNITS[kind]


def tiles(macros: Mapping[str, Any], groups: Dim, rows: Dim, columns: Dim) -> Dim:
    """The tiles of a result, each the work of a block."""
    return groups * ceildiv(rows, macros["ROWS"]) * ceildiv(columns, TILE)


def cost(usual: Callable[[Any, Plan], Cost]) -> Cost:
    """The cost of these instructions, by the one that `usual` gives for those of a warp: what they
    save, and what is lost where tiles reach over the result or are too few to keep all
    multiprocessors at work."""
    def of(s: Any, p: Plan, t: Target) -> float:
        size = (s.batch, s.m, s.n) if isinstance(s, Product) else (1, s.n * s.h * s.w, s.o)
        block = given(bfloat16 if rounded(s, p) else s.dtype, p.get("unit", 0))
        count = tiles(block, *size)
        assert isinstance(count, int) and isinstance(block["ROWS"], int)
        taken = ceil(max(count, 1), t.multiprocessors) * t.multiprocessors * TILE * block["ROWS"]
        return usual(s, p)(s, p, t) * _TIME * taken / max(1, size[0] * size[1] * size[2])
    return of
