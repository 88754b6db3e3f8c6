"""Splits an axis whose index is divided: of 4·i + j, the quotient by 4 is i and the remainder is j.

Packed operands have such axes. Compilers do not vectorise loops that divide.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from graphtool.loops.pull import Names, PExpr, iterator
from graphtool.loops.view import View
from graphtool.loops.walk import dims_of, each
from graphtool.lower.exprs import below
from graphtool.symbolic import Dim, Symbol, product, symbol_of, typical_size
from graphtool.symbolic.poly import Call, terms_of

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
    found = steps.get(it.name, set())
    step = next(iter(found), 1)
    if len(found) != 1 or step <= 1 or not isinstance(extent, int) or extent % step or (
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
    pairs.sort(key=lambda pair: -typical_size(pair[1]))
    return [loop for loop, _ in pairs]


def _calls(d: Dim) -> Iterable[Call]:
    for mono, _ in terms_of(d):
        for atom, _ in mono:
            if isinstance(atom, Call):
                yield atom
                yield from _calls(atom.a)
                yield from _calls(atom.b)
