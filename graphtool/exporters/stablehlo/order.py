"""Sorting, the index of an extreme, and running reductions."""

from __future__ import annotations

from typing import Any

import numpy as np

from graphtool import dtypes
from graphtool import ops as o
from graphtool.exporters.stablehlo.blocks import before, compared, level, logical
from graphtool.exporters.stablehlo.movement import is_open, reshaped
from graphtool.exporters.stablehlo.registry import Ref, body, definition
from graphtool.exporters.stablehlo.sizes import vector
from graphtool.exporters.stablehlo.text import array
from graphtool.exporters.stablehlo.writer import Writer
from graphtool.ir.graph import Node, TensorType
from graphtool.ir.trace import trace
from graphtool.ops.reduce import identity


def places(w: Writer, x: Ref, axis: int) -> Ref:
    """The index of each element of x along an axis."""
    to = TensorType(dtypes.int64, x.shape)
    if is_open(x.shape):
        return w("dynamic_iota", vector(w, x.shape), to=to, attrs=f", dim = {axis}")
    return w("iota", to=to, attrs=f"dim = {axis}")


@body("sort")
def sort(w: Writer, node: Node, x: Ref) -> tuple[Ref, ...]:
    """A stable sort of the elements with their indices; NaN counts as the greatest."""
    if not x.shape:
        return x, w.number(0, dtypes.int64)
    axis, down = node.attrs["axis"] % len(x.shape), node.attrs["descending"]
    inner = w.region()
    a, b = (inner.argument(TensorType(x.dtype, ()), n) for n in "ab")
    i, j = (inner.argument(TensorType(dtypes.int64, ()), n) for n in "ij")
    region = inner.block([a, b, i, j], [before(inner, "GT" if down else "LT", a, b, down)])
    return w.generic("sort", [x, places(w, x, axis)], [v.type for v in node.outputs],
                     f"dimension = {axis} : i64, is_stable = true", [region])


@body("arg_reduce")
def arg_reduce(w: Writer, node: Node, x: Ref) -> Ref:
    """A reduction of pairs of a value and its index. NaN wins; of equals the first or last."""
    kind, last = node.attrs["kind"], node.attrs["last"]
    axis = node.attrs["axis"] % len(x.shape)
    starts = [w.number(identity(kind, x.dtype), x.dtype),
              w.number(-1 if last else dtypes.int64.high, dtypes.int64)]
    inner = w.region()
    a, i, b, j = (inner.argument(s.type, n) for s, n in zip(starts * 2, "aibj", strict=True))
    ahead = before(inner, "GT" if kind == "max" else "LT", a, b, True)
    nearer = compared(inner, "GT" if last else "LT", i, j)
    first = logical(inner, "or", ahead, logical(inner, "and", level(inner, a, b), nearer))
    chosen = [inner("select", first, p, q, to=p.type) for p, q in ((a, b), (i, j))]
    region = inner.block([a, i, b, j], chosen)
    to = tuple(d for n, d in enumerate(x.shape) if n != axis)
    found = w.generic("reduce", [x, places(w, x, axis), *starts],
                      [TensorType(x.dtype, to), TensorType(dtypes.int64, to)],
                      f"dimensions = {array([axis])}", [region])
    return reshaped(w, found[1], node.outputs[0].type.shape)


# ---- running reductions ------------------------------------------------------------------------

@definition("cumulative")
def cumulative(x: Any, *, kind: str, axis: int, reverse: bool, exclusive: bool) -> Any:
    """Of n elements in ⌈log₂ n⌉ steps: each adds what stands 1, 2, 4, … places before it."""
    axis %= x.ndim
    if not isinstance(x.shape[axis], int):
        return _scanned(x, kind, axis, reverse, exclusive)
    n, join = x.shape[axis], _join(kind)
    neutral = identity(kind, x.dtype)
    y, step = _moved(x, axis, 1, reverse, neutral) if exclusive else x, 1
    while step < n:
        y, step = join(_moved(y, axis, step, reverse, neutral), y), 2 * step
    return y


def _join(kind: str) -> Any:
    return {"sum": o.add, "prod": o.mul, "max": o.max, "min": o.min}[kind]


def _moved(x: Any, axis: int, by: int, reverse: bool, fill: float) -> Any:
    """x moved along an axis, with `fill` where nothing comes from."""
    by = -by if reverse else by
    lo, hi = [0] * x.ndim, [0] * x.ndim
    lo[axis], hi[axis] = by, -by
    if abs(by) >= x.shape[axis]:
        return o.broadcast(x.builder.constant(_full(x, fill)), shape=x.shape)
    return o.pad(x, lo=tuple(lo), hi=tuple(hi), value=fill)


def _full(x: Any, fill: float) -> Any:
    return np.full((1,) * x.ndim, fill, x.dtype.numpy)


def _scanned(x: Any, kind: str, axis: int, reverse: bool, exclusive: bool) -> Any:
    """A scan over the rows, where their number is open."""
    perm = (axis, *(a for a in range(x.ndim) if a != axis))
    rows = o.transpose(x, perm=perm)
    row = TensorType(x.dtype, rows.shape[1:])
    start = o.broadcast(x.builder.constant(_full(x, identity(kind, x.dtype)).reshape(())),
                        shape=row.shape)

    def step(held: Any, new: Any) -> Any:
        total = _join(kind)(held, new)
        return total, held if exclusive else total
    _, out = o.scan(start, rows, body=trace(step, [row, row]), carries=1, xs=1,
                    length=rows.shape[0], reverse=reverse)
    return o.transpose(out, perm=tuple(perm.index(a) for a in range(x.ndim)))
