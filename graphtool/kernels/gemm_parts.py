"""gemm_parts.h: products of float32 by a matrix unit of bfloat16, each number as a sum of parts.

The left operand is split block by block. The right one is split when it is packed, if it is a
constant and the number of rows is known; else a part of a panel is split for the blocks that it
multiplies.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

from graphtool import dtypes
from graphtool import ops as o
from graphtool.kernels.choice.machine import streamed
from graphtool.kernels import gemm
from graphtool.kernels.choice.operands import packed
from graphtool.kernels.gemm import GEMM, in_tiles, plain, reads
from graphtool.kernels.gemm_amx_blocked import TALL, UNIT
from graphtool.kernels.gemm_blocked import BLOCKS, POINTERS, Room, blocked, lines_of
from graphtool.kernels.kit import (
    Alternative, Area, Chosen, Contract, Dim, Form, Instance, Lowered, Macro, MacroValue, Numbers,
    Parameter, Plan, Product, Record, Rows, Rules, Target, TensorType, Use, best_split, blocks,
    broadcast_shapes, by_rows, ceil, ceildiv, fetched, longest, mark, need, never, overlapped,
    product_cost, products, register, rounding, rows_by_columns, target_op, widths)
from graphtool.kernels.packing import parts

MACROS = (Macro("PARTS", "literal", "parts of a number"), *BLOCKS,
          mark("FLOATS", "the right-hand side is not split yet"))
DEEP = 768  # of the depth at a time
MOVING_DEEP = 512  # the same, if a panel is split too
NEAR = 1024  # KB of split rows that stay in the second-level cache, and of sums that are set aside
FEWEST = 32  # rows below which multiply-adds are faster, as the C knows too
ENOUGH = 80  # rows from which on kept weights are worth half as many bytes again; 64 take as long
PAYS = 0.95  # part of the time of multiply-adds that tiles must take, where runs choose
FEW = 4  # blocks that go through panels together, where all of these stay near
SPLIT, SPLIT_ACROSS = 0.5, 1.0  # cycles to split a number, in rows or across them
FINISH = 300  # cycles to finish the sums of a block and a part of the depth
LOADS = 1.5  # how many times as long a step takes as its products: tiles are loaded
COLD = 3.0  # how many times as long tiles wait for weights as plain reads do


def meaning(t: Instance) -> None:
    """One product for each b."""
    products(t, OP_MOVING if t.get("FLOATS") else OP)


def touches(t: Numbers) -> Iterator[Area | Rows]:
    """What the C touches."""
    batch, m, n, k, lda, ldk = t.sizes("BATCH M N K LDA LDK")
    t.need(ldk == 1 or lda == 1, "rows or columns of adjacent elements")
    yield Rows((batch, m, n))
    yield Area("A", (m, k), (lda, ldk), (batch,), dtypes.float32)
    yield from touched(t, Area("B", (), None, (batch,)), k, n)


def touched(t: Numbers, at: Area, k: int, n: int) -> Iterator[Area]:
    """Panels for n columns of depth k, and the memory of a thread. `at` is where the panels are,
    with the axes before those of a panel."""
    nr = 2 * t.lanes
    panels, floats = -(-n // nr), bool(t.get("FLOATS"))
    panel = (panels, k, nr) if floats else (
        panels, -(-k // UNIT) * t.get("PARTS") * blocks.SEGMENT, nr * parts.PAIR)
    kind = dtypes.float32 if floats else dtypes.bfloat16
    yield replace(at, shape=(*at.shape, *panel), dtype=kind, aligned=True)
    yield work_area(t, floats)


def work_area(t: Numbers, moving: bool) -> Area:
    """The memory of a thread; if the right-hand side is `moving`, for a part of a panel too."""
    deep, chunk, width = t.sizes("DEEP CHUNK WIDTH")
    count, nr = t.get("PARTS"), 2 * t.lanes
    t.need(deep > 0 and chunk > 0 and width > 0 and deep % UNIT == 0,
           f"blocks of 1 or more, and a depth that {UNIT} divides")
    t.need(count in (2, 3), "2 or 3 parts")
    work = chunk * (_copied(deep, count) + width * TALL * nr)
    return Area("WORK", (work + (_panel(deep, count, nr) if moving else 0),), aligned=True)


def _copied(deep: int, count: int) -> int:
    """The floats of a block that is split."""
    return TALL // 2 * count * deep + TALL // 2


def _panel(deep: int, count: int, nr: int) -> int:
    """The floats of a part of a panel that is split."""
    return deep * count * nr // 2 + TALL // 2


def lower_moving(use: Use) -> Lowered:
    """The product in tiles of the unit, unless there turn out to be few rows: these are multiplied
    as floats, which the panels hold."""
    lines, unit = lines_of(use), partial(lower, use)
    if isinstance(lines.count, int):
        return unit()
    floats = partial(in_tiles, use, lines, GEMM.values(None))
    return by_rows(lines.count, use.plan["few"], floats, unit)


def lower(use: Use) -> Lowered:
    """The product in tiles of the unit."""
    macros, room = blocks_of(use, use.view(0).shape[-1])
    return blocked(use, "gemm_parts", macros, lines_of(use), room)


def blocks_of(use: Use, depth: Dim) -> tuple[dict[str, MacroValue], Room]:
    """The macros for the parts of operands of such a depth, and what is known of the blocks."""
    b, deep, nr = use.view(1), use.plan["deep"], 2 * use.target.lanes
    moving = b.dtype is dtypes.float32
    count = use.plan["parts"] if moving else ceildiv(b.shape[-2], parts.tiles(depth))
    assert isinstance(count, int)
    macros: dict[str, MacroValue] = {"PARTS": count, **({"FLOATS": True} if moving else {})}
    return macros, Room(
        TALL, nr, deep, each=TALL // 2 * count, more=TALL // 2, unit=UNIT,
        copies=use.plan["near"], aside=NEAR, panel=_panel(deep, count, nr) if moving else 0)


# ---- the op ------------------------------------------------------------------------------------

PARAMETERS = (
    Parameter("split", "1: threads share rows, 2: they share columns", 1, least=1, most=2),
    Parameter("deep", "the depth that is taken at a time", DEEP, least=UNIT),
    Parameter("near", "KB of split rows that go through all panels together", NEAR, least=1),
    Parameter("parts", "parts of a number: three hold all of its digits", 3, least=2, most=3))
GEMM_PARTS = Form("gemm_parts", PARAMETERS, rate="tile_bf16")
GEMM_PARTS_MOVING = Form("gemm_parts_moving", (
    *PARAMETERS, Parameter("few", "of an open number, fewer rows than these are floats", ENOUGH)),
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


OP_MOVING = target_op("gemm_parts_moving", gemm.infer, gemm.decompose, GEMM_PARTS_MOVING,
                      rows_by_columns, "a·b in float32 by a matrix unit of bfloat16, with b as "
                      "`pack` lays it out; both are split into parts block by block")


# ---- plans and their costs ---------------------------------------------------------------------

def plans(s: Product, target: Target, rules: Rules) -> list[Plan]:
    """The one plan, if the target has a matrix unit, the weights are known and split, and so is the
    number of rows: another entry point may multiply few rows by the weights, as floats."""
    return [_plan(GEMM_PARTS, s, target, rules)] if (
        plain(s) and s.fixed and not s.large and s.m >= ENOUGH and _fits(s, target)) else []


def moving_plans(s: Product, target: Target, rules: Rules) -> list[Plan]:
    """The one plan, if the target has a matrix unit, for a right-hand side that is made at run
    time, or an open number of rows."""
    if (s.constant and s.fixed) or not _fits(s, target):
        return []
    p = _plan(GEMM_PARTS_MOVING, s, target, rules, deep=MOVING_DEEP)
    few = ENOUGH if s.fixed else _few(s, p, target)
    if few == ENOUGH:
        return [p]
    return [GEMM_PARTS_MOVING.plan(**dict(p.parameters), few=few)] if few <= s.m else []


def _few(s: Product, p: Plan, t: Target) -> int:
    """The number of rows from which on splitting the panels in each run pays for a thread."""
    few, t = ENOUGH, replace(t, threads=1)
    while few <= s.m:
        m = replace(s, m=few)
        if moving_cost(m, p, t) < PAYS * product_cost(m, GEMM.plan(nv=widths(s.n, t)[0]), t):
            break
        few = few * 5 // 4
    return few


def _fits(s: Product, target: Target) -> bool:
    return (target.amx and s.dtype is dtypes.float32 and not s.zeros and s.m >= FEWEST
            and s.k <= parts.DEEPEST)


def _plan(form: Form, s: Product, target: Target, rules: Rules, **deep: int) -> Plan:
    few = form is GEMM_PARTS and packed_bytes(s, rules.parts, target) <= NEAR << 10
    near = max(1, FEW * _copied(min(s.k, DEEP), rules.parts) >> 8) if few else NEAR
    return form.plan(split=best_split(s), near=near, parts=rules.parts, **deep)


def packed_bytes(s: Product, count: int, t: Target) -> int:
    """Bytes of the weights in panels."""
    return ceil(s.n, t.nr) * t.nr * ceil(s.k, UNIT) * UNIT * 2 * count


def _shares(s: Product, p: Plan, t: Target) -> tuple[bool, float]:
    """Whether threads share rows, and the greatest share of one."""
    rows = p.get("split", 1) == 1
    shared = ceil(s.m, TALL) if rows else ceil(s.n, t.nr)
    return rows, longest(shared, t.threads) / shared


def _rounds(s: Product, p: Plan, t: Target) -> int:
    """How many times a thread goes through the panels."""
    rows, mine = _shares(s, p, t)
    held = (p.get("near", NEAR) << 10) // (min(s.k, p.get("deep", DEEP)) * 2 * p.get("parts", 3))
    return ceil(int(s.m * mine) if rows else s.m, max(TALL, held))


def _work(s: Product, p: Plan, t: Target) -> float:
    """Cycles of a thread: products of tiles, splitting A, and finishing sums."""
    count, (rows, mine) = p.get("parts", 3), _shares(s, p, t)
    segments, panels = ceil(s.m, blocks.SEGMENT), ceil(s.n, t.nr)
    tiles = count * (count + 1) // 2 * 4 * max(blocks.FEWEST, ceil(s.m, segments)) * LOADS
    finish = ceil(s.k, p.get("deep", DEEP)) * FINISH
    split = s.m * s.k * (SPLIT_ACROSS if s.across else SPLIT) * (mine if rows else 1)
    return s.batch * (panels * segments / 2 * mine * (ceil(s.k, UNIT) * tiles + finish) + split)


def cost(s: Product, p: Plan, t: Target) -> float:
    """Expected microseconds, with weights that come from afar."""
    rows, mine = _shares(s, p, t)
    b = packed_bytes(s, p.get("parts", 3), t)
    traffic = COLD * streamed(t, b, _rounds(s, p, t) * (1 if rows else mine))
    return blocks.BEGIN + overlapped(t, _work(s, p, t), traffic)


def moving_cost(s: Product, p: Plan, t: Target) -> float:
    """Expected microseconds, with panels that are split for each round of rows."""
    rows, mine = _shares(s, p, t)
    split = s.batch * s.n * s.k * SPLIT * _rounds(s, p, t) * (1 if rows else mine)
    b = ceil(s.n, t.nr) * t.nr * s.k * 4
    times = _rounds(s, p, t) * (1 if rows else mine)
    traffic = COLD * streamed(t, b, times) if s.constant else fetched(t, s.batch * b * times, b)
    return blocks.BEGIN + overlapped(t, _work(s, p, t) + split, traffic)


def make(chosen: Chosen, x: Any, w: Any, *, transpose: bool) -> Any:
    """The product node with a right-hand side in panels of parts."""
    panels = o.pack_parts(w, nr=chosen.target.nr, parts=chosen.plan.get("parts", 3),
                          transpose=transpose)
    return chosen.emit(OP, x, panels, n=chosen.site.n)


def make_moving(chosen: Chosen, x: Any, w: Any, *, transpose: bool) -> Any:
    """The product node with a right-hand side in panels of floats."""
    return chosen.emit(OP_MOVING, x, packed(w, chosen.target.nr, False, transpose),
                       n=chosen.site.n)


def weights(s: Product, p: Plan, t: Target) -> int:
    """Bytes of the weights."""
    return packed_bytes(s, p.get("parts", 3), t)


def error(s: Product, p: Plan) -> float:
    """None with all parts: it is that of sums in float32."""
    return 0.0 if p.get("parts", 3) == 3 else rounding.two_parts(s.k)


SERVES = (
    Alternative(Product, GEMM_PARTS, plans, cost, make, weights=weights, error=error,
                in_order=never),
    Alternative(Product, GEMM_PARTS_MOVING, moving_plans, moving_cost, make_moving, error=error,
                in_order=never))

register(Record(
    Contract("gemm_parts", "a product of float32 by a matrix unit of bfloat16, each number as a "
             "sum of parts", MACROS, POINTERS, meaning, ("b", "m", "n"), touches, grain="pieces"),
    {"gemm_parts": lower, "gemm_parts_moving": lower_moving}, reads, serves=SERVES))
