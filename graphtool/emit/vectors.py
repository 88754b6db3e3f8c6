"""Loops whose worker computes several neighbouring elements, which it reads and writes as one piece
of memory of up to 16 bytes.

A piece starts at a multiple of its size, as a device requires: buffers do, and the index of its
first element must be a multiple of the elements in it. Elements that are not neighbours in memory
are read one by one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from graphtool import dtypes
from graphtool.loops.ir import Accumulate, Expr, For, Index, Let, Load, Name, Stmt, Store
from graphtool.loops.program import Param
from graphtool.loops.walk import accesses, dims_of, each, map_values, mapped, values
from graphtool.symbolic import Dim, Symbol, substitute, symbol_of
from graphtool.symbolic.poly import Call, terms_of

BYTES, MOST = 16, 8  # of a piece; pieces that one iteration holds in registers
SAME, NEXT, OTHER = "same", "next", "other"  # what a name is for neighbours: equal, one more, else


@dataclass(frozen=True, slots=True)
class Piece:
    """`name[width]`, a copy of neighbouring elements of a buffer from the index `first` on."""

    name: str
    buffer: str
    first: Dim
    param: Param


@dataclass(frozen=True, slots=True)
class Vectors:
    """A loop of which a worker computes `width` iterations at a time: `before` is equal for all of
    them, `body` is run for each with the number `lane`."""

    width: int
    lane: str
    before: tuple[Stmt, ...]
    reads: tuple[Piece, ...]
    body: tuple[Stmt, ...]
    writes: tuple[Piece, ...]


def vectors(loop: For, params: Mapping[str, Param]) -> Vectors | None:
    """The loop with the widest pieces that fit it; None if there are none that help."""
    if not all(isinstance(s, (Let, Store, Accumulate)) for s in loop.body):
        return None
    used = {b for b, _ in accesses(loop.body)}
    if any(b not in params or params[b].packed for b in used) or not used:
        return None
    width = BYTES // max(params[b].dtype.bytes for b in used)
    while width > 1:
        if divided := _Loop(loop, params, width).in_pieces():
            return divided
        width //= 2
    return None


class _Loop:
    """One loop with pieces of one width."""

    def __init__(self, loop: For, params: Mapping[str, Param], width: int) -> None:
        self.loop, self.params, self.width = loop, params, width
        self.kinds = {loop.iter.name: NEXT}  # of each name that the loop defines
        self.lane = Symbol(f"{loop.iter.name}_lane", 0, width - 1)  # no other name ends so

    def in_pieces(self) -> Vectors | None:
        """The loop, if each element that it stores, and most that it reads, is in a piece."""
        if self.loop.iter.extent is None or not _divides(self.width, self.loop.extent):
            return None
        before, rest = self._divided()
        stores = [s for s in rest if isinstance(s, Store)]
        targets = [s.buffer for s in stores]
        if len(targets) != len(set(targets)) or any(self.kind(s.index) != NEXT for s in stores):
            return None
        if any(isinstance(x, Load) and x.buffer in targets
               for s in before for e in values(s) for x in each([e])):
            return None
        reads, alone = dict[tuple[str, Dim], Piece](), 0
        for e in (e for s in rest for e in values(s)):
            for x in (x for x in each([e]) if isinstance(x, Load)):
                kind = self.kind(x.index)
                if x.buffer in targets and kind != NEXT:
                    return None  # it may be what another iteration stores
                if kind == NEXT:
                    key = x.buffer, x.index
                    reads.setdefault(key, self._piece(*key, [p.name for p in reads.values()]))
                alone += kind == OTHER
        if not (stores or reads) or alone > len(reads) or len(reads) + len(stores) > MOST:
            return None
        if any(s.index != key[1] for s in stores for key in reads if key[0] == s.buffer):
            return None
        taken = [p.name for p in reads.values()]
        writes = {s: self._piece(s.buffer, s.index, taken) for s in stores}
        body = tuple(self._for_lane(s, reads, writes) for s in rest)
        return Vectors(self.width, self.lane.name, before, tuple(reads.values()), body,
                       tuple(writes.values()))

    def _divided(self) -> tuple[tuple[Stmt, ...], tuple[Stmt, ...]]:
        """The statements that are equal for the iterations of a piece, and the others."""
        before, rest = list[Stmt](), list[Stmt]()
        for s in self.loop.body:
            if isinstance(s, Let):
                parts = [self.kind(d) for e in each([s.value]) for d in dims_of(e)]
                parts += [self.kinds.get(e.name, SAME) for e in each([s.value])
                          if isinstance(e, Name)]
                same = all(p == SAME for p in parts) and not s.mutable
                index = isinstance(s.value, Index) and self.kind(s.value.value) == NEXT
                self.kinds[s.name] = SAME if same else NEXT if index else OTHER
                if same or index:
                    before.append(s)
                    continue
            rest.append(s)
        return tuple(before), tuple(rest)

    def kind(self, d: Dim) -> str:
        """What an index is for neighbouring iterations, the first of which is a multiple of the
        width; NEXT only if it is a multiple of the width then."""
        kinds = [(self._kind_of(mono), coeff) for mono, coeff in terms_of(d)]
        if all(kind == SAME for kind, _ in kinds):
            return SAME
        moving = [coeff for kind, coeff in kinds if kind != SAME]
        aligned = all(coeff % self.width == 0 for kind, coeff in kinds if kind == SAME)
        one = moving == [1] and all(kind != OTHER for kind, _ in kinds)
        return NEXT if one and aligned else OTHER

    def _kind_of(self, mono: Any) -> str:
        kinds = [self._kind_of_atom(a) for a, _ in mono]
        if all(k == SAME for k in kinds):
            return SAME
        return NEXT if kinds == [NEXT] and mono[0][1] == 1 else OTHER

    def _kind_of_atom(self, a: Symbol | Call) -> str:
        if isinstance(a, Symbol):
            return self.kinds.get(a.name, SAME)
        inner, by = self.kind(a.a), self.kind(a.b)
        if inner == by == SAME:
            return SAME
        if inner == NEXT and by == SAME and a.fn in ("//", "%") and _divides(self.width, a.b):
            return SAME if a.fn == "//" else NEXT
        return OTHER

    def _piece(self, buffer: str, first: Dim, taken: Sequence[str]) -> Piece:
        name = f"{buffer}_{self.width}"
        number = sum(t.startswith(name) for t in taken)
        name += f"_{number}" if number else ""
        return Piece(name, buffer, first, replace(self.params[buffer], name=name))

    def _for_lane(self, s: Stmt, reads: Mapping[tuple[str, Dim], Piece],
                  writes: Mapping[Store, Piece]) -> Stmt:
        """The statement for one element of the pieces."""
        lane = symbol_of(self.lane)
        moved: dict[str, Dim] = {name: symbol_of(Symbol(name)) + lane
                                 for name, kind in self.kinds.items() if kind == NEXT}

        def change(e: Expr) -> Expr:
            if isinstance(e, Load):
                piece = reads.get((e.buffer, e.index))
                return Load(piece.name, lane, e.dtype) if piece else replace(
                    e, index=substitute(e.index, moved))
            if isinstance(e, Name) and e.name in moved:
                return Index(moved[e.name], dtypes.int64)
            return Index(substitute(e.value, moved), e.dtype) if isinstance(e, Index) else e

        out = map_values(s, lambda e: mapped(e, change))
        return replace(out, buffer=writes[s].name, index=lane) if isinstance(s, Store) and (
            isinstance(out, Store)) else out


def _divides(n: int, d: Dim) -> bool:
    return all(coeff % n == 0 for _, coeff in terms_of(d))
