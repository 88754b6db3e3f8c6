"""Axes that the run computes: the result for every candidate axis is computed, and `select` takes
one.

The declared shape of the result often leaves one candidate. Without it the results are laid out as
large as the operand and cut to the right size.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import combinations
from typing import Any

import numpy as np

from graphtool.importers.onnx.driver.claims import agreed_truth
from graphtool.importers.onnx.families.index import wrapped
from graphtool.importers.onnx.kit import Refused, bind, count_of, dim_value, dtypes, o
from graphtool.symbolic import Dim, floordiv, maximum, product

Axes = tuple[int, ...]
_MOST = 64  # candidates


def from_zero(axes: Any, rank: int) -> Any:
    """Computed axes with negative ones counted from the end, read from the list of all axes, so
    that a run fails if one is out of range."""
    at = wrapped(axes, rank)
    return o.gather(axes.builder.constant(np.arange(rank)), at.unsqueeze(), axes=(0,))


def along_computed(axis: Any, rank: int, fn: Callable[[int], Any]) -> Any:
    """fn(axis) for a computed axis; fn has the same shape for every axis."""
    axis = from_zero(axis.reshape(()), rank)
    y = fn(0)
    for a in range(1, rank):
        y = o.select(o.eq(axis, a), fn(a), y)
    return y


def per_axis(axes: Any, rank: int, values: Any, default: Callable[[int], Any]) -> list[Any]:
    """One int64 scalar for each axis: its entry in `values` if `axes` names it, else the
    default."""
    out, axes = [], from_zero(axes, rank)
    for a in range(rank):
        v = default(a)
        for k in range(count_of(axes)):
            here = o.eq(axes.take(0, k, k + 1).reshape(()), a)
            v = o.select(here, values.take(0, k, k + 1).cast(dtypes.int64).reshape(()), v)
        out.append(v)
    return out


def reduced(x: Any, axes: Any, body: Callable[[Any, Axes], Any], keepdims: bool, none: bool,
            ctx: Any) -> Any:
    """A reduction over computed axes. Without any axis it is over `none` of them, or over all.

    How many axes there are is known from their tensor, or from the declared rank of a result
    without them; else all numbers are possible. Raises Refused if the rank of the result is
    unknown, or if the candidates are too many.
    """
    room, dims, rank, count = ctx.room(), ctx.dims(), x.ndim, product(axes.shape)
    sizes = [count] if isinstance(count, int) else [*([0] if none else []), *range(1, rank + 1)]
    open_ = len(sizes) > 1
    if open_ and dims is None and not keepdims:
        raise Refused("with keepdims=0 and a number of axes that the run computes, the rank of the "
                      "result is not known; declare it in the model, set keepdims=1, or make the "
                      "axes a constant")
    if open_ and dims is not None and not keepdims:
        sizes = [n for n in sizes if n == rank - len(dims)]
    chosen = [s for n in sizes for s in combinations(range(rank), n)
              if _declared(_shape(x, s, keepdims), room, dims if open_ else None)]
    if not 0 < len(chosen) <= _MOST or (room is None and 0 in x.shape):
        raise Refused(f"for the axes that the run computes {len(chosen)} choices are possible, and "
                      f"1 to {_MOST} are supported, on a tensor that is not empty; declare the "
                      "shape of the result in the model, or make the axes a constant")
    members = _members(axes, rank)
    if open_ and not none:
        empty = ~some(list(members.values()))
        members = {a: v | empty for a, v in members.items()}
    if room is not None:
        agreed_truth(_any(members, chosen), "that the axes make the declared shape")
        y = body(x, chosen[0]).reshape(room)
        for s in chosen[1:]:
            y = o.select(_all(members, s), body(x, s).reshape(room), y)
        return y
    if open_ and not keepdims:
        agreed_truth(_any(members, chosen), "that the axes make a result of the declared rank")
    return _cut(x, chosen, members, body, keepdims)


def _declared(shape: Sequence[Dim], room: Sequence[int] | None,
              dims: Sequence[int | None] | None) -> bool:
    """Whether a result may have this shape: it is `room`, or has the numbers among `dims`."""
    if room is not None:
        return tuple(shape) == tuple(room)
    return dims is None or (len(dims) == len(shape) and all(
        d is None or not isinstance(n, int) or d == n for d, n in zip(dims, shape, strict=True)))


def agreed_axes(axes: Any, wide: Sequence[Dim], narrow: Sequence[Dim]) -> tuple[Dim, ...]:
    """The shape `narrow`, after a check that `wide` without the computed axes, which have size 1,
    is equal. Raises ValueError if no axes make it so."""
    rank = len(wide)
    chosen = [s for s in combinations(range(rank), rank - len(narrow))
              if tuple(d for i, d in enumerate(wide) if i not in s) == tuple(narrow)
              and all(wide[i] == 1 for i in s)]
    if not chosen or count_of(axes) != rank - len(narrow):
        raise ValueError(f"no axes make {tuple(narrow)} of {tuple(wide)}")
    if chosen != [()]:
        members = _members(axes, rank)
        agreed_truth(_any(members, chosen), "that the axes make the declared shape")
    return tuple(narrow)


def _any(members: dict[int, Any], chosen: Sequence[Axes]) -> Any:
    """Whether the computed axes are one of the chosen sets."""
    return some([_all(members, s) for s in chosen])


def _shape(x: Any, s: Axes, keepdims: bool) -> tuple[Dim, ...]:
    return tuple(1 if i in s else d for i, d in enumerate(x.shape) if keepdims or i not in s)


def _members(axes: Any, rank: int) -> dict[int, Any]:
    """For each axis, whether it is among the computed ones."""
    axes = from_zero(axes, rank)
    return {a: o.reduce_or(o.eq(axes, a), axes=(0,)).reshape(()) for a in range(rank)}


def _all(members: dict[int, Any], s: Axes) -> Any:
    """Whether the computed axes are exactly these."""
    flags = [v if a in s else ~v for a, v in members.items()]
    out = flags[0]
    for v in flags[1:]:
        out = out & v
    return out


def some(flags: list[Any]) -> Any:
    """Whether one of the computed conditions holds."""
    out = flags[0]
    for v in flags[1:]:
        out = out | v
    return out


def _cut(x: Any, chosen: list[Axes], members: dict[int, Any], body: Callable[[Any, Axes], Any],
         keepdims: bool) -> Any:
    """Each result broadcast to x's shape, one selected, and one element of each reduced axis
    kept."""
    full = tuple(x.shape)
    y = o.broadcast(body(x, chosen[0]), shape=full)
    for s in chosen[1:]:
        y = o.select(_all(members, s), body(x, s), y)
    one = members[0].cast(dtypes.int64).number(1)
    sizes = [bind(o.select(members[a], one, dim_value(d, x)), 0, maximum(d, 1))
             for a, d in enumerate(full)]
    rank = x.ndim
    y = o.slice(y, start=(0,) * rank, limit=tuple(sizes), strides=(1,) * rank)
    return y if keepdims else y.reshape(tuple(_kept(x, chosen, members, product(sizes), one)))


def _kept(x: Any, chosen: list[Axes], members: dict[int, Any], total: Dim,
          one: Any) -> Iterator[Dim]:
    """The sizes of the axes that are not reduced; the last follows from the others."""
    kept = [tuple(d for i, d in enumerate(x.shape) if i not in s) for s in chosen]
    rest: Dim = 1
    for j in range(len(kept[0]) - 1):
        v = one * dim_value(kept[0][j], x)
        for s, dims in zip(chosen[1:], kept[1:], strict=True):
            v = o.select(_all(members, s), dim_value(dims[j], x), v)
        size = bind(v, 0, _most([d[j] for d in kept]))
        rest = rest * size
        yield size
    if kept[0]:
        yield floordiv(total, maximum(rest, 1))


def _most(sizes: list[Dim]) -> Dim:
    out = sizes[0]
    for d in sizes[1:]:
        out = maximum(out, d)
    return out
