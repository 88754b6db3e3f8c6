"""Loops whose indices are constants: where a table rises or falls by equal steps, as that of a
reflected edge does, each such run becomes a loop with an index of its own instead of the table's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from graphtool.loops.ir import Apply, Expr, For, Index, Let, Load, Stmt
from graphtool.loops.pull import iterator
from graphtool.loops.walk import map_bodies
from graphtool.lower.exprs import replaced
from graphtool.lower.views import Storage
from graphtool.symbolic import Dim, symbol_of

MOST, LEAST = 8, 4  # runs of a loop; iterations of a run, on average
Array = np.ndarray[Any, Any]


def in_runs(body: tuple[Stmt, ...], buffers: Mapping[str, Storage]) -> tuple[Stmt, ...]:
    """The statements with such loops divided into runs."""
    out: list[Stmt] = []
    for s in body:
        if isinstance(s, For) and s.mode == "simd" and not s.reduces:
            out += _runs(s, buffers)
        else:
            out.append(map_bodies(s, lambda inner: in_runs(inner, buffers)))
    return tuple(out)


def _runs(loop: For, buffers: Mapping[str, Storage]) -> Sequence[Stmt]:
    """The loop as one for each run of its tables; only itself if it has none or too many runs."""
    tables = {s.name: table for s in loop.body if isinstance(s, Let)
              and (table := _table(s.value, loop, buffers)) is not None}
    if not tables:
        return [loop]
    starts = _starts([*tables.values()])
    n = len(next(iter(tables.values())))
    if len(starts) > MOST or n < LEAST * len(starts):
        return [loop]
    rest = tuple(s for s in loop.body if not (isinstance(s, Let) and s.name in tables))
    out = []
    for start, end in zip(starts, [*starts[1:], n], strict=True):
        it = iterator(loop.iter.name, end - start)
        env: dict[str, Dim] = {loop.iter.name: symbol_of(it) + start}
        for name, table in tables.items():
            step = int(table[start + 1] - table[start]) if end - start > 1 else 0
            env[name] = symbol_of(it) * step + int(table[start])
        out.append(replace(loop, iter=it, extent=end - start, body=replaced(rest, env)))
    return out


def _table(e: Expr, loop: For, buffers: Mapping[str, Storage]) -> Array | None:
    """The numbers of an index that is read from a constant, one for each iteration; else None."""
    match e:
        case Apply("max", (Apply("min", (read, Index(int(last)))), Index(0))):
            pass
        case _:
            return None
    if isinstance(read, Apply) and read.fn == "cast":
        (read,) = read.args
    if not isinstance(read, Load) or not isinstance(loop.extent, int):
        return None
    weight, start = buffers[read.buffer].weight, read.index - symbol_of(loop.iter)
    if weight is None or weight.absent or weight.dtype.is_packed or not isinstance(start, int):
        return None
    return np.clip(weight.stored.reshape(-1)[start:start + loop.extent].astype(np.int64), 0, last)


def _starts(tables: Sequence[Array]) -> list[int]:
    """Where runs begin in which all tables have equal steps."""
    out, at, n = [0], 0, len(tables[0])
    while at + 2 < n:
        steps = [np.diff(t[at:]) for t in tables]
        end = min(int(np.argmax(s != s[0])) if (s != s[0]).any() else n for s in steps)
        if end == n:
            break
        at += end + 1
        out.append(at)
    return out
