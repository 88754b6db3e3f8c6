"""Sums of products over real numbers in one form, and maxima of maxima: what z3 is not told."""

from __future__ import annotations

from typing import Any

from graphtool.dtypes import DType
from graphtool.loops.ir import Apply, Const
from graphtool.loops.pull import PExpr, Reduce, apply


def inside(fn: str, args: tuple[PExpr, ...], dtype: DType) -> PExpr | None:
    """A factor of a sum inside it, a product of a sum of two as two products, a sum of integers as
    one of floats: over real numbers these are equal. None for anything else."""
    match fn, args:
        case "cast", (Reduce("add", init, iters, body),) if init.value == 0:
            return Reduce("add", Const(0, dtype), iters, apply("cast", body, dtype=dtype), dtype)
        case "cast", (Apply("cast", (x,), inner),) if inner.is_float:
            return apply("cast", x, dtype=dtype)
        case "mul", (a, b):
            for one, y in ((a, b), (b, a)):
                match _of_floats(one):
                    case Reduce("add", init, iters, body) if init.value == 0:
                        return Reduce("add", init, iters, apply("mul", body, y), dtype)
                    case Apply("add" | "sub" as sign, (p, q)) if _sums(p) or _sums(q):
                        return apply(sign, apply("mul", p, y), apply("mul", q, y))
        case "div", (a, b) if _number(b) == 2**0.5:
            return apply("mul", a, Const(0.5**0.5, dtype))
        case "div", (a, b) if _sums(a):
            return apply("mul", a, apply("div", Const(1, dtype), b))
    return None


def _of_floats(e: PExpr) -> PExpr:
    """A sum that is converted as a sum of converted terms."""
    inner = inside("cast", e.args, e.dtype) if isinstance(e, Apply) and e.fn == "cast" else None
    return e if inner is None else _of_floats(inner)


def _number(e: PExpr) -> Any:
    """The number of a constant, in whatever type; else None."""
    while isinstance(e, Apply) and e.fn == "cast":
        e = e.args[0]
    return e.value if isinstance(e, Const) else None


def _sums(e: PExpr) -> bool:
    """Whether there is a sum in the expression, below additions, products and casts."""
    return (isinstance(e, Reduce) and e.fn == "add") or (isinstance(e, Apply) and (
        e.fn in ("add", "sub", "mul", "cast") and any(map(_sums, e.args))))


def flat(e: Reduce) -> Reduce:
    """Maxima of maxima as one, over axes in one order: which is sound for what takes one of its
    terms, or is true or false."""
    while e.fn in ("max", "min", "and", "or") and isinstance(e.body, Reduce) and (
            e.body.fn == e.fn and e.body.init is e.init):
        e = Reduce(e.fn, e.init, (*e.iters, *e.body.iters), e.body.body, e.dtype)
    if e.fn in ("max", "min", "and", "or"):
        return Reduce(e.fn, e.init, tuple(sorted(e.iters, key=lambda i: str(i[1]))), e.body,
                      e.dtype)
    return e
