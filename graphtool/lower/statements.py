"""Ops that need loops of their own, because no single expression gives an element and no template
serves.

They are not fused with other ops; their operands and results may have any strides.
"""

from __future__ import annotations

from collections.abc import Callable

from graphtool import dtypes
from graphtool import ops as o
from graphtool.ir.graph import Node
from graphtool.ir.op import Op
from graphtool.kernels.tiles import work_of
from graphtool.kernels.use import Lowered
from graphtool.loops.ir import Accumulate, Const, Expr, For, Let, Load, Name, Stmt, Store
from graphtool.loops.pull import Names, View, apply, iterator
from graphtool.lower.loop_axes import SHARED
from graphtool.lower.nest import index_statements
from graphtool.lower.ranks import LOOPS
from graphtool.lower.row_loops import BLOCK, LEAST_COLUMNS, WIDEST, columns_of_block
from graphtool.lower.scans import STEP, scans
from graphtool.lower.scatters import scatter
from graphtool.lower.unit_use import UnitUse
from graphtool.ops.reduce import identity
from graphtool.symbolic import (
    Dim,
    Symbol,
    bounds,
    coefficient,
    product,
    symbol_of,
    typical,
    typical_size,
)


def lower_statements(use: UnitUse) -> list[Lowered]:
    """The bodies of the node's kernels in order; there may be several on a device."""
    node, assignment = use.node, use.assignment
    if node.op in LOOPS:
        return LOOPS[node.op](use)
    if use.target.grid and node.op is o.cumulative:
        return scans(use.view(0), assignment.views[node.outputs[0]], assignment.buffers,
                     node.outputs[0].hint, **node.attrs)
    if use.target.grid:
        return scatter(use)
    return [STATEMENTS[node.op](use)]


Loop = tuple[Symbol, Dim, bool]  # the iterator, its extent, and whether the threads share it


# ---- cumulative --------------------------------------------------------------------------------

def _cumulative(use: UnitUse) -> Lowered:
    """The loops of a cumulative op: each element from the one before, in linear time."""
    node, x, out, a = use.node, use.view(0), use.assignment.views[use.out], use.node.attrs
    axis = a["axis"] % len(x.shape)
    n, start = x.shape[axis], identity(a["kind"], x.dtype)
    if (body := _cumulative_rows(node, x, out, axis, use.target.most_threads)) is not None:
        return Lowered(body, product(x.shape), work_of(product(x.shape)))
    names = Names()
    at = [iterator(names.new("i"), d) for d in x.shape]
    idx = [0 if d == 1 else symbol_of(s) for s, d in zip(at, x.shape, strict=True)]
    running = Name("running", x.dtype)
    here = n - 1 - idx[axis] if a["reverse"] else idx[axis]
    full = (*idx[:axis], here, *idx[axis + 1:])
    step: tuple[Stmt, ...] = (Accumulate("running", STEP[a["kind"]], Load(
        x.buffer, x.index(full), x.dtype)),)
    store = Store(out.buffer, out.index(full), running)
    body = _loops([(at[axis], n, False)], (store, *step) if a["exclusive"] else (*step, store))
    body = (Let("running", Const(start, x.dtype), mutable=True), *body)
    others = [i for i in range(len(at)) if i != axis and x.shape[i] != 1]
    shared = max(others, key=lambda i: work_of(x.shape[i]), default=None)
    body = _loops([(at[i], x.shape[i], i == shared) for i in others], body)
    size = product(x.shape)
    return Lowered(body, size, 0 if shared is None else work_of(size))


def _cumulative_rows(node: Node, x: View, out: View, axis: int, threads: int
                     ) -> tuple[Stmt, ...] | None:
    """Loops in which each row is the one before and a row of x, so that columns are adjacent in
    memory; None where the axis itself is, or rows would be rounded more often than a scalar.

    The threads share the columns in blocks, or an outer axis that is long enough. Blocks are as
    wide as the most `threads` allow, because memory is faster the longer the piece of a row.
    """
    a, n, dtype = node.attrs, x.shape[axis], x.dtype
    along = [i for i, d in enumerate(x.shape) if i != axis and d != 1 and out.strides[i] == 1]
    if not along or dtype not in (dtypes.float32, dtypes.float64, dtypes.int32, dtypes.int64) or (
            bounds(n)[0] or 0) < 1:
        return None
    column = along[-1]
    others = [i for i, d in enumerate(x.shape) if i not in (axis, column) and d != 1]
    shared = next((i for i in others if typical_size(x.shape[i]) >= SHARED), column)
    wide = x.shape[column]
    each = wide // threads if isinstance(wide, int) else 0
    block = columns_of_block(wide, min(max(each, BLOCK), WIDEST)) if shared == column else wide
    if not block or (isinstance(block, int) and block < LEAST_COLUMNS):
        return None
    names = Names()
    at = {i: iterator(names.new("i"), x.shape[i]) for i in others}
    outer = iterator(names.new("i"), x.shape[column] // block)
    inner = iterator(names.new("i"), block)
    row = iterator(names.new("i"), n - 1)
    idx: list[Dim] = [symbol_of(at[i]) if i in at else 0 for i in range(len(x.shape))]
    idx[column] = symbol_of(inner) + (symbol_of(outer) * block if shared == column else 0)

    def place(k: Dim) -> tuple[Dim, ...]:
        return (*idx[:axis], n - 1 - k if a["reverse"] else k, *idx[axis + 1:])

    def load(view: View, k: Dim) -> Load:
        return Load(view.buffer, view.index(place(k)), dtype)

    step, start, k = STEP[a["kind"]], Const(identity(a["kind"], dtype), dtype), symbol_of(row)
    first = start if a["exclusive"] else apply(step, start, load(x, 0))
    later = apply(step, load(out, k), load(x, k if a["exclusive"] else k + 1))
    body: tuple[Stmt, ...] = (
        For(inner, block, "simd", (Store(out.buffer, out.index(place(0)), first),)),
        For(row, n - 1, "serial", (For(inner, block, "simd", (
            Store(out.buffer, out.index(place(k + 1)), later),)),)))
    if shared == column:
        body = (For(outer, x.shape[column] // block, "parallel", body),)
    return _loops([(at[i], x.shape[i], i == shared) for i in others], body)


# ---- scatter -----------------------------------------------------------------------------------

def _scatter(use: UnitUse) -> Lowered:
    """x copied, unless the result takes its place, then the updates in order. The threads share an
    axis that no index addresses, so that each writes its own part; without such an axis a single
    thread does everything. So it does where the parts of a row would be shorter than a vector:
    that takes each thread longer than the whole row."""
    node, out, names = use.node, use.assignment.views[use.out], Names()
    x, updates = use.view(0), use.view(2)
    axes, batch = node.attrs["axes"], node.attrs["batch"]
    indices = use.pull(1, names)
    free = [a for a in range(len(out.shape)) if a not in axes]
    shared = max((a for a in free if out.shape[a] != 1 and not _short(out, a)),
                 key=lambda a: work_of(out.shape[a]), default=None)
    every, idx = _axes(out, shared, names)
    copy = () if x == out else _loops(_falling(every, out.strides), (Store(
        out.buffer, out.index(idx), Load(x.buffer, x.index(idx), x.dtype)),))
    every, idx = _axes(out, shared, names)
    lead = [(iterator(names.new("u"), d), d, False) for d in indices.shape[batch:-1]]
    where = [*idx]
    rest = [a for a in free if a >= batch]
    outer = (*where[:batch], *(0 if d == 1 else symbol_of(s) for s, d, _ in lead))
    at = updates.index((*outer, *(where[a] for a in rest)))
    for n, axis in enumerate(axes):
        where[axis] = names.index(indices.at((*outer, n)), out.shape[axis])
    place = out.index(tuple(where))
    body: tuple[Stmt, ...] = (Store(out.buffer, place, _updated(
        node.attrs["kind"], Load(out.buffer, place, x.dtype), Load(updates.buffer, at, x.dtype))),)
    body = (*index_statements(names, place), *_loops([every[a] for a in rest], body))
    body = _loops(_by_memory(every[:batch], lead, at), body)
    size = product(updates.shape) + (product(out.shape) if copy else 0)
    return Lowered((*copy, *body), product(updates.shape),
                   0 if shared is None else work_of(size))


def _short(out: View, axis: int) -> bool:
    """Whether adjacent elements along the axis are too few to be shared."""
    d = out.shape[axis]
    return out.strides[axis] == 1 and isinstance(d, int) and d < 2 * LEAST_COLUMNS


def _axes(out: View, shared: int | None, names: Names) -> tuple[list[Loop], tuple[Dim, ...]]:
    """A loop along each axis of the result, and the index in terms of them."""
    loops = [(iterator(names.new("i"), d), d, a == shared) for a, d in enumerate(out.shape)]
    return loops, tuple(0 if d == 1 else symbol_of(s) for s, d, _ in loops)


def _falling(loops: list[Loop], strides: tuple[Dim, ...]) -> list[Loop]:
    """The loops from outer to inner by falling stride."""
    order = sorted(range(len(loops)), key=lambda a: -typical(strides[a]))
    return [loops[a] for a in order]


def _by_memory(batch: list[Loop], lead: list[Loop], at: Dim) -> list[Loop]:
    """The loops of both kinds, outermost first: as updates are in memory if their first loop or
    their last one is along a batch, since the order of batches does not matter."""
    inside = [loop for loop in batch if coefficient(at, loop[0].name) == 1 and loop[1] != 1]
    return [*(loop for loop in batch if loop not in inside), *lead, *inside]


def _updated(kind: str, old: Expr, new: Expr) -> Expr:
    return new if kind == "set" else apply(kind, old, new)


def _loops(loops: list[Loop], body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    """The body inside loops, outermost first; the threads share the marked one."""
    for it, extent, parallel in reversed(loops):
        if extent != 1:
            body = (For(it, extent, "parallel" if parallel else "serial", body),)
    return body


STATEMENTS: dict[Op, Callable[[UnitUse], Lowered]] = {
    o.cumulative: _cumulative, o.scatter: _scatter}
