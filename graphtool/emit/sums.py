"""Sums of a loop side by side, in as many partial sums as four vectors have lanes, so that no
addition waits for the one before it.

gcc gives a loop that sums one vector of partial sums, and a step then takes as long as an addition.
Where the terms take longer than that, nothing is won; so only terms of a few cheap ops are taken.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from graphtool import dtypes
from graphtool.emit.fields import moved
from graphtool.loops.ir import Accumulate, Apply, Expr, For, Let, Load, Stmt, Store
from graphtool.loops.walk import each
from graphtool.symbolic import Dim, Symbol, bounds, floordiv, symbol_of

CHEAP, MOST = ("add", "sub", "mul"), 4  # the ops of a term, and how many it may have


@dataclass(frozen=True)
class PartialSums:
    """Loops that add to `name`, a row of `width` partial sums, what a loop adds to `acc`."""

    acc: str
    fn: str
    name: str
    width: int
    loops: tuple[For, ...]


def side_by_side(loop: For, width: int) -> PartialSums | None:
    """The loop with so many partial sums, in an order that depends on nothing but its length. None
    for a loop that sums nothing, or whose terms are costly; and for a short one."""
    *lets, last = loop.body
    if len(loop.reduces) != 1 or not isinstance(last, Accumulate) or not all(map(_named, lets)) or (
            last.fn not in ("add", "mul") or last.value.dtype is not dtypes.float32):
        return None
    ops = [e.fn for e in each(_values(loop)) if isinstance(e, Apply)]
    if (bounds(loop.extent)[1] or width) < 2 * width or len(ops) > MOST or not {*ops} <= {*CHEAP}:
        return None
    name = f"{last.name}_parts"
    return PartialSums(last.name, last.fn, name, width, (*_loops(loop, last, name, width),))


def _named(s: Stmt) -> bool:
    return isinstance(s, Let) and not s.mutable and s.value.dtype.is_float


def _values(loop: For) -> Iterator[Expr]:
    yield from (s.value for s in loop.body if isinstance(s, (Let, Accumulate)))


def _loops(loop: For, last: Accumulate, name: str, width: int) -> Iterator[For]:
    """The whole rows of terms, and what is left of them."""
    lane = Symbol(f"j{loop.iter.name[1:]}", 0, None)
    at, rows = symbol_of(lane), floordiv(loop.extent, width)

    def row(first: Dim, count: Dim) -> For:
        *lets, term = (moved(s, {loop.iter.name: first + at}) for s in loop.body)
        assert isinstance(term, Accumulate)
        total = Apply(str(last.fn), (Load(name, at, last.value.dtype), term.value),
                      last.value.dtype)
        return For(lane, count, "simd", (*lets, Store(name, at, total)))
    yield For(loop.iter, rows, "serial", (row(symbol_of(loop.iter) * width, width),))
    if loop.extent != rows * width:
        yield row(rows * width, loop.extent - rows * width)
