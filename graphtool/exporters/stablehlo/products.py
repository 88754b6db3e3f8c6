"""Contractions: matmul as dot_general, conv as convolution."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from graphtool.dtypes import DType
from graphtool.exporters.stablehlo.kit import Node, Ref, Writer, body, definition, form, o, takes
from graphtool.exporters.stablehlo.movement import is_open
from graphtool.exporters.stablehlo.operands import repeated
from graphtool.exporters.stablehlo.text import ints, signature
from graphtool.symbolic import Dim


@form("matmul")
def matmul(w: Writer, node: Node, a: Ref, b: Ref) -> Ref:
    """A product over the batch axes that both have; a matrix b needs none."""
    batch = node.outputs[0].type.shape[:-2]
    flat = len(b.shape) == 2 and not node.attrs["transpose_a"]
    takes(node.attrs["dtype"] is None and a.shape[:-2] == batch and (flat or b.shape[:-2] == batch))
    return product(w, node, a, b, ())


@body("matmul")
def product(w: Writer, node: Node, a: Ref, b: Ref,
            marked: Sequence[Dim] | None = None) -> Ref:
    """A product whose operands are repeated along the batch axes that they lack."""
    to = node.outputs[0].type
    turned_a, turned_b = node.attrs["transpose_a"], node.attrs["transpose_b"]
    batch = to.shape[:-2]
    if len(b.shape) == 2 and not turned_a and a.shape[:-2] == batch:
        batch = ()
    else:
        a = repeated(w, a, a.dtype, (*batch, *a.shape[-2:]))
        b = repeated(w, b, b.dtype, (*batch, *b.shape[-2:]))
    left = len(a.shape) - (2 if turned_a else 1)
    right = len(b.shape) - (1 if turned_b else 2)
    axes = range(len(batch))
    shared = f", batching_dims = {ints(axes)} x {ints(axes)}" if batch else ""
    return w("dot_general", a, b, to=to, node=marked,
             attrs=f"{shared}, contracting_dims = [{left}] x [{right}]")


@form("conv")
def conv(w: Writer, node: Node, x: Ref, k: Ref) -> Ref:
    """A convolution with zeros around x, in its own element type."""
    takes(not node.attrs["absent"] and node.attrs["dtype"] is None)
    return convolution(w, node, x, k)


@body("conv")
def convolution(w: Writer, node: Node, x: Ref, k: Ref) -> Ref:
    """A convolution with our order of axes; the filter's is output, input, window."""
    n, attrs, to = len(x.shape) - 2, node.attrs, node.outputs[0].type
    padding = attrs["padding"]
    takes(not is_open(d for pair in padding or () for d in pair))
    takes(to.dtype is x.dtype)
    space = [str(i) for i in range(n)]
    data = ", ".join(["b", *space, "f"] if attrs["channels_last"] else ["b", "f", *space])
    window = ", ".join(f"{word} = {_rows(v) if word == 'pad' else ints(v)}" for word, v in (
        ("stride", attrs["strides"]), ("pad", padding), ("lhs_dilate", attrs["lhs_dilation"]),
        ("rhs_dilate", attrs["rhs_dilation"])) if v is not None)
    return w.put(
        f"stablehlo.convolution({x.name}, {k.name}) "
        f"dim_numbers = [{data}]x[o, i, {', '.join(space)}]->[{data}], window = {{{window}}} "
        f"{{batch_group_count = {attrs['batch_groups']} : i64, "
        f"feature_group_count = {attrs['groups']} : i64}} : {signature([x.type, k.type], [to])}",
        to, "convolution")


@definition("conv")
def _wide_conv(x: Any, k: Any, *, dtype: DType | None, **attrs: Any) -> Any:
    """With a wider result the operands are made wider: not all tools look at the result's type.
    Zeros of an open number are put around and between the elements before."""
    if dtype is not None and dtype is not x.dtype:
        return o.conv(o.cast(x, dtype=dtype), o.cast(k, dtype=dtype), **attrs)
    n = x.ndim - 2
    at = range(1, n + 1) if attrs["channels_last"] else range(2, n + 2)
    rows = dict(zip(at, attrs["padding"], strict=True))
    gaps = dict(zip(at, attrs["lhs_dilation"] or (1,) * n, strict=True))
    wide = o.pad(x, lo=tuple(rows.get(i, (0, 0))[0] for i in range(x.ndim)),
                 hi=tuple(rows.get(i, (0, 0))[1] for i in range(x.ndim)),
                 interior=tuple(gaps.get(i, 1) - 1 for i in range(x.ndim)))
    return o.conv(wide, k, **attrs | {"padding": None, "lhs_dilation": None})


def _rows(rows: Sequence[Sequence[Any]]) -> str:
    return f"[{', '.join(map(ints, rows))}]"
