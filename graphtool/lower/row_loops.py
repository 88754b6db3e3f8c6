"""Reductions along rows: they add to the row of the result, or store what the next loop reads.

A sum over the rows of [N, C] is a loop over columns with a loop over rows inside. Compilers
vectorise the outer one only if they see that the inner one is a single loop that runs at least
once, which an open size hides; and then each step is as long as a row. Exchanged, each row is added
to the row of the result, in the same order for each element, and both are read as they are in
memory.

If a reduction over a row and the next loop over that row compute the same expression, the reduction
stores it in the row of the result, and the loop reads it: softmax has one exponential for each
element. Both are done only if the kernel does not read the buffer of the result elsewhere, and if
that has the type of the sum or expression. Bytes are left to emit/kept_rows.py: a compiler makes no
vectors of a sum of floats that stores them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from graphtool.dtypes import DType
from graphtool.loops.ir import Accumulate, Apply, Expr, For, Let, Load, Name, Stmt, Store
from graphtool.loops.pull import iterator
from graphtool.loops.totals import LEAST_FLOPS, cost
from graphtool.loops.walk import accesses, each, map_bodies, mapped, statements
from graphtool.lower.exprs import replaced, substituted
from graphtool.lower.views import Storage
from graphtool.symbolic import (
    Dim,
    Symbol,
    bounds,
    coefficient,
    product,
    substitute,
    symbol_of,
    symbols,
)


def kept(body: tuple[Stmt, ...], buffers: Mapping[str, Storage]) -> tuple[Stmt, ...]:
    """The statements with every such pair of loops joined."""
    return _in_block(body, written_once(body, buffers))


def written_once(body: tuple[Stmt, ...], buffers: Mapping[str, Storage]) -> dict[str, DType]:
    """The buffers that exactly one statement stores to and none reads, with their types."""
    stores = [s.buffer for s in statements(body) if isinstance(s, Store)]
    read = {b for b, write in accesses(body) if not write}
    return {b: buffers[b].dtype for b in stores
            if stores.count(b) == 1 and b not in read and b in buffers}


def _in_block(body: tuple[Stmt, ...], free: Mapping[str, DType]) -> tuple[Stmt, ...]:
    out = [replace(s, body=_in_block(s.body, free)) if isinstance(s, For) else s for s in body]
    for j, second in enumerate(out):
        for i in reversed(range(j)):
            pair = _joined(out[i], second, out[i + 1:j], free)
            if pair is not None:
                out[i], out[j] = pair
                break
    return tuple(out)


def _joined(first: Stmt, second: Stmt, between: list[Stmt],
            free: Mapping[str, DType]) -> tuple[For, For] | None:
    """Both loops, where the first stores the most expensive expression that they share; None
    without one."""
    match first, second:
        case For(it, n, _, (Accumulate() as sum_,)), For(at, m, mode, (*lets, Store() as store)):
            pass
        case _:
            return None
    if mode.startswith("parallel"):
        return None  # each thread sums all of the row, and would overwrite what others finished
    if n != m or coefficient(store.index, at.name) != 1 or store.buffer not in free:
        return None
    changing = {s.name for s in (sum_, *statements(tuple(between))) if isinstance(s, Accumulate)}
    there = set(each([store.value]))
    for e in sorted(each([sum_.value]), key=cost, reverse=True):
        if cost(e) < LEAST_FLOPS:
            break
        same = substituted(e, {it.name: symbol_of(at)})
        names = {x.name for x in each([e]) if isinstance(x, Name)}
        if same not in there or e.dtype is not free[store.buffer] or names & changing or (
                e.dtype.bytes == 1):
            continue
        keeping = Name("kept", e.dtype)
        place = substitute(store.index, {at.name: symbol_of(it)})
        loaded = Load(store.buffer, store.index, e.dtype)
        rest = replace(sum_, value=mapped(sum_.value, _same, {e: keeping}))
        taken = replace(store, value=mapped(store.value, _same, {same: loaded}))
        return (replace(first, body=(Let(keeping.name, e), Store(store.buffer, place, keeping),
                                     rest)), replace(second, body=(*lets, taken)))
    return None


def _same(e: Expr) -> Expr:
    return e


LEAST_COLUMNS = 8  # columns from which on rows are added
MANY = 16  # rows from which on that is faster than to add a vector of columns at a time
BLOCK, WIDEST = 64, 4096  # columns that a thread adds together: at most; and if it is alone


def in_rows(body: tuple[Stmt, ...], buffers: Mapping[str, Storage]) -> tuple[Stmt, ...]:
    """The statements with every such reduction exchanged with the loop around it."""
    return _body(body, written_once(body, buffers))


def _body(body: tuple[Stmt, ...], free: Mapping[str, DType]) -> tuple[Stmt, ...]:
    out: list[Stmt] = []
    for s in body:
        if isinstance(s, For) and s.mode == "simd" and (rows := _rows(s, free)):
            out += rows
        elif isinstance(s, For) and s.mode == "parallel simd" and (parts := _divided(s)) and (
                rows := _rows(parts, free)):
            block = columns_of_block(s.extent)
            outer = iterator(f"o{s.iter.name[1:]}", s.extent // block)
            out.append(For(outer, s.extent // block, "parallel", rows))
        else:
            out.append(map_bodies(s, lambda inner: _body(inner, free)))
    return tuple(out)


def columns_of_block(n: Dim, most: int = BLOCK) -> int:
    """The greatest number of columns, up to `most`, that n is a multiple of; 0 if there is none
    that is worth it."""
    return next((b for b in range(most, LEAST_COLUMNS - 1, -1) if n % b == 0), 0) if isinstance(
        n, int) else 0


def _divided(s: For) -> For | None:
    """One block of the loop, in terms of the loop over blocks around it."""
    block = columns_of_block(s.extent)
    if not block:
        return None
    outer = iterator(f"o{s.iter.name[1:]}", s.extent // block)
    inner = iterator(s.iter.name, block)
    env: dict[str, Dim] = {s.iter.name: symbol_of(outer) * block + symbol_of(inner)}
    return For(inner, block, "simd", replaced(s.body, env))


def _rows(loop: For, free: Mapping[str, DType]) -> tuple[Stmt, ...] | None:
    """Loops over columns that store the first value, add each row, and finish; None for any other
    loop."""
    match loop.body:
        case (*_, Let(acc, init, True), For() as rows, Store() as store):
            lets, chain, columns = _constants(loop.body[:-3]), _chain(rows), loop.extent
        case _:
            return None
    if chain is None or lets is None:
        return None
    extents = [n for _, n in chain[0]]
    if not (_hidden(extents) or _tall(extents, columns)):
        return None
    loops, last, sum_ = chain
    if sum_.name != acc or sum_.fn is None or free.get(store.buffer) is not init.dtype or (
            coefficient(store.index, loop.iter.name) != 1) or (
            isinstance(columns, int) and columns < LEAST_COLUMNS):
        return None
    inner = {loop.iter.name, *(x.name for x in lets)}
    if any(s.name in inner for _, n in loops for s in symbols(n)):
        return None  # the number of rows depends on the column
    here = Load(store.buffer, store.index, init.dtype)
    row: Stmt = replace(loop, body=(*lets, *last, replace(
        store, value=Apply(sum_.fn, (here, sum_.value), init.dtype))))
    for it, n in reversed(loops):
        row = For(it, n, "serial", (row,))
    first = replace(loop, body=(replace(store, value=init),))
    total = Name(acc, init.dtype)
    if store.value == total:
        return first, row
    value: Expr = mapped(store.value, lambda e: e, {total: here})
    return first, row, replace(loop, body=(*lets, replace(store, value=value)))


Chain = tuple[list[tuple[Symbol, Dim]], tuple[Let, ...], Accumulate]


def _chain(s: For) -> Chain | None:
    """The loops of a reduction, and what its body consists of; None for anything else."""
    if s.mode != "serial":
        return None
    match s.body:
        case (For() as inner,):
            rest = _chain(inner)
            return None if rest is None else ([(s.iter, s.extent), *rest[0]], *rest[1:])
        case (*_, Accumulate() as sum_) if (lets := _constants(s.body[:-1])) is not None:
            return [(s.iter, s.extent)], lets, sum_
    return None


def _constants(body: tuple[Stmt, ...]) -> tuple[Let, ...] | None:
    """The statements if they only name values, else None."""
    lets = tuple(x for x in body if isinstance(x, Let) and not x.mutable)
    return lets if len(lets) == len(body) else None


def _tall(extents: list[Dim], columns: Dim) -> bool:
    """Whether a vector of columns at a time would walk memory in long steps many times."""
    most = bounds(product(extents))[1]
    return isinstance(columns, int) and columns >= BLOCK and most is not None and most >= MANY


def _hidden(extents: list[Dim]) -> bool:
    """Whether the compiler does not see one loop that runs at least once."""
    return len(extents) > 1 or any((bounds(n)[0] or 0) < 1 or not isinstance(n, int)
                                   for n in extents)
