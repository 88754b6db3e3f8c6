"""Reductions over axes and windows, the index of an extreme, running reductions, sorting."""

from __future__ import annotations

from typing import Any

import numpy as np

from graphtool.exporters import definitions
from graphtool.exporters.stablehlo.kit import Ref, Writer, body, definition, dtypes, form, o, takes
from graphtool.exporters.stablehlo.movement import is_open, reshaped
from graphtool.exporters.stablehlo.operands import before, compared, level, logical, placed
from graphtool.exporters.stablehlo.sizes import vector
from graphtool.exporters.stablehlo.text import array, ints, pairs, signature
from graphtool.ir.graph import Node, TensorType
from graphtool.ir.trace import trace
from graphtool.ops.reduce import identity

_APPLIED = {"sum": "add", "prod": "multiply", "max": "maximum", "min": "minimum", "and": "and",
            "or": "or"}


_REDUCE = tuple(f"reduce_{kind}" for kind in _APPLIED)


@form(*_REDUCE)
def reduce(w: Writer, node: Node, x: Ref) -> Ref:
    """A reduction over axes that are counted from the front and in order."""
    axes = node.attrs["axes"]
    takes(bool(axes) and list(axes) == sorted(axes) and all(a >= 0 for a in axes))
    return reduced(w, node, x)


@body(*_REDUCE)
def reduced(w: Writer, node: Node, x: Ref) -> Ref:
    """A reduction, and a reshape for the axes of size 1 that stay."""
    kind = node.op.name.removeprefix("reduce_")
    takes(not (kind in ("sum", "prod") and x.dtype.is_narrow))
    if not node.attrs["axes"]:
        return x
    axes = sorted(a % len(x.shape) for a in node.attrs["axes"])
    start = w.number(identity(kind, x.dtype), x.dtype)
    to = TensorType(x.dtype, tuple(d for a, d in enumerate(x.shape) if a not in axes))
    result: Ref = w.put(
        f"stablehlo.reduce({x.name} init: {start.name}) applies stablehlo.{_APPLIED[kind]} across "
        f"dimensions = {ints(axes)} : {signature([x.type, start.type], [to])}", to, "reduce")
    shape = node.outputs[0].type.shape
    if not is_open(shape):
        return reshaped(w, result, shape)
    kept = [a for a in range(len(shape)) if a not in axes]  # IREE has no dynamic_reshape
    return placed(w, result, TensorType(x.dtype, shape), kept)


@definition("reduce_sum")
def _wide_sum(x: Any, *, axes: tuple[int, ...]) -> Any:
    return o.cast(o.reduce_sum(o.cast(x, dtype=dtypes.float32), axes=axes), dtype=x.dtype)


@definition("reduce_prod")
def _wide_product(x: Any, *, axes: tuple[int, ...]) -> Any:
    return o.cast(o.reduce_prod(o.cast(x, dtype=dtypes.float32), axes=axes), dtype=x.dtype)


# ---- windows -----------------------------------------------------------------------------------

_WINDOW = {"base_dilation": "base_dilations", "window_dilation": "window_dilations",
           "window": "window_dimensions", "strides": "window_strides"}


@form("reduce_window")
def reduce_window(w: Writer, node: Node, x: Ref) -> Ref:
    """A reduction of each window, with the neutral element around x."""
    attrs, to, kind = node.attrs, node.outputs[0].type, node.attrs["kind"]
    padding = attrs["padding"]
    takes(not is_open(d for pair in padding or () for d in pair))
    start = w.number(identity(kind, x.dtype), x.dtype)
    inner = w.region()
    a, b = (inner.argument(start.type, n) for n in "ab")
    region = inner.block([a, b], [inner(_APPLIED[kind], a, b, to=start.type)])
    return w.generic("reduce_window", [x, start], [to], regions=[region], attrs=", ".join((
        *([f"padding = {pairs(padding)}"] if padding is not None else []),
        *(f"{theirs} = {array(attrs[ours])}" for ours, theirs in _WINDOW.items()
          if attrs[ours] is not None))))[0]


@definition("reduce_window")
def _windows_of_padded(x: Any, *, kind: str, padding: Any, base_dilation: Any, **attrs: Any) -> Any:
    """With an open padding, which is put around and between the elements before."""
    wide = o.pad(x, lo=tuple(a for a, _ in padding), hi=tuple(b for _, b in padding),
                 interior=tuple(d - 1 for d in base_dilation or (1,) * x.ndim),
                 value=identity(kind, x.dtype))
    return o.reduce_window(wide, kind=kind, **attrs)


# ---- places in windows -------------------------------------------------------------------------

@definition("arg_reduce_window")
def _arg_reduce_window(x: Any, **attrs: Any) -> Any:
    takes(not is_open(x.shape), "the index of an extreme needs fixed sizes")
    return definitions.arg_reduce_window(x, **attrs)


definition("extreme_tap")(definitions.extreme_tap)
definition("unpool")(definitions.unpool)


# ---- sorting, extremes, running reductions ------------------------------------------------------

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
    index = w.generic("reduce", [x, places(w, x, axis), *starts],
                      [TensorType(x.dtype, to), TensorType(dtypes.int64, to)],
                      f"dimensions = {array([axis])}", [region])
    return reshaped(w, index[1], node.outputs[0].type.shape)


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
