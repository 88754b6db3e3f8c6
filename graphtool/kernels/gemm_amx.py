"""gemm_amx.h: products with a packed right-hand side by a matrix unit, bytes or 16-bit floats."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from graphtool import dtypes
from graphtool import ops as o
from graphtool.kernels.conv_amx import HALF, convolved, operands
from graphtool.kernels.gemm import plain
from graphtool.kernels.kit import (
    Alternative, Area, Chosen, Contract, DType, Form, Instance, Lines, Lowered, Macro, Numbers,
    Plan, Pointer, Product, Record, Rows, Rules, Target, TensorType, Use, all_rows, blocks,
    broadcast_shapes, ceildiv, half_macros, lowered_product, narrowed, need, products, register,
    rounding, rows_by_columns, sizes, target_op, wrapped)
from graphtool.kernels.packing import blocks as packing

MACROS = (
    HALF, *sizes(M="rows of A", N="columns of B", K="columns of A",
                  LDA="elements between the starts of adjacent rows of A"),
    Macro("BATCH", "size", "independent products", 1))
POINTERS = (Pointer("A", "A of product b", ("b",)), Pointer("B", "packed B of product b", ("b",)))


def panels(lanes: int, n: int, k: int, right: DType) -> tuple[int, int, int]:
    """The sizes of a right-hand side [k, n] in panels."""
    nr = 2 * lanes
    rows = packing.rows(k, right)
    assert isinstance(rows, int)
    return -(-n // nr), rows, nr * packing.GROUP[right]


def meaning(t: Instance) -> None:
    """One product for each b."""
    products(t, OP)


def touches(t: Numbers) -> Iterator[Area | Rows]:
    """What the C touches."""
    batch, m, n, k, lda = t.sizes("BATCH M N K LDA")
    left, right = operands(t)
    yield Rows((batch, m, n))
    yield Area("A", (m, k), (lda, 1), (batch,), left)
    yield Area("B", panels(t.lanes, n, k, right), None, (batch,), right, True)


def lower(use: Use) -> Lowered:
    """One product of all rows if they are at equal distances; a 1×1 convolution if they lie in
    an image with a margin; else one product for each matrix of the batch."""
    a, b = use.view(0), use.view(1)
    *lead, m, _ = use.out.type.shape
    shared = len(b.shape) == 3
    whole = all_rows(a) if shared else None
    if whole is not None:
        return lowered_product(use, "gemm_amx", whole, half_macros(b.dtype))
    if shared and len(lead) == 2:
        return convolved(use, a.shape[-1])
    lines = Lines(tuple(lead), m, a.strides[-2], (m,))
    return lowered_product(use, "gemm_amx", lines, half_macros(b.dtype))


# ---- the op ------------------------------------------------------------------------------------

GEMM_AMX = Form("gemm_amx", rate="tile_bf16")


def infer(a: TensorType, b: TensorType, *, n: int, plan: Plan | None = None) -> TensorType:
    """The type of the sums; raises what `need` does if the operands do not fit."""
    kind = packing.summed(a, b)
    need(a.rank >= 2 and b.rank >= 3, f"{a} and {b} are not operands of a packed product")
    need(packing.rows(a.shape[-1], b.dtype) == b.shape[-2],
         f"inner dimensions of {a} and {b} differ")
    need(ceildiv(n * packing.GROUP[b.dtype], b.shape[-1]) == b.shape[-3],
         f"{b} does not have the panels for {n} columns")
    lead = broadcast_shapes(a.shape[:-2], b.shape[:-3]) if a.rank > 2 or b.rank > 3 else ()
    return TensorType(kind, (*lead, a.shape[-2], n))


def decompose(a: Any, b: Any, *, n: int, plan: Plan | None = None,
              groups: Mapping[DType, int] = packing.GROUP) -> Any:
    """The product with weights that are not packed, and were so in groups of so many numbers."""
    whole = b.dtype is dtypes.int8
    wide = dtypes.float64 if whole else dtypes.float32  # holds sums of bytes exactly
    plain = packing.plain(b, n, a.shape[-1], groups)
    y = o.matmul(o.cast(a, dtype=wide), o.cast(plain, dtype=wide))
    return wrapped(y) if whole else y


OP = target_op("gemm_amx", infer, decompose, GEMM_AMX, rows_by_columns,
               "a·b by a matrix unit, of u8 and i8 or of 16-bit floats, with b as `pack_blocks` "
               "lays it out; the sums are int32, which wrap around, or float32")


# ---- plans and their costs ---------------------------------------------------------------------

def plans(s: Product, target: Target, rules: Rules) -> list[Plan]:
    """The one plan, if the target has a matrix unit for these operands."""
    bf16 = rules.bf16 and plain(s)
    fits = blocks.fits_unit(s, target, bf16) and not (s.across or s.zeros)
    return [GEMM_AMX.plan()] if fits else []


def make(chosen: Chosen, x: Any, w: Any, *, transpose: bool) -> Any:
    """The product node with a right-hand side in panels of whole tiles."""
    if chosen.site.dtype is dtypes.float32:
        x, w = narrowed(x), narrowed(w)
    packed = o.pack_blocks(w, nr=chosen.target.nr, transpose=transpose)
    return chosen.emit(OP, x, packed, n=chosen.site.n)


SERVES = (Alternative(
    Product, GEMM_AMX, plans, blocks.product_cost, make,
    error=lambda s, p: rounding.bf16(s.k) if s.dtype is dtypes.float32 else 0.0,
    in_order=lambda s: s.dtype.is_integer),)

register(Record(
    Contract("gemm_amx", "a product with a packed right-hand side by a matrix unit", MACROS,
             POINTERS, meaning, ("b", "m", "n"), touches, grain="shares"),
    {"gemm_amx": lower}, serves=SERVES))
