"""attend_amx.h: scaled dot-product attention in bfloat16 by a matrix unit."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from graphtool import dtypes
from graphtool import ops as o
from graphtool.dtypes import DType
from graphtool.kernels import attention
from graphtool.kernels.attention import flops, most_keys, reads, seen_keys
from graphtool.kernels.choice.blocks import FINISH, SEGMENT
from graphtool.kernels.choice.sites import Attention
from graphtool.kernels.kit import (
    Alternative, Area, Chosen, Contract, Dim, Form, Instance, Lowered, Numbers, Plan, Record,
    Rows, Rules, Target, TensorType, Use, ceil, fetched, longest, narrowed, need, never,
    register, round_up, rounding, target_op)
from graphtool.ops.transformer import attention_scores, weighted_values
from graphtool.symbolic import minimum

MACROS = (*attention.SIZES, *attention.SCORES)
POINTERS = (*attention.OPERANDS, *attention.MEMORY)
TALL = 32  # sizes are rounded up to two segments of a tile, or to a step of its depth
MOST = 1024  # keys whose scores are kept at a time


def room(t: Dim, d: Dim, v: Dim, nr: int) -> Dim:
    """The floats of a thread's workspace for t keys, with panels of nr columns."""
    keys, deep, high = (round_up(n, TALL) for n in (t, d, v))
    return keys * (deep + high) // 2 + (deep + 2 * high) * nr + minimum(keys, MOST) * nr * 3 // 2


def meaning(t: Instance) -> None:
    """Attention of each head, of operands and weights in bfloat16."""
    for b in range(t.get("HEADS")):
        y = OP(*attention.operands(t, b), causal=t.get("CAUSAL"), scale=t.get("SCALE"),
               softcap=t.get("SOFTCAP"))
        t.rows(y[0], b)


def touches(t: Numbers) -> Iterator[Area | Rows]:
    """What the C touches."""
    n, d, dv = t.sizes("T D DV")
    yield from areas(t, room(n, d, dv, 2 * t.lanes), dtypes.bfloat16)


def areas(t: Numbers, share: Dim, kind: DType) -> Iterator[Area | Rows]:
    """What attention touches that packs operands of one type, with `share` floats of a thread."""
    heads, s, n, d, dv, ldq, ldk, ldv = t.sizes("HEADS S T D DV LDQ LDK LDV")
    yield Rows((heads, s, dv))
    for name, rows, columns, step in (("Q", s, d, ldq), ("KEY", n, d, ldk), ("V", n, dv, ldv)):
        yield Area(name, (rows, columns), (step, 1), (heads,), kind)
    assert isinstance(share, int)
    yield Area("WORK", (share,), aligned=True)
    if t.get("MASKED"):
        t.need(t.get("MASK_STEP") is not None and t.has("MASK"), "a mask")
        yield Area("MASK", (n,), (t.get("MASK_STEP"),), (heads, s))


def lower(use: Use) -> Lowered:
    """The workspace has room for as many keys as there can be."""
    t, d = use.view(1).shape[-2:]
    share = room(most_keys(t), d, use.out.type.shape[-1], use.target.nr)
    return attention.lowered(use, "attend_amx", share, {})


# ---- the op ------------------------------------------------------------------------------------

ATTEND_AMX = Form("attend_amx", rate="tile_bf16")


def _infer(q: TensorType, k: TensorType, v: TensorType, mask: TensorType | None = None, *,
           causal: bool = False, scale: float, softcap: float = 0.0,
           plan: Plan | None = None) -> TensorType:
    need(all(x.dtype is dtypes.bfloat16 for x in (q, k, v)),
         f"the operands must be bf16, got {q}, {k} and {v}")
    need(mask is None or mask.dtype is dtypes.float32, f"the mask must be f32, got {mask}")
    attention.check_sizes(q, k, v)
    return TensorType(dtypes.float32, (*q.shape[:-1], v.shape[-1]))


def _decompose(q: Any, k: Any, v: Any, mask: Any = None, *, causal: bool, scale: float,
               softcap: float, plan: Plan | None = None) -> Any:
    """Weights are rounded before they are divided by their sum."""
    q, k, v = (o.cast(x, dtype=dtypes.float32) for x in (q, k, v))
    scores = attention_scores(q, k, mask, causal, scale, softcap)
    top = o.reduce_max(scores, axes=(-1,))
    e = o.exp(scores - o.select(o.eq(top, float("-inf")), 0.0, top))
    total = o.reduce_sum(e, axes=(-1,))
    rounded = o.cast(o.cast(e, dtype=dtypes.bfloat16), dtype=dtypes.float32)
    y = weighted_values(rounded, v)
    total = o.reshape(total, shape=(*y.shape[:-1], 1))
    return y / o.select(o.eq(total, 0.0), 1.0, total)


OP = target_op("attend_amx", _infer, _decompose, ATTEND_AMX, flops,
               "`attention` of bfloat16 by a matrix unit: scores, softmax and sums are float32, "
               "the weights are rounded to bfloat16 before they are divided by their sum; a mask "
               "is added to the scores")


# ---- plans and their costs ---------------------------------------------------------------------

_STEP = 4 * SEGMENT  # cycles of four products of tiles
_SOFTMAX = 18  # cycles for a vector of scores: maximum, exponentials, sum, rounding
_MASK = 4  # further cycles if a mask is added
_MOVED = 2  # cycles to pack a vector of keys or values, or to hand out one of results


def plans(s: Attention, target: Target, rules: Rules) -> list[Plan]:
    """The one plan, if the target has a matrix unit and the rules allow bfloat16. Where the number
    of queries is open, it may be small beside that of keys, which are all packed."""
    usual = s.fixed or s.s >= s.t
    fits = target.amx and rules.bf16 and s.keys in (dtypes.float32, dtypes.bfloat16) and usual
    return [ATTEND_AMX.plan()] if fits else []


def cost(s: Attention, _: Plan, t: Target) -> float:
    """Expected microseconds. Keys and values are rounded and packed once for the heads that share
    them."""
    seen, blocks = ceil(seen_keys(s, t.nr), TALL), ceil(s.s, t.nr)
    deep, high = ceil(s.d, TALL), ceil(s.v, TALL)
    products = (seen * (deep * _STEP + FINISH) + high * (seen * _STEP + FINISH))
    softmax = seen * TALL * t.nr / t.lanes * (_SOFTMAX + _MASK * s.masked)
    handed = t.nr * TALL * (deep + 2 * high) / t.lanes * _MOVED
    packed = s.t * TALL * (deep + high) / t.lanes * _MOVED / s.shared
    heads = longest(s.heads * blocks, t.threads) / blocks
    numbers = s.t * (s.d + s.v) / s.shared
    rounded = 0.0 if s.keys is dtypes.bfloat16 else numbers / t.lanes
    far = fetched(t, (s.keys.bytes + 4) * numbers, max(4 * numbers, t.l2))
    return heads * (blocks * (products + softmax + handed) + packed + rounded) / t.mhz + heads * far


def make(chosen: Chosen, q: Any, k: Any, v: Any, *mask: Any, **how: Any) -> Any:
    """The attention node of the queries, keys, values in bfloat16, and the mask."""
    return chosen.emit(OP, narrowed(q), narrowed(k), narrowed(v), *mask, **how)


SERVES = (Alternative(
    Attention, ATTEND_AMX, plans, cost, make, error=lambda s, p: rounding.bf16(max(s.d, s.t)),
    assumes=attention.assumes, in_order=never),)

register(Record(
    Contract("attend_amx", "scaled dot-product attention in bfloat16 by a matrix unit", MACROS,
             POINTERS, meaning, ("b", "s", "d"), touches, grain="shares"),
    {"attend_amx": lower}, reads, serves=SERVES))
