"""Units that read along one axis and store along another: transpose.h, in square blocks.

A plain nest would read one float of each cache line and fetch the line again for the next one. If
strides are powers of two, all those lines belong to one set of the cache. A unit with no such
operand, or with several, stays a nest.

Copies of 16-bit numbers whose pairs stay adjacent are transposed with a pair as the element. Right-
hand sides of bfloat16 are packed so when weights are transposed: a panel has pairs of the depth,
and the weights have the depth along memory.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace

from graphtool import dtypes
from graphtool.loops.ir import Hook, Load, Stmt, Template
from graphtool.loops.pull import Names, PExpr, Pull, View, iterator
from graphtool.lower.exprs import loads_in, reduces_in, substituted, walk_as_one
from graphtool.lower.loop_axes import Axis, index_of, split
from graphtool.lower.nest import hook_body
from graphtool.lower.views import LEAST, SIDE, long
from graphtool.ops.indexing import unflatten_index
from graphtool.symbolic import Dim, Symbol, coefficient, product, substitute, symbol_of
from graphtool.symbolic.poly import terms_of

Loop = tuple[Symbol, Dim]


@dataclass(frozen=True)
class Walk:
    """The stores of a kernel and the loops around them."""

    loops: tuple[Loop, ...]
    stores: tuple[tuple[str, Dim, PExpr], ...]  # buffer, index, value


def crossing(outputs: list[tuple[View, Pull]], of: Names) -> tuple[Stmt, ...] | None:
    """The kernel for outputs of one shape; None if a nest is as good or is needed.

    `of` has the names of the kernel. If indices are read from data, only a nest can compute them
    first.
    """
    shape, names = outputs[0][1].shape, Names()
    if not long(shape, LEAST):
        return None
    iters = [iterator(names.new("i"), d) if d != 1 else None for d in shape]
    idx = tuple(0 if s is None else symbol_of(s) for s in iters)
    stores = tuple((v.buffer, v.index(idx), p.at(idx)) for v, p in outputs)
    loops = tuple((s, d) for s, d in zip(iters, shape, strict=True) if s is not None)
    if of.indices or reduces_in([e for *_, e in stores], names):
        return None
    walk = _joined(Walk(loops, stores), names)
    sides = _sides(walk, names)
    return None if sides is None else (_square(walk, *sides, names),)


def _joined(walk: Walk, names: Names) -> Walk:
    """The walk with those loops joined that step through all memory as one."""
    for (a, _), (b, m) in itertools.permutations(walk.loops, 2):
        if all(coefficient(at, a.name) == _times(coefficient(at, b.name), m)
               and walk_as_one(e, a.name, b.name, m, names) for _, at, e in walk.stores):
            n = dict(walk.loops)[a]
            joined = iterator(names.new("i"), n * m)
            env = {a.name: 0, b.name: symbol_of(joined)}
            memo: dict[PExpr, PExpr] = {}
            return _joined(Walk(
                tuple((joined, n * m) if it is b else (it, d) for it, d in walk.loops
                      if it is not a),
                tuple((buffer, substitute(at, env), substituted(e, env, memo))
                      for buffer, at, e in walk.stores)), names)
    return walk


def _times(c: Dim | None, n: Dim) -> Dim | None:
    return None if c is None else c * n


def _sides(walk: Walk, names: Names) -> tuple[Load, Loop, Loop] | None:
    """The operand read across, the loop along which it is adjacent, and that along which stores
    are; None unless there is exactly one of each."""
    along = [(s, d) for s, d in walk.loops
             if all(coefficient(at, s.name) == 1 for _, at, _ in walk.stores)]
    if len(along) != 1 or not long((along[0][1],), SIDE):
        return None
    loads = {(x.buffer, x.index): x for *_, e in walk.stores for x in loads_in(e, names)}
    crossed = [x for x in loads.values() if coefficient(x.index, along[0][0].name) not in (0, 1)]
    if len(crossed) != 1 or crossed[0].dtype is not dtypes.float32 or any(
            buffer == crossed[0].buffer for buffer, *_ in walk.stores):
        return None
    steps = {s: coefficient(crossed[0].index, s.name) for s, _ in walk.loops}
    across = [(s, d) for s, d in walk.loops if steps[s] == 1]
    if len(across) != 1 or not long((across[0][1],), SIDE) or None in steps.values():
        return None
    return crossed[0], across[0], along[0]


def _square(walk: Walk, read: Load, across: Loop, along: Loop, names: Names) -> Template:
    outer = [(s, d) for s, d in walk.loops if s not in (across[0], along[0])]
    planes = product(d for _, d in outer)
    p, a, b = (Symbol("b", 0, None, planes), Symbol("m", 0, None, across[1]),
               Symbol("n", 0, None, along[1]))
    at = unflatten_index(symbol_of(p), tuple(d for _, d in outer)) if planes != 1 else (
        (0,) * len(outer))
    env = {s.name: i for (s, _), i in zip(outer, at, strict=True)}
    step = coefficient(read.index, along[0].name)
    assert step is not None
    start = substitute(read.index, {**env, across[0].name: 0, along[0].name: 0})
    return Template(
        "transpose",
        (("PLANES", planes), ("A", across[1]), ("B", along[1]), ("XB", step)),
        (("X", read.buffer, start),),
        tuple(dict.fromkeys([read.buffer, *(x.buffer for *_, e in walk.stores
                                            for x in loads_in(e, names))])),
        tuple(dict.fromkeys(buffer for buffer, *_ in walk.stores)),
        (_hook(walk, read, {**env, across[0].name: symbol_of(a)}, along[0].name, (p, a, b),
               names),))


def _hook(walk: Walk, read: Load, env: dict[str, Dim], along: str, indices: tuple[Symbol, ...],
          names: Names) -> Hook:
    """The stores of a row's elements from b on; `acc` contains what was read across."""
    count = symbol_of(Symbol("count", 1, None))
    lane = iterator(names.new("j"), count)
    env = {**env, along: symbol_of(indices[-1]) + symbol_of(lane)}
    row = replace(read, buffer="acc", index=symbol_of(lane))
    memo: dict[PExpr, PExpr] = {x: row for *_, e in walk.stores for x in loads_in(e, names)
                              if (x.buffer, x.index) == (read.buffer, read.index)}
    stores = [(View(buffer, e.dtype, (), ()), substitute(at, env), substituted(e, env, memo))
              for buffer, at, e in walk.stores]
    return Hook("epilogue", indices, hook_body(names, stores, lane, count))


@dataclass(frozen=True)
class Copied:
    """A copy of numbers from one index to another, and the loops around it."""

    loops: tuple[Loop, ...]
    read: Load
    to: Dim

    def steps(self, loop: Loop) -> tuple[Dim | None, Dim | None]:
        """How far a step of the loop moves in memory: where it reads, and where it stores."""
        return tuple(coefficient(at, loop[0].name)  # type: ignore[return-value]
                     for at in (self.read.index, self.to))


def crossing_pairs(outputs: list[tuple[View, Pull]], of: Names) -> tuple[Stmt, ...] | None:
    """The kernel for an output that is such a copy; None for any other."""
    if len(outputs) != 1 or of.indices or not long(outputs[0][1].shape, LEAST):
        return None
    (view, pull), names = outputs[0], Names()
    axes: list[Axis] = [((iterator(names.new("i"), d), d),) if d != 1 else () for d in pull.shape]
    axes = split(axes, [pull.at(tuple(map(index_of, axes)))], names)
    idx = tuple(map(index_of, axes))
    read = pull.at(idx)
    if not isinstance(read, Load) or read.dtype.bits != 16 or read.buffer == view.buffer:
        return None
    copied = Copied(tuple(loop for axis in axes for loop in axis), read, view.index(idx))
    pairs = [loop for loop in copied.loops if loop[1] == 2 and copied.steps(loop) == (1, 1)]
    along = [loop for loop in copied.loops if copied.steps(loop)[1] == 2]
    across = [loop for loop in copied.loops if copied.steps(loop)[0] == 2]
    if len(pairs) != 1 or len(along) != 1 or len(across) != 1 or along == across or not all(
            long((loop[1],), SIDE) for loop in (*along, *across)):
        return None
    return _square_of_pairs(view.buffer, copied, pairs[0], along[0], across[0], names)


def _even(d: Dim | None) -> bool:
    return d is not None and all(count % 2 == 0 for _, count in terms_of(d))


def _square_of_pairs(buffer: str, copied: Copied, pair: Loop, along: Loop, across: Loop,
            names: Names) -> tuple[Stmt, ...] | None:
    outer = [loop for loop in copied.loops if loop not in (pair, along, across)]
    step, planes = copied.steps(along)[0], product(d for _, d in outer)
    p, a, n, count = (Symbol("b", 0, None, planes), Symbol("m", 0, None, across[1]),
                      Symbol("n", 0, None, 2 * along[1]), symbol_of(Symbol("count", 1, None)))
    at = unflatten_index(symbol_of(p), tuple(d for _, d in outer)) if planes != 1 else (
        (0,) * len(outer))
    env = {s.name: i for (s, _), i in zip(outer, at, strict=True)} | {pair[0].name: 0,
                                                                      along[0].name: 0}
    start = substitute(copied.read.index, {**env, across[0].name: 0})
    if not isinstance(step, int) or step % 2 or not _even(start):
        return None
    lane = iterator(names.new("j"), count)
    to = substitute(copied.to, {**env, across[0].name: symbol_of(a)}) + symbol_of(n) + symbol_of(
        lane)
    number = Load("acc", symbol_of(lane), copied.read.dtype)
    stored = (View(buffer, number.dtype, (), ()), to, number)
    hook = Hook("epilogue", (p, a, n), hook_body(names, [stored], lane, count), number.dtype)
    return (Template(
        "transpose",
        (("PLANES", planes), ("A", across[1]), ("B", along[1]), ("XB", step // 2),
         ("PAIRS", True)),
        (("X", copied.read.buffer, start),), (copied.read.buffer,), (buffer,), (hook,)),)
