"""What is known at a position of a kernel: its loops, and the ends of each integer there, as
polynomials over sizes and over what was defined before."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from graphtool.dtypes import bool_
from graphtool.loops import walk
from graphtool.loops.ir import Apply, Const, Expr, Index, Load, Name
from graphtool.loops.spans import limits
from graphtool.loops.text import expression
from graphtool.loops.tiling import Loop
from graphtool.symbolic import Dim, Symbol, bounds, maximum, minimum, symbol_of
from graphtool.symbolic.nonnegative import Ends, sizes_for, within

Loops = tuple[Loop, ...]


@dataclass
class Scope:
    """What is known at one position of a kernel.

    `values` are the names and sizes with ranges that hold there, `loops` the loops around it with
    their extents. `case`: the sizes for which a template was looked at, where it differs for
    others. `data` has the names that data decide, each with the text of its value.
    """

    values: dict[str, Dim]
    names: dict[str, Ends] = field(default_factory=dict)
    loops: Loops = ()
    data: dict[str, str] = field(default_factory=dict)
    conditional: bool = False
    case: tuple[tuple[str, Dim], ...] = ()
    row: str = ""  # of a hook: the index with which a part of a row begins

    def inner(self, **changes: Any) -> Scope:
        """The scope of a block inside this one."""
        return replace(self, values=dict(self.values), names=dict(self.names),
                       data=dict(self.data), **changes)

    def of(self, d: Dim) -> Dim:
        """The polynomial with the ranges that hold here."""
        return within(d, self.values)

    def define(self, name: str, ends: Ends) -> None:
        """Add a name with its ends."""
        lows = [b for b in (bounds(x)[0] for x in ends.low) if b is not None]
        highs = [b for b in (bounds(x)[1] for x in ends.high) if b is not None]
        self.names[name] = ends
        self.values[name] = symbol_of(Symbol(name, max(lows, default=None),
                                             min(highs, default=None)))

    def loop(self, name: str, extent: Dim) -> Scope:
        """The scope of a loop's body, in which the extent is 1 or more."""
        inside = self.inner(loops=(*self.loops, (name, extent)))
        inside.values |= dict(sizes_for(extent))
        for n, e in self.names.items():
            inside.names[n] = Ends(tuple(map(inside.of, e.low)), tuple(map(inside.of, e.high)))
        inside.define(name, Ends((0,), (inside.of(extent) - 1,)))
        return inside


def type_ends(e: Expr) -> Ends:
    """The ends of a type of less than 64 bits."""
    if e.dtype.is_float or e.dtype.bits > 32:
        return Ends()
    low, high = limits(e.dtype)
    return Ends((low,), (high,))


def ends_of(e: Expr, scope: Scope) -> Ends:
    """The ends of an integer expression."""
    def visit(e: Expr, parts: list[Ends]) -> Ends:
        found = _computed(e, parts, scope)
        return found if _fits(e, found) else type_ends(e)
    return walk.fold(e, visit, {})


def _fits(e: Expr, found: Ends) -> bool:
    """Whether a number between these ends is one of the expression's type. Indices are polynomials
    of sizes, which fit 64 bits."""
    if e.dtype.is_float:
        return False
    low, high = limits(e.dtype)
    numbers = [bounds(x) for x in (*found.low, *found.high)]
    if e.dtype.bits > 32:
        return low < 0 or (bool(found.low) and all(b[0] is not None and b[0] >= 0 for b in numbers))
    return bool(found.low and found.high) and all(
        b[0] is not None and low <= b[0] and b[1] is not None and b[1] <= high for b in numbers)


def _computed(e: Expr, parts: list[Ends], scope: Scope) -> Ends:
    """The ends of an expression whose value fits its type, from those of its operands."""
    match e, parts:
        case Const(value), _ if not e.dtype.is_float:
            return Ends((int(value),), (int(value),))
        case Index(value), _:
            return Ends((scope.of(value),), (scope.of(value),))
        case Name(name), _:
            return scope.names.get(name, type_ends(e))
        case Load(), _:
            return type_ends(e)
        case Apply("min"), [a, b]:
            return Ends(_pairs(minimum, a.low, b.low), a.high + b.high)
        case Apply("max"), [a, b]:
            return Ends(a.low + b.low, _pairs(maximum, a.high, b.high))
        case Apply("select"), [_, a, b]:
            return Ends(_pairs(minimum, a.low, b.low), _pairs(maximum, a.high, b.high))
        case Apply("add"), [a, b]:
            return Ends(_pairs(_add, a.low, b.low), _pairs(_add, a.high, b.high))
        case Apply("sub"), [a, b]:
            return Ends(_pairs(_less, a.low, b.high), _pairs(_less, a.high, b.low))
        case Apply("cast", (x,)), [a] if not x.dtype.is_float and e.dtype is not bool_:
            return a
    return Ends()


def _pairs(fn: Any, a: tuple[Dim, ...], b: tuple[Dim, ...]) -> tuple[Dim, ...]:
    return tuple(fn(x, y) for x in a[:2] for y in b[:2])


def _add(a: Dim, b: Dim) -> Dim:
    return a + b


def _less(a: Dim, b: Dim) -> Dim:
    return a - b


def from_data(e: Expr, scope: Scope) -> str:
    """The text of an expression that data decide; of one that only renames such a name, the text
    of that."""
    inside = walk.each([e])
    names = [x.name for x in inside if isinstance(x, Name) and x.name in scope.data]
    if not names and not any(isinstance(x, Load) for x in inside):
        return ""
    return scope.data[names[0]] if isinstance(e, Name) else expression(e)
