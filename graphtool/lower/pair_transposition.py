"""Copies of 16-bit numbers whose pairs stay together while their order changes: transpose.h, with a
pair as its element.

Right-hand sides of bfloat16 are packed so when weights are transposed: a panel has pairs of the
depth, and the weights have the depth along memory.
"""

from __future__ import annotations

from dataclasses import dataclass

from graphtool.loops.ir import Hook, Load, Stmt, Template
from graphtool.loops.pull import Names, Pull, iterator
from graphtool.loops.view import View
from graphtool.lower.nest import hook_body
from graphtool.lower.split_axes import Axis, index_of, split
from graphtool.lower.transposition import Loop
from graphtool.lower.views import LEAST, SIDE, long
from graphtool.ops.indexing import unflatten_index
from graphtool.symbolic import Dim, Symbol, coefficient, product, substitute, symbol_of
from graphtool.symbolic.poly import terms_of


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
