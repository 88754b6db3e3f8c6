"""Open sizes that meet in an operation which broadcasts: in each run they are equal, or one is 1.

N and M become max(N, M), which both are at most; the condition is an equation like any other. A
size that is computed from others, or that meets a number, is assumed to be equal instead: the parts
of one image never are 1 beside N.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from functools import reduce
from itertools import combinations
from typing import NamedTuple

from graphtool.ir.facets import Align
from graphtool.ir.op import Op
from graphtool.symbolic import Call, Dim, Symbol, maximum, single_call, symbols
from graphtool.symbolic.equations import equal_or_one

_NOT_BROADCAST = {Align.TRAILING: 0, Align.MATRICES: 2}  # the last axes of an operand


class Common(NamedTuple):
    """A common shape, with None where sizes meet that must be equal; what a run must check for it,
    and the sizes that must not be 0."""

    shape: tuple[Dim | None, ...]
    pairs: list[tuple[Dim, Dim]]
    not_zero: set[str]


def own_axes(op: Op) -> int | None:
    """How many of the last axes of its operands an op does not broadcast; None if it does not
    broadcast at all."""
    return None if op.axes is None else _NOT_BROADCAST.get(op.axes.align)


def common_shape(shapes: Iterable[Sequence[Dim]], free: Collection[str]) -> Common:
    """The shape that these shapes broadcast to where sizes of `free` may be 1."""
    shapes = list(shapes)
    rank = max(map(len, shapes))
    common = Common((), [], set())
    for axis in range(-rank, 0):
        met = dict.fromkeys(s[axis] for s in shapes if len(s) >= -axis and s[axis] != 1)
        size: Dim | None = next(iter(met), 1)
        parts = {p.name: p for d in met for p in _parts(d)}
        if len(met) > 1 and not (all(map(_parts, met)) and parts.keys() <= set(free)):
            size = None
        elif len(met) > 1:
            size = reduce(maximum, met)
            common.pairs.extend(equal_or_one(a, b) for a, b in combinations(parts.values(), 2))
            common.not_zero.update(n for n, p in parts.items() if not p.lo)
        common = common._replace(shape=(*common.shape, size))
    return common


def _parts(d: Dim) -> list[Symbol]:
    """N and M of max(N, M), N of N; nothing for any other size."""
    if isinstance(d, int):
        return []
    if (call := single_call(d, "max")) is not None:
        first, second = _parts(call.a), _parts(call.b)
        return [*first, *second] if first and second else []
    (mono, coeff), *more = d.terms
    plain = not more and coeff == 1 and len(mono) == 1 and mono[0][1] == 1 and not isinstance(
        mono[0][0], Call)
    return list(symbols(d)) if plain else []
