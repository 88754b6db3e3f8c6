"""attend_parts.h: scaled dot-product attention of float32 by a matrix unit of bfloat16."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from graphtool import dtypes
from graphtool import ops as o
from graphtool.kernels import attention
from graphtool.kernels.attention import flops, most_keys, reads, seen_keys
from graphtool.kernels.attend_amx import areas
from graphtool.kernels.choice.blocks import FINISH, SEGMENT
from graphtool.kernels.choice.sites import Attention
from graphtool.kernels.kit import (
    Alternative, Area, Chosen, Contract, Dim, Form, Instance, Lowered, Numbers, Parameter, Plan,
    Record, Rows, Rules, Target, TensorType, Use, ceil, fetched, literals, longest, need, never,
    overlapped, register, round_up, rounding, target_op)
from graphtool.symbolic import minimum

MACROS = (*literals(PARTS="bfloat16 numbers that a float32 is split into"), *attention.SIZES,
          *attention.SCORES)
POINTERS = (*attention.OPERANDS, *attention.MEMORY)
TALL = 32  # sizes are rounded up to two segments of a tile, or to a step of its depth
MOST = 128  # keys whose scores are kept at a time
TOGETHER = 4  # blocks of queries that read so many keys before the next ones


def room(t: Dim, d: Dim, v: Dim, parts: int) -> Dim:
    """The floats of a thread's workspace for t keys."""
    keys, deep, high = (round_up(n, TALL) for n in (t, d, v))
    kept = TALL * (deep * parts // 2 + high + 2)
    return (keys * (deep + high) * parts // 2 + TOGETHER * kept
            + 2 * TALL * (minimum(keys, MOST) * (2 + parts) // 2 + 1))


def meaning(t: Instance) -> None:
    """Attention of each head, as the C computes it."""
    for b in range(t.get("HEADS")):
        y = o.attend_parts(*attention.operands(t, b), causal=t.get("CAUSAL"), scale=t.get("SCALE"),
                           softcap=t.get("SOFTCAP"))
        t.rows(y[0], b)


def touches(t: Numbers) -> Iterator[Area | Rows]:
    """What the C touches."""
    t.need(t.get("PARTS") in (2, 3), "PARTS of 2 or 3")
    n, d, dv = t.sizes("T D DV")
    yield from areas(t, room(n, d, dv, t.get("PARTS")), dtypes.float32)


def lower(use: Use) -> Lowered:
    """The workspace has room for as many keys as there can be."""
    t, d = use.view(1).shape[-2:]
    parts = use.plan["parts"]
    share = room(most_keys(t), d, use.out.type.shape[-1], parts)
    return attention.lowered(use, "attend_parts", share, {"PARTS": parts})


# ---- the op ------------------------------------------------------------------------------------

ATTEND_PARTS = Form("attend_parts", (Parameter(
    "parts", "bfloat16 numbers that a float32 is split into", 3, least=2, most=3),),
    rate="tile_bf16")


def _infer(q: TensorType, k: TensorType, v: TensorType, mask: TensorType | None = None, *,
           causal: bool = False, scale: float, softcap: float = 0.0,
           plan: Plan | None = None) -> TensorType:
    given = (q, k, v) if mask is None else (q, k, v, mask)
    need(all(x.dtype is dtypes.float32 for x in given), f"the operands must be f32, got {given}")
    attention.check_sizes(q, k, v)
    return TensorType(q.dtype, (*q.shape[:-1], v.shape[-1]))


def _decompose(q: Any, k: Any, v: Any, mask: Any = None, *, plan: Plan | None = None,
               **attrs: Any) -> Any:
    return o.attention(q, k, v, mask, **attrs)


OP = target_op("attend_parts", _infer, _decompose, ATTEND_PARTS, flops,
               "`attention` of float32 by a matrix unit of bfloat16: each number is a sum of "
               "parts; a mask is added to the scores")


# ---- plans and their costs ---------------------------------------------------------------------

_PRODUCTS = {2: 3, 3: 6}  # of parts, for a product of so many parts
_STEP = 4 * SEGMENT  # cycles of four products of tiles
_SOFTMAX = 32  # cycles for a vector of scores: maximum, exponentials, sum, parts
_MASK = 4  # further cycles if a mask is added
_MOVED = 9  # cycles to pack a vector of keys, values or queries, or to hand out one of results


def plans(s: Attention, target: Target, rules: Rules) -> list[Plan]:
    """The one plan, if the target has a matrix unit. Where the number of queries is open, it may be
    small beside that of keys, which are all packed."""
    usual = s.fixed or s.s >= s.t
    fits = target.amx and s.keys is dtypes.float32 and usual
    return [ATTEND_PARTS.plan(parts=rules.parts)] if fits else []


def cost(s: Attention, p: Plan, t: Target) -> float:
    """Expected microseconds. Keys and values are packed once for the heads that share them, and
    read again for each few blocks of queries."""
    blocks = ceil(s.s, TALL)
    seen, deep, high = (TALL * ceil(n, TALL) for n in (seen_keys(s, MOST - TALL), s.d, s.v))
    step = _STEP * _PRODUCTS[p.get("parts", 3)] / TALL
    products = seen * deep * step / TALL + ceil(seen, TALL) * FINISH
    products += seen * high * step / TALL + ceil(high, TALL) * ceil(seen, MOST) * FINISH
    softmax = TALL * seen / t.lanes * (_SOFTMAX + _MASK * s.masked)
    moved = TALL * (deep + high) / t.lanes * _MOVED
    packed = s.t * (deep + high) / t.lanes * _MOVED / s.shared
    heads = longest(s.heads * blocks, t.threads) / blocks
    numbers = s.t * (s.d + s.v)
    far = fetched(t, 8 * numbers / s.shared, max(4 * numbers, t.l2))
    again = fetched(t, 2 * p.get("parts", 3) * numbers * ceil(blocks, TOGETHER), 6 * numbers)
    work = blocks * (products + softmax + moved) + packed
    return heads * (overlapped(t, work, again) + far)


def error(s: Attention, p: Plan) -> float:
    """None with all parts: it is that of sums in float32."""
    return 0.0 if p.get("parts", 3) == 3 else rounding.two_parts(max(s.d, s.t))


def make(chosen: Chosen, *operands: Any, **how: Any) -> Any:
    """The attention node of the queries, keys, values and the mask."""
    return chosen.emit(OP, *operands, **how)


SERVES = (Alternative(Attention, ATTEND_PARTS, plans, cost, make, error=error,
                      assumes=attention.assumes, in_order=never),)

register(Record(
    Contract("attend_parts", "scaled dot-product attention of float32 by a matrix unit", MACROS,
             POINTERS, meaning, ("b", "s", "d"), touches, grain="shares"),
    {"attend_parts": lower}, reads, serves=SERVES))
