"""Kernels that differ only in where they begin in their buffers become one kernel, to which a run
passes these places.

So the loops that move the caches of all layers are one kernel on a device, which has code for each
architecture. A place counts pieces of 16 bytes: what was aligned before still is, by the text.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from graphtool import dtypes
from graphtool.loops.ir import Name, Stmt, Store, Template
from graphtool.loops.program import Kernel, Param, Step, map_runs
from graphtool.loops.walk import loads, moved, statements, values
from graphtool.symbolic import Dim, Symbol, symbol_of
from graphtool.symbolic.poly import terms_of

PIECE = 128  # bits


def with_places(kernels: Iterable[Kernel], steps: tuple[Step, ...]
                ) -> tuple[tuple[Kernel, ...], tuple[Step, ...]]:
    """The kernels, of which none differs from another in places only, and the steps with the places
    that they pass. The names of the kernels count from k0."""
    groups: dict[Any, list[tuple[Kernel, dict[str, int]]]] = {}
    for k in kernels:
        places = _places(k)
        groups.setdefault((k.params, _from(k, places, -1), k.serial), []).append((k, places))
    joined: dict[str, tuple[Kernel, tuple[int, ...]]] = {}
    for i, ((params, body, _), alike) in enumerate(groups.items()):
        rows = {p.name: tuple(places[p.name] for _, places in alike) for p in params}
        given = {row: f"num{j}" for j, row in enumerate(dict.fromkeys(
            row for row in rows.values() if len(set(row)) > 1))}
        begin = {p.name: symbol_of(Symbol(given[row], min(row), max(row))) if row in given else
                 row[0] for p in params if (row := rows[p.name])}
        first = alike[0][0]
        kernel = replace(first, name=f"k{i}", body=_moved(params, body, begin),
                         numbers=tuple(Name(n, dtypes.int64) for n in given.values()))
        for at, (k, _) in enumerate(alike):
            joined[k.name] = kernel, tuple(row[at] for row in given)
    return (tuple(dict.fromkeys(kernel for kernel, _ in joined.values())),
            map_runs(steps, lambda run: replace(
                run, kernel=joined[run.kernel][0].name, numbers=joined[run.kernel][1])))


def _from(kernel: Kernel, places: Mapping[str, int], sign: int) -> tuple[Stmt, ...]:
    return _moved(kernel.params, kernel.body, {n: sign * at for n, at in places.items()})


def _moved(params: Iterable[Param], body: tuple[Stmt, ...], by: Mapping[str, Dim]
           ) -> tuple[Stmt, ...]:
    """The statements, which touch so many pieces further on of each buffer."""
    further = {p.name: by[p.name] * _elements(p) for p in params if by[p.name] != 0}
    return moved(body, lambda b, index: (b, index + further[b] if b in further else index))


def _places(kernel: Kernel) -> dict[str, int]:
    """By the parameter, the whole pieces before all that is touched, as far as the constant terms
    of indices say; 0 where a template touches it."""
    terms: dict[str, list[int]] = {p.name: [] for p in kernel.params}
    inside = list(statements(kernel.body))
    if any(isinstance(s, Template) for s in inside):
        return dict.fromkeys(terms, 0)
    for e in loads(*(e for s in inside for e in values(s))):
        terms[e.buffer].append(_constant(e.index))
    for s in inside:
        if isinstance(s, Store):
            terms[s.buffer].append(_constant(s.index))
    return {p.name: min(terms[p.name], default=0) // _elements(p) for p in kernel.params}


def _elements(p: Param) -> int:
    """Elements of a piece."""
    return PIECE // max(p.dtype.bits, 1)


def _constant(index: Dim) -> int:
    return next((c for mono, c in terms_of(index) if not mono), 0)
