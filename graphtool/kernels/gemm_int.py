"""gemm_int.h: products of small integers with a packed right-hand side and sums in int32."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from graphtool import dtypes
from graphtool import ops as o
from graphtool.kernels.choice import device
from graphtool.kernels.choice.contractions import integers, moving
from graphtool.kernels.conv_int import KIND, convolved, integers_of, kind, panels
from graphtool.kernels.kit import (
    NV, TILE, Alternative, Area, Chosen, Contract, Dim, Form, Instance, Lines, Lowered, Macro,
    Numbers, Plan, Pointer, Product, Record, Rows, Rules, Target, TensorType, Use, View,
    all_rows, broadcast_shapes, ceildiv, exact, group_of, lowered_product, need, product,
    product_cost, product_widths, products, register, rows_by_columns, rows_of_tile, sizes,
    target_op, unpacked, vectors_of, wrapped)
from graphtool.kernels.packing.integers import GROUP
from graphtool.loops.pull import row_stride

MACROS = (
    *KIND, *TILE, *sizes(M="rows of A", N="columns of B", K="columns of A",
                         LDA="elements between the starts of adjacent rows of A"),
    Macro("BATCH", "size", "independent products", 1), device.ROWS,
    device.SLICES)
POINTERS = (Pointer("A", "A of product b", ("b",)), Pointer("B", "packed B of product b", ("b",)),
            device.SLABS)


def meaning(t: Instance) -> None:
    """One product for each b."""
    products(t, o.gemm_int)


def touches(t: Numbers) -> Iterator[Area | Rows]:
    """What the C touches."""
    batch, m, n, k, lda = t.sizes("BATCH M N K LDA")
    vectors_of(t)
    left, right = integers_of(t)
    yield Rows((batch, m, n))
    yield Area("A", (m, k), (lda, 1), (batch,), left)
    packed = panels(t, n, -(-k // (2 if t.get("PAIRS") else 4)))
    yield Area("B", packed, None, (batch,), right, True)
    yield from device.touched(t, batch, m, n, dtypes.int32)


def teams(macros: Mapping[str, Any], lanes: int) -> Dim:
    """The tiles of a device."""
    return device.tiles(macros, lanes, macros["BATCH"], macros["M"], macros["N"])


def lower(use: Use) -> Lowered:
    """One product of all rows if they are at equal distances; a 1×1 convolution if they lie in
    an image with a margin; else one product for each matrix of the batch."""
    a, b = use.view(0), use.view(1)
    *lead, m, _ = use.out.type.shape
    shared = len(b.shape) == 3
    whole = all_rows(a) if shared else None
    if shared and len(lead) == 2 and _in_margins(use):
        return convolved(use, 1, a.shape[-1])
    if whole is not None:
        return _product(use, b, whole)
    if shared and len(lead) == 2:
        return convolved(use, 1, a.shape[-1])
    return _product(use, b, Lines(tuple(lead), m, a.strides[-2], (m,)))


def _product(use: Use, b: View, lines: Lines) -> Lowered:
    """The products of these rows."""
    macros = kind(use, b)
    nv = macros["NV"]
    assert isinstance(nv, int)
    macros["MR"] = rows_of_tile(use.target, nv, lines.count)
    sizes = product(lines.lead), lines.count, use.out.type.shape[-1]
    macros |= device.tile(use.target, *sizes, use.view(0).shape[-1], nv, True, 0, 0)
    return lowered_product(use, "gemm_int", lines, macros, None,
                           device.slabs(use, macros, *sizes, dtypes.int32))


def _in_margins(use: Use) -> bool:
    """Whether the kernel or its epilogue reads or writes an image with a margin. Computing the
    address of a row would then need divisions."""
    return any(len(v.shape) == 4 and row_stride(v) is None for v in use.touched())


# ---- the op ------------------------------------------------------------------------------------

GEMM_INT = Form("gemm_int", (NV,), "int8")


def _infer(a: TensorType, b: TensorType, *, n: int,
           plan: Plan | None = None) -> TensorType:
    group = group_of(a, b)
    need(a.rank >= 2 and b.rank >= 3, f"{a} and {b} are not operands of a packed product")
    need(ceildiv(a.shape[-1], group) == b.shape[-2], f"inner dimensions of {a} and {b} differ")
    need(ceildiv(n * group, b.shape[-1]) == b.shape[-3],
         f"{b} does not have the panels for {n} columns")
    lead = broadcast_shapes(a.shape[:-2], b.shape[:-3]) if a.rank > 2 or b.rank > 3 else ()
    return TensorType(dtypes.int32, (*lead, a.shape[-2], n))


def _decompose(a: Any, b: Any, *, n: int, plan: Plan | None = None) -> Any:
    rows = unpacked(exact(b), n, a.shape[-1], GROUP[b.dtype])
    return wrapped(o.matmul(exact(a), rows))


OP = target_op("gemm_int", _infer, _decompose, GEMM_INT, rows_by_columns,
               "a·b of small integers, with b as `pack_int` lays it out; the sums are int32 and "
               "wrap around")


# ---- plans and their costs ---------------------------------------------------------------------

def plans(s: Product, target: Target, rules: Rules) -> list[Plan]:
    """The widths of panels."""
    if target.grid:
        return [GEMM_INT.plan(nv=nv) for nv in device.widths(s, target)]
    return [GEMM_INT.plan(nv=nv) for nv in product_widths(s, target)]


def make(chosen: Chosen, x: Any, w: Any, *, transpose: bool) -> Any:
    """The product node with a right-hand side in panels, where the rows that one lane sums are
    adjacent."""
    w = o.transpose(w, perm=(*range(w.ndim - 2), w.ndim - 1, w.ndim - 2)) if transpose else w
    packed = o.pack_int(w, nr=chosen.columns())
    return chosen.emit(OP, x, packed, n=chosen.site.n)


SERVES = (Alternative(
    Product, GEMM_INT, plans,
    device.usually(lambda s, p, t: product_cost(s, p, t, *integers(s, t)) + moving(s, t)), make,
    takes=lambda s: s.dtype.is_integer, usual=True),)

register(Record(
    Contract("gemm_int", "a product of small integers with a packed right-hand side", MACROS,
             POINTERS, meaning, ("b", "m", "n"), touches, grain="shares",
             languages={"c": ".h", "cuda": "_cuda.h", "opencl": "_opencl.h"}, teams=teams),
    {"gemm_int": lower}, serves=SERVES))
