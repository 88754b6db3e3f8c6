"""linear_q8.h: products with packed weights of 2, 4 or 8 bits and activations of 8 bits."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from graphtool import dtypes
from graphtool import ops as o
from graphtool.ir.op import Op
from graphtool.kernels.kit import (
    HALF, HALVES, Alternative, Area, Array, Assumption, Chosen, Contract, Dim, Form, Instance,
    Lowered, Macro, MacroValue, Macros, Numbers, Packed, Plan, Pointer, Record, Rows, Rules,
    Symbol, Target, TensorType, Use, bounds, by_weights, literals, nbits, never, packed,
    register, rounding, sizes, start, symbol_of, target_op, work_of)

ROUNDED = 1 << 20  # bytes of rounded rows that stay in the second-level cache
SIZES = (
    *sizes(M="rows of x", N="rows of w", K="columns of x",
           LDA="elements between the starts of adjacent rows of x"),
    *literals(BITS="2, 4 or 8", BLOCK="columns that share a scale", PARTS="blocks that cover K"),
    HALF)
MACROS = (
    *SIZES, Macro("MR", "literal", "the greatest number of rows that vectors sum together"),
    *literals(DEPTH="rows of x that are rounded together"))
OPERANDS = (
    Pointer("A", "x"), Pointer("B", "the integers of w in panels"),
    Pointer("SCALES", "one number for each block, in the same panels"),
    Pointer("ZEROS", "one for each block; 2^(BITS − 1) if left out", required=False))
POINTERS = (*OPERANDS, Pointer("WORK", "memory of thread t for DEPTH rounded rows", ("t",),
                               writes=True))
HOOK = ("m", "n")


def tables(t: Instance) -> list[Array]:
    """x, and the panels of integers, scales and zeros."""
    return [t.read(name) for name in ("A", "B", "SCALES", "ZEROS") if t.has(name)]


def areas(t: Numbers) -> Iterator[Area | Rows]:
    """What the C of a product with panels touches, but for its memory."""
    m, n, k, lda, bits, block, parts = t.sizes("M N K LDA BITS BLOCK PARTS")
    half = t.get("HALF")
    t.need(bits in (2, 4, 8), "BITS of 2, 4 or 8")
    t.need(block > 0 and nbits.fits(bits, block), "blocks of whole words")
    t.need(parts > 0 and parts * block >= k, "blocks that cover K")
    t.need(half in (None, dtypes.float16.name), "scales of float or float16")
    kind = dtypes.float32 if half is None else dtypes.float16
    panels = -(-n // t.lanes)
    yield Rows((m, n))
    yield Area("A", (m, k), (lda, 1))
    yield Area("B", (panels, parts, block * bits // 8 * t.lanes), dtype=dtypes.uint8)
    yield Area("SCALES", (panels, parts, t.lanes), dtype=kind)
    if t.has("ZEROS"):
        yield Area("ZEROS", (panels, parts, t.lanes), dtype=kind)


def lowered(use: Use, kernel: str, modes: Macros, share: int) -> Lowered:
    """The use of a template with these macros and `share` floats of memory a thread. Threads
    divide the panels; each rounds the rows for itself."""
    x, b, *rest = (v for v in use.given() if v is not None)
    (m, n), a = use.out.type.shape, use.node.attrs
    half: dict[str, MacroValue] = (
        {"HALF": rest[0].dtype.name} if rest[0].dtype.name in HALVES else {})
    macros = {"M": m, "N": n, "K": x.shape[1], "LDA": x.strides[0] if m != 1 else x.shape[1],
              "BITS": a["bits"], "BLOCK": a["block"], "PARTS": b.shape[1], **half, **modes}
    pointers = {"A": start(x), "B": start(b),
                **dict(zip(("SCALES", "ZEROS"), map(start, rest), strict=False)),
                "WORK": (use.scratch(share), 0)}
    row, first = Symbol("m", 0, None, m), Symbol("n", 0, None)
    hook = use.epilogue((row, first), (symbol_of(row), symbol_of(first)))
    flops = 2 * m * n * x.shape[1]
    return Lowered(use.template(kernel, macros, pointers, hook), flops, work_of(flops))


def depth_of(m: Dim, nbytes: int) -> int:
    """Rows of so many bytes that are rounded together: all, if they fit a cache."""
    most = max(1, ROUNDED // nbytes)
    count = bounds(m)[1]
    return most if count is None else max(1, min(most, count))


def _floats(depth: int, parts: int, block: int) -> int:
    """The size of a thread's memory in floats; each part of it begins at a multiple of 16."""
    return sum(-(-size // 16) * 16 for size in (
        -(-depth * parts * block // 4), depth * parts, depth * parts))


def meaning_of(op: Op, t: Instance) -> None:
    """What a template computes: the op, on all rows of x and on whole tables."""
    x, *rest = tables(t)
    t.rows(op(x, *rest, n=t.get("N"), bits=t.get("BITS"), block=t.get("BLOCK")))


def meaning(t: Instance) -> None:
    """The op, on rounded rows."""
    meaning_of(OP, t)


def touches(t: Numbers) -> Iterator[Area | Rows]:
    """What the C touches."""
    block, parts, depth = t.sizes("BLOCK PARTS DEPTH")
    yield from areas(t)
    t.need(depth > 0, "a DEPTH of rows")
    t.need(1 <= t.get("MR") <= 16, "MR from 1 to 16")
    yield Area("WORK", (_floats(depth, parts, block),), aligned=True)


def lower(use: Use) -> Lowered:
    """Up to so many rows are summed together as fit the registers."""
    parts, block, m = use.view(1).shape[1], use.node.attrs["block"], use.out.type.shape[0]
    assert isinstance(parts, int)
    depth = depth_of(m, parts * block)
    macros: Macros = {"MR": packed.rows(use.target, bounds(m)[1]), "DEPTH": depth}
    return lowered(use, "linear_q8", macros, _floats(depth, parts, block))


# ---- the op ------------------------------------------------------------------------------------

LINEAR_Q8 = Form("linear_q8", rate="int8")


def infer(x: TensorType, q: TensorType, scales: TensorType, zeros: TensorType | None = None, *,
          n: int, bits: int, block: int, plan: Plan | None = None) -> TensorType:
    """The type of a product with weights in panels; raises what `nbits.product` does."""
    return nbits.product(x, q, scales, zeros, n, bits, block)


def _decompose(x: Any, q: Any, scales: Any, zeros: Any = None, *, n: int, bits: int, block: int,
               plan: Plan | None = None) -> Any:
    w = nbits.weights(q, scales, zeros, n, bits, block)
    return by_weights(o.round_blocks(x, block=block), w)


OP = target_op("linear_q8", infer, _decompose, LINEAR_Q8, nbits.flops,
               "x·wᵀ of x rounded as by `round_blocks`; w has n rows of `bits` bits, as "
               "`pack_nbits` lays them out; scales and zeros are in panels too, in float32 or "
               "float16")


# ---- plans and their costs ---------------------------------------------------------------------

def plans(s: Packed, target: Target, rules: Rules) -> list[Plan]:
    """The one plan, if activations may be rounded and the weights are known."""
    allowed = s.q8 or rules.activations == "q8"
    return [LINEAR_Q8.plan()] if allowed and s.constant and nbits.fits(s.bits, s.block) else []


def emitted(op: Op, chosen: Chosen, x: Any, w: Any, scales: Any, zeros: Any) -> Any:
    """The node of a product with weights in panels."""
    s = chosen.site
    return chosen.emit(op, x, *nbits.panels(w, scales, zeros, chosen.target.lanes, s.bits),
                       n=s.n, bits=s.bits, block=s.block)


def if_exact(site: Packed, _: Plan) -> Assumption:
    """Where the model has exact activations: a row that is not finite has only NaN as results."""
    return "nothing" if site.q8 else "finite"


SERVES = (Alternative(
    Packed, LINEAR_Q8, plans, packed.q8_cost, partial(emitted, OP),
    error=lambda s, p: 0.0 if s.q8 else rounding.q8(s.k, s.block), assumes=if_exact,
    in_order=never),)

register(Record(
    Contract("linear_q8", "products with weights of few bits and activations of 8 bits", MACROS,
             POINTERS, meaning, HOOK, touches),
    {"linear_q8": lower}, serves=SERVES))
