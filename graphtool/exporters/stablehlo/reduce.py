"""Reductions over axes and windows; the place of an extreme in a window."""

from __future__ import annotations

from typing import Any

from graphtool import dtypes
from graphtool import ops as o
from graphtool.exporters import taps
from graphtool.exporters.stablehlo.broadcast import placed
from graphtool.exporters.stablehlo.movement import is_open, reshaped
from graphtool.exporters.stablehlo.registry import Ref, body, definition, form, takes
from graphtool.exporters.stablehlo.text import array, ints, pairs, signature
from graphtool.exporters.stablehlo.writer import Writer
from graphtool.ir.graph import Node, TensorType
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
    made: Ref = w.put(
        f"stablehlo.reduce({x.name} init: {start.name}) applies stablehlo.{_APPLIED[kind]} across "
        f"dimensions = {ints(axes)} : {signature([x.type, start.type], [to])}", to, "reduce")
    shape = node.outputs[0].type.shape
    if not is_open(shape):
        return reshaped(w, made, shape)
    kept = [a for a in range(len(shape)) if a not in axes]  # IREE has no dynamic_reshape
    return placed(w, made, TensorType(x.dtype, shape), kept)


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
    return taps.arg_reduce_window(x, **attrs)


definition("extreme_tap")(taps.extreme_tap)
definition("unpool")(taps.unpool)
