"""Loops that replace each byte by what a table of 256 has for it.

Functions of one byte, such as an activation between two quantisations, are tables. Compilers look
up one byte after another, with numbers of 64 bits as positions; some processors have instructions
that look up a vector of bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from graphtool import dtypes
from graphtool.loops.ir import Apply, Expr, For, Index, Let, Load, Store
from graphtool.loops.program import Param
from graphtool.symbolic import Dim, coefficient, substitute, symbol_of, symbols

ENTRIES = 256


class Bytes(NamedTuple):
    """Bytes of a buffer, from the element `start` on."""

    buffer: str
    start: Dim


class TableRow(NamedTuple):
    """Where the first iteration of a loop stores, where it reads its byte, and the table."""

    to: Bytes
    source: Bytes
    table: Bytes


def by_table(loop: For, params: Mapping[str, Param], sizes: Mapping[str, int]) -> TableRow | None:
    """What a loop does by a table; None for any other loop. `sizes` are those of the buffers that
    are known."""
    match loop.body:
        case (Let(name, value, False), Store(to, at, Load(table, entry, kind))) if (
                kind.is_integer and kind.bits == 8 and coefficient(entry, name) == 1
                and (source := _byte(value))):
            pass
        case _:
            return None
    inside = {name, loop.iter.name}
    lane = symbol_of(loop.iter)
    row = TableRow(Bytes(to, at - lane), Bytes(source.buffer, source.index - lane),
                   Bytes(table, substitute(entry, {name: 0})))
    if any(s.name in inside for part in row for s in symbols(part.start)):
        return None
    if params[to].dtype is not kind or to in (table, source.buffer) or any(
            params[part.buffer].packed for part in row):
        return None
    first = row.table.start
    known = isinstance(first, int) and 0 <= first <= sizes.get(table, 0) - ENTRIES
    return row if known else None


def look_up(row: TableRow, index: Callable[[Dim, int], str], lo: str, hi: str) -> str:
    """The line that looks up the bytes from `lo` to `hi`; `index` gives the text of an index, with
    the precedence of what is around it."""
    first = "" if lo == "0" else f" + {lo}"
    to, source, table = (f"{part.buffer} + {index(part.start, 13)}" for part in row)
    count = f"{hi} - {lo}" if first else hi
    return f"gt_row_by_table({to}{first}, {source}{first}, {table}, {count});"


def _byte(e: Expr) -> Load | None:
    """The load of a byte of which an expression is the number."""
    match e:
        case Load(dtype=dtypes.uint8):
            return e
        case Apply("cast", (x,)) if e.dtype in (dtypes.int32, dtypes.int64):
            return _byte(x)
        case Apply("max", (x, Index(0))) | Apply("min", (x, Index(255))):
            return _byte(x)
    return None
