"""cholesky.h: the Cholesky factors of a batch of matrices."""

from __future__ import annotations

from collections.abc import Iterator

from graphtool import dtypes
from graphtool import ops as o
from graphtool.kernels.kit import (
    Area, Contract, Instance, Lowered, Macro, Numbers, Pointer, Record, Symbol, Use, anywhere,
    register, sizes, symbol_of, work_of)

WIDE = 8  # columns of a panel
MACROS = (Macro("T", "type", "the type of the elements, f32 or f64"),
          *sizes(BATCH="matrices", N="rows of a matrix",
                 AI="elements between adjacent rows of a matrix", AJ="between adjacent columns",
                 YI="elements between adjacent rows of a factor", YJ="between adjacent columns"))
POINTERS = (Pointer("A", "matrix b", ("b",)), Pointer("Y", "memory for its factor", ("b",),
                                                      writes=True),
            Pointer("WORK", "memory of thread t for 8·N elements", ("t",), writes=True))


def meaning(t: Instance) -> None:
    """The op, a matrix at a time."""
    for b in range(t.get("BATCH")):
        t.write("Y", o.cholesky_whole(t.read("A", b)[None])[0], b)


def touches(t: Numbers) -> Iterator[Area]:
    """What the C touches."""
    batch, n, kind = t.sizes("BATCH N T")
    t.need(kind in (dtypes.float32, dtypes.float64), "elements of float32 or float64")
    yield Area("A", (n, n), (t.get("AI"), t.get("AJ")), (batch,), kind)
    yield Area("Y", (n, n), (t.get("YI"), t.get("YJ")), (batch,), kind)
    yield Area("WORK", (WIDE, n), dtype=kind)


def lower(use: Use) -> Lowered:
    """Threads divide the batch."""
    a, y, b = use.view(0), use.result(), symbol_of(Symbol("b", 0, None))
    assert y is not None
    batch, n = a.shape[:2]
    call = use.template(
        "cholesky",
        {"T": a.dtype, "BATCH": batch, "N": n, "AI": a.strides[1], "AJ": a.strides[2],
         "YI": y.strides[1], "YJ": y.strides[2]},
        {"A": (a.buffer, a.index((b, 0, 0))), "Y": (y.buffer, y.index((b, 0, 0))),
         "WORK": (use.scratch(WIDE * n, a.dtype), 0)})
    flops = batch * n * n * n // 3
    return Lowered(call, flops, work_of(flops))


register(Record(Contract("cholesky", "the Cholesky factors of matrices", MACROS, POINTERS, meaning,
                         touches=touches, grain="pieces"), {"cholesky_whole": lower}, anywhere))
