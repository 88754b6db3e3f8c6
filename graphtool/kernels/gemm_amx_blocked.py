"""gemm_amx_blocked.h: products of 16 bits by a matrix unit, with blocks of the left operand copied.

The left operand is transposed in memory, as in gradients of weights in mixed precision.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from graphtool import ops as o
from graphtool.kernels.conv_amx import operands
from graphtool.kernels.gemm import plain, reads
from graphtool.kernels.gemm_amx import decompose, infer, panels
from graphtool.kernels.gemm_blocked import BLOCKS, POINTERS, Room, blocked, lines_of
from graphtool.kernels.kit import (
    HALVES, Alternative, Area, Chosen, Contract, Form, Instance, Lowered, Numbers, Parameter,
    Plan, Product, Record, Rows, Rules, Target, Use, best_split, blocks, ceil, half_macros,
    narrowed, products, register, rounding, rows_by_columns, target_op, word)

MACROS = (word("HALF", "the type of the operands", HALVES), *BLOCKS)
DEEP = 512  # of the depth at a time: a panel of so many rows stays in the first-level cache
UNIT = blocks.STEP // 2  # the depth is cut at multiples of it
TALL = 2 * blocks.SEGMENT  # rows of a block
TURNED = 0.4  # cycles to copy a number from a column to a row


def meaning(t: Instance) -> None:
    """One product for each b."""
    products(t, OP)


def touches(t: Numbers) -> Iterator[Area | Rows]:
    """What the C touches."""
    batch, m, n, k, lda, ldk, deep, chunk, width = t.sizes("BATCH M N K LDA LDK DEEP CHUNK WIDTH")
    t.need(deep > 0 and chunk > 0 and width > 0 and deep % UNIT == 0,
           f"blocks of 1 or more, and a depth that {UNIT} divides")
    t.need(ldk == 1 or lda == 1, "rows or columns of adjacent elements")
    yield Rows((batch, m, n))
    kind = operands(t)[1]
    yield Area("A", (m, k), (lda, ldk), (batch,), kind)
    yield Area("B", panels(t.lanes, n, k, kind), None, (batch,), kind, True)
    block = TALL * ((deep + UNIT) // 2 + width * 2 * t.lanes)
    yield Area("WORK", (chunk * block,), aligned=True)


def lower(use: Use) -> Lowered:
    """The product in tiles of the unit."""
    deep = use.plan["deep"]
    return blocked(use, "gemm_amx_blocked", half_macros(use.view(1).dtype), lines_of(use), Room(
        TALL, 2 * use.target.lanes, deep, each=TALL // 2, more=TALL * UNIT // 2, unit=UNIT))


# ---- the op ------------------------------------------------------------------------------------

GEMM_AMX_BLOCKED = Form("gemm_amx_blocked", (
    Parameter("split", "1: threads share rows, 2: they share columns", 1, least=1, most=2),
    Parameter("deep", "the depth that is taken at a time", DEEP, least=UNIT)), "tile_bf16")

OP = target_op("gemm_amx_blocked", infer, decompose, GEMM_AMX_BLOCKED, rows_by_columns,
               "a·b by a matrix unit of 16-bit floats, with b as `pack_blocks` lays it out, and "
               "blocks of a copied; the sums are float32")


# ---- plans and their costs ---------------------------------------------------------------------

def plans(s: Product, target: Target, rules: Rules) -> list[Plan]:
    """The one plan, if the target has a matrix unit for these operands, and A is transposed."""
    bf16 = rules.bf16 and plain(s)
    fits = s.across and not s.zeros and not s.dtype.is_integer and blocks.fits_unit(s, target, bf16)
    return [GEMM_AMX_BLOCKED.plan(split=best_split(s))] if fits else []


def cost(s: Product, p: Plan, t: Target) -> float:
    """Expected microseconds: the product, copies of A for each round of columns, and sums that are
    set aside at each depth."""
    copies = s.m * s.k * TURNED
    aside = (ceil(s.k, DEEP) - 1) * s.m * s.n * 2 / t.lanes
    return blocks.product_cost(s, p, t) + s.batch * (copies + aside) / t.mhz / t.threads


def make(chosen: Chosen, x: Any, w: Any, *, transpose: bool) -> Any:
    """The product node with a right-hand side in panels of whole tiles."""
    if not chosen.site.dtype.is_narrow:
        x, w = narrowed(x), narrowed(w)
    packed = o.pack_blocks(w, nr=chosen.target.nr, transpose=transpose)
    return chosen.emit(OP, x, packed, n=chosen.site.n)


SERVES = (Alternative(Product, GEMM_AMX_BLOCKED, plans, cost, make,
                      error=lambda s, p: 0.0 if s.dtype.is_narrow else rounding.bf16(s.k)),)

register(Record(
    Contract("gemm_amx_blocked", "a product of 16-bit floats by a matrix unit, of which blocks "
             "of the left-hand side are copied", MACROS, POINTERS,
             meaning, ("b", "m", "n"), touches, grain="pieces"),
    {"gemm_amx_blocked": lower}, reads, serves=SERVES))
