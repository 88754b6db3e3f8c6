"""Rounds each value of a narrow float where the graph says that it has this type.

C computes narrow floats in float32. Without these casts a chain of operations in one kernel would
be rounded at its end alone, and its result would depend on what was fused. Sums stay float32 until
they are complete.
"""

from __future__ import annotations

from graphtool.dtypes import DType
from graphtool.loops.ir import Accumulate, Apply, Const, Expr, Let, Name, Stmt
from graphtool.loops.walk import map_bodies, map_values, mapped, statements
from graphtool.scalars.table import BY_NAME


def rounded(body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    """The statements with a cast around each result that can have too many digits."""
    sums = {s.name: s.value.dtype for s in statements(body)
            if isinstance(s, Let) and s.mutable and s.value.dtype.is_narrow}
    return _Rounding(sums).body(body)


class _Rounding:
    def __init__(self, sums: dict[str, DType]) -> None:
        self.sums = sums
        self.memo: dict[Expr, Expr] = {}

    def body(self, body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        return tuple(map_bodies(self.stmt(s), self.body) for s in body)

    def stmt(self, s: Stmt) -> Stmt:
        match s:
            case Let(name, Const(value, dtype), True) if dtype.is_narrow:
                return Let(name, Const(value, dtype.computes), True)
            case Accumulate(name, fn, value) if name in self.sums:
                return Accumulate(name, fn, _wide(self.expr(value)))
            case _:
                return map_values(s, self.expr)

    def expr(self, e: Expr) -> Expr:
        result: Expr = mapped(e, self.change, self.memo)
        return result

    def change(self, e: Expr) -> Expr:
        match e:
            case Apply(fn, args, dtype) if dtype.is_narrow and fn in BY_NAME and (
                    not BY_NAME[fn].exact):
                wide = Apply(fn, tuple(map(_wide, args)), dtype.computes)
                return Apply("cast", (wide,), dtype)
            case Name(name, dtype) if name in self.sums:
                return Apply("cast", (Name(name, dtype.computes),), dtype)
            case _:
                return e


def _wide(e: Expr) -> Expr:
    """A narrow float as the float32 that it is computed in."""
    return Apply("cast", (e,), e.dtype.computes) if e.dtype.is_narrow else e
