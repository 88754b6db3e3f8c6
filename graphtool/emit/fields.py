"""Loops split so that compilers vectorise them: elements that share bytes, bytes, and bfloat16.

No compiler vectorises a read of part of a byte at an offset that depends on the element. Such
elements are first unpacked to a row of whole bytes, in a loop of its own. A read under a condition
stays unchanged.

An epilogue that reads or writes bytes, or writes bfloat16, becomes loops from bytes to words,
arithmetic on words and floats, then words to bytes and floats to bfloat16. In one loop a compiler
takes as many elements at once as there are bytes in a vector, and needs four vectors for the words;
in separate loops each fills its vectors, and rounds by the instruction for it, if there is one.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from graphtool import dtypes
from graphtool.dtypes import DType
from graphtool.loops.forms import KernelFacts
from graphtool.loops.ir import Accumulate, Apply, Const, Expr, For, Index, Let, Load, Stmt, Store
from graphtool.loops.walk import certain, map_values, mapped, operands
from graphtool.symbolic import Dim, Symbol, bounds, substitute, symbol_of, symbols

WIDEST = 256  # elements of a row
LEAST = 8  # iterations from which a row is worth its filling
STRIP = 32  # iterations from which rows between conversions are worth it
_NONE = Const(0.0, dtypes.float32)  # the zero point of what is only rounded


@dataclass(frozen=True)
class Unpacked:
    """Bytes that hold unpacked elements of a packed buffer; `start` is the index of iteration 0."""

    name: str
    buffer: str
    start: Dim
    type: DType
    length: int


@dataclass
class FilledLoop:
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


def along_fields(loop: For, packed: Container[str], stem: str) -> tuple[For, FilledLoop] | None:
    """The loop that reads rows, and these rows; None where this saves nothing."""
    most, extent = bounds(loop.extent)[1], loop.extent
    plain = all(isinstance(s, (Let, Store, Accumulate)) for s in loop.body)
    if not plain or (most is not None and most < LEAST):
        return None
    short = isinstance(extent, int) and extent <= WIDEST and not loop.mode.startswith("parallel")
    first = None if short else Symbol(f"{loop.iter.name}_first", 0, None)
    fields_ = FilledLoop(loop, first, packed, stem)
    new = fields_.rewritten()
    return (new, fields_) if fields_.rows else None


TILE = 256  # sums of a row of a tile at most: 16 vectors of 16


@dataclass(frozen=True)
class Staged:
    """Words that hold narrow elements of a buffer from index `start` on.

    `how` says how they are stored: whole numbers as they are (`to`), floats by a cast towards zero
    (`cast`), or after rounding to the nearest (`round`), which adds the whole number `zero`.
    """

    name: str
    buffer: str
    start: Dim
    kind: DType
    how: str = "to"
    zero: Expr = _NONE

    @property
    def words(self) -> DType:
        """The element type of the row."""
        whole = self.how == "to" and self.kind.is_integer
        return dtypes.int32 if whole else dtypes.float32


@dataclass
class Stages:
    """A loop on rows of words: `reads` are filled before it, `writes` are stored after it.

    `inside` are the names that the loop defines; reads that `below` leaves out stay as they are.
    """

    lane: Symbol
    kinds: dict[str, DType]
    around: KernelFacts
    inside: frozenset[str] = frozenset()
    below: Callable[[Any], Any] = operands
    reads: list[Staged] = field(default_factory=list)
    writes: list[Staged] = field(default_factory=list)
    body: tuple[Stmt, ...] = ()
    done: dict[Any, Any] = field(default_factory=dict)

    def expr(self, e: Expr) -> Expr:
        """The expression with its loads of bytes and float16 replaced by loads from rows."""
        return mapped(e, self.load, self.done, self.numbers)  # type: ignore[no-any-return]

    def numbers(self, e: Expr) -> Any:
        """The operands that are read as numbers: not what is bitcast, which is read as it is."""
        return () if isinstance(e, Apply) and e.fn == "bitcast" else self.below(e)

    def load(self, e: Expr) -> Expr:
        """A load of bytes along the lane as a load from its row; any other expression unchanged."""
        match e:
            case Load(buffer, index, dtype) if self.bytes_along(buffer, index):
                row = self.row("row", self.reads, buffer, index)
                return Load(row.name, symbol_of(self.lane), dtype)
            case Load(buffer, index, dtypes.float16) if self.halves_along(buffer, index):
                row = self.row("row", self.reads, buffer, index)
                return Load(row.name, symbol_of(self.lane), dtypes.float32)
            case _:
                return e

    def halves_along(self, buffer: str, index: Dim) -> bool:
        """Whether the loop reads or writes adjacent numbers of 16 bits of the buffer there."""
        return self.kinds.get(buffer) is dtypes.float16 and self.along(index)

    def bytes_along(self, buffer: str, index: Dim) -> bool:
        """Whether the loop reads or writes adjacent bytes of the buffer there."""
        kind = self.kinds.get(buffer)
        return kind is not None and kind.is_integer and kind.bits == 8 and self.along(index)

    def rounds(self, buffer: str, index: Dim) -> bool:
        """Whether the loop writes adjacent numbers of the buffer there that floats are cast to."""
        return self.bytes_along(buffer, index) or (
            self.kinds.get(buffer) in dtypes.HALVES and self.along(index))

    def along(self, index: Dim) -> bool:
        """Whether the index moves on by 1 with the lane."""
        if isinstance(index, int):
            return False
        start = index - symbol_of(self.lane)
        return isinstance(start, int) or not any(
            x == self.lane or x.name in self.inside for x in symbols(start))

    def is_zero_point(self, e: Expr, kind: DType) -> bool:
        """Whether a float is known to be an integer of the type."""
        values = self.around.known(e)
        return bool(values) and all(v == int(v) and kind.low <= v <= kind.high for v in values)

    def row(self, stem: str, rows: list[Staged], buffer: str, index: Dim,
            how: str = "to", zero: Expr = _NONE) -> Staged:
        """The row for these elements of `buffer`; it is appended to `rows` if it is not there
        yet."""
        start = index - symbol_of(self.lane)
        for row in rows:
            if (row.buffer, row.start, row.how, row.zero) == (buffer, start, how, zero):
                return row
        rows.append(Staged(f"{stem}{len(rows)}", buffer, start, self.kinds[buffer], how, zero))
        return rows[-1]

    def stmt(self, s: Stmt) -> Stmt:
        """The statement on rows of words.

        A store that casts f32 to bytes or 16 bits stores floats in its row; the cast is done when
        the row is written back, and the rounding before it too, with the zero point that is added.
        """
        match s:
            case Store(_, _, Load(_, _, dtypes.float16)):
                return s  # a copy keeps all bits
            case Store(buffer, index, Apply("cast", (Apply("round", (value,)),), _)) if (
                    self.bytes_along(buffer, index) and value.dtype is dtypes.float32):
                row = self.row("out", self.writes, buffer, index, "round")
                return Store(row.name, symbol_of(self.lane), self.expr(value))
            case Store(buffer, index, Apply("cast", (Apply("add", (
                    Apply("round", (value,)), zero)),), kind)) if (
                    self.bytes_along(buffer, index) and value.dtype is dtypes.float32
                    and self.is_zero_point(zero, kind)):
                row = self.row("out", self.writes, buffer, index, "round", zero)
                return Store(row.name, symbol_of(self.lane), self.expr(value))
            case Store(buffer, index, Apply("cast", (value,), _)) if (
                    self.rounds(buffer, index) and value.dtype is dtypes.float32):
                row = self.row("out", self.writes, buffer, index, "cast")
                return Store(row.name, symbol_of(self.lane), self.expr(value))
            case Store(buffer, index, Apply(fn) as value) if (
                    self.halves_along(buffer, index) and fn not in ("cast", "select", "bitcast")):
                row = self.row("out", self.writes, buffer, index, "cast")
                return Store(row.name, symbol_of(self.lane), self.expr(value))
            case Store(buffer, index, value) if self.bytes_along(buffer, index):
                row = self.row("out", self.writes, buffer, index)
                return Store(row.name, symbol_of(self.lane), self.expr(value))
        return map_values(s, self.expr)


def staged(loop: Stmt, kinds: dict[str, DType], around: KernelFacts) -> Stages | None:
    """The stages of a loop; None if it neither reads bytes nor writes what rows are cast to."""
    if not isinstance(loop, For) or loop.mode != "simd" or not all(
            isinstance(s, (Let, Store)) for s in loop.body):
        return None
    stages = Stages(loop.iter, kinds, around)
    stages.body = (replace(loop, body=tuple(map(stages.stmt, loop.body))),)
    return stages if stages.reads or stages.writes else None


def strips(loop: For, kinds: dict[str, DType], around: KernelFacts
           ) -> tuple[Symbol, Symbol, Stages] | None:
    """Of a loop that is not a hook's: the index at which a strip of it begins, the length of the
    strip, and its stages. None where `converted` has none."""
    plain = (Let, Store, Accumulate) if loop.reduces else (Let, Store)
    if not all(isinstance(s, plain) for s in loop.body) or (
            bounds(loop.extent)[1] or WIDEST) < STRIP:
        return None
    number = loop.iter.name[1:]
    first, lane, count = (Symbol(f"{stem}{number}", 0, None) for stem in ("first", "j", "count"))
    at: dict[str, Dim] = {loop.iter.name: symbol_of(first) + symbol_of(lane)}
    body = tuple(moved(s, at) for s in loop.body)
    strip = For(lane, symbol_of(count), "simd", body, loop.reduces)
    stages = converted(strip, kinds, around)
    return None if stages is None else (first, count, stages)


def converted(strip: For, kinds: dict[str, DType], around: KernelFacts) -> Stages | None:
    """The stages of a loop over one strip. None where nothing is rounded, no float16 is read, and
    no bytes for a sum of floats."""
    inside = frozenset(s.name for s in strip.body if isinstance(s, Let))
    stages = Stages(strip.iter, kinds, around, inside, certain)
    stages.body = (replace(strip, body=tuple(map(stages.stmt, strip.body))),)
    rounds = any(w.how != "to" for w in stages.writes)
    sums = any(isinstance(s, Accumulate) and s.value.dtype.is_float for s in strip.body)
    return stages if rounds or any(
        sums or r.kind is dtypes.float16 for r in stages.reads) else None


def moved(s: Stmt, at: Mapping[str, Dim]) -> Stmt:
    """The statement with other indices for names of iterators."""
    def change(e: Expr) -> Expr:
        match e:
            case Load(buffer, index, dtype):
                return Load(buffer, substitute(index, at), dtype)
            case Index(value, dtype):
                return Index(substitute(value, at), dtype)
        return e
    s = map_values(s, lambda e: mapped(e, change))
    return replace(s, index=substitute(s.index, at)) if isinstance(s, Store) else s
