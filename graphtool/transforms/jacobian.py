"""Whole Jacobians: derivatives along all unit directions at once.

The directions are an identity matrix, cut into the shapes of what is differentiated; one axis of
examples (`vmap`) carries them through the reverse mode, or through the forward mode where there are
fewer inputs than outputs. What depends on no direction is computed once.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from graphtool import dtypes
from graphtool import ops as o
from graphtool.errors import InputError
from graphtool.ir.graph import Graph, Value
from graphtool.ir.trace import Builder
from graphtool.transforms.forward import jvp
from graphtool.transforms.reverse import vjp
from graphtool.transforms.vmap import batch, whole


def jacobian(graph: Graph, wrt: Sequence[Value], outputs: Sequence[int]) -> Graph:
    """The graph with the derivative of each of `outputs` by each of `wrt` after its own outputs:
    of y[3, 4] by x[5] an array [3, 4, 5].

    Raises InputError GT0646 if a size of these values is open, and the errors of `vjp`.
    """
    ys, xs = [_size(graph.outputs[i]) for i in outputs], [_size(v) for v in wrt]
    if sum(ys) <= sum(xs):
        joint, seeds, counts = vjp(graph, wrt, outputs), [graph.outputs[i] for i in outputs], ys
    else:
        joint, seeds, counts = jvp(graph, wrt, outputs), list(wrt), xs
    builder, own = Builder(), len(graph.inputs)
    given: list[Any] = [(builder.input(v.type, v.hint), False) for v in joint.inputs[:own]]
    given += [(_units(builder, v, sum(counts), sum(counts[:at])), True)
              for at, v in enumerate(seeds)]
    results = batch(builder, joint, given, sum(counts))
    kept = [x for x, _ in results[:len(graph.outputs)]]
    products = [whole(x, batched, sum(counts))
                for x, batched in results[len(graph.outputs):]]
    places = range(len(seeds))
    if counts is ys:
        blocks = [_rows(x, counts, i, seeds[i], first=True) for i in places for x in products]
    else:
        blocks = [_rows(x, counts, j, seeds[j], first=False) for x in products for j in places]
    inputs = tuple(x.value for x, _ in given[:own])
    return Graph(inputs, tuple(builder.nodes), tuple(x.value for x in (*kept, *blocks)))


def _units(builder: Builder, v: Value, count: int, start: int) -> Any:
    """Of `count` directions those along elements of v, from row `start` on: [count, *shape]."""
    size = _size(v)
    row, column = (builder.emit(o.iota, (), {"shape": (count, size), "axis": axis,
                                             "dtype": dtypes.int64}) for axis in (0, 1))
    return o.eq(row, column + start).cast(v.type.dtype).reshape((count, *v.type.shape))


def _size(v: Value) -> int:
    """The number of elements."""
    fixed = [d for d in v.type.shape if isinstance(d, int)]
    if len(fixed) < v.type.rank:
        raise InputError("GT0646", f"{v.hint.lstrip('@')}: {v.type} has an open size, and a "
                                   "Jacobian has a row or column for each element",
                         hint="fix it by `opt --passes specialize{NAME=1}`, or use jvp or vjp")
    return math.prod(fixed)


def _rows(x: Any, counts: Sequence[int], at: int, seed: Value, first: bool) -> Any:
    """The products with the directions of one seed: its axes in place of axis 0, or at the end."""
    if len(counts) > 1:
        x = x.take(0, sum(counts[:at]), sum(counts[:at + 1]))
    rest = x.shape[1:]
    if first:
        return x.reshape((*seed.type.shape, *rest))
    return x.transpose((*range(1, len(rest) + 1), 0)).reshape((*rest, *seed.type.shape))
