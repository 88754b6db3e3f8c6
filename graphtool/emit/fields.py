"""Loops over elements that share bytes: the elements are first unpacked to a row of whole bytes.

No compiler vectorises a read of part of a byte at an offset that depends on the element. With the
unpacking in a loop of its own, both loops are vectorised. A read under a condition stays unchanged.
"""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass, field, replace
from typing import Any

from graphtool.dtypes import DType
from graphtool.loops.ir import Accumulate, Expr, For, Let, Load, Store
from graphtool.loops.walk import certain, map_values, mapped
from graphtool.symbolic import Dim, Symbol, bounds, symbol_of, symbols

WIDEST = 256  # elements of a row
LEAST = 8  # iterations from which a row is worth its filling


@dataclass(frozen=True)
class Unpacked:
    """Bytes that hold unpacked elements of a packed buffer; `start` is the index of iteration 0."""

    name: str
    buffer: str
    start: Dim
    type: DType
    length: int


@dataclass
class Fields:
    """A loop and the rows that are filled before it runs.

    With `first` the loop is split into pieces: a row starts at iteration `first`. None: rows cover
    all iterations.
    """

    loop: For
    first: Symbol | None
    packed: Container[str]
    stem: str
    rows: list[Unpacked] = field(default_factory=list)

    def rewritten(self) -> For:
        """The loop with its loads from packed buffers replaced by loads from the rows.

        The rows it needs are then in `rows`.
        """
        memo: dict[Any, Any] = {}
        return replace(self.loop, body=tuple(map_values(
            s, lambda e: mapped(e, self.expr, memo, certain)) for s in self.loop.body))

    def expr(self, e: Expr) -> Expr:
        """A load from a packed buffer as a load from its row; any other expression unchanged."""
        match e:
            case Load(buffer, index, dtype) if buffer in self.packed:
                row = self.row(buffer, index, dtype)
                first = 0 if self.first is None else symbol_of(self.first)
                at = symbol_of(self.loop.iter) - first
                return e if row is None else Load(row.name, at, dtype)
            case _:
                return e

    def row(self, buffer: str, index: Dim, dtype: DType) -> Unpacked | None:
        """The row for this load if its index grows by 1 at each iteration, else None."""
        start = index - symbol_of(self.loop.iter)
        inside = {self.loop.iter.name, *(s.name for s in self.loop.body if isinstance(s, Let))}
        if any(s.name in inside for s in symbols(start)):
            return None
        for row in self.rows:
            if (row.buffer, row.start) == (buffer, start):
                return row
        extent = self.loop.extent if self.first is None else WIDEST
        assert isinstance(extent, int)
        self.rows.append(Unpacked(f"{self.stem}{len(self.rows)}", buffer, start, dtype, extent))
        return self.rows[-1]


def along_fields(loop: For, packed: Container[str], stem: str) -> tuple[For, Fields] | None:
    """The loop that reads rows, and these rows; None where this saves nothing."""
    most, extent = bounds(loop.extent)[1], loop.extent
    plain = all(isinstance(s, (Let, Store, Accumulate)) for s in loop.body)
    if not plain or (most is not None and most < LEAST):
        return None
    short = isinstance(extent, int) and extent <= WIDEST and not loop.mode.startswith("parallel")
    first = None if short else Symbol(f"{loop.iter.name}_first", 0, None)
    found = Fields(loop, first, packed, stem)
    new = found.rewritten()
    return (new, found) if found.rows else None
