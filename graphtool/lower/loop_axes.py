"""Other axes for a unit's loops: adjacent ones merged, and those split whose index is divided.

Merged loops are few and long; outermost loops are merged where one alone may be too short for the
threads to share. Of 4·i + j the quotient by 4 is i and the remainder is j, so that the loop does
not divide, and compilers vectorise it. Packed operands have such axes.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import replace

from graphtool.ir.facets import Trait
from graphtool.ir.graph import Value
from graphtool.loops.pull import Names, PExpr, Reduce, View, iterator
from graphtool.loops.walk import dims_of, each
from graphtool.lower.exprs import below, loads_in, reduces_in, substituted, walk_as_one
from graphtool.lower.units import Unit
from graphtool.symbolic import (
    Dim,
    Symbol,
    bounds,
    coefficient,
    floordiv,
    mod,
    product,
    substitute,
    symbol_of,
    symbols,
    typical,
)
from graphtool.symbolic.poly import Call, terms_of

UNROLL = 32  # a window of at most so many elements is unrolled
ROW = 8  # from so many adjacent elements on, a window fills a vector
SHARED = 8  # iterations that are enough for threads to share
Joined = tuple[tuple[Symbol, Dim], list[tuple[Symbol, Dim]]]  # a loop, and indices made of it
Loop = tuple[Symbol, Dim]
Nest = tuple[list[Loop], list[tuple[View, PExpr]], tuple[Dim, ...]]


def merged(unit: Unit, outputs: list[Value], views: dict[Value, View]) -> dict[Value, View]:
    """The views over merged axes; not changed unless every op of the unit is elementwise."""
    if not all(Trait.ELEMENTWISE in n.op.traits for n in unit.nodes):
        return views
    shape = outputs[0].type.shape
    if any(v.type.shape != shape for v in outputs):
        return views
    wide = {v: _expand(view, len(shape)) for v, view in views.items()}
    groups = _runs(shape, list(wide.values()))
    if len(groups) == len(shape):
        return views
    return {v: _merge(view, groups) for v, view in wide.items()}


def _expand(v: View, rank: int) -> View:
    """The view with leading axes of size 1 up to the rank."""
    skip = rank - len(v.shape)
    return View(v.buffer, v.dtype, (1,) * skip + v.shape, (0,) * skip + v.strides, v.offset)


def _runs(shape: tuple[Dim, ...], views: list[View]) -> list[list[int]]:
    """Groups of axes that one loop can cover: in every view the outer stride equals the size of the
    inner axis times its stride."""
    groups: list[list[int]] = []
    for axis in range(len(shape)):
        outer = next((a for a in reversed(groups[-1]) if shape[a] != 1), None) if groups else None
        if groups and (outer is None or shape[axis] == 1
                       or all(_joins(v, outer, axis, shape) for v in views)):
            groups[-1].append(axis)
        else:
            groups.append([axis])
    return groups


def _joins(v: View, outer: int, inner: int, shape: tuple[Dim, ...]) -> bool:
    small_outer, small_inner = v.shape[outer] == 1, v.shape[inner] == 1
    if small_outer or small_inner:
        return small_outer and small_inner
    return v.strides[outer] == v.strides[inner] * shape[inner]


def _merge(v: View, groups: list[list[int]]) -> View:
    shape = tuple(product(v.shape[a] for a in g) for g in groups)
    strides = tuple(next((v.strides[a] for a in reversed(g) if v.shape[a] != 1), 0)
                    for g in groups)
    return View(v.buffer, v.dtype, shape, strides, v.offset)


def innermost_joined(loops: list[Loop], exprs: list[tuple[View, PExpr]], idx: tuple[Dim, ...],
                     names: Names) -> Nest:
    """The nest with its innermost loops joined that walk memory as one: rows of an image fill
    vectors together."""
    if names.indices or len(loops) < 2:
        return loops, exprs, idx
    *outer, a, b = loops
    if any(coefficient(view.index(idx), b[0].name) != 1 for view, _ in exprs) or (
            pair := _as_one(a, b, exprs, idx, names)) is None:
        return loops, exprs, idx
    both, exprs, idx = pair
    return innermost_joined([*outer, both], exprs, idx, names)


def one_outside(loops: list[Loop], exprs: list[tuple[View, PExpr]], idx: tuple[Dim, ...],
                names: Names) -> Nest:
    """The nest with its outermost loops joined while their size is open and may be too small for
    the threads to share, if memory allows it."""
    if names.indices or len(loops) < 3 or isinstance(loops[0][1], int) or (
            bounds(loops[0][1])[0] or 0) >= SHARED:
        return loops, exprs, idx
    a, b, *rest = loops
    if (pair := _as_one(a, b, exprs, idx, names)) is None:
        return loops, exprs, idx
    both, exprs, idx = pair
    return one_outside([both, *rest], exprs, idx, names)


def _as_one(a: Loop, b: Loop, exprs: list[tuple[View, PExpr]], idx: tuple[Dim, ...], names: Names
            ) -> tuple[Loop, list[tuple[View, PExpr]], tuple[Dim, ...]] | None:
    """The loop that stands for a loop and the one inside it, and the nest in terms of it; None
    unless both walk all memory as one."""
    (outer, n), (inner, m) = a, b
    for view, e in exprs:
        far, near = (coefficient(view.index(idx), s.name) for s in (outer, inner))
        if far is None or near is None or far != near * m or not walk_as_one(
                e, outer.name, inner.name, m, names, reductions=True):
            return None
    both = iterator(names.new("i"), n * m)
    env: dict[str, Dim] = {outer.name: 0, inner.name: symbol_of(both)}
    memo: dict[PExpr, PExpr] = {}
    return ((both, n * m), [(view, substituted(e, env, memo)) for view, e in exprs],
            tuple(substitute(i, env) for i in idx))


def in_grid(loops: list[tuple[Symbol, Dim]], exprs: list[tuple[View, PExpr]], names: Names
            ) -> list[Joined]:
    """One loop in place of all of them. Where reductions belong to rows, it is one over the rows,
    and one along a row; the loops stay as they are where reductions belong to several kinds of
    rows, or where indices are read from data."""
    place = {it.name: n for n, (it, _) in enumerate(loops)}
    used = ({s.name for e in each([r], below(names)) for d in dims_of(e) for s in symbols(d)}
            for r in reduces_in([e for _, e in exprs], names))
    depths = {max((place[s] + 1 for s in u if s in place), default=0) for u in used}
    depths -= {0, len(loops)}
    if names.indices or len(depths) > 1:
        return [(loop, []) for loop in loops]
    cut = depths.pop() if depths else len(loops)
    return [joined_loops(group, names) for group in (loops[:cut], loops[cut:]) if group]


def joined_loops(loops: list[tuple[Symbol, Dim]], names: Names) -> Joined:
    """One loop for several, and their iterators in terms of its own."""
    if len(loops) == 1:
        return loops[0], []
    extent = product(d for _, d in loops)
    it = iterator(names.new("i"), extent)
    parts = []
    for n, (old, size) in enumerate(loops):
        at = floordiv(symbol_of(it), product(d for _, d in loops[n + 1:]))
        parts.append((old, mod(at, size) if n else at))
    return (it, extent), parts


Axis = tuple[tuple[Symbol, Dim], ...]  # its loops, the outer one first; none for one element


def split(axes: Sequence[Axis], exprs: Sequence[PExpr], names: Names) -> list[Axis]:
    """The axes, in two loops where an index of the expressions is one of them divided by a number
    that its extent is a multiple of."""
    steps: dict[str, set[int]] = {}
    for e in each(exprs, below(names)):
        for d in dims_of(e):
            for call in _calls(d):
                if call.fn in ("//", "%") and isinstance(call.b, int):
                    for mono, _ in terms_of(call.a):
                        for atom, _ in mono:
                            if isinstance(atom, Symbol):
                                steps.setdefault(atom.name, set()).add(call.b)
    return [_halved(axis, steps, names) for axis in axes]


def _halved(axis: Axis, steps: dict[str, set[int]], names: Names) -> Axis:
    if len(axis) != 1:
        return axis
    (it, extent), = axis
    divisors = steps.get(it.name, set())
    step = next(iter(divisors), 1)
    if len(divisors) != 1 or step <= 1 or not isinstance(extent, int) or extent % step or (
            extent == step):
        return axis
    return ((iterator(names.new("i"), extent // step), extent // step),
            (iterator(names.new("i"), step), step))


def index_of(axis: Axis) -> Dim:
    """The index along the axis, in terms of its loops."""
    at: Dim = 0
    for it, extent in axis:
        at = at * extent + symbol_of(it)
    return at


def by_stride(axes: Sequence[Axis], view: View) -> list[tuple[Symbol, Dim]]:
    """The loops from outer to inner by falling stride of the store, so that the innermost walks
    adjacent memory."""
    pairs = []
    for axis, stride in zip(axes, view.strides, strict=True):
        for n, loop in enumerate(axis):
            pairs.append((loop, stride * product(d for _, d in axis[n + 1:])))
    pairs.sort(key=lambda pair: -typical(pair[1]))
    return [loop for loop, _ in pairs]


def _calls(d: Dim) -> Iterable[Call]:
    for mono, _ in terms_of(d):
        for atom, _ in mono:
            if isinstance(atom, Call):
                yield atom
                yield from _calls(atom.a)
                yield from _calls(atom.b)


def windows_along_memory(loops: list[tuple[Symbol, Dim]], exprs: list[tuple[View, PExpr]],
                          idx: tuple[Dim, ...], names: Names) -> list[tuple[Symbol, Dim]]:
    """The loops, reordered if a small window is read along memory but stored across it.

    The loop along which the window is read becomes the innermost, because an element is read
    several times and stored once.
    """
    roots = [e for _, e in exprs]
    windows = reduces_in(roots, names)
    if not loops or not windows or not all(map(is_unrolled, windows)):
        return loops
    rows = [is_row(r, loops, names) for r in windows]

    def across(loop: tuple[Symbol, Dim]) -> int:
        reads = []
        for r, row in zip(windows, rows, strict=True):
            steps = [coefficient(x.index, loop[0].name) for x in loads_in(r.body, names)]
            far = [step for step in steps if step not in (0, 1)]
            # a row is a vector, whatever the distance to the next one
            reads += [product(d for _, d in r.iters)] * (min(len(far), 1) if row else len(far))
        stores = [coefficient(view.index(idx), loop[0].name) not in (0, 1) for view, _ in exprs]
        return sum(n for n in reads if isinstance(n, int)) + sum(stores)
    best = min(reversed(loops), key=across)
    return [*(x for x in loops if x is not best), best]


def parallel_loop(loops: list[tuple[Symbol, Dim]]) -> int:
    """The loop that the threads share: the outermost with enough iterations, else the longest."""
    sizes = [bounds(d)[1] or (1 << 20) for _, d in loops]
    for n, size in enumerate(sizes):
        if size >= SHARED:
            return n
    return max(range(len(sizes)), key=lambda n: sizes[n], default=-1)


def is_short(loops: list[tuple[Symbol, Dim]]) -> bool:
    """Whether the innermost loop is too short for a vector and the one around it is not: colours of
    pixels."""
    if len(loops) < 2:
        return False
    around, inner = (bounds(d)[0] or 0 for _, d in loops[-2:])
    return inner <= 4 and isinstance(loops[-1][1], int) and around >= 16


def is_unrolled(r: Reduce) -> bool:
    """Whether C can have the reduction's steps one after the other, without a loop."""
    size = product(d for _, d in r.iters)
    return isinstance(size, int) and size <= UNROLL


def along_memory_last(r: Reduce, names: Names) -> list[tuple[Symbol, Dim]]:
    """The iterators of a reduction, with those along adjacent memory innermost."""
    loads = loads_in(r.body, names)
    unit = {it.name: sum(coefficient(x.index, it.name) == 1 for x in loads) for it, _ in r.iters}
    return sorted(r.iters, key=lambda pair: unit[pair[0].name])


def flattened(r: Reduce, names: Names) -> Reduce:
    """The reduction with those iterators joined that cover memory without gaps."""
    iters = along_memory_last(r, names)
    for (a, n), (b, m) in itertools.pairwise(iters):
        if not walk_as_one(r.body, a.name, b.name, m, names, reductions=True):
            continue
        joined = iterator(names.new("r"), n * m)
        body = substituted(r.body, {a.name: 0, b.name: symbol_of(joined)})
        rest = [(joined, n * m) if it is a else (it, d) for it, d in iters if it is not b]
        return flattened(replace(r, iters=tuple(rest), body=body), names)
    return r


def is_row(r: Reduce, loops: list[tuple[Symbol, Dim]], names: Names) -> bool:
    """Whether adjacent elements of memory fill a vector along the reduction, and no loop around it
    has its elements adjacent: a dot product for each head, but not a window that slides."""
    loads = loads_in(r.body, names)
    steps = [{coefficient(x.index, it.name) for x in loads} for it, _ in loops]
    moving = [s for s in steps if s != {0}]
    return bool(moving) and all(s - {0, 1} for s in moving) and any(
        isinstance(d, int) and d >= ROW and {coefficient(x.index, it.name) for x in loads} <= {0, 1}
        for it, d in r.iters)
