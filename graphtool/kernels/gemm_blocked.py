"""gemm_blocked.h: products of operands that were made at run time, with blocks of the left one
copied.

The products of training: a gradient of weights has a left operand that is transposed in memory, a
gradient of rows often a great depth.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from graphtool import dtypes
from graphtool.kernels.choice.contractions import beyond_first_cache
from graphtool.kernels.choice.operands import packed
from graphtool.kernels.gemm import decompose, infer, reads
from graphtool.kernels.kit import (
    NV, TILE, Alternative, Area, Chosen, Contract, Dim, Form, Instance, Lines, Lowered, Macro,
    MacroValue, Macros, Numbers, Parameter, Plan, Pointer, Product, Record, Rows, Rules, Target,
    Use, all_rows, best_split, bounds, ceil, ceildiv, lowered_product, panel_vectors,
    product_cost, product_widths, products, register, rows_by_columns, rows_of_tile, sizes,
    target_op, vectors_of)
from graphtool.loops.pull import transposed

DEEP = 256  # of the depth at a time: a panel of so many rows stays in the first-level cache
COPIES = 256  # KB of the left operand that are copied at a time
ASIDE = 384  # KB of sums that are set aside between two depths
DIVIDED = (
    *sizes(DEEP="the depth that is taken at a time",
           CHUNK="blocks of rows that are copied at a time",
           WIDTH="panels for which sums are set aside"),
    Macro("BY_ROWS", "flag", "1: threads share the rows; 0: the columns"))
BLOCKS = (
    *sizes(M="rows of A", N="columns of B", K="columns of A",
           LDA="elements between the starts of adjacent rows of A"),
    Macro("BATCH", "size", "independent products", 1),
    Macro("LDK", "size", "elements between adjacent elements of a row of A", 1), *DIVIDED)
MACROS = (*TILE, *BLOCKS)
WORK = Pointer("WORK", "memory of thread t for copies and sums", ("t",), writes=True)
POINTERS = (Pointer("A", "A of product b", ("b",)), Pointer("B", "packed B of product b", ("b",)),
            WORK)


def meaning(t: Instance) -> None:
    """One product for each b."""
    products(t, OP)


def touches(t: Numbers) -> Iterator[Area | Rows]:
    """What the C touches."""
    batch, m, n, k, lda, ldk, deep, chunk, width = t.sizes("BATCH M N K LDA LDK DEEP CHUNK WIDTH")
    nr, mr = vectors_of(t), t.get("MR")
    t.need(deep > 0 and chunk > 0 and width > 0, "blocks of 1 or more")
    t.need(ldk == 1 or lda == 1, "rows or columns of adjacent elements")
    yield Rows((batch, m, n))
    yield Area("A", (m, k), (lda, ldk), (batch,), dtypes.float32)
    yield Area("B", (-(-n // nr), k, nr), None, (batch,), dtypes.float32, True)
    yield Area("WORK", (chunk * mr * (deep + 16 + width * nr),), aligned=True)


@dataclass(frozen=True)
class Room:
    """What a template needs to know of its blocks: their rows, the columns of a panel, the depth
    that is taken at a time, and the floats of a block's copies for each element of that depth, and
    besides; and how many KB of copies and of sums that are set aside it wants to have."""

    mr: int
    nr: int
    deep: int
    each: int
    more: int
    unit: int = 16  # a depth that is less than `deep` is filled up to a multiple of it
    copies: int = COPIES
    aside: int = ASIDE
    panel: int = 0  # floats for a part of a panel


def lines_of(use: Use) -> Lines:
    """One product of all rows if they are at equal distances, else one product for each matrix of
    the batch."""
    a, b = use.view(0), use.view(1)
    *lead, m, _ = use.out.type.shape
    whole = all_rows(a) if len(b.shape) == 3 and not transposed(a) else None
    return whole or Lines(tuple(lead), m, a.strides[-2], (m,))


def blocked(use: Use, kernel: str, macros: Macros, lines: Lines, room: Room) -> Lowered:
    """The use of a template that copies blocks of the left operand."""
    a, n = use.view(0), use.out.type.shape[-1]
    assert isinstance(n, int)
    more, work = divided(use, room, lines.count, n, a.shape[-1])
    if transposed(a):
        more["LDK"] = a.strides[-1]
    return lowered_product(use, kernel, lines, macros, more, {"WORK": work})


def divided(use: Use, room: Room, rows: Dim, n: int,
            k: Dim) -> tuple[dict[str, MacroValue], tuple[str, Dim]]:
    """The macros for the blocks of a product of so many rows, columns and such a depth; and the
    memory of each thread for copies and sums."""
    most, depth = bounds(ceildiv(rows, room.mr))[1], bounds(k)[1]
    deep = room.deep
    if depth is not None:
        deep = min(deep, max(1, -(-depth // room.unit)) * room.unit)
    copied = deep * room.each + room.more
    chunk = max(1, min(most or room.copies, (room.copies << 8) // copied))
    if most:
        chunk = -(-most // -(-most // chunk))  # no fewer in the last round
    width = max(1, min(-(-n // room.nr), (room.aside << 8) // (chunk * room.mr * room.nr)))
    if depth is not None and depth <= deep:
        width = 1  # no sums are set aside
    share = chunk * (copied + room.mr * width * room.nr) + room.panel
    blocks = {"DEEP": deep, "CHUNK": chunk, "WIDTH": width, "BY_ROWS": use.plan["split"] == 1}
    return dict(blocks), (use.scratch(share), 0)


def lower(use: Use) -> Lowered:
    """The product in register tiles."""
    nr, deep, lines = use.view(1).shape[-1], use.plan["deep"], lines_of(use)
    assert isinstance(nr, int)
    nv = panel_vectors(use.target, nr)
    mr = rows_of_tile(use.target, nv, lines.count)
    return blocked(use, "gemm_blocked", {"MR": mr, "NV": nv}, lines,
                   Room(mr, nr, deep, each=mr, more=mr * 16))


# ---- the op ------------------------------------------------------------------------------------

GEMM_BLOCKED = Form("gemm_blocked", (
    NV, Parameter("split", "1: threads share rows, 2: they share columns", 1, least=1, most=2),
    Parameter("deep", "the depth that is taken at a time", DEEP, least=1)))

OP = target_op("gemm_blocked", infer, decompose, GEMM_BLOCKED, rows_by_columns,
               "a·b in float32, with b as `pack` lays it out, and blocks of a copied")


# ---- plans and their costs ---------------------------------------------------------------------

def plans(s: Product, target: Target, rules: Rules) -> list[Plan]:
    """The widths of panels, for operands made at run time that gemm.h would read from far."""
    if s.constant or s.zeros or s.m < 2 * target.mr or not beyond_first_cache(s, target):
        return []
    return [GEMM_BLOCKED.plan(nv=nv, split=best_split(s)) for nv in product_widths(s, target)]


def cost(s: Product, p: Plan, t: Target) -> float:
    """Expected microseconds: the product, copies of A for each round of columns, and sums that are
    set aside at each depth."""
    rounds = max(1, ceil(s.n, (ASIDE << 8) // (COPIES << 8) * p.get("deep", DEEP)))
    copies = s.m * s.k * rounds / 4
    aside = (ceil(s.k, DEEP) - 1) * s.m * s.n * 2 / t.lanes
    return product_cost(s, p, t, copied=True) + s.batch * (copies + aside) / t.mhz / t.threads


def make(chosen: Chosen, x: Any, w: Any, *, transpose: bool) -> Any:
    """The product node with a right-hand side in panels."""
    return chosen.emit(OP, x, packed(w, chosen.columns(), False, transpose), n=chosen.site.n)


SERVES = (Alternative(Product, GEMM_BLOCKED, plans, cost, make,
                      takes=lambda s: s.dtype is dtypes.float32),)

register(Record(
    Contract("gemm_blocked", "a product of which blocks of the left-hand side are copied", MACROS,
             POINTERS, meaning, ("b", "m", "n"), touches, grain="pieces"),
    {"gemm_blocked": lower}, reads, serves=SERVES))
