"""Pulls → loop nests. A reduction or a shared scalar is computed at the loop depth of its deepest
free iterator. With this rule alone, decomposed softmax becomes the nest that a person would
write."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from graphtool import dtypes
from graphtool.loops.ir import (
    Accumulate,
    Apply,
    Const,
    Expr,
    For,
    Index,
    Let,
    Load,
    Name,
    Stmt,
    Store,
)
from graphtool.loops.pull import Names, PExpr, Pull, Reduce, View, iterator
from graphtool.loops.totals import cost
from graphtool.loops.walk import dims_of, each, fold, use_counts
from graphtool.lower.exprs import (
    below,
    loads_in,
    reduces_in,
    substituted,
    whole,
)
from graphtool.lower.loop_axes import (
    Axis,
    Joined,
    along_memory_last,
    by_stride,
    flattened,
    in_grid,
    index_of,
    innermost_joined,
    is_row,
    is_short,
    is_unrolled,
    one_outside,
    parallel_loop,
    split,
    windows_along_memory,
)
from graphtool.ops.reduce import identity
from graphtool.symbolic import (
    Dim,
    Symbol,
    coefficient,
    product,
    symbols,
    typical_size,
)

WORKERS, TEAM = 1 << 14, 64  # results that keep a grid busy; terms that a team shares
HOIST = 4  # from this number of flops on, a loop-invariant scalar gets its own name
Mode = Literal["serial", "parallel", "simd", "parallel simd"]


@dataclass(eq=False)
class Scope:
    """A loop under construction; the root has no iterator. Inner loops are appended when
    complete."""

    iter: Symbol | None = None
    extent: Dim = 1
    mode: Mode = "serial"
    parent: Scope | None = None
    body: list[Stmt] = field(default_factory=list)
    named: dict[PExpr, Expr] = field(default_factory=dict)
    reduces: tuple[tuple[str, str], ...] = ()
    over: frozenset[str] = frozenset()  # the names of its iterator and of indices made of it

    def close(self) -> None:
        """Append this scope's loop, with all its statements, to the parent scope."""
        assert self.parent is not None and self.iter is not None
        self.parent.body.append(For(self.iter, self.extent, self.mode, tuple(self.body),
                                    self.reduces))


def nest(names: Names, outputs: list[tuple[View, Pull]], grid: bool = False) -> tuple[Stmt, ...]:
    """Loops over the common shape of the outputs that store each of them; with `grid` one loop for
    very many workers, and one inside where a reduction belongs to a whole row."""
    shape = outputs[0][1].shape
    axes: list[Axis] = [((iterator(names.new("i"), d), d),) if d != 1 else () for d in shape]
    exprs, idx = _along(axes, outputs)
    halves = split(axes, [e for _, e in exprs], names)
    if halves != axes:
        axes = halves
        exprs, idx = _along(axes, outputs)
    loops = windows_along_memory(by_stride(axes, outputs[0][0]), exprs, idx, names)
    if grid:
        joined = in_grid(loops, exprs, names)
    else:
        loops, exprs, idx = innermost_joined(loops, exprs, idx, names)
        loops, exprs, idx = one_outside(loops, exprs, idx, names)
        joined = [(loop, []) for loop in loops]
    writer = _NestWriter(names, [e for _, e in exprs], grid)
    scope = writer.open_loops(joined)
    for view, e in exprs:
        scope.body.append(Store(view.buffer, view.index(idx), writer.emit(e, scope)))
    while scope.parent is not None:
        scope.close()
        scope = scope.parent
    return tuple(scope.body)


def hook_body(names: Names, stores: list[tuple[View, Dim, PExpr]], lane: Symbol,
              count: Dim) -> tuple[Stmt, ...]:
    """The body of a template's hook: a simd loop over `lane` that stores each expression."""
    writer = _NestWriter(names, [e for _, _, e in stores])
    root = Scope()
    inner = Scope(lane, count, "simd", root, over=frozenset({lane.name}))
    writer.inner = inner.over
    for view, at, e in stores:
        inner.body.append(Store(view.buffer, at, writer.emit(e, inner)))
    inner.close()
    return tuple(root.body)


def index_statements(names: Names, at: Dim) -> tuple[Stmt, ...]:
    """The statements that define the indices in `at` that are read from data."""
    scope = Scope()
    _NestWriter(names, [*names.indices.values()]).bind_indices(at, scope)
    return tuple(scope.body)


def _along(axes: Sequence[Axis], outputs: list[tuple[View, Pull]]) -> tuple[
        list[tuple[View, PExpr]], tuple[Dim, ...]]:
    """The expressions of the outputs' elements, and their index."""
    idx = tuple(map(index_of, axes))
    return [(view, pull.at(idx)) for view, pull in outputs], idx


class _NestWriter:
    def __init__(self, names: Names, roots: list[PExpr], grid: bool = False) -> None:
        self.names, self.grid = names, grid
        self.below = below(names)
        self.free_memo: dict[PExpr, frozenset[str]] = {}
        self.uses = use_counts(roots, self.below)
        self.roots = roots
        self.inner = frozenset[str]()  # the names that change with each iteration
        self.simd_reduce = False
        self.loops: list[tuple[Symbol, Dim]] = []

    # ---- loops -----------------------------------------------------------------------------

    def open_loops(self, joined: list[Joined]) -> Scope:
        """Open the output loops: one parallel, the innermost simd unless its reductions are.

        If the innermost has few iterations, the loop around it is simd, because compilers unroll
        the inner one; but not around a reduction that is a loop.
        """
        loops = [loop for loop, _ in joined]
        over = [frozenset({it.name, *(s.name for s, _ in parts)}) for (it, _), parts in joined]
        if loops:
            self.inner, self.loops = over[-1], loops
        self.simd_reduce = (self._reductions_are_shared(loops) if self.grid else
                            self._reductions_run_along_memory())
        split = parallel_loop(loops)
        lanes = len(loops) - 1 - (is_short(loops) and all(
            self._is_unrolled(r) and not self._reads_indices(r)
            for r in reduces_in(self.roots, self.names)))
        scope = Scope()
        for n, (it, extent) in enumerate(loops):
            mode: Mode = "parallel" if n == split else "serial"
            if n == lanes and not self.simd_reduce:
                mode = "parallel simd" if n == split else "simd"
            scope = Scope(it, extent, mode, scope, over=over[n])
            scope.body += [Let(s.name, Index(d, dtypes.int64)) for s, d in joined[n][1]]
        return scope

    def _reductions_run_along_memory(self) -> bool:
        """Whether the loops to vectorise are the reductions inside the innermost output loop."""
        inside = [r for r in reduces_in(self.roots, self.names)
                  if self.inner & self.free(r) and not self._is_unrolled(r)]
        return any(coefficient(x.index, name) not in (0, 1) for r in inside for name in self.inner
                   for x in loads_in(r.body, self.names))

    def _reductions_are_shared(self, loops: list[tuple[Symbol, Dim]]) -> bool:
        """Whether workers of a grid are a team for each result, because the results are fewer than
        the workers and their reductions are long, or because a reduction reads a row of memory."""
        sizes = [product(d for _, d in r.iters) for r in reduces_in(self.roots, self.names)
                 if self.inner & self.free(r)]
        few = typical_size(product(d for _, d in loops)) < WORKERS
        return (few or self._reductions_run_along_memory()) and max(
            map(typical_size, sizes), default=0) >= TEAM

    # ---- expressions -----------------------------------------------------------------------

    def free(self, e: PExpr) -> frozenset[str]:
        """Names of the iterators that the value depends on."""
        return fold(e, self._free, self.free_memo, self.below)

    def _free(self, e: PExpr, parts: list[frozenset[str]]) -> frozenset[str]:
        out = frozenset(s.name for d in dims_of(e) for s in symbols(d)
                        if s.name not in self.names.indices and s.extent is not None)
        out = out.union(*parts)
        return out - {s.name for s, _ in e.iters} if isinstance(e, Reduce) else out

    def home(self, e: PExpr, scope: Scope) -> Scope:
        free = self.free(e)
        while scope.parent is not None and not scope.over & free:
            scope = scope.parent
        return scope

    def emit(self, e: PExpr, scope: Scope) -> Expr:
        """The expression for use in `scope`; parts that need a name are defined in the scope where
        they belong."""
        match e:
            case Const() | Name():
                return e
            case Index():
                self.bind_indices(e.value, scope)
                return e
            case Reduce():
                return self.reduce(e, scope)
            case Load():
                self.bind_indices(e.index, scope)
        home = self.home(e, scope)
        if e in home.named:
            return home.named[e]
        shared = self.uses.get(e, 0) > 1
        invariant = home is not scope and cost(e) >= HOIST
        if not (shared or invariant):
            return self.inline(e, scope)
        value = self.inline(e, home)
        name = Name(self.names.new("v"), e.dtype)
        home.body.append(Let(name.name, value))
        home.named[e] = name
        return name

    def inline(self, e: PExpr, scope: Scope) -> Expr:
        if isinstance(e, Apply):
            return Apply(e.fn, tuple(self.emit(a, scope) for a in e.args), e.dtype)
        assert isinstance(e, Load)
        return e

    def bind_indices(self, d: Dim, scope: Scope) -> None:
        """Define the indices in d that are read from data, each at the depth of the value it
        reads."""
        for s in symbols(d):
            value = self.names.indices.get(s.name)
            if value is None:
                continue
            home = self.home(value, scope)
            if value not in home.named:
                home.named[value] = Name(s.name, dtypes.int64)
                inner = self.emit(value, home) if not isinstance(value, Apply) else Apply(
                    value.fn, tuple(self.emit(a, home) for a in value.args), value.dtype)
                home.body.append(Let(s.name, inner))

    def reduce(self, r: Reduce, scope: Scope) -> Expr:
        home = self.home(r, scope)
        if r in home.named:
            return home.named[r]
        acc = Name(self.names.new("acc"), r.dtype)
        for _, d in r.iters:
            self.bind_indices(d, home)
        # named before the body is written: the Let must stand before the loops
        home.named[r] = acc
        if not self._reads_indices(r):
            whole, r = r, flattened(r, self.names)
            if r is not whole:
                self.counted(r.body)
        inner = Scope(parent=home)
        place: Scope = home
        pending = Let(acc.name, r.init, mutable=True)
        iters = along_memory_last(r, self.names)
        if self._is_unrolled(r) and not self._reads_indices(r):
            return self.written_out(r, acc, home)
        for n, (it, extent) in enumerate(iters):
            last = n == len(iters) - 1
            vector = last and self._vectorise(r, it)
            place = Scope(it, extent, "simd" if vector else "serial", place,
                          reduces=((acc.name, r.fn),) if vector else (),
                          over=frozenset({it.name}))
        inner = place
        inner.body.append(Accumulate(acc.name, r.fn, self.emit(r.body, inner)))
        home.body.append(pending)
        while place is not home:
            place.close()
            assert place.parent is not None
            place = place.parent
        return acc

    def counted(self, body: PExpr) -> PExpr:
        """A new body, after its parts are counted: what it uses twice gets a name."""
        for e, n in use_counts([body], self.below).items():
            self.uses[e] = max(n, self.uses.get(e, 0))
        return body

    def written_out(self, r: Reduce, acc: Name, home: Scope) -> Expr:
        """A small window without loops: one statement for each element, so that the loop around
        it can be vectorised. An extreme begins with its first element."""
        values = []
        for at in itertools.product(*(range(whole(d)) for _, d in r.iters)):
            env: dict[str, Dim] = {it.name: i for (it, _), i in zip(r.iters, at, strict=True)}
            values.append(self.counted(substituted(r.body, env)))
        first = values and r.fn in ("max", "min") and not r.dtype.is_narrow and (
            r.init == Const(identity(r.fn, r.dtype), r.dtype))
        begin = self.emit(values.pop(0), home) if first else r.init
        home.body.append(Let(acc.name, begin, mutable=True))
        for value in values:
            home.body.append(Accumulate(acc.name, r.fn, self.emit(value, home)))
        return acc

    def _is_unrolled(self, r: Reduce) -> bool:
        """Whether the reduction's steps are statements, so that the loop around it is simd."""
        return is_unrolled(r) and (self.grid or not (
            is_row(r, self.loops, self.names) or any(
                isinstance(e, Reduce) and not is_unrolled(e) for e in each([r.body], self.below))))

    def _reads_indices(self, r: Reduce) -> bool:
        """Whether the body reads indices from data: such an index has one name, not one for each
        iteration."""
        return any(s.name in self.names.indices for e in each([r.body], self.below)
                   if not isinstance(e, Reduce) for d in dims_of(e) for s in symbols(d))

    def _vectorise(self, r: Reduce, it: Symbol) -> bool:
        if self.inner & self.free(r) and not self.simd_reduce:
            return False
        return any(coefficient(x.index, it.name) == 1 for x in loads_in(r.body, self.names))
