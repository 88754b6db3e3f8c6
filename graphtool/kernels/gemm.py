"""gemm.h: products with a packed right-hand side, of float32 or 16-bit floats."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from graphtool import dtypes
from graphtool import ops as o
from graphtool.kernels.choice import device
from graphtool.kernels.choice.contractions import few_rows, fills_wide_tiles
from graphtool.kernels.choice.operands import packed
from graphtool.kernels.conv_direct import pointwise
from graphtool.kernels.kit import (
    HALF, NV, TILE, Alternative, Area, Chosen, Contract, Dim, Form, Instance, Lines, Lowered, Macro,
    MacroValue, Node, Numbers, Parameter, Plan, Pointer, Product, Record, Rows, Rules, Sizes,
    Target, TensorType, Use, Value, View, all_bfloat16, all_rows, best_split, broadcast_shapes,
    by_rows, ceildiv, half_macros, if_zeros, lowered_product, narrowed, need, never,
    number, panel_vectors, product, product_cost, product_widths, products, register, rounding,
    rows_by_columns, rows_of_neighbours, rows_of_tile, sizes, summed, sums, target_op, unpacked,
    vectors_of, widths)
from graphtool.kernels.tiles import PAIRS
from graphtool.loops.pull import transposed
from graphtool.symbolic import minimum

RESIDENT = 640  # KB of rows of A that stay in the second-level cache
ENDLESS = 1 << 30  # KB: all rows
FEW = 4  # fewer rows than these take several panels side by side
WIDE = 8  # the vectors of such a tile
MACROS = (
    HALF, PAIRS, *TILE,
    *sizes(M="rows of A", N="columns of B", K="columns of A",
           LDA="elements between the starts of adjacent rows of A"),
    Macro("BATCH", "size", "independent products", 1),
    Macro("LDK", "size", "elements between adjacent elements of a row of A", 1),
    Macro("LAID", "literal", "vectors of a panel of B, if the tile takes several side by side",
          None),
    Macro("RESIDENT", "size", "bytes of rows of A that go through all panels together", None),
    Macro("BY_ROWS", "flag", "1: each thread takes whole rows; 0: the whole sequence of tiles is "
                             "divided evenly", None),
    *device.MACROS, device.SLICES)
POINTERS = (Pointer("A", "A of product b", ("b",)), Pointer("B", "packed B of product b", ("b",)),
            device.SLABS)


def meaning(t: Instance) -> None:
    """One product for each b."""
    products(t, OP_BF16 if t.get("PAIRS") else OP)


def touches(t: Numbers) -> Iterator[Area | Rows]:
    """What the C touches."""
    batch, m, n, k, lda, ldk = t.sizes("BATCH M N K LDA LDK")
    nr, kind, laid = vectors_of(t), number(t), _panel_width(t)
    if t.has("LAID"):
        t.need(laid > 0 and t.get("NV") % laid == 0 and t.get("MR") < FEW and not (
            t.has("HALF") or t.has("LDK")), "LAID that divides NV, for a few rows of floats")
        nr = laid * t.lanes
    panel = (-(-n // nr), -(-k // 2), nr * 2) if t.get("PAIRS") else (-(-n // nr), k, nr)
    yield Rows((batch, m, n))
    yield Area("A", (m, k), (lda, ldk), (batch,), kind)
    yield Area("B", panel, None, (batch,), kind, True)
    yield from device.touched(t, batch, m, n)


def teams(macros: Mapping[str, Any], lanes: int) -> Dim:
    """The tiles of a device."""
    return device.tiles(macros, lanes, macros["BATCH"], macros["M"], macros["N"])


def _panel_width(t: Sizes) -> int:
    """The vectors of a panel of B."""
    laid = t.get("LAID") if t.has("LAID") else None
    return int(t.get("NV") if laid is None else laid)


def lower(use: Use, pairs: bool = False) -> Lowered:
    """One product of all rows if they are at equal distances, else one product for each matrix
    of the batch. `pairs`: two rows of the panel are stored as one."""
    a, b = use.view(0), use.view(1)
    *lead, m, _ = use.out.type.shape
    shared = len(b.shape) == 3
    if transposed(a):
        return in_tiles(use, Lines(tuple(lead), m, a.strides[-2], (m,)), use.plan, pairs)
    whole = all_rows(a) if shared else None
    if whole is not None:
        return in_tiles(use, whole, use.plan, pairs)
    if shared and len(lead) == 2:
        return pointwise(use, a, b, pairs)
    return in_tiles(use, Lines(tuple(lead), m, a.strides[-2], (m,)), use.plan, pairs)


def in_tiles(use: Use, lines: Lines, plan: Mapping[str, int], pairs: bool = False) -> Lowered:
    """The products of these rows by a plan of GEMM. Of few rows a tile takes several panels side by
    side, also where only a run knows that there are so few."""
    a, columns = use.view(0), use.out.type.shape[-1]
    nr = use.view(1).shape[-1]
    assert isinstance(nr, int) and isinstance(columns, int)
    nv = panel_vectors(use.target, nr // 2 if pairs else nr)
    usual = partial(_template, use, lines, plan, nv, pairs)
    if transposed(a) or a.dtype in dtypes.HALVES or use.target.grid:
        return usual()
    open_ = not isinstance(lines.count, int) and fills_wide_tiles(columns, use.target)
    beside = plan["beside"] or (WIDE // nv if open_ else 0)
    return by_rows(lines.count, FEW, partial(usual, beside), usual) if beside > 1 else usual()


def _template(use: Use, lines: Lines, plan: Mapping[str, int], nv: int, pairs: bool,
              beside: int = 1) -> Lowered:
    """The template, with tiles of so many panels of nv vectors."""
    a, wide = use.view(0), nv * beside
    more: dict[str, MacroValue] = {"LDK": a.strides[-1]} if transposed(a) else {}
    if beside > 1:
        more["LAID"] = nv
    most = lines.count if beside == 1 else minimum(lines.count, FEW - 1)
    macros: dict[str, MacroValue] = {**half_macros(a.dtype, pairs),
                                     "MR": rows_of_tile(use.target, wide, most), "NV": wide}
    if kept := plan["resident"]:
        more["RESIDENT"] = kept * 1024
    if split := plan["split"]:
        more["BY_ROWS"] = split == 1
    sizes = product(lines.lead), lines.count, use.out.type.shape[-1]
    macros |= device.tile(use.target, *sizes, a.shape[-1], wide, a.dtype in dtypes.HALVES,
                          plan["unit"])
    return lowered_product(use, "gemm", lines, macros, more, device.slabs(use, macros, *sizes))


def reads(node: Node, x: Value, view: View) -> bool:
    """Whether it can read x here: rows or columns of adjacent elements on the left; packed
    weights without gaps."""
    left = all(w is not x for w in node.inputs[1:])
    return (left and transposed(view)) or rows_of_neighbours(node, x, view)


# ---- the ops -----------------------------------------------------------------------------------

GEMM = Form("gemm", (
    NV, Parameter("split", "1: threads share rows, 2: they share columns, 0: either", 0, most=2),
    Parameter("resident", "KB of the left operand that go through all panels together, "
                          "0: as its size asks for", 0, most=ENDLESS),
    Parameter("beside", "panels that a few rows are multiplied with side by side, 0: one", 0,
              most=8), device.UNIT))
BF16_PRODUCT = Form("gemm_bf16", GEMM.parameters, "bf16")


def infer(a: TensorType, b: TensorType, *, n: int, plan: Plan | None = None) -> TensorType:
    """The type of a product with packed weights; raises what `need` does if they do not fit."""
    need(a.rank >= 2 and b.rank >= 3, f"{a} and {b} are not operands of a packed product")
    need(a.shape[-1] == b.shape[-2], f"inner dimensions {a.shape[-1]} and {b.shape[-2]} differ")
    need(ceildiv(n, b.shape[-1]) == b.shape[-3], f"{b} does not have the panels for {n} columns")
    lead = broadcast_shapes(a.shape[:-2], b.shape[:-3]) if a.rank > 2 or b.rank > 3 else ()
    return TensorType(sums(a.dtype), (*lead, a.shape[-2], n))


def decompose(a: Any, b: Any, *, n: int, plan: Plan | None = None) -> Any:
    """The product with weights that are not packed."""
    a, b = summed(a, b)
    return o.matmul(a, unpacked(b, n))


OP = target_op("gemm", infer, decompose, GEMM, rows_by_columns,
               "a·b, with b as `pack` lays it out; sums of 16-bit operands are float32")


def _infer_bf16(a: TensorType, b: TensorType, *, n: int,
                plan: Plan | None = None) -> TensorType:
    need(a.rank >= 2 and b.rank >= 3 and a.dtype is b.dtype is dtypes.bfloat16,
         f"{a} and {b} are not operands of a bfloat16 product")
    need(ceildiv(a.shape[-1], 2) == b.shape[-2], f"inner dimensions of {a} and {b} differ")
    lead = broadcast_shapes(a.shape[:-2], b.shape[:-3]) if a.rank > 2 or b.rank > 3 else ()
    return TensorType(dtypes.float32, (*lead, a.shape[-2], n))


def _decompose_bf16(a: Any, b: Any, *, n: int, plan: Plan | None = None) -> Any:
    plain = unpacked(o.cast(b, dtype=dtypes.float32), n, a.shape[-1], 2)
    return o.matmul(o.cast(a, dtype=dtypes.float32), plain)


OP_BF16 = target_op("gemm_bf16", _infer_bf16, _decompose_bf16, BF16_PRODUCT, rows_by_columns,
                    "a·b in bfloat16, with b as `pack_pairs` lays it out; the sums are float32")


# ---- plans and their costs ---------------------------------------------------------------------

_DOT = 8  # cycles to begin a dot product in plain loops and to sum its lanes
_PACK = 4  # cycles to pack a row that is shorter than a vector


def plans(s: Product, target: Target, rules: Rules) -> list[Plan]:
    """The widths of panels; what threads share if both are possible; and how much of a large
    left operand is kept in a cache."""
    if all_bfloat16(s, target) and not rules.in_order:
        return []
    if target.grid:
        return [GEMM.plan(nv=nv, **device.unit(target, rules)) for nv in device.widths(s, target)]
    if s.zeros:  # the panels are shared by several products
        return [GEMM.plan(nv=1 if s.n <= target.lanes else target.nv)]
    kept: list[dict[str, int]] = [{}]
    if s.fixed and s.m * s.k * 4 > RESIDENT << 10:
        kept = [{}, {"resident": RESIDENT}, {"resident": ENDLESS}]
    splits: list[dict[str, int]] = [{}]
    if target.threads > 1 and s.batch == 1 and s.fixed and not s.across:
        first = best_split(s)
        splits = [{"split": first}, {"split": 3 - first}]
    return [GEMM.plan(nv=nv, **beside, **split, **resident) for nv, beside in _tiles(s, target)
            for split in splits for resident in kept]


def _tiles(s: Product, target: Target) -> list[tuple[int, dict[str, int]]]:
    """The widths of panels, and how many of them a tile takes.

    A few rows are multiplied with about eight vectors at a time, in panels as many rows have them,
    which is as fast as wide panels: so one copy of the weights serves a prompt and a step.
    """
    if few_rows(s, target) and not s.dtype.is_narrow and not s.across and s.fixed:
        return [(nv, {"beside": WIDE // nv}) for nv in widths(s.n, target)]
    return [(nv, {}) for nv in product_widths(s, target)]


def bf16_plans(s: Product, target: Target, rules: Rules) -> list[Plan]:
    """The same plans with dot products of bfloat16, if these are exact or the rules allow them."""
    allowed = rules.bf16 and target.bf16 and plain(s)
    if target.devices:
        wanted = allowed or all_bfloat16(s, target)
        return [BF16_PRODUCT.plan(nv=nv) for nv in device.widths(s, target)] if wanted else []
    return [BF16_PRODUCT.plan(nv=1 if s.n <= target.lanes else target.nv)
            ] if allowed or all_bfloat16(s, target) else []


def plain(s: Product) -> bool:
    """Whether it is one product of float32 with constant weights and rows of the left operand
    that are adjacent in memory."""
    return s.constant and not s.across and s.batch == 1 and not s.dtype.is_narrow


def bf16_cost(s: Product, p: Plan, t: Target) -> float:
    """Expected microseconds with dot products of pairs. The kernel before it rounds an operand
    that is not yet bfloat16."""
    rounded = 0 if s.dtype.is_narrow else s.batch * s.m * s.k
    return product_cost(s, p, t, t.dots, 2) + rounded / t.lanes / t.threads / t.mhz


def worth_tiles(s: Product, target: Target, adjacent: bool) -> bool:
    """Whether tiles are faster than plain loops, even if columns of a panel stay empty.

    Plain loops are dot products along the depth if columns are adjacent; else each element reads B
    across its rows.
    """
    columns = _DOT + 2 * -(-s.k // target.lanes) if adjacent or s.n == 1 else s.k
    loops = s.batch * s.m * s.n * columns
    packing = 0 if s.constant else s.batch * _PACK * s.k
    tiles = product_cost(s, GEMM.plan(nv=1), replace(target, threads=1))
    return tiles + packing / target.mhz < loops / target.mhz


def make(chosen: Chosen, x: Any, w: Any, *, transpose: bool) -> Any:
    """The product node with a right-hand side in panels."""
    return chosen.emit(OP, x, packed(w, chosen.columns(), False, transpose),
                       n=chosen.site.n)


def by_pairs(chosen: Chosen, x: Any, w: Any, *, transpose: bool) -> Any:
    """The bfloat16 product node with a right-hand side in pairs of rows."""
    left, right = narrowed(x), packed(narrowed(w), chosen.columns(), True, transpose)
    return chosen.emit(OP_BF16, left, right, n=chosen.site.n)


SERVES = (
    Alternative(Product, GEMM, plans, device.usually(product_cost), make,
                takes=lambda s: not s.dtype.is_integer, usual=True,
                error=lambda s, p: device.error(s.k, p), assumes=device.assumed),
    Alternative(Product, BF16_PRODUCT, bf16_plans, device.usually(bf16_cost), by_pairs,
                takes=lambda s: not s.dtype.is_integer,
                error=lambda s, p: 0.0 if s.dtype.is_narrow else rounding.bf16(s.k),
                assumes=if_zeros, in_order=never))

register(Record(
    Contract("gemm", "a product with a packed right-hand side", MACROS, POINTERS, meaning,
             ("b", "m", "n"), touches, grain="shares",
             languages={"c": ".h", "cuda": "_cuda.h", "opencl": "_opencl.h"}, teams=teams),
    {"gemm": lower, "gemm_bf16": partial(lower, pairs=True)}, reads, serves=SERVES))
