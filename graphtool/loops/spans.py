"""The elements of each buffer that loops touch, found by an interval for each iterator.

This is quick, and holds all that can happen, as no condition is looked at; see `points`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from graphtool.dtypes import DType, bool_
from graphtool.loops import walk
from graphtool.loops.ir import (
    Apply,
    Const,
    Expr,
    For,
    Index,
    Let,
    Load,
    Name,
    Stmt,
    Store,
    Template,
)
from graphtool.loops.pull import PExpr
from graphtool.symbolic import Dim, Symbol
from graphtool.symbolic.intervals import TABLE, Interval, add, maximum, minimum, multiply

WIDE = 1 << 62  # an index or extent beyond this could leave 64 bits when it is computed
Spans = dict[str, tuple[float, float]]  # of each buffer the least and the greatest element touched


def touch(spans: Spans, buffer: str, low: float, high: float) -> None:
    """Add a range of elements to those that are touched."""
    old = spans.get(buffer, (low, high))
    spans[buffer] = min(old[0], low), max(old[1], high)


def limits(dtype: DType) -> tuple[int, int]:
    """The least and the greatest number of an integer type or bool."""
    if dtype is bool_:
        return 0, 1
    unsigned = dtype.kind == "uint"
    return (0, (1 << dtype.bits) - 1) if unsigned else (
        -(1 << dtype.bits - 1), (1 << dtype.bits - 1) - 1)


class Intervals:
    """Follows statements once, with an interval for each iterator and scalar."""

    def __init__(self, env: Mapping[str, Interval], spans: Spans) -> None:
        self.names, self.spans = dict(env), spans
        self.dims: dict[Dim, Interval] = {}
        self.known: dict[PExpr, Interval] = {}
        self.seen: dict[PExpr, None] = {}

    def body(self, body: Iterable[Stmt]) -> None:
        """Follow statements, also those that a condition may leave out."""
        for s, runs in walk.scoped(body, True, self.inner):
            if not runs:
                continue
            for e in walk.values(s):
                walk.fold(e, self.load, self.seen)
            match s:
                case Let(name, value, mutable) if not value.dtype.is_float:
                    self.names[name] = limits(value.dtype) if mutable else self.expr(value)
                case Store(buffer, index, _):
                    self.touch(buffer, index)

    def inner(self, s: Stmt, runs: bool) -> list[bool]:
        """Whether the bodies of a statement run; hooks are not followed here."""
        if isinstance(s, For) and runs:
            most = self.dim(s.extent)[1]
            self.names[s.iter.name] = 0, None if most is None else most - 1
            runs = most is None or most > 0
        return [runs and not isinstance(s, Template)] * len(walk.bodies(s))

    def load(self, e: Expr, _: list[None]) -> None:
        """Touch what a load reads, and see that an index fits its type."""
        if isinstance(e, Load):
            self.touch(e.buffer, e.index)

    def touch(self, buffer: str, index: Dim) -> None:
        """Note all elements that the index can be."""
        low, high = self.dim(index)
        touch(self.spans, buffer, -WIDE if low is None else low, WIDE if high is None else high)

    # ---- values ----------------------------------------------------------------------------

    def dim(self, d: Dim) -> Interval:
        """The interval of an index; unbounded where a part of it may not fit 64 bits, or where
        it may divide by 0."""
        if isinstance(d, int):
            return d, d
        if d not in self.dims:
            total: Interval = 0, 0
            for mono, coeff in d.terms:
                term: Interval = coeff, coeff
                for atom, power in mono:
                    value = self.atom(atom)
                    for _ in range(power):
                        term = multiply(term, value)
                total = add(total, term) if _fits(term) else (None, None)
            self.dims[d] = total if _fits(total) else (None, None)
        return self.dims[d]

    def atom(self, atom: object) -> Interval:
        """The interval of a symbol or call."""
        if isinstance(atom, Symbol):
            low, high = self.names[atom.name]
            return (None if low is None else (low - atom.offset) // atom.step,
                    None if high is None else (high - atom.offset) // atom.step)
        a, b = self.dim(atom.a), self.dim(atom.b)  # type: ignore[attr-defined]
        if atom.fn in ("//", "%") and (b[0] is None or b[0] < 1):  # type: ignore[attr-defined]
            return None, None
        if atom.fn == "%" and None not in (*a, b[0]) and (  # type: ignore[attr-defined]
                a[0] >= 0 and a[1] < b[0]):  # type: ignore[operator]
            return a
        return TABLE[atom.fn](a, b)  # type: ignore[attr-defined]

    def expr(self, e: Expr) -> Interval:
        """The interval of an integer or bool."""
        return walk.fold(e, self.value, self.known, _integers)

    def value(self, e: Expr, parts: list[Interval]) -> Interval:
        """The interval of an expression, given those of its integer operands."""
        low, high = limits(e.dtype)
        found = self.found(e, parts)
        inside = None not in found and low <= found[0] and found[1] <= high  # type: ignore[operator]
        return found if inside else (low, high)

    def found(self, e: Expr, parts: list[Interval]) -> Interval:
        """As `value`, where the numbers fit the type."""
        match e:
            case Const(value):
                return int(value), int(value)
            case Name(name):
                return self.names[name]
            case Index(value):
                return self.dim(value)
            case Apply("select"):
                return minimum(*parts[1:])[0], maximum(*parts[1:])[1]
            case Apply("cast"):
                return parts[0] if parts else (None, None)
            case Apply(fn) if fn in _SCALARS and len(parts) == len(e.args):
                return _SCALARS[fn](*parts)
        return None, None


def _integers(e: PExpr) -> tuple[PExpr, ...]:
    """The operands, if they are all integers or bools."""
    inside = walk.operands(e)
    return () if any(x.dtype.is_float for x in inside) else inside


_SCALARS: dict[str, Callable[..., Interval]] = {
    "add": add, "mul": multiply, "min": minimum, "max": maximum,
    "neg": lambda x: multiply((-1, -1), x), "sub": lambda x, y: add(x, multiply((-1, -1), y))}


def _fits(x: Interval) -> bool:
    return None not in x and x[0] >= -WIDE and x[1] <= WIDE  # type: ignore[operator]
