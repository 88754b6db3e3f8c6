"""Movement of elements: reshape, transpose, broadcast, slice, pad, concat, reverse.

An operation is written alone if it is read back with equal attributes, else as a composite: with
axes counted from the end, or zeros where we have no attribute.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from graphtool import dtypes
from graphtool import ops as o
from graphtool.exporters.stablehlo.broadcast import repeated
from graphtool.exporters.stablehlo.registry import Ref, body, definition, form, takes
from graphtool.exporters.stablehlo.sizes import vector
from graphtool.exporters.stablehlo.text import ints
from graphtool.exporters.stablehlo.writer import Writer
from graphtool.ir.graph import Node, TensorType
from graphtool.ops.shape import pad_value
from graphtool.symbolic import Dim, Poly


def is_open(dims: Iterable[Dim]) -> bool:
    """Whether one of the sizes is not a number."""
    return any(isinstance(d, Poly) for d in dims)


def reshaped(w: Writer, x: Ref, shape: tuple[Dim, ...]) -> Ref:
    """x under another shape."""
    to = TensorType(x.dtype, shape)
    if x.type == to:
        return x
    return w("dynamic_reshape", x, vector(w, shape), to=to) if is_open(shape) else w(
        "reshape", x, to=to)


@form("reshape")
def reshape(w: Writer, node: Node, x: Ref) -> Ref:
    """The same elements under another shape."""
    return reshaped(w, x, node.attrs["shape"])


@form("transpose")
def transpose(w: Writer, node: Node, x: Ref) -> Ref:
    """The axes in another order."""
    return w("transpose", x, to=node.outputs[0].type, attrs=f", dims = {ints(node.attrs['perm'])}")


@form("broadcast")
def broadcast(w: Writer, node: Node, x: Ref) -> Ref:
    """Repeated by NumPy's rule."""
    return repeated(w, x, x.dtype, node.attrs["shape"])


@form("slice")
def slice_(w: Writer, node: Node, x: Ref) -> Ref:
    """x[start:limit:stride] on every axis."""
    start, limit, strides = (node.attrs[k] for k in ("start", "limit", "strides"))
    to = node.outputs[0].type
    if is_open((*start, *limit)):
        return w("real_dynamic_slice", x, *(vector(w, v) for v in (start, limit, strides)), to=to)
    rows = ", ".join(f"{a}:{max(a, b)}" + (f":{s}" if s != 1 else "")
                     for a, b, s in zip(start, limit, strides, strict=True))
    return w("slice", x, to=to, attrs=f" [{rows}]")


@form("pad")
def pad(w: Writer, node: Node, x: Ref) -> Ref:
    """A pad whose zeros between elements are left out."""
    takes(node.attrs["interior"] is None or any(node.attrs["interior"]))
    return padded(w, node, x)


@body("pad")
def padded(w: Writer, node: Node, x: Ref) -> Ref:
    """A value before, after and between the elements; negative counts take elements away."""
    lo, hi = node.attrs["lo"], node.attrs["hi"]
    inner = node.attrs["interior"] or (0,) * len(lo)
    to = node.outputs[0].type
    fill = w.number(pad_value(node.attrs["value"], x.dtype), x.dtype)
    if is_open((*lo, *hi)):
        return w("dynamic_pad", x, fill, *(vector(w, v) for v in (lo, hi, inner)), to=to)
    takes(not any(_is_gone(*row) for row in zip(x.shape, lo, hi, inner, strict=True)))
    return w("pad", x, fill, to=to,
             attrs=f", low = {ints(lo)}, high = {ints(hi)}, interior = {ints(inner)}")


def _is_gone(d: Dim, lo: int, hi: int, inner: int) -> bool:
    """Whether more is cut off an axis than it has, which StableHLO does not define."""
    return isinstance(d, int) and max(d + max(d - 1, 0) * inner, 0) + lo + hi < 0


@definition("pad")
def _all_gone(x: Any, *, lo: Any, hi: Any, interior: Any, value: float) -> Any:
    """The value alone, where an axis is cut off altogether."""
    inner = interior or (0,) * x.ndim
    shape = tuple(max(d + max(d - 1, 0) * i + a + b, 0) for d, a, b, i in zip(
        x.shape, lo, hi, inner, strict=True))
    one = np.full((1,) * x.ndim, pad_value(value, x.dtype), x.dtype.numpy)
    return o.broadcast(x.builder.constant(one), shape=shape)


@form("concat")
def concat(w: Writer, node: Node, *xs: Ref) -> Ref:
    """The operands one after the other, along an axis counted from the front."""
    takes(node.attrs["axis"] >= 0)
    return joined(w, node, *xs)


@body("concat")
def joined(w: Writer, node: Node, *xs: Ref) -> Ref:
    """The operands one after the other."""
    to = node.outputs[0].type
    return w("concatenate", *xs, to=to, attrs=f", dim = {node.attrs['axis'] % len(to.shape)}")


@form("reverse")
def reverse(w: Writer, node: Node, x: Ref) -> Ref:
    """x read backwards along axes counted from the front."""
    takes(all(a >= 0 for a in node.attrs["axes"]))
    return reversed_(w, node, x)


@body("reverse")
def reversed_(w: Writer, node: Node, x: Ref) -> Ref:
    """x read backwards along axes."""
    axes = [a % len(x.shape) for a in node.attrs["axes"]]
    return w("reverse", x, to=x.type, attrs=f", dims = {ints(axes)}")


# ---- dynamic slices ----------------------------------------------------------------------------

def _starts(w: Writer, start: Any) -> list[Ref]:
    """The starts as scalars, of one element type."""
    kinds = {s.dtype for s in start if isinstance(s, Ref)} or {dtypes.int64}
    one = kinds.pop() if len(kinds) == 1 else dtypes.int64
    scalar = TensorType(one, ())
    return [w.number(s, one) if not isinstance(s, Ref) else s if s.dtype is one else w(
        "convert", s, to=scalar) for s in start]


@form("dynamic_slice")
def dynamic_slice(w: Writer, node: Node, x: Ref, *start: Any) -> Ref:
    """A window at a computed place."""
    sizes = node.attrs["sizes"]
    takes(not is_open(sizes), "a window has an open size, which StableHLO's dynamic_slice lacks")
    return w("dynamic_slice", x, *_starts(w, start), to=node.outputs[0].type,
             attrs=f", sizes = {ints(sizes)}")


@form("dynamic_update_slice")
def dynamic_update_slice(w: Writer, node: Node, x: Ref, update: Ref, *start: Any) -> Ref:
    """x with a window at a computed place replaced."""
    starts = _starts(w, start)
    return w("dynamic_update_slice", x, update, *starts, to=x.type)
