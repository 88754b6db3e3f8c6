"""Small bodies: comparisons of scalars, with NaN as an order wants it."""

from __future__ import annotations

from graphtool import dtypes
from graphtool.exporters.stablehlo.registry import Ref
from graphtool.exporters.stablehlo.text import tensor
from graphtool.exporters.stablehlo.writer import Writer
from graphtool.ir.graph import TensorType


def compared(w: Writer, sign: str, a: Ref, b: Ref, wish: str = "test") -> Ref:
    """`a SIGN b` element by element: EQ, NE, LT, LE, GT or GE."""
    kind = {"float": "FLOAT", "int": "SIGNED"}.get(a.dtype.kind, "UNSIGNED")
    to = TensorType(dtypes.bool_, a.shape)
    return w.put(f"stablehlo.compare {sign}, {a.name}, {b.name}, {kind} : ({tensor(a.type)}, "
                      f"{tensor(b.type)}) -> {tensor(to)}", to, wish)


def logical(w: Writer, op: str, *xs: Ref) -> Ref:
    """`and`, `or` or `not` of truth values."""
    return w(op, *xs, to=xs[0].type)


def before(w: Writer, sign: str, a: Ref, b: Ref, nan_first: bool) -> Ref:
    """Whether a stands before b in an order by LT or GT, with NaN at one end of it."""
    found = compared(w, sign, a, b)
    if not a.dtype.is_float:
        return found
    nan, other = (a, b) if nan_first else (b, a)
    alone = logical(w, "and", compared(w, "NE", nan, nan), compared(w, "EQ", other, other))
    return logical(w, "or", found, alone)


def level(w: Writer, a: Ref, b: Ref) -> Ref:
    """Whether a and b are equal, or both NaN."""
    found = compared(w, "EQ", a, b)
    if not a.dtype.is_float:
        return found
    nans = [compared(w, "NE", x, x) for x in (a, b)]
    return logical(w, "or", found, logical(w, "and", *nans))
