"""What the kernels of attention share: sizes and pointers, where a use has its operands and memory,
and what their costs count."""

from __future__ import annotations

from typing import Any

import numpy as np

from graphtool.kernels.choice import device
from graphtool.kernels.choice.sites import Attention
from graphtool.kernels.kit import (
    Assumption, Dim, Instance, Lowered, Macro, MacroValue, Macros, Node, Plan, Pointer, Symbol,
    TensorType, Use, Value, View, bounds, ceil, flags, need, product, round_up, sizes, symbol_of,
    unflatten_index)
from graphtool.kernels.tiles import batch_offset
from graphtool.loops.ir import Hook

SIZES = sizes(HEADS="independent attentions", S="queries", T="keys",
              D="length of queries and keys", DV="length of values",
              LDQ="elements between the starts of adjacent queries", LDK="of adjacent keys",
              LDV="of adjacent values")
SCORES = (
    Macro("SCALE", "number", "the factor by which scores are multiplied"),
    Macro("SOFTCAP", "number", "c: a score becomes c·tanh(score / c); 0: scores are not changed"),
    *flags(CAUSAL="query s sees only keys 0…s", MASKED="a mask is added to the scores"),
    Macro("MASK_STEP", "literal", "elements between adjacent numbers of the mask, 0 or 1", None))
OPERANDS = (Pointer("Q", "the queries of head b", ("b",)), Pointer("KEY", "its keys", ("b",)),
            Pointer("V", "its values", ("b",)))
MEMORY = (Pointer("WORK", "memory of thread t for packed keys and values, and for scores; none on "
                          "a device", ("t",), False, True),
          Pointer("MASK", "the mask that is added to the scores of query s", ("b", "s"), False))


def operands(t: Instance, b: int) -> list[Any]:
    """Queries, keys, values and mask (or None) of head b, each with one head."""
    s = t.get("S")
    mask = np.stack([t.read("MASK", b, i) for i in range(s)])[None] if t.get("MASKED") and s else (
        None)
    return [*(t.read(name, b)[None] for name in ("Q", "KEY", "V")), mask]


def lowered(use: Use, kernel: str, room: Dim, modes: Macros) -> Lowered:
    """The use of a template of attention with the macros of sizes, strides and scores beside its
    own, and with `room` floats for each thread."""
    a, (macros, pointers, hook, flops, at) = use.node.attrs, placed(use, room)
    macros |= {**modes, "SCALE": float(a["scale"]), "SOFTCAP": float(a["softcap"]),
               "CAUSAL": a["causal"]}
    _masks_and_factors(use, macros, pointers, *at)
    return Lowered(use.template(kernel, macros, pointers, hook), flops)


Placed = tuple[dict[str, MacroValue], dict[str, tuple[str, Dim]], Hook, Dim,
               tuple[tuple[Dim, ...], tuple[Dim, ...]]]


def placed(use: Use, room: Dim) -> Placed:
    """Of a use whose first operands are queries, keys and values: the macros of its sizes and
    strides; the pointers to them, and to `room` floats for each thread; its hook; the operations of
    both products; and where a query and the keys of its head are among the heads."""
    q, k, v = (use.view(i) for i in range(3))
    *lead, s, dv = use.out.type.shape
    t, d = k.shape[-2:]
    heads, group = product(lead), q.shape[-3] // k.shape[-3]
    at, row, first = Symbol("b", 0, None, heads), Symbol("s", 0, None, s), Symbol("d", 0, None)
    which = unflatten_index(symbol_of(at), tuple(lead)) if heads != 1 else (0,) * len(lead)
    shared = (*which[:-1], which[-1] // group)
    macros: dict[str, MacroValue] = {
        "HEADS": heads, "S": s, "T": t, "D": d, "DV": dv,
        "LDQ": q.strides[-2], "LDK": k.strides[-2], "LDV": v.strides[-2]}
    pointers = {"Q": (q.buffer, batch_offset(q, which, 2)),
                "KEY": (k.buffer, batch_offset(k, shared, 2)),
                "V": (v.buffer, batch_offset(v, shared, 2))}
    if room != 0:
        pointers["WORK"] = use.scratch(round_up(room, 16)), 0
    query = (*which, symbol_of(row))
    hook = use.epilogue((at, row, first), (*query, symbol_of(first)))
    return macros, pointers, hook, heads * s * t * (d + dv) * 2, (query, shared)


def _masks_and_factors(use: Use, macros: dict[str, MacroValue],
                       pointers: dict[str, tuple[str, Dim]], query: tuple[Dim, ...],
                       head: tuple[Dim, ...]) -> None:
    """Add what the operands behind the values need."""
    mask, *factors = (*use.given(), None, None, None)[3:6]
    macros["MASKED"] = mask is not None
    if mask is not None:
        pointers["MASK"] = mask_of(mask, query)
        macros["MASK_STEP"] = 0 if mask.shape[-1] == 1 else 1
    for name, x in zip(("KEY", "V"), factors, strict=True):
        if x is not None:
            macros |= {"BYTES": True, f"{name}_STEP": x.strides[-2]}
            pointers[f"{name}_SCALES"] = x.buffer, batch_offset(x, head, 2)


def most_keys(t: Dim) -> Dim:
    """The greatest number of keys; t itself where nothing bounds it."""
    most = bounds(t)[1]
    return t if most is None else most


def mask_of(mask: View, at: tuple[Dim, ...]) -> tuple[str, Dim]:
    """The mask of one query, broadcast to the scores."""
    rows = at[len(at) + 1 - len(mask.shape):]
    return mask.buffer, mask.index((*(0 if n == 1 else i for i, n in zip(
        rows, mask.shape[:-1], strict=True)), 0))


def reads(node: Node, x: Value, view: View) -> bool:
    """Whether it can read the operand here: rows of adjacent elements. It packs keys and values
    itself."""
    return view.shape[-1] == 1 or view.strides[-1] == 1


# ---- types, operations, costs ------------------------------------------------------------------

def check_sizes(q: TensorType, k: TensorType, v: TensorType) -> None:
    """Raise TypeMismatch for operands whose ranks or sizes do not fit each other."""
    need(q.rank == k.rank == v.rank >= 3, f"{q}, {k} and {v} are not operands of attention")
    need(q.shape[-1] == k.shape[-1] and k.shape[-2] == v.shape[-2],
         f"{q}, {k} and {v} do not fit each other")


def flops(_y: TensorType, q: TensorType, k: TensorType, v: TensorType, *_: Any,
           **__: Any) -> Dim:
    """Two products and a softmax of about ten operations for each element; a causal mask reduces
    nothing."""
    scores = product(q.shape[:-1]) * k.shape[-2]
    return scores * (2 * q.shape[-1] + 2 * v.shape[-1] + 10)


def seen_keys(s: Attention, step: int) -> int:
    """The mean number of keys that a query is multiplied by: what it sees, and half a `step` more,
    because queries and keys are processed so many at a time."""
    if not s.causal:
        return s.t
    rising = min(s.s, s.t)  # each of these queries sees one more key than the query before it
    seen = ceil(rising * rising + 2 * (s.s - rising) * s.t, 2 * s.s)
    return min(s.t, seen + step // 2)


def assumes(s: Attention, plan: Plan) -> Assumption:
    """Where keys are hidden: they are left out, or −∞ is added to their scores. By the definition
    their scores count for nothing, and their values are multiplied with 0. A device multiplies
    numbers in parts, and infinity has none.
    """
    parts = plan.get("unit", 0) == device.PARTS
    return "finite" if s.causal or s.hidden or parts else "nothing"
