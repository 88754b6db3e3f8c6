"""attend_bytes.h: scaled dot-product attention of quantised numbers by a matrix unit."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from graphtool import dtypes
from graphtool import ops as o
from graphtool.kernels import attention
from graphtool.kernels.attention import flops, reads
from graphtool.kernels.kit import (
    Area, Contract, Dim, Form, Instance, Lowered, Numbers, Plan, Pointer, Record, Rows,
    TensorType, Use, need, register, round_up, start, target_op)

POINTERS = (
    *attention.OPERANDS, Pointer("GRIDS", "the zero points and scales, as the op lists them"),
    Pointer("WORK", "memory of thread t for packed keys and values, scores and weights", ("t",),
            writes=True))
FEWEST = 32  # queries of a block
LONGEST = 512  # elements of a query
STEP = 64  # bytes of a row of a tile: sizes are rounded up to it
GRIDS = 7


def room(t: Dim, d: Dim, v: Dim) -> Dim:
    """The floats of a thread's workspace for t keys."""
    keys, deep, high = (round_up(n, STEP) for n in (t, d, v))
    return keys * ((deep + high) // 4 + 42)


def meaning(t: Instance) -> None:
    """Attention of each head."""
    for b in range(t.get("HEADS")):
        y = OP(*(t.read(name, b)[None] for name in ("Q", "KEY", "V")), t.read("GRIDS"))
        t.rows(y[0], b)


def touches(t: Numbers) -> Iterator[Area | Rows]:
    """What the C touches."""
    heads, s, n, d, dv, ldq, ldk, ldv = t.sizes("HEADS S T D DV LDQ LDK LDV")
    t.need(s >= FEWEST and n > 0 and 0 < d <= LONGEST, "a block of queries, and rows that fit it")
    yield Rows((heads, s, dv))
    for name, rows, columns, step in (("Q", s, d, ldq), ("KEY", n, d, ldk), ("V", n, dv, ldv)):
        yield Area(name, (rows, columns), (step, 1), (heads,), dtypes.uint8)
    yield Area("GRIDS", (GRIDS,))
    share = room(n, d, dv)
    assert isinstance(share, int)
    yield Area("WORK", (share,), aligned=True)


def lower(use: Use) -> Lowered:
    """One use of the template."""
    (t, d), v = use.view(1).shape[-2:], use.out.type.shape[-1]
    macros, pointers, hook, work, _ = attention.placed(use, room(t, d, v))
    pointers["GRIDS"] = start(use.view(3))
    return Lowered(use.template("attend_bytes", macros, pointers, hook), work)


# ---- the op ------------------------------------------------------------------------------------

ATTEND_BYTES = Form("attend_bytes", rate="tile_int8")


def _infer(q: TensorType, k: TensorType, v: TensorType, grids: TensorType, *,
           plan: Plan | None = None) -> TensorType:
    need(all(x.dtype is dtypes.uint8 for x in (q, k, v)),
         f"the operands must be u8, got {q}, {k} and {v}")
    attention.check_sizes(q, k, v)
    need(q.shape[:-2] == k.shape[:-2] == v.shape[:-2], "each head has its own keys and values")
    need(grids == TensorType(dtypes.float32, (GRIDS,)), f"the grids must be f32[7], got {grids}")
    return TensorType(dtypes.int32, (*q.shape[:-1], v.shape[-1]))


def _decompose(q: Any, k: Any, v: Any, grids: Any, *, plan: Plan | None = None) -> Any:
    zero_q, zero_k, factor, zero, step, zero_v, steps = (
        o.reshape(o.slice(grids, start=(i,), limit=(i + 1,), strides=(1,)), shape=())
        for i in range(GRIDS))
    q, k, v = (o.cast(x, dtype=dtypes.int32) - o.cast(z, dtype=dtypes.int32)
               for x, z in ((q, zero_q), (k, zero_k), (v, zero_v)))
    scores = o.round(o.cast(o.matmul(q, k, transpose_b=True), dtype=dtypes.float32) * factor)
    scores = o.min(o.max(scores, o.neg(zero)), 255.0 - zero)
    weights = o.min(o.round(o.softmax(scores * step, axis=-1) * steps), 255.0)
    return o.matmul(o.cast(weights, dtype=dtypes.int32), v)


OP = target_op(
    "attend_bytes", _infer, _decompose, ATTEND_BYTES, flops,
    "`attention` of bytes by a matrix unit, in int32: grids are the zero points of q and k; the "
    "factor of their product that makes steps of scores, the zero point of scores and the size of "
    "a step; the zero point of v; and the steps of weights that make 1. Scores and weights are "
    "rounded to bytes; the result is to be multiplied by the scales of weights and of v")

register(Record(
    Contract("attend_bytes", "scaled dot-product attention of quantised numbers by a matrix unit",
             attention.SIZES, POINTERS, meaning, ("b", "s", "d"), touches, grain="shares"),
    {"attend_bytes": lower}, reads))
