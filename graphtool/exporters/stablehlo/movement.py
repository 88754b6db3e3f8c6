"""Movement of elements: reshape, transpose, broadcast, slice, pad, concat, reverse, gather,
scatter; ops that hand a value on, and values that need no operand."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from graphtool.dtypes import DType
from graphtool.exporters.stablehlo.kit import Ref, Writer, body, definition, dtypes, form, o, takes
from graphtool.exporters.stablehlo.operands import widened
from graphtool.exporters.stablehlo.sizes import SIZE, size, vector
from graphtool.exporters.stablehlo.text import array, ints
from graphtool.ir.graph import Node, TensorType
from graphtool.ops.shape import pad_value
from graphtool.symbolic import Dim, Poly


def is_open(dims: Iterable[Dim]) -> bool:
    """Whether one of the sizes is not a number."""
    return any(isinstance(d, Poly) for d in dims)


def reshaped(w: Writer, x: Ref, shape: tuple[Dim, ...],
             node: Sequence[Dim] | None = None) -> Ref:
    """x under another shape; `node` as the writer has it."""
    to = TensorType(x.dtype, shape)
    if x.type == to:
        return x
    return w("dynamic_reshape", x, vector(w, shape), to=to, node=node) if is_open(shape) else w(
        "reshape", x, to=to, node=node)


@form("reshape")
def reshape(w: Writer, node: Node, x: Ref) -> Ref:
    """The same elements under another shape."""
    takes(x.shape != node.attrs["shape"])
    return reshaped(w, x, node.attrs["shape"], node.attrs["shape"])


@form("transpose")
def transpose(w: Writer, node: Node, x: Ref) -> Ref:
    """The axes in another order."""
    perm = node.attrs["perm"]
    takes(list(perm) != list(range(len(perm))))
    return w("transpose", x, to=node.outputs[0].type, attrs=f", dims = {ints(perm)}")


@form("broadcast")
def broadcast(w: Writer, node: Node, x: Ref) -> Ref:
    """Repeated by NumPy's rule."""
    takes(x.shape != node.attrs["shape"])
    return widened(w, x, node.attrs["shape"], node.attrs["shape"])


@body("reshape", "transpose", "broadcast", "bitcast")
def unchanged(w: Writer, node: Node, x: Ref) -> Ref:
    """The operand, where an op has no effect."""
    return x


@form("slice")
def slice_(w: Writer, node: Node, x: Ref) -> Ref:
    """A slice that leaves elements out."""
    takes(x.shape != node.outputs[0].type.shape)
    takes(not is_open((*node.attrs["start"], *node.attrs["limit"])))
    return sliced(w, node, x)


@body("slice")
def sliced(w: Writer, node: Node, x: Ref) -> Ref:
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
    """A pad that adds or cuts, whose zeros between elements are left out."""
    lo, hi, interior = (node.attrs[k] for k in ("lo", "hi", "interior"))
    takes(any(interior) if interior is not None else any(d != 0 for d in (*lo, *hi)))
    takes(not is_open((*lo, *hi)))
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
    """Several operands one after the other, none empty, along an axis counted from the front."""
    takes(node.attrs["axis"] >= 0 and len(xs) > 1 and not any(0 in x.shape for x in xs))
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
    kinds = _kinds(start) or {dtypes.int64}
    one = kinds.pop() if len(kinds) == 1 else dtypes.int64
    scalar = TensorType(one, ())
    return [w.number(s, one) if not isinstance(s, Ref) else s if s.dtype is one else w(
        "convert", s, to=scalar) for s in start]


def _kinds(start: Any) -> set[DType]:
    return {s.dtype for s in start if isinstance(s, Ref)}


@form("dynamic_slice")
def dynamic_slice(w: Writer, node: Node, x: Ref, *start: Any) -> Ref:
    """A window of a fixed size at a place that the run computes."""
    takes(len(_kinds(start)) == 1 and not is_open(node.attrs["sizes"]))
    return window(w, node, x, *start)


@body("dynamic_slice")
def window(w: Writer, node: Node, x: Ref, *start: Any) -> Ref:
    """A window at a computed place; StableHLO's own operation has no open sizes."""
    sizes, to = node.attrs["sizes"], node.outputs[0].type
    if not is_open((*sizes, *x.shape)):
        return w("dynamic_slice", x, *_starts(w, start), to=to, attrs=f", sizes = {ints(sizes)}")
    first: list[Dim | Ref] = []
    last: list[Dim | Ref] = []
    for s, n, d in zip(_starts(w, start), sizes, x.shape, strict=True):
        at = w("convert", s, to=SIZE) if s.dtype is not SIZE.dtype else s
        at = w("maximum", w("minimum", at, size(w, d - n), to=SIZE), size(w, 0), to=SIZE)
        first.append(at)
        last.append(w("add", at, size(w, n), to=SIZE))
    return w("real_dynamic_slice", x, *(vector(w, v) for v in (first, last, [1] * len(sizes))),
             to=to)


@form("dynamic_update_slice")
def dynamic_update_slice(w: Writer, node: Node, x: Ref, update: Ref, *start: Any) -> Ref:
    """x with a window replaced, at a place that the run computes."""
    takes(len(_kinds(start)) == 1)
    return updated(w, node, x, update, *start)


@body("dynamic_update_slice")
def updated(w: Writer, node: Node, x: Ref, update: Ref, *start: Any) -> Ref:
    """x with a window replaced; the starts may be of several types."""
    return w("dynamic_update_slice", x, update, *_starts(w, start), to=x.type)


# ---- gather and scatter -------------------------------------------------------------------------

@body("gather")
def gather(w: Writer, node: Node, x: Ref, indices: Ref) -> Ref:
    """Our gather; what it reads has size 1 on the indexed and batch axes, the whole of others."""
    axes, batch, to = node.attrs["axes"], node.attrs["batch"], node.outputs[0].type
    lead = len(indices.shape) - 1
    taken = [d if a >= batch and a not in axes else 1 for a, d in enumerate(x.shape)]
    numbers = (f"dimension_numbers = #stablehlo.gather<"
               f"offset_dims = {ints(range(lead, len(to.shape)))}, "
               f"collapsed_slice_dims = {ints(sorted(axes))}, "
               f"operand_batching_dims = {ints(range(batch))}, "
               f"start_indices_batching_dims = {ints(range(batch))}, "
               f"start_index_map = {ints(axes)}, index_vector_dim = {lead}>, "
               f"indices_are_sorted = false")
    if is_open(taken):
        return w.generic("dynamic_gather", [x, indices, vector(w, taken)], [to], numbers)[0]
    return w.generic("gather", [x, indices], [to], f"{numbers}, slice_sizes = {array(taken)}")[0]


_BODY = {"add": "add", "mul": "multiply", "min": "minimum", "max": "maximum"}


@body("scatter")
def scatter(w: Writer, node: Node, x: Ref, indices: Ref, updates: Ref) -> Ref:
    """Our scatter: each update is joined with what is there, or replaces it."""
    axes, batch, kind = (node.attrs[k] for k in ("axes", "batch", "kind"))
    lead = len(indices.shape) - 1
    one = TensorType(x.dtype, ())
    inner = w.region()
    a, b = (inner.argument(one, n) for n in "ab")
    region = inner.block([a, b], [b if kind == "set" else inner(_BODY[kind], a, b, to=one)])
    numbers = (f"indices_are_sorted = false, "
               f"scatter_dimension_numbers = #stablehlo.scatter<"
               f"update_window_dims = {ints(range(lead, len(updates.shape)))}, "
               f"inserted_window_dims = {ints(sorted(axes))}, "
               f"input_batching_dims = {ints(range(batch))}, "
               f"scatter_indices_batching_dims = {ints(range(batch))}, "
               f"scatter_dims_to_operand_dims = {ints(axes)}, index_vector_dim = {lead}>, "
               f"unique_indices = false")
    return w.generic("scatter", [x, indices, updates], [x.type], numbers, [region])[0]


# ---- values handed on ---------------------------------------------------------------------------

@definition("barrier")
def _barrier(x: Any) -> Any:
    return x


@body("assume")
def assume(w: Writer, node: Node, x: Ref) -> Ref:
    """The operand: sizes are checked where they are used."""
    return x


@form("iota")
def iota(w: Writer, node: Node) -> Ref:
    """The index along an axis."""
    to, axis = node.outputs[0].type, node.attrs["axis"] % len(node.attrs["shape"])
    if any(isinstance(d, Poly) for d in to.shape):
        return w("dynamic_iota", vector(w, to.shape), to=to, attrs=f", dim = {axis}", node=to.shape)
    return w("iota", to=to, attrs=f"dim = {axis}", node=to.shape)


@form("dim")
def dim(w: Writer, node: Node) -> Ref:
    """A size as a scalar."""
    of = node.attrs["of"]
    return w("convert", size(w, of), to=node.outputs[0].type, node=[of])


@body("size")
def defined(w: Writer, node: Node, n: Ref) -> Ref:
    """The number itself; behind it the open size is read from it."""
    return n
