"""The elements of each buffer that loops touch: by an interval for each iterator, or by points.

Intervals are quick, and hold all that can happen, as no condition is looked at. Points are followed
through the statements, many at once and each with its own numbers: small iteration spaces whole, of
larger ones the ends of each loop and some iterations between. What is loaded is not known, so it is
drawn at random.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import product
from math import prod
from typing import Any

import numpy as np

from graphtool.dtypes import DType, bool_
from graphtool.loops import walk
from graphtool.loops.ir import (
    Accumulate,
    Apply,
    Const,
    Expr,
    For,
    If,
    Index,
    Let,
    Load,
    Name,
    Stmt,
    Store,
    Template,
)
from graphtool.loops.pull import PExpr
from graphtool.scalars.table import BY_NAME
from graphtool.symbolic import Dim, Symbol
from graphtool.symbolic.intervals import TABLE, Interval, add, maximum, minimum, multiply

WIDE = 1 << 62  # an index or extent beyond this could leave 64 bits when it is computed
Spans = dict[str, tuple[float, float]]  # of each buffer the least and the greatest element touched


def touch(spans: Spans, buffer: str, low: float, high: float) -> None:
    """Add a range of elements to the touched elements."""
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
        """Follow statements, also statements that a condition may skip."""
        for s, runs in walk.scoped(body, True, self.inner):
            if not runs:
                continue
            for e in walk.values(s):
                walk.fold(e, self.load, self.seen)
            match s:
                case Let(name, value, mutable) if not value.dtype.is_float:
                    self.define(name, limits(value.dtype) if mutable else self.expr(value))
                case Store(buffer, index, _):
                    self.touch(buffer, index)

    def inner(self, s: Stmt, runs: bool) -> list[bool]:
        """Whether the bodies of a statement run; hooks are not followed here."""
        if isinstance(s, For) and runs:
            most = self.dim(s.extent)[1]
            self.define(s.iter.name, (0, None if most is None else most - 1))
            runs = most is None or most > 0
        return [runs and not isinstance(s, Template)] * len(walk.bodies(s))

    def define(self, name: str, interval: Interval) -> None:
        """Give a name its interval. Two loops beside each other may use one name: what is known of
        expressions holds for one interval of it."""
        if self.names.get(name, interval) != interval:
            for memo in (self.dims, self.known, self.seen):
                memo.clear()
        self.names[name] = interval

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
        interval = self.computed(e, parts)
        inside = None not in interval and low <= interval[0] and interval[1] <= high  # type: ignore[operator]
        return interval if inside else (low, high)

    def computed(self, e: Expr, parts: list[Interval]) -> Interval:
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


Array = np.ndarray[Any, Any]
GRID, POINTS = 4096, 16384  # points of a space that is followed whole; points at most
FEW = 6  # iterations of a loop in a larger space


@dataclass
class Points:
    """Points of the iteration space: the numbers of all names at each, and which are reached."""

    names: dict[str, Array]
    reached: Array
    spans: Spans
    random: np.random.Generator
    memo: dict[Expr, Array] = field(default_factory=dict)

    @classmethod
    def at(cls, env: Mapping[str, Array], spans: Spans) -> Points:
        """Points with these numbers of the dims."""
        count = max((len(v) for v in env.values()), default=1)
        return cls(dict(env), np.ones(count, bool), spans, np.random.default_rng(0))

    def where(self, condition: Array) -> Points:
        """The points at which the condition is true."""
        return Points(dict(self.names), self.reached & condition, self.spans, self.random)

    def body(self, body: Iterable[Stmt]) -> None:
        """Follow statements in order."""
        for s in body:
            if not self.reached.any():
                return
            match s:
                case For():
                    self.loop(s)
                case Let(name, value, mutable):
                    values = self.expr(value)
                    self.names[name] = self.drawn(value.dtype) if mutable else values
                case Accumulate(_, _, value):
                    self.expr(value)
                case Store(buffer, index, value):
                    self.expr(value)
                    self.touch(buffer, index)
                case If(cond, then, orelse):
                    chosen = self.expr(cond).astype(bool)
                    self.where(chosen).body(then)
                    self.where(~chosen).body(orelse)

    def loop(self, s: For) -> None:
        """Follow a loop: each point goes on as its iterations."""
        extent = self.dim(s.extent)
        rows = np.flatnonzero(self.reached & (extent > 0))
        if not rows.size:
            return
        extent, most = extent[rows], int(extent[rows].max())
        if rows.size * most <= GRID:
            taken = np.broadcast_to(np.arange(most), (rows.size, most))
        else:
            few = max(1, min(FEW, POINTS // rows.size))
            taken = np.floor(self.random.random((rows.size, few)) * extent[:, None])
            taken[:, 0] = np.where(self.random.random(rows.size) < 0.5, 0, extent - 1)
            if few > 1:
                taken[:, :2] = np.stack([np.zeros(rows.size), extent - 1], 1)
        inside = taken < extent[:, None]
        chosen = np.repeat(rows, taken.shape[1])[inside.ravel()]
        names = {k: v[chosen] for k, v in self.names.items()}
        names[s.iter.name] = taken.ravel()[inside.ravel()].astype(np.int64)
        Points(names, np.ones(chosen.size, bool), self.spans, self.random).body(s.body)

    def touch(self, buffer: str, index: Dim) -> None:
        """Note an element, where the point is reached."""
        at = self.dim(index)[self.reached]
        if at.size:
            touch(self.spans, buffer, float(at.min()), float(at.max()))

    # ---- values ----------------------------------------------------------------------------

    def dim(self, d: Dim) -> Array:
        """An index at all points, in double; infinite where it divides by 0 or leaves 64 bits."""
        count = len(self.reached)
        if isinstance(d, int):
            return np.full(count, float(d))
        total = np.zeros(count)
        with np.errstate(all="ignore"):
            for mono, coeff in d.terms:
                term = np.full(count, float(coeff))
                for atom, power in mono:
                    term = term * self.atom(atom) ** power
                total = total + np.where(np.abs(term) <= WIDE, term, np.inf)
        return np.nan_to_num(total, nan=np.inf, posinf=np.inf, neginf=-np.inf)

    def atom(self, atom: Any) -> Array:
        """A symbol or call at all points."""
        if isinstance(atom, Symbol):
            return np.floor((self.names[atom.name] - float(atom.offset)) / atom.step)
        a, b = self.dim(atom.a), self.dim(atom.b)
        match atom.fn:
            case "//":
                return np.where(b > 0, np.floor(a / b), np.inf)
            case "%":
                return np.where(b > 0, a - b * np.floor(a / b), np.inf)
            case "min":
                return np.minimum(a, b)
        return np.maximum(a, b)

    def expr(self, e: Expr) -> Array:
        """The value of an expression at all points; what it loads is touched where reached."""
        with np.errstate(all="ignore"):
            return walk.fold(e, self.computed, self.memo, walk.certain)

    def computed(self, e: Expr, parts: list[Array]) -> Array:
        """As `expr`, from the values of the operands that are always evaluated."""
        match e:
            case Const(value, dtype):
                return np.full(len(self.reached), value).astype(dtype.computes.numpy)
            case Name(name):
                return self.names[name]
            case Index(value):
                return np.clip(self.dim(value), -WIDE, WIDE).astype(np.int64)
            case Load(buffer, index, dtype):
                self.touch(buffer, index)
                return self.drawn(dtype)
            case Apply("select", (_, a, b)):
                chosen = parts[0].astype(bool)
                return np.where(chosen, self.where(chosen).expr(a), self.where(~chosen).expr(b))
            case Apply("cast" | "bitcast", (a,)):
                if e.fn == "bitcast" or (a.dtype.is_float and not e.dtype.is_float):
                    return self.drawn(e.dtype)
                return parts[0].astype(e.dtype.computes.numpy)
            case Apply(fn):
                return np.asarray(BY_NAME[fn].numpy(*parts))

    def drawn(self, dtype: DType) -> Array:
        """Numbers that data may be: the ends of the type's range, small ones and others."""
        count = len(self.reached)
        if dtype.is_float:
            return (self.random.standard_normal(count) * 10).astype(dtype.computes.numpy)
        low, high = limits(dtype)
        ends = np.array([n for n in (low, -1, 0, 1, 2, high) if low <= n <= high])
        small = self.random.integers(max(low, -300), min(high, 300) + 1, count)
        return np.where(self.random.random(count) < 0.3, small,
                        self.random.choice(ends, count)).astype(dtype.computes.numpy)


def positions(extents: tuple[int, ...]) -> Array:
    """Positions [axes, points] in an array of these extents: all, or its corners and some
    between."""
    if not extents:
        return np.zeros((0, 1))
    if prod(extents) <= GRID:
        grid = np.meshgrid(*map(np.arange, extents), indexing="ij")
        return np.array([g.ravel() for g in grid]).reshape(len(extents), -1)
    corners = np.array(list(product(*((0, n - 1) for n in extents)))).T
    random = np.random.default_rng(0).integers(0, np.array(extents)[:, None], (len(extents), GRID))
    return np.concatenate([corners, random], 1)
