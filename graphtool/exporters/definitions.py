"""Definitions of ops by other ops, which exporters write for an op that the other format lacks: as
closed graphs; of windows, by one slice for each position (tap) in the window."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from graphtool import ops as o
from graphtool.errors import InternalError
from graphtool.ir.graph import Graph, TensorType, Value
from graphtool.ir.trace import Builder
from graphtool.ops.indexing import conv_defaults, dilate
from graphtool.ops.reduce import identity


def defined(fn: Callable[..., Any], operands: Sequence[Any], names: Sequence[str],
            where: str) -> Graph:
    """The graph of the nodes that `fn` builds on the operands.

    Each of `names` has a TensorType; literals and None are handed on. Raises InternalError GT7004
    where a result is a literal.
    """
    builder = Builder()
    given = [x for x in operands if isinstance(x, TensorType)]
    tracers = [builder.input(t, n) for t, n in zip(given, names, strict=True)]
    rest = iter(tracers)
    with builder.scope(""):
        out = fn(*[next(rest) if isinstance(x, TensorType) else x for x in operands])
    results: list[Value] = []
    for result in out if isinstance(out, tuple) else (out,):
        x = builder.operand(result)
        if not isinstance(x, Value):
            raise InternalError("GT7004", "a decomposition gave a literal", where=where)
        results.append(x)
    return Graph(tuple(t.value for t in tracers), tuple(builder.nodes), tuple(results))


# ---- windows by slices --------------------------------------------------------------------------

_NOWHERE = 2**62  # the index of padding


def filled(x: Any, value: Any, padding: Any, base: Any) -> Any:
    """x with `value` around it and between its elements."""
    return o.pad(x, lo=tuple(p[0] for p in padding), hi=tuple(p[1] for p in padding),
                 interior=tuple(b - 1 for b in base), value=value)


def tap(x: Any, places: dict[int, tuple[int, int, int, int]]) -> Any:
    """The i-th element of each window of k, along some axes: a strided slice.

    `places` has for an axis i, k, the stride and the dilation of the window.
    """
    start, limit, steps = [0] * x.ndim, list(x.shape), [1] * x.ndim
    for axis, (i, k, s, r) in places.items():
        start[axis], steps[axis] = i * r, s
        limit[axis] = x.shape[axis] - (dilate(k, r) - 1 - i * r)
    if all((a, s) == (0, 1) and b == d for a, b, s, d in zip(start, limit, steps, x.shape,
                                                            strict=True)):
        return x
    return o.slice(x, start=tuple(start), limit=tuple(limit), strides=tuple(steps))


def _taps(window: Any, strides: Any, dilation: Any) -> Iterator[dict[int, Any]]:
    for at in itertools.product(*map(range, window)):
        yield dict(enumerate(zip(at, window, strides, dilation, strict=True)))


def _wins(kind: str, v: Any, best: Any) -> Any:
    """Where v is better than the best so far; NaN is better than numbers."""
    better = (o.gt if kind == "max" else o.lt)(v, best)
    return better if not v.dtype.is_float else o.or_(
        better, o.and_(o.is_nan(v), o.not_(o.is_nan(best))))


def arg_reduce_window(x: Any, *, kind: str, window: Any, strides: Any, padding: Any,
                      base_dilation: Any, window_dilation: Any) -> Any:
    """The first best place in row-major order, by a comparison of one slice after the other."""
    strides, padding, base, dilation = conv_defaults(x.ndim, strides, padding, base_dilation,
                                                     window_dilation)
    numbers = np.arange(math.prod(x.shape)).reshape(x.shape)
    values = filled(x, identity(kind, x.dtype), padding, base)
    places = filled(x.builder.constant(numbers), _NOWHERE, padding, base)
    best: Any = None
    place: Any = None
    for cut in _taps(window, strides, dilation):
        v, p = tap(values, cut), tap(places, cut)
        if best is None:
            best, place = v, p
            continue
        wins = o.or_(_wins(kind, v, best), o.and_(o.eq(place, _NOWHERE), o.eq(v, best)))
        best, place = o.select(wins, v, best), o.select(wins, p, place)
    return place


def extreme_tap(x: Any, *, kind: str, window: Any, strides: Any, padding: Any) -> Any:
    """The number of the first best tap, by a comparison of one slice after the other."""
    strides, padding, ones, _ = conv_defaults(x.ndim, strides, padding, None, None)
    values = filled(x, identity(kind, x.dtype), padding, ones)
    best: Any = None
    place: Any = None
    for number, cut in enumerate(_taps(window, strides, ones)):
        v = tap(values, cut)
        if best is None:
            zero = x.builder.constant(np.zeros((1,) * x.ndim, np.int32))
            best, place = v, o.broadcast(zero, shape=v.shape)
            continue
        wins = _wins(kind, v, best)
        best, place = o.select(wins, v, best), o.select(wins, number, place)
    return place


def unpool(g: Any, taps: Any, *, shape: Any, window: Any, strides: Any, padding: Any) -> Any:
    """For each tap what went there, put back with gaps between, all of it added up."""
    strides, padding, *_ = conv_defaults(g.ndim, strides, padding, None, None)
    total: Any = None
    for number, at in enumerate(itertools.product(*map(range, window))):
        mine = o.select(o.eq(taps, number), g, 0)
        lo = tuple(t - p for t, (p, _) in zip(at, padding, strict=True))
        hi = tuple(d - a - ((m - 1) * s + 1)
                   for d, a, m, s in zip(shape, lo, g.shape, strides, strict=True))
        part = o.pad(mine, lo=lo, hi=hi, interior=tuple(s - 1 for s in strides))
        total = part if total is None else o.add(total, part)
    return total
