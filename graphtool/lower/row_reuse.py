"""Joins a reduction over a row with the next loop over that row if both compute the same
expression.

The reduction stores the expression in the row of the result, and the loop reads it from there, so
softmax has one exponential for each element. This is done only if the kernel does not also read the
buffer of the result, as it does where an output overwrites its donor, and if the buffer has the
type of the expression.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from graphtool.dtypes import DType
from graphtool.loops.ir import Accumulate, Expr, For, Let, Load, Name, Stmt, Store
from graphtool.loops.walk import accesses, each, mapped, statements
from graphtool.lower.exprs import cost, substituted
from graphtool.lower.storage import Storage
from graphtool.symbolic import coefficient, substitute, symbol_of

LEAST_FLOPS = 8  # from this number of nominal flops on, reading a value back is cheaper than computing it


def kept(body: tuple[Stmt, ...], buffers: Mapping[str, Storage]) -> tuple[Stmt, ...]:
    """The statements with every such pair of loops joined."""
    return _joined(body, written_once(body, buffers))


def written_once(body: tuple[Stmt, ...], buffers: Mapping[str, Storage]) -> dict[str, DType]:
    """The buffers that exactly one statement stores to and none reads, with their types."""
    stores = [s.buffer for s in statements(body) if isinstance(s, Store)]
    read = {b for b, write in accesses(body) if not write}
    return {b: buffers[b].dtype for b in stores
            if stores.count(b) == 1 and b not in read and b in buffers}


def _joined(body: tuple[Stmt, ...], free: Mapping[str, DType]) -> tuple[Stmt, ...]:
    out = [replace(s, body=_joined(s.body, free)) if isinstance(s, For) else s for s in body]
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
        if same not in there or e.dtype is not free[store.buffer] or names & changing:
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
