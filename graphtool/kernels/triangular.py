"""triangular.h: triangular systems with one or several right-hand sides."""

from __future__ import annotations

from collections.abc import Iterator

from graphtool import dtypes
from graphtool import ops as o
from graphtool.kernels.kit import (
    Area, Contract, Instance, Lowered, Macro, Numbers, Pointer, Record, Symbol, Use, anywhere,
    flags, register, sizes, symbol_of, work_of)

MACROS = (Macro("T", "type", "the type of the elements, f32 or f64"),
          *sizes(BATCH="systems", N="rows of X", M="columns of X"),
          *flags(LOWER="whether the half on and below the diagonal is read",
                 UNIT="whether the diagonal is taken as ones"),
          *sizes(AI="elements between adjacent rows of a matrix", AJ="between adjacent columns",
                 RI="elements between adjacent rows of a right-hand side",
                 RJ="between adjacent columns", YI="elements between adjacent rows of X",
                 YJ="between adjacent columns"))
POINTERS = (Pointer("A", "matrix b", ("b",)), Pointer("R", "its right-hand side", ("b",)),
            Pointer("Y", "memory for X", ("b",), writes=True))


def meaning(t: Instance) -> None:
    """The op, a system at a time."""
    for b in range(t.get("BATCH")):
        x = o.triangular_whole(t.read("A", b)[None], t.read("R", b)[None], lower=t.get("LOWER"),
                               unit=t.get("UNIT"))
        t.write("Y", x[0], b)


def touches(t: Numbers) -> Iterator[Area]:
    """What the C touches."""
    batch, n, m, kind = t.sizes("BATCH N M T")
    t.need(kind in (dtypes.float32, dtypes.float64), "elements of float32 or float64")
    yield Area("A", (n, n), (t.get("AI"), t.get("AJ")), (batch,), kind)
    for name in "RY":
        yield Area(name, (n, m), (t.get(f"{name}I"), t.get(f"{name}J")), (batch,), kind)


def lower(use: Use) -> Lowered:
    """Threads divide the systems, and the columns of each."""
    a, right, y, b = use.view(0), use.view(1), use.result(), symbol_of(Symbol("b", 0, None))
    assert y is not None
    batch, n, m = right.shape
    attrs = use.node.attrs
    call = use.template(
        "triangular",
        {"T": a.dtype, "BATCH": batch, "N": n, "M": m, "LOWER": bool(attrs["lower"]),
         "UNIT": bool(attrs["unit"]), "AI": a.strides[1], "AJ": a.strides[2],
         "RI": right.strides[1], "RJ": right.strides[2], "YI": y.strides[1], "YJ": y.strides[2]},
        {name: (v.buffer, v.index((b, 0, 0))) for name, v in (("A", a), ("R", right), ("Y", y))})
    flops = batch * n * n * m
    return Lowered(call, flops, work_of(flops))


register(Record(Contract("triangular", "triangular systems", MACROS, POINTERS, meaning,
                         touches=touches, grain="pieces"), {"triangular_whole": lower}, anywhere))
