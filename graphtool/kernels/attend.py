"""attend.h: scaled dot-product attention, with or without grouped heads and a mask."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any


from graphtool import dtypes
from graphtool import ops as o
from graphtool.kernels.attention import (
    MEMORY, OPERANDS, SCORES, SIZES, assumes, check_sizes, flops, lowered, most_keys, operands,
    reads, seen_keys)
from graphtool.kernels.choice import device
from graphtool.kernels.choice.sites import Attention
from graphtool.kernels.kit import (
    HALF, NV, TILE, Alternative, Area, Chosen, Contract, Dim, Form, Instance,
    Lowered, Macro, Numbers, Parameter, Plan, Pointer, Record, Rows,
    Rules, Target, TensorType, Use, block_cycles, bounds,
    ceil, ceildiv, fetched, half_macros, literals, longest, mark, need, never, number,
    overlapped, product, register, round_up, rows_of_tile, target_op, tile_rows,
    vectors_of, widths)

MACROS = (
    *literals(KEYS="keys that are processed together if there are twice as many; 0: all"), *TILE,
    *SIZES, HALF, mark("BYTES", "keys and values are int8, each with a factor"),
    Macro("KEY_STEP", "size", "elements between the factors of adjacent keys", None),
    Macro("V_STEP", "size", "of adjacent values", None),
    Macro("TOGETHER", "literal", "adjacent heads with the same keys and values, which a few "
                                 "queries read once for all of them", 1), *SCORES,
    *device.MACROS)
POINTERS = (*OPERANDS, Pointer("KEY_SCALES", "the factors of its keys", ("b",), False),
            Pointer("V_SCALES", "the factors of its values", ("b",), False), *MEMORY)


def meaning(t: Instance) -> None:
    """Attention of each head, as the C computes it."""
    for b in range(t.get("HEADS")):
        factors = [t.read(f"{name}_SCALES", b)[None, :, None] if t.get("BYTES") else None
                   for name in ("KEY", "V")]
        y = o.attend(*operands(t, b), *factors, causal=t.get("CAUSAL"), scale=t.get("SCALE"),
                     softcap=t.get("SOFTCAP"))
        t.rows(y[0], b)


def touches(t: Numbers) -> Iterator[Area | Rows]:
    """What the C touches."""
    heads, s, n, d, dv, ldq, ldk, ldv = t.sizes("HEADS S T D DV LDQ LDK LDV")
    nr, mr, together = vectors_of(t), t.get("MR"), t.get("TOGETHER")
    wide, deep = -(-n // nr) * nr, -(-dv // nr) * nr
    kind = dtypes.int8 if t.get("BYTES") else number(t)
    t.need(not (t.get("BYTES") and t.get("HALF")), "one type of keys and values")
    t.need(together in (1, 2, 4) and heads % together == 0, "TOGETHER of 1, 2 or 4 heads")
    yield Rows((heads, s, dv))
    yield Area("Q", (s, d), (ldq, 1), (heads,))
    yield Area("KEY", (n, d), (ldk, 1), (heads,), kind)
    yield Area("V", (n, dv), (ldv, 1), (heads,), kind)
    for name in ("KEY", "V") if t.get("BYTES") else ():
        step = t.get(f"{name}_STEP")
        t.need(step is not None and t.has(f"{name}_SCALES"), f"{name}_SCALES and their step")
        yield Area(f"{name}_SCALES", (n,), (step,), (heads,))
    room = n * together if s < UNTILED else d * wide + n * deep + mr * (wide + 16 + deep)
    if t.has("ROWS"):
        t.need(t.get("ROWS") in (1, 64) and 0 < d <= LONGEST and 0 < dv <= LONGEST and
               not t.get("BYTES"), "heads that a device has a kernel for")
    else:
        t.need(t.has("WORK"), "WORK")
        yield Area("WORK", (room,), aligned=True)
    if t.get("MASKED"):
        t.need(t.get("MASK_STEP") is not None and t.has("MASK"), "a mask")
        yield Area("MASK", (n,), (t.get("MASK_STEP"),), (heads, s))


def teams(macros: Mapping[str, Any], _: int) -> Dim:
    """The blocks of queries of a device."""
    heads: Dim = macros["HEADS"]
    return heads * ceildiv(macros["S"], device.tile_rows(macros))


def lower(use: Use) -> Lowered:
    """The workspace has room for as many keys as there can be; a device needs none."""
    if use.target.devices:
        few = bounds(use.out.type.shape[-2])[1]
        return lowered(use, "attend", 0, {
            "KEYS": 0, "MR": 1, "NV": 1, **half_macros(use.view(1).dtype),
            "ROWS": 1 if few is not None and few < FEW else 64,
            "UNIT": device.unit_name(use.plan["unit"])})
    q, k = use.view(0), use.view(1)
    *lead, s, dv = use.out.type.shape
    nv = use.plan.get("nv", use.target.nv)
    nr, rows = nv * use.target.lanes, rows_of_tile(use.target, nv, s)
    rows = min(rows, use.plan.get("rows", rows))
    together = _heads_per_tile(lead, s, q.shape[-3] // k.shape[-3], use.target.threads)
    most = most_keys(k.shape[-2])
    wide_t, wide_v = round_up(most, nr), round_up(dv, nr)
    share = most * together if together > 1 else k.shape[-1] * wide_t + most * wide_v + rows * (
        wide_t + 16 + wide_v)
    return lowered(use, "attend", share, {
        "KEYS": use.plan["keys"], "MR": rows, "NV": nv, **half_macros(k.dtype),
        **({"TOGETHER": together} if together > 1 else {})})


def _heads_per_tile(lead: list[Dim], s: Dim, group: Dim, threads: int) -> int:
    """How many heads of a group a few queries take together: so many that threads have equal
    shares."""
    heads, few = product(lead), bounds(s)[1]
    if few is None or few >= UNTILED or not isinstance(heads, int) or not isinstance(group, int):
        return 1
    return max(n for n in (1, 2, 4) if group % n == 0 and (
        n == 1 or heads // n * few % threads == 0))


# ---- the op ------------------------------------------------------------------------------------

ATTEND = Form("attend", (
    Parameter("keys", "keys that are taken at a time, 0: all", 0), NV,
    Parameter("rows", "queries of a register tile", least=1), device.UNIT))


def _infer(q: TensorType, k: TensorType, v: TensorType, mask: TensorType | None = None,
           key_factors: TensorType | None = None, factors: TensorType | None = None, *,
           causal: bool = False, scale: float, softcap: float = 0.0,
           plan: Plan | None = None) -> TensorType:
    check_sizes(q, k, v)
    need(mask is None or mask.dtype is q.dtype,
         "the mask is added, so it must have the element type of q")
    need(k.dtype is v.dtype and k.dtype in (q.dtype, dtypes.int8, *dtypes.HALVES),
         f"{k} and {v} are not keys and values for {q}")
    for x, scales in ((k, key_factors), (v, factors)):
        need((x.dtype is dtypes.int8) == (scales is not None) and (scales is None or (
            scales.dtype is q.dtype and scales.shape == (*x.shape[:-1], 1))),
            f"{scales} are not the factors of {x}: int8 has one for each row")
    return TensorType(q.dtype, (*q.shape[:-1], v.shape[-1]))


def _decompose(q: Any, k: Any, v: Any, mask: Any = None, key_factors: Any = None,
               factors: Any = None, *, plan: Plan | None = None, **attrs: Any) -> Any:
    k, v = (x if x.dtype is q.dtype else o.cast(x, dtype=q.dtype) for x in (k, v))
    if factors is not None:
        k, v = k * key_factors, v * factors
    return o.attention(q, k, v, mask, **attrs)


OP = target_op("attend", _infer, _decompose, ATTEND, flops,
               "`attention` in one kernel: softmax over whole rows, grouped heads, and a mask "
               "that is added to the scores; keys and values may be of 16 bits, or int8 with a "
               "factor for each row, and are widened as they are read")


# ---- plans and their costs ---------------------------------------------------------------------

FEW = 8  # a device computes fewer queries without tiles
LONGEST = 128  # elements of a query, key or value that a device holds in registers
UNTILED = 4  # from this number of queries on, it packs its keys and values
_KEYS = (1024, 512)  # numbers of keys processed together, if there are twice as many
_SOFTMAX = 14  # cycles for a vector of scores: maximum, exponentials, sum
_MASK = 3  # further cycles if a mask is added
_ROW, _UNEVEN = 40, 100  # cycles for a row of scores; further ones if each row sees more keys
# cycles for a row of a tile in each chunk of keys: its maximum, and scaling the earlier sums
_CHUNK = 60
_BEGUN = 30  # cycles to begin and to store a tile
_FLOAT = 4


def plans(s: Attention, target: Target, rules: Rules) -> list[Plan]:
    """The widths of panels, as for other products, and the sizes of blocks.

    Either all keys are processed at once, or so many that the scores of a block stay in the first
    cache. A block has as many rows as the registers hold, or half as many if threads then get more
    equal shares. A few queries are multiplied without tiles, so there is nothing to choose.
    """
    if target.devices:
        unit = device.unit(target, rules)
        fits = 0 < s.d <= LONGEST and 0 < s.v <= LONGEST and s.keys is not dtypes.int8
        return [ATTEND.plan(keys=0, nv=1, rows=1, **unit)
                ] if fits and unit["unit"] != device.FMA else []
    if s.fixed and s.s < UNTILED:
        return [ATTEND.plan(keys=0, nv=target.nv, rows=tile_rows(target, target.nv, s.s))]
    out = []
    for nv in widths(s.v, target):
        most = tile_rows(target, nv, s.s)
        uneven = s.heads * ceil(s.s, most) % target.threads and most > 1
        out += [ATTEND.plan(keys=keys, nv=nv, rows=rows)
                for rows in (most, *((ceil(most, 2),) if uneven else ()))
                for keys in (0, *(n for n in _KEYS if s.t >= 2 * n))]
    return out


def cost(s: Attention, c: Plan, t: Target) -> float:
    """Expected microseconds.

    Keys and values are packed once for the heads that share them. The scores of a block are written
    once, read and written by the softmax, and read for each panel of the values; they come from the
    first cache if those of a chunk fit there.
    """
    nv, rows, keys = c.get("nv", t.nv), c.get("rows", t.mr), c.get("keys", 0)
    nr = nv * t.lanes
    seen = seen_keys(s, rows + nr)
    heads = longest(s.heads * ceil(s.s, rows), t.threads) / ceil(s.s, rows)
    chunks = max(1, seen // keys if keys else 1)
    wide, deep = ceil(seen, nr), ceil(s.v, nr)
    tiles = block_cycles(s.s, min(rows, tile_rows(t, nv, None)), nv)
    products = (wide * s.d + deep * seen) * tiles + (wide + deep) * ceil(s.s, rows) * _BEGUN
    softmax = s.s * (ceil(seen, t.lanes) * (_SOFTMAX + _MASK * s.masked) + _ROW
                     + _UNEVEN * s.causal)
    further = (chunks - 1) * s.s * (_CHUNK + 2 * deep * nv)
    scores = s.s * seen * _FLOAT * (3 + deep)
    near = rows * ceil(seen, chunks) * _FLOAT
    operands = ceil(s.s, rows) * seen * (s.d + s.v) * _FLOAT
    traffic = fetched(t, scores, near) + fetched(t, operands, s.t * (s.d + s.v) * _FLOAT)
    packed = s.t * (s.d + s.v) / s.shared
    return heads * (overlapped(t, products + softmax + further, traffic) + fetched(
        t, (_FLOAT + s.keys.bytes) * packed, max(packed * _FLOAT, t.l2)))


def make(chosen: Chosen, *operands: Any, **how: Any) -> Any:
    """The attention node of the queries, keys, values and the mask."""
    return chosen.emit(OP, *operands, **how)


SERVES = (Alternative(Attention, ATTEND, plans, cost, make, usual=True, assumes=assumes,
                      error=lambda s, p: device.error(s.d + s.t, p), in_order=never),)

register(Record(
    Contract("attend", "scaled dot-product attention", MACROS, POINTERS, meaning,
             ("b", "s", "d"), touches, grain="shares", languages={"c": ".h", "cuda": "_cuda.h"},
             teams=teams), {"attend": lower}, reads, serves=SERVES))
