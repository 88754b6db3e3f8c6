"""Scatters on devices: many workers, and updates of one element in their order.

Few updates are made one after the other by the workers of each element beside them; so are all
updates where the language has no kernel that sorts. Many are first sorted by the element that they
address, stably; then the first update of each run of equal elements has a worker, which makes all
updates of its run. So each run gives the same bits.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from graphtool import dtypes
from graphtool import ops as o
from graphtool.ir.graph import Value
from graphtool.kernels.record import has_text
from graphtool.kernels.sort import order
from graphtool.kernels.use import Lowered
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
)
from graphtool.loops.pull import Names, PExpr, View, apply, iterator
from graphtool.lower.nest import index_statements
from graphtool.lower.scans import workers
from graphtool.lower.slabs import room
from graphtool.lower.unit_use import UnitUse
from graphtool.symbolic import (
    Dim,
    Symbol,
    bounds,
    floordiv,
    minimum,
    mod,
    product,
    symbol_of,
    typical_size,
)

FEW = 64  # updates that are made one after the other
MOST_STEPS = 40  # of the search for the end of a run
Loop = tuple[Symbol, Dim]


@dataclass(frozen=True)
class Scatter:
    """The views of a scatter, and its use, which computes the indices: `lead` are the axes of the
    updates that indices have."""

    use: UnitUse
    x: View
    updates: View
    out: View
    axes: tuple[int, ...]
    batch: int
    kind: str

    @property
    def lead(self) -> tuple[Dim, ...]:
        """The extents of the axes of updates, of one batch."""
        x = self.use.node.inputs[1]
        assert isinstance(x, Value)
        return x.type.shape[self.batch:-1]

    @property
    def rest(self) -> list[int]:
        """The axes of the result of which an update has all elements."""
        return [a for a in range(self.batch, len(self.out.shape)) if a not in self.axes]

    def loops(self, axes: list[int], names: Names) -> dict[int, Loop]:
        """Loops over axes of the result."""
        return {a: (iterator(names.new("i"), d), d) for a in axes
                if (d := self.out.shape[a]) != 1}

    def update(self, loops: dict[int, Loop], lead: tuple[Dim, ...]) -> Load:
        """What an update has for an element."""
        at = (*_at(loops, range(self.batch)), *lead, *_at(loops, self.rest))
        return Load(self.updates.buffer, self.updates.index(at), self.x.dtype)

    def addressed(self, loops: dict[int, Loop], lead: tuple[Dim, ...], names: Names
                  ) -> tuple[list[Stmt], dict[int, Dim]]:
        """Statements that read the indices of an update, and the index along each axis."""
        out, lets, indices = dict[int, Dim](), list[Stmt](), self.use.pull(1, names)
        for n, axis in enumerate(self.axes):
            at = (*_at(loops, range(self.batch)), *lead, n)
            out[axis], let = _let(indices.at(at), self.out.shape[axis], names)
            lets += let
        return lets, out

    def place(self, loops: dict[int, Loop], addressed: dict[int, Dim]) -> Dim:
        """The index of an element of the result in its buffer."""
        return self.out.index(tuple(addressed.get(a, _at(loops, [a])[0])
                                    for a in range(len(self.out.shape))))

    def made(self, old: Expr, new: Expr) -> Expr:
        """An element after an update."""
        return new if self.kind == "set" else apply(self.kind, old, new)


def _at(loops: dict[int, Loop], axes: Any) -> tuple[Dim, ...]:
    return tuple(symbol_of(loops[a][0]) if a in loops else 0 for a in axes)


def _let(value: PExpr, extent: Dim, names: Names) -> tuple[Dim, list[Stmt]]:
    """A name for an index that is read, and the statements that define it, unless it was read
    before."""
    known = len(names.indices)
    d = names.index(value, extent)
    return d, [*index_statements(names, d)] if len(names.indices) > known else []


def scatter(use: UnitUse) -> list[Lowered]:
    """The kernels of a scatter: x is copied, unless the result takes its place, then updated."""
    x, updates = use.view(0), use.view(2)
    s = Scatter(use, x, updates, use.assignment.views[use.out], use.node.attrs["axes"],
                use.node.attrs["batch"], use.node.attrs["kind"])
    kernels = [] if x == s.out else [_copy(s)]
    few = typical_size(product(s.lead)) <= FEW or not has_text(o.sort, use.target.language)
    return [*kernels, *([_in_turn(s)] if few else _by_runs(s, use))]


def _copy(s: Scatter) -> Lowered:
    names = Names()
    loops = s.loops([*range(len(s.out.shape))], names)
    idx = _at(loops, range(len(s.out.shape)))
    body = (Store(s.out.buffer, s.out.index(idx), Load(s.x.buffer, s.x.index(idx), s.x.dtype)),)
    return Lowered(workers([*loops.values()], body, names), product(s.out.shape))


def _in_turn(s: Scatter) -> Lowered:
    """A worker for each element beside the indexed axes makes all updates."""
    names = Names()
    loops = s.loops([*range(s.batch), *s.rest], names)
    lead = [(iterator(names.new("u"), d), d) for d in s.lead]
    at = tuple(symbol_of(i) if d != 1 else 0 for i, d in lead)
    lets, addressed = s.addressed(loops, at, names)
    place = s.place(loops, addressed)
    body: tuple[Stmt, ...] = (*lets, Store(s.out.buffer, place, s.made(
        Load(s.out.buffer, place, s.x.dtype), s.update(loops, at))))
    for i, d in reversed(lead):
        body = (For(i, d, "serial", body),) if d != 1 else body
    return Lowered(workers([*loops.values()], body, names), product(s.updates.shape))


def _by_runs(s: Scatter, use: UnitUse) -> list[Lowered]:
    """The kernels that sort the updates, find where runs of one element end, and make them."""
    count, batches = product(s.lead), s.out.shape[:s.batch]
    shape = (product(batches), count)
    keys, sorted_keys, places, lengths = (
        room(use.assignment.buffers, dtypes.int64, shape, use.out.hint) for _ in range(4))
    ordered = order(use, keys, 1, count, False, [sorted_keys, places])
    return [_keys(s, keys), *(ordered if isinstance(ordered, list) else [ordered]),
            _lengths(sorted_keys, lengths), _runs(s, sorted_keys, places, lengths)]


def _unflat(at: Dim, shape: tuple[Dim, ...]) -> tuple[Dim, ...]:
    """The index of element `at` of an array."""
    steps = [product(shape[n + 1:]) for n in range(len(shape))]
    return tuple(0 if d == 1 else mod(floordiv(at, step), d) if n else floordiv(at, step)
                 for n, (d, step) in enumerate(zip(shape, steps, strict=True)))


def _keys(s: Scatter, keys: View) -> Lowered:
    """The number of the element that each update addresses."""
    names = Names()
    loops = s.loops([*range(s.batch)], names)
    u = iterator(names.new("u"), keys.shape[1])
    lets, addressed = s.addressed(loops, _unflat(symbol_of(u), s.lead), names)
    number: Dim = 0
    for axis in s.axes:
        number = number * s.out.shape[axis] + addressed[axis]
    row = _flat(_at(loops, range(s.batch)), s.out.shape[:s.batch])
    body = (*lets, Store(keys.buffer, keys.index((row, symbol_of(u))), Index(number, dtypes.int64)))
    return Lowered(workers([*loops.values(), (u, keys.shape[1])], body, names),
                   product(keys.shape))


def _flat(idx: tuple[Dim, ...], shape: tuple[Dim, ...]) -> Dim:
    at: Dim = 0
    for i, d in zip(idx, shape, strict=True):
        at = at * d + i
    return at


def _lengths(keys: View, lengths: View) -> Lowered:
    """For each sorted update how many address its element, if it is the first of them; else 0. The
    end of a run is found by halving."""
    names, (rows, n) = Names(), keys.shape
    row, p = (iterator(names.new("i"), d) for d in (rows, n))
    r, at = (symbol_of(row) if rows != 1 else 0), symbol_of(p)
    key, end = Name(names.new("v"), dtypes.int64), Name("running", dtypes.int64)

    def load(i: Dim) -> Load:
        return Load(keys.buffer, keys.index((r, i)), dtypes.int64)
    body: list[Stmt] = [Let(key.name, load(at)),
                        Let(end.name, Const(0, dtypes.int64), mutable=True)]
    most = bounds(n)[1]
    for step in reversed(range(MOST_STEPS if most is None else most.bit_length())):
        further = apply("add", end, Const(1 << step, dtypes.int64))
        there, let = _let(apply("sub", further, Const(1, dtypes.int64)), n, names)
        inside = apply("and", _is("le", further, Index(n, dtypes.int64)),
                       _is("le", load(there), key))
        body += [*let, Accumulate(end.name, None, apply(
            "select", inside, further, end, dtype=dtypes.int64))]
    before, let = _let(Index(at - 1, dtypes.int64), n, names)
    first = apply("or", _is("eq", Index(at, dtypes.int64), Const(0, dtypes.int64)),
                  _is("ne", load(before), key))
    length = apply("select", first, apply("sub", end, Index(at, dtypes.int64)),
                   Const(0, dtypes.int64), dtype=dtypes.int64)
    body += [*let, Store(lengths.buffer, lengths.index((r, at)), length)]
    return Lowered(workers([(row, rows)] * (rows != 1) + [(p, n)], tuple(body), names),
                   product(keys.shape))


def _is(fn: str, a: Any, b: Any) -> Apply:
    return apply(fn, a, b, dtype=dtypes.bool_)


def _runs(s: Scatter, keys: View, places: View, lengths: View) -> Lowered:
    """A worker for each element of the first update of a run makes all updates of the run."""
    names, n = Names(), keys.shape[1]
    loops = s.loops([*range(s.batch)], names)
    p = iterator(names.new("u"), n)
    loops |= s.loops(s.rest, names)
    row, at = _flat(_at(loops, range(s.batch)), s.out.shape[:s.batch]), symbol_of(p)
    sizes = tuple(s.out.shape[a] for a in s.axes)
    length, let_length = _let(Load(lengths.buffer, lengths.index((row, at)), dtypes.int64), n + 1,
                              names)
    number, let_number = _let(Load(keys.buffer, keys.index((row, at)), dtypes.int64),
                              product(sizes), names)
    place = s.place(loops, dict(zip(s.axes, _unflat(number, sizes), strict=True)))
    here = minimum(length, n - at)
    k = iterator(names.new("r"), here)
    update, let_update = _let(Load(places.buffer, places.index((row, at + symbol_of(k))),
                                   dtypes.int64), n, names)
    new = s.update(loops, _unflat(update, s.lead))
    running = Name("running", s.x.dtype)
    fn = None if s.kind == "set" else s.kind
    then = (*let_number,
            Let("running", Load(s.out.buffer, place, s.x.dtype), mutable=True),
            For(k, here, "serial", (*let_update, Accumulate("running", fn, new))),
            Store(s.out.buffer, place, running))
    body = (*let_length, If(_is("gt", Index(length, dtypes.int64), Const(0, dtypes.int64)), then))
    inner = [loops[a] for a in s.rest if a in loops]
    outer = [loops[a] for a in range(s.batch) if a in loops]
    return Lowered(workers([*outer, (p, n), *inner], body, names), product(s.updates.shape))
