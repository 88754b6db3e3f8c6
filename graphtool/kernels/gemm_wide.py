"""gemm_wide_cuda.h: products of many rows, of floats or bytes, by four warps of a device
together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from graphtool import dtypes
from graphtool import ops as o
from graphtool.kernels import gemm_amx
from graphtool.kernels.choice import device, wide
from graphtool.kernels.choice.contractions import integers
from graphtool.kernels.choice.device import Cost
from graphtool.kernels.conv_wide import convolved
from graphtool.kernels.gemm import bf16_cost, plain
from graphtool.kernels.kit import (
    Alternative, Area, Chosen, Contract, Dim, Form, Instance, Lines, Lowered, Macro, Node, Numbers,
    Plan, Product, Record, Rows, Rules, Target, TensorType, Use, Value, View, all_rows,
    broadcast_shapes, half_macros, lowered_product, narrowed, need, product_cost, products,
    register, rounding, rows_by_columns, rows_of_neighbours, target_op)
from graphtool.kernels.packing import blocks
from graphtool.loops.pull import transposed

MACROS = (*gemm_amx.MACROS, *wide.MACROS,
          Macro("LDK", "size", "elements between adjacent elements of a row of A", 1))
POINTERS = gemm_amx.POINTERS


def meaning(t: Instance) -> None:
    """One product for each b."""
    products(t, OP)


def touches(t: Numbers) -> Iterator[Area | Rows]:
    """What the C touches."""
    batch, m, n, k, lda, ldk = t.sizes("BATCH M N K LDA LDK")
    left, right = wide.operands(t)
    yield Rows((batch, m, n))
    yield Area("A", (m, k), (lda, ldk), (batch,), left)
    yield Area("B", wide.panels(n, k, right), None, (batch,), right, True)


def teams(macros: Mapping[str, Any], _: int) -> Dim:
    """The tiles of a device."""
    return wide.tiles(macros, macros["BATCH"], macros["M"], macros["N"])


def lower(use: Use) -> Lowered:
    """One product of all rows if they are at equal distances; a 1×1 convolution if they lie in an
    image with a margin; else one product for each matrix of the batch."""
    a, b = use.view(0), use.view(1)
    *lead, m, _ = use.out.type.shape
    shared = len(b.shape) == 3
    own = {**half_macros(a.dtype), **wide.given(a.dtype, use.plan["unit"])}
    if transposed(a):
        return lowered_product(use, "gemm_wide", Lines(tuple(lead), m, a.strides[-2], (m,)),
                               own, {"LDK": a.strides[-1]})
    lines = all_rows(a) if shared else None
    if lines is None and shared and len(lead) == 2:
        return convolved(use)
    lines = lines or Lines(tuple(lead), m, a.strides[-2], (m,))
    return lowered_product(use, "gemm_wide", lines, own)


def reads(node: Node, x: Value, view: View) -> bool:
    """Whether it can read x here: rows of adjacent elements, and of floats columns of them."""
    left = all(w is not x for w in node.inputs[1:])
    return (left and x.type.dtype is dtypes.float32 and transposed(view)) or rows_of_neighbours(
        node, x, view)


# ---- the op ------------------------------------------------------------------------------------

GEMM_WIDE = Form("gemm_wide", (device.UNIT,), "bf16")


def infer(a: TensorType, b: TensorType, *, n: int, plan: Plan | None = None) -> TensorType:
    """The type of the sums; raises what `need` does if the operands do not fit."""
    kind = wide.summed(a, b)
    need(a.rank >= 2 and b.rank >= 3, f"{a} and {b} are not operands of a packed product")
    need(b.shape[-3:] == wide.panels(n, a.shape[-1], b.dtype), f"{b} does not fit {a}")
    lead = broadcast_shapes(a.shape[:-2], b.shape[:-3]) if a.rank > 2 or b.rank > 3 else ()
    return TensorType(kind, (*lead, a.shape[-2], n))


OP = target_op("gemm_wide", infer, partial(gemm_amx.decompose, groups=blocks.UNITS), GEMM_WIDE,
               rows_by_columns,
               "a·b of floats, or of u8 and i8, with b as `pack_units` lays it out; the sums are "
               "float32, or int32, which wrap around")


# ---- plans and their costs ---------------------------------------------------------------------

def plans(s: Product, target: Target, rules: Rules) -> list[Plan]:
    """A plan for each way to multiply, of operands whose rows are adjacent numbers, or of floats
    whose columns are."""
    fits = s.fixed and (not s.across or s.dtype is dtypes.float32)
    return [GEMM_WIDE.plan(**how) for how in wide.ways(s, target, rules, plain(s))] if fits else []


def make(chosen: Chosen, x: Any, w: Any, *, transpose: bool) -> Any:
    """The product node with a right-hand side in panels."""
    if wide.rounded(chosen.site, chosen.plan):
        x, w = narrowed(x), narrowed(w)
    packed = o.pack_units(w, nr=wide.TILE, transpose=transpose)
    return chosen.emit(OP, x, packed, n=chosen.site.n)


def _of_warps(s: Product, p: Plan) -> Cost:
    """The cost by the instructions of a warp."""
    if s.dtype.is_integer:
        return lambda s, p, t: product_cost(s, p, t, *integers(s, t))
    return bf16_cost if wide.rounded(s, p) or s.dtype is dtypes.bfloat16 else product_cost


SERVES = (Alternative(
    Product, GEMM_WIDE, plans, wide.cost(_of_warps), make,
    error=lambda s, p: rounding.bf16(s.k) if wide.rounded(s, p) else device.error(s.k, p),
    assumes=device.assumed, in_order=lambda s: s.dtype.is_integer),)

register(Record(
    Contract("gemm_wide", "a product by four warps of a device together", MACROS,
             POINTERS, meaning, ("b", "m", "n"), touches, grain="shares", teams=teams,
             languages={"cuda": "_cuda.h"}),
    {"gemm_wide": lower}, reads, serves=SERVES))
