"""linear_bf16.h: products of many rows with packed weights of 2, 4 or 8 bits, in bfloat16 by a
matrix unit."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from graphtool import dtypes
from graphtool import ops as o
from graphtool.kernels.kit import (
    Alternative, Area, Assumption, Contract, Form, Instance, Lowered, Numbers, Packed, Plan,
    Pointer, Record, Rows, Rules, Target, Use, by_weights, literals, nbits, never, packed,
    register, rounding, target_op)
from graphtool.kernels.linear_q8 import (
    HOOK, OPERANDS, SIZES, areas, depth_of, emitted, infer, lowered, meaning_of)

PART = 8 * 16 * 2  # pairs of bfloat16 in a part of a panel, for each lane
MACROS = (*SIZES, *literals(DEPTH="rows of x that are rounded together"))
POINTERS = (*OPERANDS, Pointer("WORK", "memory of thread t for DEPTH rows and two parts of a "
                                       "panel, in bfloat16, and for the sums of the rows",
                                       ("t",), writes=True))


def _floats(depth: int, columns: int, lanes: int) -> int:
    """The size of a thread's memory in floats."""
    return 2 * PART * lanes + -(-depth // 32) * 32 * 2 * lanes + depth * -(-columns // 32) * 16


def meaning(t: Instance) -> None:
    """The op, in bfloat16."""
    meaning_of(OP, t)


def touches(t: Numbers) -> Iterator[Area | Rows]:
    """What the C touches."""
    block, parts, depth = t.sizes("BLOCK PARTS DEPTH")
    yield from areas(t)
    t.need(depth > 0, "a DEPTH of rows")
    yield Area("WORK", (_floats(depth, parts * block, t.lanes),), aligned=True)


def lower(use: Use) -> Lowered:
    """Threads divide the panels; each rounds the rows for itself."""
    columns, lanes = use.view(1).shape[1] * use.node.attrs["block"], use.target.lanes
    assert isinstance(columns, int)
    depth = depth_of(use.out.type.shape[0], 2 * columns)
    return lowered(use, "linear_bf16", {"DEPTH": depth}, _floats(depth, columns, lanes))


# ---- the op ------------------------------------------------------------------------------------

LINEAR_BF16 = Form("linear_bf16", rate="tile_bf16")


def _decompose(x: Any, q: Any, scales: Any, zeros: Any = None, *, n: int, bits: int, block: int,
               plan: Plan | None = None) -> Any:
    return by_weights(_rounded(x), _rounded(nbits.weights(q, scales, zeros, n, bits, block)))


def _rounded(x: Any) -> Any:
    return o.cast(o.cast(x, dtype=dtypes.bfloat16), dtype=dtypes.float32)


OP = target_op("linear_bf16", infer, _decompose, LINEAR_BF16, nbits.flops,
               "x·wᵀ of x and w rounded to bfloat16, with sums in float32; w has n rows of `bits` "
               "bits, as `pack_nbits` lays them out; scales and zeros are in panels too, in "
               "float32 or float16")


# ---- plans and their costs ---------------------------------------------------------------------

def plans(s: Packed, target: Target, rules: Rules) -> list[Plan]:
    """The one plan, for many rows, if the target has a matrix unit, and 8 bits of an activation
    suffice."""
    allowed = rules.bf16 or s.q8 or rules.activations == "q8"
    fits = target.amx and s.m >= packed.UNIT and s.constant and nbits.fits(s.bits, s.block)
    return [LINEAR_BF16.plan()] if allowed and fits else []


def if_rounded(site: Packed, _: Plan) -> Assumption:
    """Where the model asks for 8 bits: then an infinity in x makes its row of results NaN, but
    here infinite or NaN."""
    return "finite" if site.q8 else "nothing"


SERVES = (Alternative(
    Packed, LINEAR_BF16, plans, packed.bf16_cost, partial(emitted, OP),
    error=lambda s, p: rounding.bf16(s.k), assumes=if_rounded, in_order=never),)

register(Record(
    Contract("linear_bf16", "products of many rows with weights of few bits, in bfloat16", MACROS,
             POINTERS, meaning, HOOK, touches),
    {"linear_bf16": lower}, serves=SERVES))
