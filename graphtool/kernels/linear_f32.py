"""linear_f32.h: products with packed weights of 2, 4 or 8 bits and exact activations."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from graphtool.kernels.kit import (
    Alternative, Area, Assumption, Contract, Form, Instance, Lowered, Macro, Macros, Numbers,
    Packed, Plan, Pointer, Record, Rows, Rules, Target, Use, bounds, by_weights, literals, mark,
    nbits, never, packed, register, target_op)
from graphtool.kernels.linear_q8 import (
    HOOK, OPERANDS, SIZES, areas, emitted, infer, lowered, meaning_of)

MACROS = (
    *SIZES, Macro("MR", "literal", "the greatest number of rows that are summed together"),
    *literals(FEW="up to so many rows are few, for which weights are widened in registers"),
    mark("WIDENS", "there may be more than FEW rows, for which a panel of weights is widened"))
POINTERS = (*OPERANDS, Pointer("WORK", "memory of thread t for FEW rows and the sums of their "
                                       "blocks, or for two panels", ("t",), writes=True))


def _floats(few: int, parts: int, block: int, wide: int) -> int:
    """The size of a thread's memory in floats, whole vectors; panels that are widened have `wide`
    columns."""
    return -(-max(few * parts * (block + 1), parts * block * wide) // 16) * 16


def meaning(t: Instance) -> None:
    """The op."""
    meaning_of(OP, t)


def touches(t: Numbers) -> Iterator[Area | Rows]:
    """What the C touches."""
    block, parts, few = t.sizes("BLOCK PARTS FEW")
    yield from areas(t)
    t.need(1 <= t.get("MR") <= 16, "MR from 1 to 16")
    t.need(t.get("M") <= few or bool(t.get("WIDENS")), "at most FEW rows, or WIDENS")
    wide = 2 * t.lanes if t.get("WIDENS") else 0
    yield Area("WORK", (_floats(few, parts, block, wide),), aligned=True)


def lower(use: Use) -> Lowered:
    """Up to so many rows are summed together as fit the registers."""
    parts, block = use.view(1).shape[1], use.node.attrs["block"]
    assert isinstance(parts, int)
    least, most = bounds(use.out.type.shape[0])
    tile = packed.rows(use.target, most)
    few = packed.FEW * tile
    widens = most is None or most > few
    if least is not None and least > few:
        few = 0
    elif most is not None:
        few = min(few, most)
    mode: Macros = {"WIDENS": True} if widens else {}
    macros: Macros = {"MR": tile, "FEW": few, **mode}
    wide = 2 * use.target.lanes if widens else 0
    return lowered(use, "linear_f32", macros, _floats(few, parts, block, wide))


# ---- the op ------------------------------------------------------------------------------------

LINEAR_F32 = Form("linear_f32")


def _decompose(x: Any, q: Any, scales: Any, zeros: Any = None, *, n: int, bits: int, block: int,
               plan: Plan | None = None) -> Any:
    return by_weights(x, nbits.weights(q, scales, zeros, n, bits, block))


OP = target_op("linear_f32", infer, _decompose, LINEAR_F32, nbits.flops,
               "x·wᵀ; w has n rows of `bits` bits, as `pack_nbits` lays them out; "
               "scales and zeros are in panels too, in float32 or float16")


# ---- plans and their costs ---------------------------------------------------------------------

def plans(s: Packed, target: Target, rules: Rules) -> list[Plan]:
    """The one plan, for rows that are not rounded, if the weights are known."""
    fits = s.constant and nbits.fits(s.bits, s.block)
    return [LINEAR_F32.plan()] if fits and not s.q8 else []


def if_zero_points(site: Packed, _: Plan) -> Assumption:
    """Where there are zero points: the sums of x are multiplied by them."""
    return "finite" if site.zeros else "nothing"


SERVES = (Alternative(
    Packed, LINEAR_F32, plans, packed.f32_cost, partial(emitted, OP), assumes=if_zero_points,
    in_order=never),)

register(Record(
    Contract("linear_f32", "products with weights of few bits and exact activations", MACROS,
             POINTERS, meaning, HOOK, touches),
    {"linear_f32": lower}, serves=SERVES))
