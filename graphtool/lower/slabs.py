"""Reductions with many terms and few results, in slabs, for devices.

A device needs very many workers. The terms of such a reduction are divided into slabs: one kernel
reduces each slab of each result, and the next one reduces what the slabs gave. If these are still
many, they are divided again. The order of the terms depends on the sizes alone, so each run gives
the same bits.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from graphtool.dtypes import DType
from graphtool.loops.ir import Const, Load, Name
from graphtool.loops.program import SCRATCH
from graphtool.loops.pull import Idx, Names, PExpr, Pull, Reduce, View, cast, dense, iterator
from graphtool.loops.walk import dims_of, each
from graphtool.lower.exprs import below, loads_in, reduces_in, substituted
from graphtool.lower.loop_axes import flattened
from graphtool.lower.views import Storage
from graphtool.ops.reduce import FN, identity
from graphtool.symbolic import (
    Dim,
    Symbol,
    ceildiv,
    coefficient,
    minimum,
    product,
    symbol_of,
    symbols,
    typical_size,
)

BUSY = 1 << 17  # workers that keep a device busy
TEAM = 128  # workers that reduce a row of memory together
TERMS = 64  # a worker reduces no fewer, because each pass is a launch
TERMS_OF_TEAM = 2048
MOST, LEAST = 1024, 4  # slabs
KIND = {fn: kind for kind, fn in FN.items()}
Outputs = list[tuple[View, Pull]]


@dataclass(frozen=True)
class Slabs:
    """How a reduction is divided: it depends on the `axes` of the output; of its iterators, whose
    extents are `sizes`, that with the number `along` is cut into `count` slabs."""

    axes: tuple[int, ...]
    sizes: tuple[Dim, ...]
    along: int
    count: int


def in_slabs(outputs: Outputs, names: Names, buffers: dict[str, Storage], label: str
             ) -> list[Outputs]:
    """The outputs of each kernel, in order: first the slabs, at last the outputs themselves. The
    results of slabs are in new buffers of the arena, which are added to `buffers`."""
    shape = outputs[0][1].shape
    iters = [iterator(names.new("i"), d) if d != 1 else None for d in shape]
    idx = tuple(0 if s is None else symbol_of(s) for s in iters)
    exprs = [pull.at(idx) for _, pull in outputs]
    kernels = list[Outputs]()
    while not names.indices and (found := _divisible(exprs, iters, shape, names)):
        _, how = next(iter(found.values()))
        stored, whole = Outputs(), dict[PExpr, PExpr]()
        for r, (flat, slabs) in found.items():
            if slabs == how:
                extents = (how.count, *(shape[a] for a in how.axes))
                view = room(buffers, r.dtype.computes, extents, label)
                stored.append((view, _slab(flat, how, iters, shape, names)))
                whole[r] = _joined(r, view, tuple(idx[a] for a in how.axes), names)
        kernels.append(stored)
        exprs = [substituted(e, {}, dict(whole)) for e in exprs]
    named = [s for s in iters if s is not None]
    if not kernels:
        names.give_again([s.name for s in named])
        return [outputs]
    return [*kernels, [(view, _at(pull, e, named)) for (view, pull), e in zip(
        outputs, exprs, strict=True)]]


def _at(pull: Pull, e: PExpr, iters: list[Symbol]) -> Pull:
    """The expression of an element as a pull; `iters` are those of the axes longer than 1."""
    def at(idx: Idx) -> PExpr:
        long = [i for i, d in zip(idx, pull.shape, strict=True) if d != 1]
        return substituted(e, {s.name: i for s, i in zip(iters, long, strict=True)})
    return Pull(pull.dtype, pull.shape, at)


def _divisible(exprs: list[PExpr], iters: list[Symbol | None], shape: Idx, names: Names
               ) -> Mapping[Reduce, tuple[Reduce, Slabs]]:
    """For each reduction that is worth it: the same with fewer iterators, and how to divide it."""
    out = dict[Reduce, tuple[Reduce, Slabs]]()
    for r in reduces_in(exprs, names):
        if not reduces_in([r.body], names):
            flat = flattened(r, names)
            if (how := _slabs(flat, iters, shape, names)) is not None:
                out[r] = flat, how
    return out


def _slabs(r: Reduce, iters: list[Symbol | None], shape: Idx, names: Names) -> Slabs | None:
    """How to divide a reduction; None if it is left whole."""
    if r.init.value != identity(KIND[r.fn], r.dtype):
        return None
    own = {s.name for s, _ in r.iters}
    free = {s.name for e in each([r], below(names)) for d in dims_of(e) for s in symbols(d)
            if s.extent is not None} - own
    axes = tuple(n for n, s in enumerate(iters) if s is not None and s.name in free)
    bound = {s.name for _, n in r.iters for s in symbols(n)}
    if free - {s.name for s in iters if s is not None} or bound & (own | free) or any(
            isinstance(e, Name) for e in each([r.body])):
        return None
    last = r.iters[-1][0].name
    row = any(coefficient(x.index, last) == 1 for x in loads_in(r.body, names))
    results = product(typical_size(shape[n]) for n in axes)
    terms = typical_size(product(n for _, n in r.iters))
    assert isinstance(results, int)
    most = min(MOST, BUSY // max(1, results * (TEAM if row else 1)),
               terms // (TERMS_OF_TEAM if row else TERMS))
    sizes = [typical_size(n) for _, n in r.iters]
    along = next((n for n, size in enumerate(sizes) if 2 * size >= most), sizes.index(max(sizes)))
    count = even(r.iters[along][1], min(most, sizes[along]))
    return Slabs(axes, tuple(n for _, n in r.iters), along, count) if count >= LEAST else None


def even(n: Dim, most: int) -> int:
    """A number of slabs up to `most`, of equal length if there is one that is not much smaller."""
    if not isinstance(n, int):
        return most
    fit = [c for c in range(most, max(most // 2, LEAST - 1), -1) if n % c == 0]
    return next((c for c in fit if n // c % 8 == 0), fit[0] if fit else most)


def room(buffers: dict[str, Storage], dtype: DType, extents: Idx, label: str) -> View:
    """New memory of the arena for an array that kernels hand on; `label` says whose it is."""
    name = f"s{len(buffers)}"
    buffers[name] = Storage(name, dtype, product(extents), "arena", label=f"{SCRATCH}{label}")
    return dense(name, dtype, extents)


def _slab(r: Reduce, how: Slabs, iters: list[Symbol | None], shape: tuple[Dim, ...],
          names: Names) -> Pull:
    """The results of the slabs: of narrow floats in float32, as a sum is until it is complete."""
    wide, (old, n) = r.dtype.computes, r.iters[how.along]
    length = ceildiv(n, how.count)

    def at(idx: Idx) -> PExpr:
        first = idx[0] * length
        here = length if isinstance(n, int) and n % how.count == 0 else minimum(length, n - first)
        new = iterator(names.new("r"), here)
        env: dict[str, Dim] = {s.name: i for a, i in zip(how.axes, idx[1:], strict=True)
                               if (s := iters[a]) is not None}
        body = substituted(r.body, env | {old.name: first + symbol_of(new)})
        inner = tuple((new, here) if s is old else (s, d) for s, d in r.iters)
        return Reduce(r.fn, Const(r.init.value, wide), inner, cast(body, wide), wide)
    return Pull(wide, (how.count, *(shape[a] for a in how.axes)), at)


def _joined(r: Reduce, view: View, place: Idx, names: Names) -> PExpr:
    """The reduction as one of the results of its slabs."""
    count = view.shape[0]
    it = iterator(names.new("r"), count)
    part = Load(view.buffer, view.index((symbol_of(it), *place)), view.dtype)
    return cast(Reduce(r.fn, Const(r.init.value, view.dtype), ((it, count),), part, view.dtype),
                r.dtype)
