"""linear_nbits.h: products with packed weights of 2, 4 or 8 bits, which it unpacks as it reads
them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from graphtool import dtypes
from graphtool import ops as o
from graphtool.kernels.kit import (
    TILE, Alternative, Area, Assumption, Chosen, Contract, Instance, Lowered, Numbers, Packed,
    Plan, Pointer, Record, Symbol, UnsupportedError, Use, anywhere, literals, never, packed,
    register, sizes, start, symbol_of, tile_rows, vectors_of, work_of)
from graphtool.ops.costs import NBITS
from graphtool.symbolic import maximum, minimum

WIDENED = 2048  # columns of packed weights that are unpacked together: the panel stays in L2
TABLES = ("W", "SCALES", "ZEROS")
MACROS = (
    *sizes(M="rows of x", N="rows of w", K="columns of x"),
    *literals(BITS="2, 4 or 8", BLOCK="columns that share a scale"),
    *sizes(PARTS="blocks that cover K", XS="elements between adjacent columns of x",
           YS="between adjacent results"), *TILE,
    *sizes(DEEP="columns that are unpacked together, whole blocks"))
POINTERS = (
    Pointer("X", "a row of x", ("row",)),
    Pointer("Y", "memory for its results", ("row",), writes=True),
    Pointer("W", "BLOCK·BITS / 8 bytes for each block, the lowest bits first"),
    Pointer("SCALES", "one float for each row of w and block"),
    Pointer("ZEROS", "one float for each row of w and block; 2^(BITS − 1) if left "
                     "out", required=False),
    Pointer("WORK", "memory of thread t for 8 rows of x and for DEEP rows of a panel", ("t",),
            writes=True))


def meaning(t: Instance) -> None:
    """The op, on rows of x and on whole tables."""
    m, bits, block = t.sizes("M BITS BLOCK")
    tables = [t.read(name) for name in TABLES if t.has(name)]
    for row in range(m):
        t.write("Y", o.linear_nbits(t.read("X", row)[None], *tables, bits=bits, block=block)[0],
                row)


def touches(t: Numbers) -> Iterator[Area]:
    """What the C touches."""
    m, n, k, bits, block, parts, xs, ys, deep = t.sizes("M N K BITS BLOCK PARTS XS YS DEEP")
    nr = vectors_of(t)
    t.need(bits in (2, 4, 8), "BITS of 2, 4 or 8")
    t.need(block > 0 and block * bits % 8 == 0, "blocks of whole bytes")
    t.need(parts * block >= k, "blocks that cover K")
    t.need(deep > 0 and deep % block == 0, "a DEEP of whole blocks")
    yield Area("X", (k,), (xs,), (m,))
    yield Area("Y", (n,), (ys,), (m,))
    yield Area("W", (n, parts, block * bits // 8), dtype=dtypes.uint8)
    for name in TABLES[1:]:
        yield Area(name, (n, parts))
    yield Area("WORK", (max(8 * parts * block, min(deep, parts * block) * nr),), aligned=True)


def lower(use: Use) -> Lowered:
    """Threads divide the rows of the weights; the tables must be dense in memory."""
    x, *tables = (v for v in use.given() if v is not None)
    out, row, a = use.result(), symbol_of(Symbol("row", 0, None)), use.node.attrs
    assert out is not None
    if x.dtype is not dtypes.float32 or not all(t.contiguous for t in tables):
        raise UnsupportedError("GT2003", f"{use.out.hint}: a {x.dtype.name} product with packed "
                                         f"weights, or one with weights that are views")
    n, parts = tables[0].shape[:2]
    deep = minimum(parts, max(1, WIDENED // a["block"])) * a["block"]
    share = maximum(8 * parts * a["block"], deep * use.target.nr)
    macros = {"M": x.shape[0], "N": n, "K": x.shape[1], "BITS": a["bits"], "BLOCK": a["block"],
              "PARTS": parts, "XS": x.strides[1], "YS": out.strides[1],
              "MR": tile_rows(use.target, use.target.nv, None), "NV": use.target.nv,
              "DEEP": deep}
    pointers = {"X": (x.buffer, x.index((row, 0))), "Y": (out.buffer, out.index((row, 0))),
                **dict(zip(TABLES, map(start, tables), strict=False)),
                "WORK": (use.scratch(share), 0)}
    flops = 2 * x.shape[0] * x.shape[1] * n
    return Lowered(use.template("linear_nbits", macros, pointers), flops, work_of(flops))


def make(chosen: Chosen, x: Any, w: Any, scales: Any, zeros: Any) -> Any:
    """The product node; activations that are asked for in 8 bits are rounded before it."""
    s = chosen.site
    x = o.round_blocks(x, block=s.block) if s.q8 else x
    return chosen.emit(o.linear_nbits, x, w, scales, *([] if zeros is None else [zeros]),
                       bits=s.bits, block=s.block)


def always(site: Packed, _: Plan) -> Assumption:
    """Always: sums of x are multiplied by zero points."""
    return "finite"


SERVES = (Alternative(
    Packed, NBITS, lambda s, target, rules: [NBITS.plan()], packed.exact_cost, make, usual=True,
    assumes=always, in_order=never),)

register(Record(
    Contract("linear_nbits", "products with weights of 2, 4 or 8 bits", MACROS, POINTERS, meaning,
             touches=touches),
    {"linear_nbits": lower}, anywhere, serves=SERVES))
