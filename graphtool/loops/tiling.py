"""Whether stores write each element of a buffer exactly once: their images are boxes with a stride
for each loop, and these lie side by side without a gap."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from graphtool.symbolic import (
    Call,
    Dim,
    Poly,
    Symbol,
    evaluate,
    exact_quotient,
    known,
    product,
    substitute,
    symbol_of,
    symbols,
    typical_size,
)
from graphtool.symbolic.nonnegative import linear

Loop = tuple[str, Dim]  # an iterator and its extent
Axis = tuple[Dim, Dim]  # a stride and an extent
MOST = 1 << 26  # elements that are counted


@dataclass(frozen=True)
class Box:
    """The elements `first` + Σ stride·i for i in [0, extent) of each axis."""

    first: Dim
    axes: tuple[Axis, ...]

    @property
    def count(self) -> Dim:
        """How many elements its loops make."""
        return product(extent for _, extent in self.axes)

    @property
    def length(self) -> Dim | None:
        """How many elements it has, if they are adjacent and each comes once; else None."""
        length: Dim = 1
        left = list(self.axes)
        while left:
            axis = next((a for a in left if a[0] == length), None)
            if axis is None:
                return None
            left.remove(axis)
            length = length * axis[1]
        return length


def box_of(index: Dim, loops: Sequence[Loop]) -> Box | None:
    """The elements that an index is over these loops; None if they are no box, as an extent
    depends on another loop, or the index is more than a sum of strides."""
    index, loops = divided(index, tuple(loops))
    names = {name for name, _ in loops}
    axes: list[Axis] = []
    for name, extent in loops:
        stride: Dim = 0
        if isinstance(index, Poly) and (atom := _atom(index, name)) is not None:
            parts = linear(index, atom)
            if parts is None:
                return None
            stride, index = parts
        if _names(stride, names) or _names(extent, names):
            return None
        if known(stride, "<", 0) is True:
            stride, index = -stride, index + stride * (extent - 1)
        if known(extent, "==", 1) is not True:
            axes.append((stride, extent))
    return None if _names(index, names) else Box(index, tuple(axes))


def _atom(d: Dim, name: str) -> Symbol | None:
    return next((s for s in symbols(d) if s.name == name), None)


def _outside(d: Dim, name: str) -> bool:
    """Whether the symbol occurs outside of calls."""
    return isinstance(d, Poly) and any(isinstance(a, Symbol) and a.name == name
                                       for mono, _ in d.terms for a, _ in mono)


def _names(d: Dim, names: set[str]) -> bool:
    return any(s.name in names for s in symbols(d))


def divided(index: Dim, loops: tuple[Loop, ...]) -> tuple[Dim, tuple[Loop, ...]]:
    """The same with two loops in place of one of whose iterator quotients or remainders are taken,
    until there are none: `i // 4` and `i % 4` are the iterators of loops over blocks and over 4."""
    for n, (name, extent) in enumerate(loops):
        for by in _divisors(index, name):
            blocks = exact_quotient(extent, by)
            if blocks is not None and blocks != 1:
                outer, inner = (Symbol(f"{name}.{part}", 0, None if isinstance(e, Poly) else e - 1,
                                       e) for part, e in ((0, blocks), (1, by)))
                index = substitute(index, {name: symbol_of(outer) * by + symbol_of(inner)})
                return divided(index, (*loops[:n], (outer.name, blocks), (inner.name, by),
                                      *loops[n + 1:]))
    return index, loops


def _divisors(d: Dim, name: str) -> list[Dim]:
    """What an iterator is divided by, the largest first."""
    found: set[Dim] = set()

    def see(d: Dim) -> None:
        for mono, _ in d.terms if isinstance(d, Poly) else ():
            for atom, _ in mono:
                if isinstance(atom, Call):
                    if atom.fn in ("//", "%") and _outside(atom.a, name):
                        found.add(atom.b)
                    see(atom.a)
                    see(atom.b)
    see(d)
    return sorted(found, key=typical_size, reverse=True)


def covered(boxes: Sequence[Box], size: Dim) -> bool:
    """Whether the boxes together have each of `size` elements exactly once: by their form, or, of a
    number of elements, by counting."""
    return _tiled(boxes, size, 0) or _counted(boxes, size)


def _counted(boxes: Sequence[Box], size: Dim) -> bool:
    """As `covered`, where all is a number and not too much."""
    numbers = [n for b in boxes for n in (b.first, *(n for axis in b.axes for n in axis))]
    if not all(isinstance(n, int) for n in (size, *numbers)) or not (
            sum(b.count for b in boxes) == size <= MOST):
        return False
    reached = np.zeros(evaluate(size, {}), bool)
    for b in boxes:
        at = np.array([evaluate(b.first, {})])
        for axis in b.axes:
            stride, extent = (evaluate(n, {}) for n in axis)
            at = np.add.outer(at, np.arange(extent) * stride).ravel()
        if at.size and (at.min() < 0 or at.max() >= reached.size):
            return False
        reached[at] = True
    return bool(reached.all())


def _tiled(boxes: Sequence[Box], size: Dim, first: Dim) -> bool:
    """Whether the boxes together have each of `size` elements from `first` on exactly once."""
    if size == 0 and all(0 in (e for _, e in b.axes) for b in boxes):
        return True
    for stride, extent in boxes[0].axes if boxes else ():
        rest = [_without(b, (stride, extent)) for b in boxes]
        if stride * extent == size and (inner := [b for b in rest if b]) and len(inner) == len(
                boxes) and _tiled(inner, stride, first):
            return True
    left, at = list(boxes), first
    while left:
        group, length = _beginning(left, at)
        if not group:
            return False
        left = [b for b in left if b not in group]
        at = at + length
    return at == first + size


def _beginning(boxes: Sequence[Box], at: Dim) -> tuple[list[Box], Dim]:
    """The boxes that have all elements from `at` on up to an element, and how many these are."""
    for b in boxes:
        if b.first != at:
            continue
        if b.length is not None:
            return [b], b.length
        for axis in b.axes:
            group = [x for x in boxes if axis in x.axes
                     and known(x.first - at, "<", axis[0]) is True]
            inner = [x for b in group if (x := _without(b, axis))]
            if len(group) < len(boxes) and _tiled(inner, axis[0], at):
                return group, axis[0] * axis[1]
    return [], 0


def _without(b: Box, axis: Axis) -> Box | None:
    if axis not in b.axes:
        return None
    n = b.axes.index(axis)
    return replace(b, axes=b.axes[:n] + b.axes[n + 1:])
