"""Expressions of pulls as data: what they read, substitution of iterators, rounding.

C computes narrow floats in float32. `rounded` casts each value to the type that the graph gives it:
else a chain of operations in one kernel would be rounded at its end alone, and its result would
depend on what was fused. Sums stay float32 until they are complete.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from graphtool.dtypes import DType
from graphtool.loops.ir import (
    Accumulate,
    Apply,
    Const,
    Expr,
    Index,
    Let,
    Load,
    Name,
    Stmt,
    Store,
)
from graphtool.loops.pull import Names, PExpr, Reduce
from graphtool.loops.walk import (
    dims_of,
    each,
    loads,
    map_bodies,
    map_values,
    mapped,
    operands,
    statements,
)
from graphtool.scalars.table import BY_NAME
from graphtool.symbolic import Dim, coefficient, substitute, symbols


def below(names: Names) -> Callable[[PExpr], list[PExpr]]:
    """A function that gives the operands of an expression for a walk, including the values that its
    indices read from data."""
    return lambda e: [*operands(e), *index_values(dims_of(e), names)]


def index_values(dims: list[Dim], names: Names) -> list[PExpr]:
    """The values of those symbols in `dims` that stand for an index read from data."""
    return [names.indices[s.name] for d in dims for s in symbols(d) if s.name in names.indices]


def reduces_in(roots: Sequence[PExpr], names: Names) -> list[Reduce]:
    """Every reduction in the expressions, once."""
    return [e for e in each(roots, below(names)) if isinstance(e, Reduce)]


def loads_in(e: PExpr, names: Names) -> list[Load]:
    """Every load in the expression, once."""
    return loads(e, below=below(names))


def substituted(e: PExpr, env: Mapping[str, Dim],
                memo: dict[PExpr, PExpr] | None = None) -> PExpr:
    """The expression with iterators replaced; parts that do not depend on them stay the same
    objects.

    `memo` may give the replacement of some expressions in advance.
    """
    def change(e: PExpr) -> PExpr:
        match e:
            case Load(buffer, at, dtype):
                return Load(buffer, substitute(at, env), dtype)
            case Index(at, dtype):
                return Index(substitute(at, env), dtype)
            case _:
                return e
    return mapped(e, change, memo)  # type: ignore[no-any-return]


def replaced(body: tuple[Stmt, ...], env: Mapping[str, Dim]) -> tuple[Stmt, ...]:
    """The statements with iterators replaced."""
    moved: Any = substituted
    out: list[Stmt] = []
    for s in body:
        s = map_bodies(map_values(s, lambda e: moved(e, env)),
                       lambda inner: replaced(inner, env))
        out.append(replace(s, index=substitute(s.index, env)) if isinstance(s, Store) else s)
    return tuple(out)


def walk_as_one(e: PExpr, outer: str, inner: str, extent: Dim, names: Names,
                reductions: bool = False) -> bool:
    """Whether two nested loops can be joined into one: every read moves by the size of the whole
    inner loop at each outer iteration. Only with `reductions` there may be such inside, if the
    loops do not bound them."""
    for x in each([e], below(names)):
        if isinstance(x, Index) and {outer, inner} & {s.name for s in symbols(x.value)}:
            return False
        if isinstance(x, Load):
            far, near = coefficient(x.index, outer), coefficient(x.index, inner)
            if far is None or near is None or far != near * extent:
                return False
        if isinstance(x, Reduce) and not (reductions and not {outer, inner} & {
                s.name for _, d in x.iters for s in symbols(d)}):
            return False
    return True


def whole(d: Dim) -> int:
    """The dim as an int; it must not be symbolic."""
    assert isinstance(d, int)
    return d


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
