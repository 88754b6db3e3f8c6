"""Pulls and views: what an element of a value is, and where it is in memory.

A pull is a shape and a memoised function from indices to a scalar expression; composing pulls is
fusion. Memoising `at` keeps the expression a DAG: without it a chain of five GELUs grows to a
hundred thousand characters of C. A view is a buffer, an offset and a stride for each axis.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from graphtool import dtypes
from graphtool.dtypes import DType
from graphtool.loops.interned import Interned
from graphtool.loops.ir import Apply, Const, Expr, Index, Load
from graphtool.symbolic import (
    Dim,
    Symbol,
    bounds,
    coefficient,
    substitute,
    symbol_of,
    symbols,
)

Idx = tuple[Dim, ...]


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Reduce(metaclass=Interned):
    """`fn` over a box of iterators. It occurs in pulls only; lower/nest.py makes loops of it."""

    fn: str  # add, mul, max, min, or, and
    init: Const
    iters: tuple[tuple[Symbol, Dim], ...]
    body: PExpr
    dtype: DType


PExpr = Expr | Reduce


@dataclass(eq=False)
class Pull:
    """A lazy tensor. `at(idx)` gives the element's expression, the same object for equal idx."""

    dtype: DType
    shape: tuple[Dim, ...]
    fn: Callable[[Idx], PExpr]
    memo: dict[Idx, PExpr] = field(default_factory=dict)

    def at(self, idx: Idx) -> PExpr:
        """The scalar expression of the element at `idx`; the same object each time it is asked
        for."""
        value = self.memo.get(idx)
        if value is None:
            value = self.memo[idx] = self.fn(idx)
        return value

    def at_broadcast(self, idx: Idx) -> PExpr:
        """The element under NumPy's broadcasting to the rank of idx."""
        skip = len(idx) - len(self.shape)
        return self.at(tuple(0 if d == 1 else i for d, i in zip(self.shape, idx[skip:],
                                                                strict=True)))


class Names:
    """Fresh names within one kernel, so that equal input gives equal C, and its indices that are
    read from data."""

    def __init__(self) -> None:
        self.counts: dict[str, int] = {}
        self.indices: dict[str, PExpr] = {}  # symbol → the value read, clamped into range
        self.symbols: dict[PExpr, Symbol] = {}  # the inverse: equal values have one symbol

    def new(self, stem: str) -> str:
        """A name that was not given before: the stem and a number counted from 0."""
        n = self.counts[stem] = self.counts.get(stem, -1) + 1
        return f"{stem}{n}"

    def give_again(self, names: Sequence[str]) -> None:
        """Let `new` give these names again, which were the last ones of their stem."""
        for name in reversed(names):
            self.counts[name.rstrip("0123456789")] -= 1

    def index(self, value: PExpr, extent: Dim) -> Dim:
        """A symbol for an index read from data, clamped to [0, extent) so that it stays in its
        buffer."""
        most, least = index(extent - 1), index(0)
        if value.dtype is dtypes.int32 and isinstance(extent, int) and extent <= 1 << 31:
            most, least = Const(extent - 1, dtypes.int32), Const(0, dtypes.int32)
        near = apply("max", apply("min", cast(value, most.dtype), most), least)
        clamped = cast(near, dtypes.int64)  # where it stands in an index, products are of 64 bits
        if clamped not in self.symbols:
            sym = self.symbols[clamped] = iterator(self.new("at"), extent)
            self.indices[sym.name] = clamped
        return symbol_of(self.symbols[clamped])


def iterator(name: str, extent: Dim) -> Symbol:
    """The symbol of a loop over [0, extent)."""
    hi = bounds(extent)[1]
    return Symbol(name, 0, None if hi is None else max(hi - 1, 0), extent)


def const(value: float | bool, dtype: DType) -> Const:
    """A constant of the given type."""
    return Const(value, dtype)


def apply(fn: str, *args: PExpr, dtype: DType | None = None) -> Apply:
    """A call of scalar function `fn`; its type is that of the first argument unless `dtype` is
    given."""
    return Apply(fn, args, dtype or args[0].dtype)  # type: ignore[arg-type]


_MIRRORED = {"lt": "gt", "gt": "lt", "le": "ge", "ge": "le"}


def decided(fn: str, a: PExpr, b: PExpr) -> bool | None:
    """The result of a comparison that the types or the operands decide, else None.

    C compilers warn of such comparisons: `u < 0` of an unsigned number, `n < n`.
    """
    if a is b:
        if fn in ("lt", "gt"):
            return False
        if fn in ("le", "ge", "eq", "ne") and not a.dtype.is_float:  # NaN differs from itself
            return fn != "ne"
    if isinstance(a, Const):
        fn, a, b = _MIRRORED.get(fn, fn), b, a
    if not isinstance(b, Const) or not a.dtype.is_integer:
        return None
    if fn in ("lt", "ge") and b.value <= a.dtype.low:
        return fn == "ge"
    if fn in ("gt", "le") and b.value >= a.dtype.high:
        return fn == "le"
    return None


def cast(x: PExpr, to: DType) -> PExpr:
    """`x` converted to type `to`; `x` itself if it has this type already."""
    return x if x.dtype == to else Apply("cast", (x,), to)  # type: ignore[arg-type]


def index(value: Dim) -> PExpr:
    """An index polynomial as an i64 value."""
    return Index(value, dtypes.int64)


def inside(checks: list[tuple[Dim, Dim]]) -> PExpr | None:
    """The condition that each index is in [0, extent); None if that is always true."""
    cond: PExpr | None = None
    for i, extent in checks:
        parts = []
        if not _reaches(i, 0):
            parts.append(apply("ge", index(i), index(0), dtype=dtypes.bool_))
        if not _reaches(extent - i, 1):
            parts.append(apply("lt", index(i), index(extent), dtype=dtypes.bool_))
        for part in parts:
            cond = part if cond is None else apply("and", cond, part, dtype=dtypes.bool_)
    return cond


def _reaches(d: Dim, least: int) -> bool:
    """Whether d is never below `least` in loops that run at all.

    An iterator that makes d smaller is put at its last value, extent − 1, as a term of what the
    extent is made of: 16·n − 2·i − 1 is at least 1 where i < 8·n, whatever n is.
    """
    for s in symbols(d):
        slope = None if s.extent is None else coefficient(d, s.name)
        if s.extent is not None and isinstance(slope, int) and slope < 0:
            d = substitute(d, {s.name: s.extent - 1})
    low = bounds(d)[0]
    return low is not None and low >= least


@dataclass(frozen=True, slots=True)
class View:
    """Element idx is at offset + Σ idx·strides of `buffer`, counted in elements."""

    buffer: str
    dtype: DType
    shape: tuple[Dim, ...]
    strides: tuple[Dim, ...]
    offset: Dim = 0

    def index(self, idx: tuple[Dim, ...]) -> Dim:
        """The index in the buffer of the element at `idx`."""
        at = self.offset
        for i, s in zip(idx, self.strides, strict=True):
            at = at + i * s
        return at

    @property
    def contiguous(self) -> bool:
        """Whether the elements are adjacent and in row-major order; axes of size 1 do not count."""
        return all(d == 1 or s == c for d, s, c in zip(
            self.shape, self.strides, dense_strides(self.shape), strict=True))


def dense_strides(shape: tuple[Dim, ...]) -> tuple[Dim, ...]:
    """The strides, in elements, of a row-major array of this shape."""
    out: list[Dim] = []
    step: Dim = 1
    for d in reversed(shape):
        out.append(step)
        step = step * d
    return tuple(reversed(out))


def dense(buffer: str, dtype: DType, shape: tuple[Dim, ...]) -> View:
    """A view of a whole buffer as a row-major array, at offset 0."""
    return View(buffer, dtype, shape, dense_strides(shape))


def pull_of(view: View) -> Pull:
    """The pull that reads a view, element by element."""
    return Pull(view.dtype, view.shape,
                lambda idx: Load(view.buffer, view.index(idx), view.dtype))


def row_stride(v: View) -> Dim | None:
    """The distance between rows if one loop can walk all axes but the last; else None."""
    lead = [(d, s) for d, s in zip(v.shape[:-1], v.strides[:-1], strict=True) if d != 1]
    for (_, outer), (d, inner) in pairwise(lead):
        if outer != d * inner:
            return None
    return lead[-1][1] if lead else 0


def transposed(v: View) -> bool:
    """Whether it is a matrix whose columns are adjacent in memory, as the left operand of a
    product may be."""
    return len(v.shape) >= 2 and v.strides[-2] == 1 and v.shape[-2] != 1 and (
        v.strides[-1] != 1 and v.shape[-1] != 1)
