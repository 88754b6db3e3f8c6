"""Loops that read elements whose positions are data, in strips: first the positions of a strip as
int32, then its elements one by one, then the rest of the loop on rows of them.

Compilers vectorise such a loop with instructions that gather, which take longer than as many single
loads; without them a loop has no vectors at all. In three loops the arithmetic fills its vectors.

Positions that do not depend on the loops around are computed once for all iterations of these, in a
strip loop around all of them. A read that the original makes under a condition is made always, so
its index must be known to be inside of the buffer.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from graphtool import dtypes
from graphtool.emit.expr import ExprPrinter
from graphtool.emit.fields import STRIP, WIDEST, moved
from graphtool.emit.language import Language, Share
from graphtool.emit.lines import Writer
from graphtool.loops.ir import Apply, Expr, For, Index, Let, Load, Name, Stmt, Store
from graphtool.loops.program import Param, Program, runs
from graphtool.loops.walk import (
    Below,
    certain,
    dims_of,
    each,
    map_values,
    mapped,
    operands,
    values,
)
from graphtool.symbolic import Dim, Symbol, bounds, symbol_of, symbols
from graphtool.symbolic.poly import from_terms, terms_of

MOST = 1 << 31  # positions are int32
POSITIONS = (dtypes.int32, dtypes.int64)
PLAIN = (dtypes.float32, dtypes.int32, dtypes.float64, dtypes.int64)


@dataclass(frozen=True)
class Gathered:
    """A row of the elements of `buffer` at the positions of row `places`, counted from `start`."""

    name: str
    places: str
    buffer: str
    start: Dim
    param: Param


@dataclass
class GatheringLoop:
    """`around` are loops with nothing but the next one in each. `before` computes the positions of
    a strip that begins at `first` and has `count` elements; `body` is what is left, or `copy` the
    store that takes a gathered row as it is."""

    around: Sequence[For]
    inner: For
    first: Symbol
    count: Symbol
    before: For
    places: list[str] = field(default_factory=list)
    reads: list[Gathered] = field(default_factory=list)
    body: For | None = None
    copy: tuple[str, Dim] | None = None

    def hoisted(self) -> bool:
        """Whether the positions are the same for all iterations of the loops around."""
        outer = {s.iter.name for s in self.around}
        return not any(n in outer for e in _inside(self.before.body) for n in _names(e))


def gathering(loop: For, params: Mapping[str, Param], sizes: Mapping[str, int]
              ) -> GatheringLoop | None:
    """The parts of a loop; None if it has no such reads, or is too short. `sizes` are those of the
    buffers that are known."""
    around: list[For] = []
    inner = loop
    while inner.mode in ("serial", "parallel") and len(inner.body) == 1 and isinstance(
            inner.body[0], For):
        around.append(inner)
        inner = inner.body[0]
    lets = {s.name: s for s in inner.body if isinstance(s, Let)}
    if "simd" not in inner.mode or inner.reduces or (bounds(inner.extent)[1] or WIDEST) < STRIP or (
            not all(isinstance(s, (Let, Store)) for s in inner.body)) or not any(
            isinstance(s.value, Apply) and s.value.dtype in POSITIONS for s in lets.values()):
        return None
    return _Split(around, inner, params, sizes).parts()


class _Split:
    """Divides such a loop: which positions are gathered, what must be computed before them, and
    what is left of the body."""

    def __init__(self, around: Sequence[For], inner: For, params: Mapping[str, Param],
                 sizes: Mapping[str, int]) -> None:
        self.around, self.inner, self.params, self.sizes = around, inner, params, sizes
        self.lets = {s.name: s for s in inner.body if isinstance(s, Let)}
        number = inner.iter.name[1:]
        self.first, self.lane, self.count = (
            Symbol(f"{stem}{number}", 0, None) for stem in ("first", "j", "count"))
        self.number = number
        self.places: dict[Dim, str] = {}
        self.reads: dict[tuple[str, str, Dim], Gathered] = {}
        self.safe = set(_inside(inner.body, certain))

    def parts(self) -> GatheringLoop | None:
        """The parts of the loop; None if nothing is gathered."""
        here: dict[str, Dim] = {self.inner.iter.name: symbol_of(self.first) + symbol_of(self.lane)}
        needed = self.needed()
        if needed is None:
            return None
        memo: dict[Any, Any] = {}
        rest = [map_values(s, lambda e: mapped(e, self.row, memo)) for s in self.inner.body]
        if not self.reads:
            return None
        positions: list[Stmt] = [Store(name, symbol_of(self.lane), Apply(
            "cast", (Index(at, dtypes.int64),), dtypes.int32)) for at, name in self.places.items()]
        lane, count = self.lane, symbol_of(self.count)
        defined = [s for s in self.inner.body if isinstance(s, Let) and s.name in needed]
        before = For(lane, count, "simd", tuple(moved(s, here) for s in [*defined, *positions]))
        rest = self.used(rest)
        body = For(lane, count, "simd", tuple(moved(s, here) for s in rest))
        out = GatheringLoop(self.around, self.inner, self.first, self.count, before,
                            [*self.places.values()], [*self.reads.values()], body)
        match rest:
            case [Store(buffer, index, Load(name, _, dtype))] if (
                    len(self.reads) == 1 and name == out.reads[0].name
                    and self.params[buffer].dtype is dtype
                    and self.along(index - symbol_of(self.inner.iter))):
                start = index - symbol_of(self.inner.iter) + symbol_of(self.first)
                return replace(out, body=None, copy=(buffer, start))
        return out

    def along(self, start: Dim) -> bool:
        """Whether an index without its iterator is the same for all iterations of the loop."""
        inside = {self.inner.iter.name, *self.lets}
        return not any(s.name in inside for s in symbols(start))

    def needed(self) -> set[str] | None:
        """The names that positions are computed from; None if one of them is gathered itself."""
        pending = [s.name for x in _inside(self.inner.body) if isinstance(x, Load)
                   for s in symbols(x.index) if s.name in self.lets]
        out = set[str]()
        while pending:
            name = pending.pop()
            if name in out:
                continue
            out.add(name)
            for x in each([self.lets[name].value]):
                if isinstance(x, Load) and not self.lets.keys().isdisjoint(
                        s.name for s in symbols(x.index)):
                    return None
                pending += [n for n in _names(x) if n in self.lets]
        return out

    def row(self, e: Expr) -> Expr:
        """A load at a position from data as a load from its row; any other as it is."""
        match e:
            case Load(buffer, index, dtype) if dtype in PLAIN and buffer in self.params:
                pass
            case _:
                return e
        inside = {self.inner.iter.name, *self.lets}
        parts: list[Dim] = [0, 0]
        for mono, coeff in terms_of(index):
            term = from_terms({mono: coeff})
            moves = any(s.name in inside for s in symbols(term))
            parts[moves] = parts[moves] + term
        start, at = parts
        if not any(s.name in self.lets for s in symbols(at)) or not self.fits(e, at):
            return e
        place = self.places.setdefault(at, f"places{self.number}_{len(self.places)}")
        key = buffer, place, start
        if key not in self.reads:
            name = f"read{self.number}_{len(self.reads)}"
            self.reads[key] = Gathered(name, place, buffer, start, self.params[buffer])
        return Load(self.reads[key].name, symbol_of(self.lane), dtype)

    def fits(self, e: Load, at: Dim) -> bool:
        """Whether positions fit their type, and the element may be read at any time."""
        low, high = bounds(at)
        if low is None or high is None or low < 0 or high >= MOST:
            return False
        low, high = bounds(e.index)
        return e in self.safe or (low is not None and low >= 0 and high is not None
                                  and high < self.sizes.get(e.buffer, 0))

    def used(self, rest: list[Stmt]) -> list[Stmt]:
        """The statements without names that only positions needed."""
        while True:
            names = {n for x in _inside(rest) for n in _names(x)} | {
                s.name for x in rest if isinstance(x, Store) for s in symbols(x.index)}
            left = [s for s in rest if not isinstance(s, Let) or s.name in names]
            if len(left) == len(rest):
                return left
            rest = left


# ---- text ----------------------------------------------------------------------------------------

class Printer(Protocol):
    """What prints statements (see `Statements`)."""

    w: Writer
    p: ExprPrinter
    language: Language

    def range(self, s: For) -> tuple[Share, str, str]:
        """The worker's share of a loop, where it begins and where it ends."""

    def within_strip(self, s: For, count: str) -> None:
        """Write a loop over one strip, of `count` iterations."""

    def on_rows(self, rows: Sequence[Param]) -> Printer:
        """A printer for statements that use these rows as well."""


def write(g: GatheringLoop, to: Printer) -> None:
    """Write a loop in strips: around the loops that have it inside if their iterations share its
    positions, else within them."""
    if g.hoisted():
        with _strips(g, to):
            _positions(g, to)
            with _nested(g.around, to):
                _rest(g, to)
        return
    with _nested(g.around, to), _strips(g, to):
        _positions(g, to)
        _rest(g, to)


@contextmanager
def _nested(loops: Sequence[For], to: Printer) -> Iterator[None]:
    """Loops around what is written meanwhile."""
    with ExitStack() as blocks:
        for s in loops:
            _, lo, hi = to.range(s)
            i = s.iter.name
            blocks.enter_context(to.w.block(
                f"for ({to.language.size} {i} = {lo}; {i} < {hi}; {i}++) {{"))
        yield


@contextmanager
def _strips(g: GatheringLoop, to: Printer) -> Iterator[None]:
    """The loop over strips around what is written meanwhile."""
    _, lo, hi = to.range(g.inner)
    at, size = g.first.name, to.language.size
    with to.w.block(f"for ({size} {at} = {lo}; {at} < {hi}; {at} += {WIDEST}) {{"):
        to.w.line(f"const {size} {g.count.name} = gt_min_i64({WIDEST}, {hi} - {at});")
        yield


def _positions(g: GatheringLoop, to: Printer) -> None:
    """The loop that computes the positions of a strip."""
    to.w.line(f"int32_t {', '.join(f'{name}[{WIDEST}]' for name in g.places)};")
    to.on_rows([Param(name, dtypes.int32, False) for name in g.places]).within_strip(
        g.before, g.count.name)


def _rest(g: GatheringLoop, to: Printer) -> None:
    """The reads of a strip, and what is computed from them."""
    for r in g.reads:
        row = r.name
        if g.copy is None:
            to.w.line(f"{to.language.type(r.param.dtype)} {row}[{WIDEST}];")
        else:
            row = f"{g.copy[0]} + {to.p.index(g.copy[1], 13)}"
        to.w.line(f"gt_row_at_{r.param.dtype.short}({row}, {r.buffer} + "
                  f"{to.p.index(r.start, 13)}, {r.places}, {g.count.name});")
    if g.body is not None:
        to.on_rows([replace(r.param, name=r.name) for r in g.reads]).within_strip(
            g.body, g.count.name)


# ---- what is known -------------------------------------------------------------------------------

def _inside(body: Iterable[Stmt], below: Below = operands) -> list[Any]:
    """All expressions in statements."""
    return each([e for s in body for e in values(s)], below)


def _names(e: Any) -> list[str]:
    """The names that an expression itself reads, also in indices."""
    return [e.name] if isinstance(e, Name) else [s.name for d in dims_of(e) for s in symbols(d)]


def sizes_of(program: Program) -> dict[str, dict[str, int]]:
    """For each kernel the least number of elements of the buffer that a parameter is given."""
    known = {b.name: b.size for b in program.buffers}
    kernels = {k.name: k for k in program.kernels}
    out: dict[str, dict[str, int]] = {}
    for step in runs(program.steps):
        here = out.setdefault(step.kernel, {})
        for p, buffer in zip(kernels[step.kernel].params, step.args, strict=True):
            size = known[buffer]
            size = size if isinstance(size, int) else 0
            here[p.name] = min(here.get(p.name, size), size)
    return out
