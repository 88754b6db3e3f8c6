"""gemm_parts.h: products of float32 by a matrix unit of bfloat16, each number as a sum of parts.

The right-hand side is constant, and split when it is packed; the left one is split block by block.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from graphtool import dtypes
from graphtool import ops as o
from graphtool.kernels.choice.machine import streamed
from graphtool.kernels.gemm import plain, reads
from graphtool.kernels.gemm_amx_blocked import TALL, UNIT
from graphtool.kernels.gemm_blocked import BLOCKS, POINTERS, Room, blocked, lines_of
from graphtool.kernels.kit import (
    Alternative, Area, Chosen, Contract, Form, Instance, Lowered, Macro, Numbers, Parameter, Plan,
    Product, Record, Rows, Rules, Target, TensorType, Use, best_split, blocks, broadcast_shapes,
    ceil, ceildiv, longest, need, never, overlapped, products, register, rounding,
    rows_by_columns, target_op)
from graphtool.kernels.packing import parts

MACROS = (Macro("PARTS", "literal", "parts of a number"), *BLOCKS)
DEEP = 768  # of the depth at a time
NEAR = 1024  # KB of split rows that stay in the second-level cache, and of sums that are set aside
FEWEST = 32  # rows below which multiply-adds are faster, or reading the weights is all the work
FEW = 4  # blocks that go through panels together, where all of these stay near
SPLIT = 0.5  # cycles to split a number
FINISH = 300  # cycles to finish the sums of a block and a part of the depth
LOADS = 1.5  # how many times as long a step takes as its products: tiles are loaded
COLD = 3.0  # how many times as long tiles wait for weights as plain reads do


def meaning(t: Instance) -> None:
    """One product for each b."""
    products(t, OP)


def touches(t: Numbers) -> Iterator[Area | Rows]:
    """What the C touches."""
    batch, m, n, k, lda, ldk, deep, chunk, width = t.sizes("BATCH M N K LDA LDK DEEP CHUNK WIDTH")
    count, nr = t.get("PARTS"), 2 * t.lanes
    t.need(deep > 0 and chunk > 0 and width > 0 and deep % UNIT == 0,
           f"blocks of 1 or more, and a depth that {UNIT} divides")
    t.need(count in (2, 3), "2 or 3 parts")
    t.need(ldk == 1 or lda == 1, "rows or columns of adjacent elements")
    yield Rows((batch, m, n))
    yield Area("A", (m, k), (lda, ldk), (batch,), dtypes.float32)
    panel = (-(-n // nr), -(-k // UNIT) * count * blocks.SEGMENT, nr * parts.PAIR)
    yield Area("B", panel, None, (batch,), dtypes.bfloat16, True)
    yield Area("WORK", (chunk * (_copied(deep, count) + width * TALL * nr),), aligned=True)


def _copied(deep: int, count: int) -> int:
    """The floats of a block that is split."""
    return TALL // 2 * count * deep + TALL // 2


def lower(use: Use) -> Lowered:
    """The product in tiles of the unit."""
    deep, depth, rows = use.plan["deep"], use.view(0).shape[-1], use.view(1).shape[-2]
    count = ceildiv(rows, parts.tiles(depth))
    assert isinstance(count, int)
    return blocked(use, "gemm_parts", {"PARTS": count}, lines_of(use), Room(
        TALL, 2 * use.target.lanes, deep, each=TALL // 2 * count, more=TALL // 2, unit=UNIT,
        copies=use.plan["near"], aside=NEAR))


# ---- the op ------------------------------------------------------------------------------------

GEMM_PARTS = Form("gemm_parts", (
    Parameter("split", "1: threads share rows, 2: they share columns", 1, least=1, most=2),
    Parameter("deep", "the depth that is taken at a time", DEEP, least=UNIT),
    Parameter("near", "KB of split rows that go through all panels together", NEAR, least=1),
    Parameter("parts", "parts of a number: three hold all of its digits", 3, least=2, most=3)),
    rate="tile_bf16")


def infer(a: TensorType, b: TensorType, *, n: int, plan: Plan | None = None) -> TensorType:
    """The type of the product; raises what `need` does if the operands do not fit."""
    need(a.rank >= 2 and b.rank >= 3, f"{a} and {b} are not operands of a packed product")
    need(a.dtype is dtypes.float32 and b.dtype is dtypes.bfloat16,
         f"the operands must be f32, and parts of it in bf16, got {a} and {b}")
    rows = parts.tiles(a.shape[-1])
    need(b.shape[-2] in (2 * rows, 3 * rows), f"inner dimensions of {a} and {b} differ")
    need(ceildiv(n * parts.PAIR, b.shape[-1]) == b.shape[-3],
         f"{b} does not have the panels for {n} columns")
    lead = broadcast_shapes(a.shape[:-2], b.shape[:-3]) if a.rank > 2 or b.rank > 3 else ()
    return TensorType(dtypes.float32, (*lead, a.shape[-2], n))


def decompose(a: Any, b: Any, *, n: int, plan: Plan | None = None) -> Any:
    """The product with the sums of the parts."""
    return o.matmul(a, parts.joined(b, n, a.shape[-1]))


OP = target_op("gemm_parts", infer, decompose, GEMM_PARTS, rows_by_columns,
               "a·b in float32 by a matrix unit of bfloat16, with b as `pack_parts` lays it out, "
               "and blocks of a split into parts")


# ---- plans and their costs ---------------------------------------------------------------------

def plans(s: Product, target: Target, rules: Rules) -> list[Plan]:
    """The one plan, if the target has a matrix unit and the weights are known, and split."""
    fits = (target.amx and s.dtype is dtypes.float32 and plain(s) and not s.zeros and not s.large
            and s.m >= FEWEST and s.k <= parts.DEEPEST)
    if not fits:
        return []
    whole = packed_bytes(s, rules.parts, target) > NEAR << 10
    near = NEAR if whole else max(1, FEW * _copied(min(s.k, DEEP), rules.parts) >> 8)
    return [GEMM_PARTS.plan(split=best_split(s), near=near, parts=rules.parts)]


def packed_bytes(s: Product, count: int, t: Target) -> int:
    """Bytes of the weights in panels."""
    return ceil(s.n, t.nr) * t.nr * ceil(s.k, UNIT) * UNIT * 2 * count


def cost(s: Product, p: Plan, t: Target) -> float:
    """Expected microseconds: products of tiles, splitting A, and finishing sums."""
    count, rows = p.get("parts", 3), p.get("split", 1) == 1
    segments, panels = ceil(s.m, blocks.SEGMENT), ceil(s.n, t.nr)
    shared = ceil(segments, 2) if rows else panels
    mine = longest(shared, t.threads) / shared
    tiles = count * (count + 1) // 2 * 4 * max(blocks.FEWEST, ceil(s.m, segments)) * LOADS
    depths = ceil(s.k, p.get("deep", DEEP))
    work = panels * segments / 2 * mine * (ceil(s.k, UNIT) * tiles + depths * FINISH)
    split = s.m * s.k * SPLIT * (mine if rows else 1)
    b, held = packed_bytes(s, count, t), p.get("near", NEAR) << 10
    rounds = ceil(int(s.m * mine) if rows else s.m, max(TALL, held // (min(s.k, DEEP) * 2 * count)))
    traffic = COLD * streamed(t, b, rounds * (1 if rows else mine))
    return blocks.BEGIN + overlapped(t, work + split, traffic)


def make(chosen: Chosen, x: Any, w: Any, *, transpose: bool) -> Any:
    """The product node with a right-hand side in panels of parts."""
    packed = o.pack_parts(w, nr=chosen.target.nr, parts=chosen.plan.get("parts", 3),
                          transpose=transpose)
    return chosen.emit(OP, x, packed, n=chosen.site.n)


def weights(s: Product, p: Plan, t: Target) -> int:
    """Bytes of the weights."""
    return packed_bytes(s, p.get("parts", 3), t)


def error(s: Product, p: Plan) -> float:
    """None with all parts: it is that of sums in float32."""
    return 0.0 if p.get("parts", 3) == 3 else rounding.two_parts(s.k)


SERVES = (Alternative(Product, GEMM_PARTS, plans, cost, make, weights=weights, error=error,
                      in_order=never),)

register(Record(
    Contract("gemm_parts", "a product of float32 by a matrix unit of bfloat16, each number as a "
             "sum of parts", MACROS, POINTERS, meaning, ("b", "m", "n"), touches, grain="pieces"),
    {"gemm_parts": lower}, reads, serves=SERVES))
